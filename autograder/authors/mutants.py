"""Mutants of the reference solutions: small systematic faults that the checks must catch, or that change nothing.

LibCST parses and rewrites; the operators below are the usual ones of mutation testing (Jia & Harman 2011, section 3).
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider

from autograder.authors.parallel import grade_many
from autograder.grading import Options, Submission, Work
from autograder.sandbox.loading import Part
from autograder.syllabus import EXERCISES, Exercise

EQUIVALENTS = Path(__file__).parents[1] / "hidden" / "equivalent_mutants.toml"


@dataclass(frozen=True)
class Mutant:
    """One changed line of a reference solution.  text: the whole module.  before, after: the line, stripped."""

    exercise: Exercise
    line: int
    operator: str
    before: str
    after: str
    text: str = field(repr=False)

    @property
    def name(self) -> str:
        return f"{self.exercise.id}:{self.line} {self.operator}"


@dataclass
class Result:
    """killed: by any check.  equivalent: survivors on record, with the reason.  survivors: the others."""

    killed: list[tuple[Mutant, str]] = field(default_factory=list)
    equivalent: list[tuple[Mutant, str]] = field(default_factory=list)
    survivors: list[Mutant] = field(default_factory=list)
    unused: list[str] = field(default_factory=list)

    @property
    def score(self) -> float:
        """Killed mutants over those that are not equivalent."""
        counted = len(self.killed) + len(self.survivors)
        return len(self.killed) / counted if counted else 1.0


_COMPARISONS: dict[type[cst.BaseCompOp], tuple[type[cst.BaseCompOp], ...]] = {
    cst.LessThan: (cst.LessThanEqual, cst.GreaterThan),
    cst.LessThanEqual: (cst.LessThan, cst.GreaterThan),
    cst.GreaterThan: (cst.GreaterThanEqual, cst.LessThan),
    cst.GreaterThanEqual: (cst.GreaterThan, cst.LessThan),
    cst.Equal: (cst.NotEqual,),
    cst.NotEqual: (cst.Equal,),
}
_BINARY: dict[type[cst.BaseBinaryOp], tuple[type[cst.BaseBinaryOp], ...]] = {
    cst.Add: (cst.Subtract,),
    cst.Subtract: (cst.Add,),
    cst.Multiply: (cst.Divide, cst.Add),
    cst.Divide: (cst.Multiply, cst.FloorDivide),
    cst.FloorDivide: (cst.Multiply,),
    cst.Modulo: (cst.FloorDivide,),
    cst.Power: (cst.Multiply,),
    cst.BitAnd: (cst.BitOr,),
    cst.BitOr: (cst.BitAnd,),
    cst.MatrixMultiply: (cst.Multiply,),
}


def variants(node: cst.CSTNode) -> Iterator[tuple[str, cst.CSTNode]]:
    """What each operator makes of a node: (name of the operator, the node in its place)."""
    if isinstance(node, cst.ComparisonTarget):
        for other in _COMPARISONS.get(type(node.operator), ()):
            yield "comparison", node.with_changes(operator=other())
    elif isinstance(node, cst.BinaryOperation):
        for binary in _BINARY.get(type(node.operator), ()):
            yield "operator", node.with_changes(operator=binary())
        yield "left operand only", node.left
        yield "right operand only", node.right
    elif isinstance(node, cst.BooleanOperation):
        swapped = cst.Or() if isinstance(node.operator, cst.And) else cst.And()
        yield "and/or", node.with_changes(operator=swapped)
        yield "left condition only", node.left
        yield "right condition only", node.right
    elif isinstance(node, cst.UnaryOperation):
        yield "unary operator dropped", node.expression
    elif isinstance(node, cst.Integer):
        value = int(node.value)
        for changed in {value + 1, max(0, value - 1)} - {value}:
            yield "constant", cst.Integer(str(changed))
    elif isinstance(node, cst.Float):
        yield "constant", cst.Float(repr(float(node.value) * 2 + 0.05))
    elif isinstance(node, cst.Name) and node.value in ("True", "False"):
        yield "constant", cst.Name("False" if node.value == "True" else "True")
    elif isinstance(node, cst.If | cst.IfExp):
        yield (
            "condition negated",
            node.with_changes(
                test=cst.UnaryOperation(
                    cst.Not(), node.test.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
                )
            ),
        )
        if isinstance(node, cst.If):
            yield "condition never true", node.with_changes(test=cst.Name("False"))
    elif isinstance(node, cst.Call):
        yield from _calls(node)
    elif isinstance(node, cst.SimpleStatementLine) and len(node.body) == 1 and _is_effect(node.body[0]):
        yield "statement dropped", node.with_changes(body=[cst.Pass()])


def _calls(node: cst.Call) -> Iterator[tuple[str, cst.CSTNode]]:
    positional = [arg for arg in node.args if arg.keyword is None and not arg.star]
    if isinstance(node.func, cst.Attribute) and not _is_module(node.func.value):
        yield "call dropped", node.func.value
    elif positional:
        yield "call dropped", positional[0].value
    for index, (first, second) in enumerate(zip(node.args, node.args[1:], strict=False)):
        if first.keyword is None and second.keyword is None and not first.star and not second.star:
            args = list(node.args)
            args[index] = first.with_changes(value=second.value)
            args[index + 1] = second.with_changes(value=first.value)
            yield "arguments swapped", node.with_changes(args=args)
    for index, arg in enumerate(node.args):
        if arg.keyword is not None:
            args = [other for place, other in enumerate(node.args) if place != index]
            if args:
                args[-1] = args[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)
            yield "keyword dropped", node.with_changes(args=args)


def _is_module(node: cst.BaseExpression) -> bool:
    while isinstance(node, cst.Attribute):
        node = node.value
    return isinstance(node, cst.Name) and node.value in ("torch", "np", "math", "numpy")


def _is_effect(node: cst.CSTNode) -> bool:
    """A statement that is there for what it does: a call or an in-place operation, not a docstring."""
    text = isinstance(node, cst.Expr) and isinstance(node.value, cst.SimpleString | cst.ConcatenatedString)
    return isinstance(node, cst.Expr | cst.AugAssign) and not text


def mutants_of(exercise: Exercise, root: Path) -> list[Mutant]:
    """All mutants of the reference solution of that exercise, one change each, duplicates left out."""
    source = (root / "solutions" / f"{exercise.module}.py").read_text(encoding="utf-8")
    wrapper = MetadataWrapper(cst.parse_module(source))
    positions = wrapper.resolve(PositionProvider)
    lines = source.splitlines()
    found: dict[str, Mutant] = {}
    for node in _inside_functions(wrapper.module):
        for operator, changed in variants(node):
            if isinstance(changed, cst.BaseExpression) and not changed.lpar and isinstance(node, cst.BaseExpression):
                changed = changed.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
            module = wrapper.module.deep_replace(node, changed)
            assert isinstance(module, cst.Module)
            text = module.code
            try:
                compile(text, exercise.module, "exec")
            except (SyntaxError, ValueError):
                continue
            number = positions[node].start.line
            if text not in found and text != source:
                before = lines[number - 1].strip()
                after = _changed_line(lines, text.splitlines())
                found[text] = Mutant(exercise, number, operator, before, after, text)
    return list(found.values())


def _changed_line(old: Sequence[str], new: Sequence[str]) -> str:
    return next((b.strip() for a, b in zip(old, new, strict=False) if a != b), "")


def _inside_functions(module: cst.Module) -> Iterator[cst.CSTNode]:
    """Nodes in function bodies: no docstrings, no annotations, no defaults, no messages of errors."""

    class Collector(cst.CSTVisitor):
        def __init__(self) -> None:
            self.depth = 0
            self.nodes: list[cst.CSTNode] = []

        def on_visit(self, node: cst.CSTNode) -> bool:
            if isinstance(node, cst.Raise | cst.Annotation | cst.Parameters | cst.Decorator | cst.FormattedString):
                return False
            if isinstance(node, cst.If) and _is_main_guard(node):
                return False
            if isinstance(node, cst.FunctionDef):
                self.depth += 1
            elif self.depth:
                self.nodes.append(node)
            return True

        def on_leave(self, original_node: cst.CSTNode) -> None:
            if isinstance(original_node, cst.FunctionDef):
                self.depth -= 1

    collector = Collector()
    module.visit(collector)
    yield from collector.nodes


def _is_main_guard(node: cst.If) -> bool:
    return (
        isinstance(node.test, cst.Comparison)
        and isinstance(node.test.left, cst.Name)
        and (node.test.left.value == "__name__")
    )


def equivalents() -> dict[tuple[str, str, str], str]:
    """Mutants on record as equivalent: (exercise, line before, line after) -> why nothing can tell them apart."""
    entries = tomllib.loads(EQUIVALENTS.read_text(encoding="utf-8")).get("mutant", []) if EQUIVALENTS.exists() else []
    return {(entry["exercise"], entry["before"], entry["after"]): entry["reason"] for entry in entries}


def run(
    numbers: set[int] | None,
    root: Path,
    options: Options,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Result:
    """Grade all mutants of these exercises' solutions, each until its first failed check."""
    found = [
        m for n, exercise in EXERCISES.items() if numbers is None or n in numbers for m in mutants_of(exercise, root)
    ]
    submissions = [Submission(m.name, (Work(m.exercise, (Part(f"{m.exercise.module}.py", m.text),)),)) for m in found]
    reports = grade_many(submissions, replace(options, stop_early=True), jobs, progress)
    recorded = equivalents()
    result = Result()
    used = set()
    for mutant, report in zip(found, reports, strict=True):
        key = (mutant.exercise.id, mutant.before, mutant.after)
        killer = next((check.id for check in report.checks if check.verdict not in ("passed", "skipped")), None)
        if killer is not None:
            result.killed.append((mutant, killer))
        elif key in recorded:
            result.equivalent.append((mutant, recorded[key]))
            used.add(key)
        else:
            result.survivors.append(mutant)
    names = {exercise.id for n, exercise in EXERCISES.items() if numbers is None or n in numbers}
    result.unused = [" → ".join(key) for key in recorded if key not in used and key[0] in names]
    return result

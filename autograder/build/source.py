"""Reading a solution: its cells, and the mistakes an author can make in one."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jupytext

from autograder.syllabus import Exercise

BEGIN_SOLUTION, END_SOLUTION = "### BEGIN SOLUTION", "### END SOLUTION"
BEGIN_ANSWER, END_ANSWER = "<!-- BEGIN ANSWER -->", "<!-- END ANSWER -->"
_MARKERS = {
    f"# {BEGIN_ANSWER}": ("answer", BEGIN_ANSWER),
    f"# {END_ANSWER}": ("answer", END_ANSWER),
    BEGIN_SOLUTION: ("solution", BEGIN_SOLUTION),
    END_SOLUTION: ("solution", END_SOLUTION),
}


#: What can be graded at the top level of a solution: a function, or a class, by what its __init__ takes.
Definition = ast.FunctionDef | ast.ClassDef


class BuildError(Exception):
    """A solution from which nothing can be generated: the message says file, line and what to do."""


@dataclass(frozen=True)
class Region:
    """A stretch of a solution that students must not see, by the lines of its two markers."""

    kind: str
    first: int
    last: int


@dataclass(frozen=True)
class Source:
    """A checked solution.  notebook: its cells, as jupytext reads the percent format."""

    exercise: Exercise
    path: Path
    notebook: Any


def read(root: Path, exercise: Exercise) -> Source:
    """The solution of an exercise.  Raises BuildError."""
    path = Path("solutions", f"{exercise.module}.py")
    try:
        text = (root / path).read_text(encoding="utf-8")
    except FileNotFoundError:
        raise BuildError(
            f"{path}: no such file, but the syllabus has exercise {exercise.number}. Write the solution, "
            f"or take the exercise out of autograder/syllabus.py."
        ) from None
    try:
        tree = ast.parse(text)
    except SyntaxError as error:
        raise BuildError(f"{path}:{error.lineno}: not valid Python ({error.msg}). Mend the line.") from None
    regions = _regions(path, text)
    _check_functions(path, tree, exercise, [region for region in regions if region.kind == "solution"])
    if exercise.written_points and not any(region.kind == "answer" for region in regions):
        raise BuildError(
            f"{path}: exercise {exercise.number} has {exercise.written_points // 100} written points but no model "
            f"answer. Put one between `{BEGIN_ANSWER}` and `{END_ANSWER}` in a markdown cell."
        )
    return Source(exercise, path, jupytext.reads(text, fmt="py:percent"))


def _regions(path: Path, text: str) -> list[Region]:
    regions: list[Region] = []
    start: tuple[str, int] | None = None  # kind and line of the open region
    for number, line in enumerate(text.splitlines(), 1):
        stripped = line.strip()
        if start and re.match(r"# %%", line):
            raise BuildError(
                f"{path}:{start[1]}: the {start[0]} that begins here is still open where a new cell begins, at line "
                f"{number}. Add its END marker before that."
            )
        if stripped not in _MARKERS:
            if re.search(r"(BEGIN|END) (SOLUTION|ANSWER)", line):
                raise BuildError(
                    f"{path}:{number}: `{stripped}` is not a marker. Write `{BEGIN_SOLUTION}` or `{END_SOLUTION}` in "
                    f"code, `# {BEGIN_ANSWER}` or `# {END_ANSWER}` in markdown, alone on the line."
                )
            continue
        kind, marker = _MARKERS[stripped]
        if "BEGIN" in marker:
            if start:
                raise BuildError(
                    f"{path}:{number}: `{marker}` inside the {start[0]} that begins at line {start[1]}. "
                    f"Close that one first, or delete this marker."
                )
            start = kind, number
        else:
            if not start or start[0] != kind:
                raise BuildError(
                    f"{path}:{number}: `{marker}` ends nothing. Add `{marker.replace('END', 'BEGIN')}` above it, "
                    f"or delete it."
                )
            regions.append(Region(kind, start[1], number))
            start = None
    if start:
        raise BuildError(f"{path}:{start[1]}: the {start[0]} that begins here never ends. Add its END marker.")
    return regions


def _check_functions(path: Path, tree: ast.Module, exercise: Exercise, regions: list[Region]) -> None:
    definitions: dict[str, Definition] = {}
    for node in (node for node in tree.body if isinstance(node, Definition)):
        if node.name in definitions:
            raise BuildError(
                f"{path}:{node.lineno}: {node.name} is defined a second time (first at line "
                f"{definitions[node.name].lineno}). Delete or rename one of the two."
            )
        definitions[node.name] = node
    for region in regions:
        if not any(_within(region, node) for node in definitions.values()):
            raise BuildError(
                f"{path}:{region.first}: a solution outside of every function. Move the markers into a function's "
                f"body, below its docstring."
            )
    if exercise.tests:
        _check_tests(path, definitions, regions)
        return
    for graded in exercise.functions:
        if graded.name not in definitions:
            raise BuildError(
                f"{path}: the function {graded.name} of the syllabus is missing. Define it at the top level of the "
                f"solution, or take it out of autograder/syllabus.py."
            )
        node = definitions[graded.name]
        parameters = _parameters(path, node)
        if parameters != graded.parameters:
            raise BuildError(
                f"{path}:{node.lineno}: {graded.name} takes ({', '.join(parameters)}), but the syllabus says "
                f"({', '.join(graded.parameters)}). Make the two agree."
            )
        if not ast.get_docstring(node):
            raise BuildError(f"{path}:{node.lineno}: {graded.name} has no docstring, and students read nothing else.")
        if not any(_within(region, node) for region in regions):
            raise BuildError(
                f"{path}:{node.lineno}: {graded.name} has no solution region, so its stub would give the answer away. "
                f"Put its body between `{BEGIN_SOLUTION}` and `{END_SOLUTION}`."
            )


def _parameters(path: Path, node: Definition) -> tuple[str, ...]:
    """The parameters of a function; those of a class are what its instances are made from, without `self`."""
    if isinstance(node, ast.ClassDef):
        maker = next((method for method in _methods(node) if method.name == "__init__"), None)
        if maker is None:
            raise BuildError(f"{path}:{node.lineno}: the class {node.name} has no __init__. Write one.")
        return _parameters(path, maker)[1:]
    return tuple(a.arg for a in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs))


def _methods(node: ast.ClassDef) -> list[ast.FunctionDef]:
    return [inner for inner in node.body if isinstance(inner, ast.FunctionDef)]


def _check_tests(path: Path, definitions: dict[str, Definition], regions: list[Region]) -> None:
    """Where students write tests, what is theirs are the functions `test_…`; what they test is nowhere in the file."""
    tests = [node for name, node in definitions.items() if name.startswith("test_")]
    if not tests:
        raise BuildError(f"{path}: no function test_… at the top level, but here students write tests. Write one.")
    for node in tests:
        if not ast.get_docstring(node) or not any(_within(region, node) for region in regions):
            raise BuildError(
                f"{path}:{node.lineno}: {node.name} needs a docstring that says what is tested, and its body between "
                f"`{BEGIN_SOLUTION}` and `{END_SOLUTION}`."
            )


def _within(region: Region, node: Definition) -> bool:
    """True for a region in the body of a function, or of a method of a class."""
    if isinstance(node, ast.ClassDef):
        return any(_within(region, method) for method in _methods(node))
    # The END marker is a comment: the function's last statement ends before it.
    return node.lineno < region.first <= (node.end_lineno or 0)

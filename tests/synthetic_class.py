"""A class of any size for tests of what instructors see: the real checks, invented results and invented code."""

from __future__ import annotations

import ast
import os
import random
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from autograder.files import file_stems
from autograder.hidden.catalogue import catalogue
from autograder.render import jsonlines
from autograder.report import Check, ExerciseReport, FunctionReport, Report, Verdict
from autograder.syllabus import EXERCISES

ROOT = Path(__file__).parents[1]
NUMBERS = (1, 2, 3, 4, 5)
#: Monday 2026-11-16, 08:00 UTC: when the first of a class hands in.
FIRST = 1_794_816_000.0


@dataclass(frozen=True)
class Kind:
    """A hidden check as its marker and docstring tell of it."""

    function: str
    name: str
    title: str
    points: int
    misconception: str | None


@cache
def kinds(number: int) -> tuple[Kind, ...]:
    found = []
    for path in sorted((ROOT / "autograder" / "hidden").glob(f"test_ex{number:02d}_*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                found += [_kind(node, mark) for mark in node.decorator_list if "mark.worth" in ast.unparse(mark)]
    return tuple(found)


def _kind(node: ast.FunctionDef, mark: ast.expr) -> Kind:
    assert isinstance(mark, ast.Call)
    function, points = (ast.literal_eval(argument) for argument in mark.args)
    named = {word.arg: ast.literal_eval(word.value) for word in mark.keywords}
    title = " ".join((ast.get_docstring(node) or node.name).split("\n\n")[0].split())
    return Kind(function, node.name, title, round(100 * points), named.get("misconception"))


def report(name: str, random_: random.Random) -> Report:
    """One student, who knows more or less, and does not write every function."""
    skill = min(1.0, random_.betavariate(4, 1.3))
    trouble: Verdict | None = random_.choices([None, "timeout", "crashed", "out_of_memory"], [0.9, 0.05, 0.04, 0.01])[0]
    exercises = []
    for number in NUMBERS:
        functions = []
        for function in EXERCISES[number].functions:
            verdict: Verdict | None = "not_implemented" if random_.random() > 0.75 + 0.3 * skill else None
            if trouble and verdict is None and random_.random() < 0.3:
                verdict = trouble
            own = [kind for kind in kinds(number) if kind.function == function.name]
            checks = tuple(_check(kind, verdict, skill, random_) for kind in own)
            functions.append(FunctionReport(function.name, checks))
        exercises.append(ExerciseReport(EXERCISES[number].id, EXERCISES[number].title, tuple(functions)))
    notes = ("conduct, ex02: tried to open a network connection (3 times)",) if random_.random() < 0.03 else ()
    return Report(name, tuple(exercises), "full", "cpu", 0, "0.1.0", notes)


def _check(kind: Kind, verdict: Verdict | None, skill: float, random_: random.Random) -> Check:
    hardness = 0.25 + (sum(kind.name.encode()) % 7) / 9
    if verdict is None:
        verdict = "passed" if random_.random() < skill ** (hardness * 0.6) else "failed"
    elif verdict != "not_implemented" and random_.random() < 0.4:
        verdict = "passed"
    if verdict == "passed":
        return Check(kind.name, kind.title, verdict, kind.points, kind.points, "", "", 0.02)
    entry = catalogue().get(kind.misconception or "") if verdict == "failed" else None
    message = f"{kind.function}(…) is 0.5199, not 1.0397" if verdict == "failed" else verdict.replace("_", " ")
    if entry is not None:
        message += f"\n{entry.title}: {entry.explanation}"
    hint = entry.hint if entry is not None else ""
    named = kind.misconception if entry is not None else None
    return Check(kind.name, kind.title, verdict, 0, kind.points, message, hint, 0.02, named)


def reports(names: Sequence[str], seed: int = 7) -> list[Report]:
    random_ = random.Random(seed)
    return [report(name, random_) for name in names]


def store(folder: Path, results: Sequence[Report]) -> Path:
    """What `batch --out` leaves of them."""
    folder.mkdir(parents=True, exist_ok=True)
    for stem, result in zip(file_stems([one.submission for one in results]), results, strict=True):
        (folder / f"{stem}.json").write_text(jsonlines.stored(result) + "\n", encoding="utf-8")
    return folder


# -- code --------------------------------------------------------------------------------------------------------------
def program(random_: random.Random, functions: Sequence[str], statements: int = 9) -> str:
    """A module that nobody else would write: random statements in functions of these names."""
    parts = ["import torch\n"]
    for name in functions:
        lines = [f"    {_statement(random_)}" for _ in range(statements)]
        parts.append(f"def {name}(a, b, c):\n" + "\n".join(lines) + f"\n    return {_expression(random_, 2)}\n")
    return ast.unparse(ast.parse("\n\n".join(parts)))


def _statement(random_: random.Random) -> str:
    kind = random_.randrange(4)
    name = random_.choice("abcdefgh")
    if kind == 0:
        return f"for {name} in range({random_.randrange(99)}): c += {_expression(random_, 2)}"
    if kind == 1:
        return f"if {_expression(random_, 1)}: raise ValueError('no')"
    return f"{name} = {_expression(random_, 3)}"


def _expression(random_: random.Random, depth: int) -> str:
    if depth == 0:
        return random_.choice([*"abc", str(random_.randrange(99))])
    one, other = _expression(random_, depth - 1), _expression(random_, random_.randrange(depth))
    method = random_.choice(["sum", "mean", "exp", "log", "amax", "cumsum", "softplus", "gather", "diff", "sort"])
    return random_.choice(
        [f"({one} {random_.choice('+-*/%')} {other})", f"({one}).{method}({other})", f"({one})[{other}]"]
    )


def disguised(code: str, random_: random.Random) -> str:
    """The same module with other names, another order of functions, other layout, comments and docstrings."""
    tree = ast.parse(code)
    kept = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    imported = {
        (alias.asname or alias.name).split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    names = sorted(_bound(tree) - kept - imported)
    renamed = dict(zip(names, random_.sample([f"variable_{n}" for n in range(999)], len(names)), strict=True))
    tree = _Renamed(renamed).visit(tree)
    head = [node for node in tree.body if not isinstance(node, ast.FunctionDef)]
    body = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    random_.shuffle(body)
    tree.body = [*head, *body]
    lines = ast.unparse(ast.fix_missing_locations(tree)).split("\n")
    return "\n".join(f"{line}  # {random_.randrange(999)}" if line and '"' not in line else line for line in lines)


def _bound(tree: ast.AST) -> set[str]:
    arguments = {node.arg for node in ast.walk(tree) if isinstance(node, ast.arg)}
    return arguments | {n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}


class _Renamed(ast.NodeTransformer):
    def __init__(self, names: dict[str, str]) -> None:
        self._names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self._names.get(node.id, node.id)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.arg = self._names.get(node.arg, node.arg)
        return node


def hand_in(folder: Path, names: Sequence[str], seed: int = 7, copies: Sequence[tuple[int, int]] = ()) -> Path:
    """A folder a student, each with code of their own; of `copies` (from, to) the second has the first's, disguised.

    Most hand in late, which is when most of a class does.
    """
    random_ = random.Random(seed)
    code: dict[tuple[int, int], str] = {}
    for index, name in enumerate(names):
        when = FIRST + 13 * 86_400 * random_.betavariate(3, 1)
        (folder / name).mkdir(parents=True)
        for number in NUMBERS:
            names_ = [function.name for function in EXERCISES[number].functions]
            code[index, number] = program(random_, names_)
            first = next((first for first, second in copies if second == index), None)
            if first is not None and number in (2, 5):
                code[index, number] = disguised(code[first, number], random_)
            file = folder / name / f"{EXERCISES[number].module}.py"
            file.write_text(code[index, number], encoding="utf-8")
            os.utime(file, (when, when))
    return folder

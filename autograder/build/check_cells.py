"""The visible checks as notebook cells: one self-contained cell a function, made from `exercises/tests/`."""

from __future__ import annotations

import ast
import json
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

from autograder.syllabus import Exercise

_FIXTURE = "submission"
_TEXT = {
    "en": "# What you can check yourself: run this cell after the one that defines {name}.",
    "zh": "# 可以自己检查的部分：先运行定义 {name} 的单元格，再运行本单元格。",
}


def check_cells(root: Path, exercise: Exercise, lang: str) -> dict[str, str]:
    """The source of a cell for each function that has visible checks.

    A cell defines one name, `check_FUNCTION`, and imports inside of it: what a student's code forgets to import stays
    missing.  A check that takes anything but the submission and its parameters cannot be a cell and is left out.
    """
    path = root / "exercises" / "tests" / f"test_{exercise.module}.py"
    if not path.exists():
        return {}
    module = _Module(path.read_text(encoding="utf-8"))
    by_function: dict[str, list[ast.FunctionDef]] = {}
    names = [function.name for function in exercise.functions]
    for check in module.checks():
        used = [name for name in names if name in module.asked_of_submission(check)]
        if used:
            by_function.setdefault(used[-1], []).append(check)
    heading = _TEXT[lang]
    return {name: f"{heading.format(name=name)}\n{_cell(name, checks, module)}" for name, checks in by_function.items()}


class _Module:
    """A file of visible checks: its text, and what its statements define and use."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        self._body = ast.parse(text).body
        self._defined = {name: node for node in self._body for name in _defined_by(node)}

    def checks(self) -> Iterator[ast.FunctionDef]:
        """The checks that can be cells, in order."""
        for node in self._body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                given = {argument.arg for argument in node.args.args}
                if given == {_FIXTURE, *(name for names, _ in parametrized(node) for name in names)}:
                    yield node

    def asked_of_submission(self, check: ast.FunctionDef) -> set[str]:
        """The functions that a check calls, itself or through a function beside it."""
        return {
            inner.attr
            for node in [*self.needed_by([check]), check]
            for inner in ast.walk(node)
            if isinstance(inner, ast.Attribute) and isinstance(inner.value, ast.Name) and inner.value.id == _FIXTURE
        }

    def needed_by(self, nodes: list[ast.FunctionDef]) -> list[ast.stmt]:
        """The statements of the file, imports first as they stand there, that these functions need."""
        needed: set[ast.stmt] = set()
        waiting: list[ast.stmt] = list(nodes)
        while waiting:
            for inner in ast.walk(waiting.pop()):
                found = self._defined.get(inner.id) if isinstance(inner, ast.Name) else None
                if found is not None and found not in needed and found not in nodes:
                    needed.add(found)
                    waiting.append(found)
        return [node for node in self._body if node in needed]

    def text_of(self, node: ast.stmt) -> str:
        """The text of a statement, decorators left out, calling student functions by their plain names."""
        lines = list(self._lines)
        for line, start, end in sorted(self._submission_marks(node), reverse=True):
            as_bytes = lines[line].encode("utf-8")  # ast counts bytes
            lines[line] = (as_bytes[:start] + as_bytes[end:]).decode("utf-8")
        text = "\n".join(lines[node.lineno - 1 : node.end_lineno])
        return re.sub(r"\(\s*\)", "()", text) if isinstance(node, ast.FunctionDef) and not _arguments(node) else text

    def _submission_marks(self, node: ast.stmt) -> Iterator[tuple[int, int, int]]:
        """Line, start and end of every `submission.`, `submission, ` and `submission`."""
        for inner in ast.walk(node):
            is_name = isinstance(inner, ast.Name) and inner.id == _FIXTURE
            if not (is_name or (isinstance(inner, ast.arg) and inner.arg == _FIXTURE)):
                continue
            assert isinstance(inner, ast.Name | ast.arg)
            line, end = inner.lineno - 1, inner.end_col_offset or 0
            rest = self._lines[line].encode("utf-8")[end:]
            mark = re.match(rb"\.|,[ ]?", rest)
            yield line, inner.col_offset, end + (mark.end() if mark else 0)


def _defined_by(node: ast.stmt) -> list[str]:
    if isinstance(node, ast.Import | ast.ImportFrom):
        return [(alias.asname or alias.name).partition(".")[0] for alias in node.names]
    if isinstance(node, ast.FunctionDef | ast.ClassDef):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [inner.id for target in node.targets for inner in ast.walk(target) if isinstance(inner, ast.Name)]
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return [node.target.id]
    return []


def _arguments(node: ast.FunctionDef) -> list[str]:
    return [argument.arg for argument in node.args.args if argument.arg != _FIXTURE]


def parametrized(node: ast.FunctionDef) -> list[tuple[list[str], str]]:
    """The names and the values, as text, of each `@pytest.mark.parametrize` of a check."""
    found = []
    for mark in node.decorator_list:
        if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.parametrize":
            names = ast.literal_eval(mark.args[0])
            listed = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
            found.append((listed, ast.unparse(mark.args[1])))
    return found


def _cell(name: str, checks: list[ast.FunctionDef], module: _Module) -> str:
    needed = module.needed_by(checks)
    imports = [module.text_of(node) for node in needed if isinstance(node, ast.Import | ast.ImportFrom)]
    blocks = ["\n".join(imports)] if imports else []
    blocks += [module.text_of(node) for node in needed if not isinstance(node, ast.Import | ast.ImportFrom)]
    for check in checks:
        blocks += [module.text_of(check), _call(check)]
    body = textwrap.indent("\n\n".join(blocks), "    ")
    return f"def check_{name}():\n{body}\n\n\ncheck_{name}()"


def _call(check: ast.FunctionDef) -> str:
    """The lines that run a check, once for each set of parameters, and say that it passed."""
    lines, indent = [], ""
    for names, values in parametrized(check):
        lines.append(f"{indent}for {', '.join(names)} in {values}:")
        indent += "    "
    lines.append(f"{indent}{check.name}({', '.join(_arguments(check))})")
    title = " ".join((ast.get_docstring(check) or check.name).split())
    lines.append(f"print({json.dumps('✓ ' + title, ensure_ascii=False)})")
    return "\n".join(lines)

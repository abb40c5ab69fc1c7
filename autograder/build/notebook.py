"""The nbgrader source notebook of an exercise, one for each language of the course."""

from __future__ import annotations

import ast
import hashlib
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from autograder.build import notebook_words as words
from autograder.build.check_cells import check_cells
from autograder.build.notebook_words import Lang
from autograder.build.source import BEGIN_ANSWER, BEGIN_SOLUTION, END_ANSWER, END_SOLUTION, BuildError, Source
from autograder.report import points_number
from autograder.syllabus import Exercise

#: The folder of each language's nbgrader course.
COURSES: dict[Lang, Path] = {"en": Path("notebooks"), "zh": Path("notebooks", "zh")}
_ANSWER = re.compile(rf"{re.escape(BEGIN_ANSWER)}\n(.*?)\n{re.escape(END_ANSWER)}", re.S)
_QUESTION = re.compile(r"^\d+\. ", re.M)


def path_of(exercise: Exercise, lang: Lang) -> Path:
    """Where the notebook lies, relative to the repository."""
    return COURSES[lang] / "source" / exercise.id / f"{exercise.module}.ipynb"


def notebook(root: Path, source: Source, lang: Lang) -> str:
    """The text of the source notebook.  Prose that has no Chinese yet stays English.  Raises BuildError."""
    cells = list(_cells(root, source, lang))
    _name(cells)
    built = new_notebook(
        cells=cells,
        metadata={
            "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
    )
    built.nbformat, built.nbformat_minor = 4, 5
    nbformat.validate(built)
    text: str = nbformat.writes(built)
    return text.rstrip("\n") + "\n"


def _cells(root: Path, source: Source, lang: Lang) -> Iterator[NotebookNode]:
    exercise = source.exercise
    checks = check_cells(root, exercise, lang)
    functions = {function.name: function for function in exercise.functions}
    prose, *rest = _in_language(source, lang)
    if prose.cell_type != "markdown":
        raise BuildError(f"{source.path}: the first cell is code. Begin with a markdown cell: title, goal, time.")
    yield new_markdown_cell(prose.source)
    yield new_markdown_cell(words.guide(lang, exercise))
    yield _code(words.setup(lang), f"{exercise.id}-setup", locked=True)
    written: list[NotebookNode] = []
    for cell in rest:
        if cell.cell_type == "markdown":
            for piece in _prose(cell, exercise, lang):
                yield piece
                written += [piece] if "nbgrader" in piece.metadata else []
            continue
        defined = _defined(cell.source)
        if BEGIN_SOLUTION in cell.source:
            name = next((name for name in defined if name in functions), defined[0] if defined else "code")
            yield _code(cell.source, f"{exercise.id}-{name}-solution", solution=True)
        else:
            yield new_code_cell(cell.source)
        for name in [name for name in defined if name in functions]:
            yield from _graded(exercise, name, checks.get(name), lang)
            del functions[name]
    for name in functions:  # graded, but not a function that students write under that name
        yield from _graded(exercise, name, checks.get(name), lang)
    if len(written) != bool(exercise.written_points):
        raise BuildError(
            f"{source.path}: {len(written)} model answers in the {lang} cells, where exercise {exercise.number} needs "
            f"{'one' if exercise.written_points else 'none'}. Put one `{BEGIN_ANSWER}` … `{END_ANSWER}` in the cell."
        )


def _graded(exercise: Exercise, name: str, check: str | None, lang: Lang) -> Iterator[NotebookNode]:
    """The cell of visible checks, and the grade cell, of one function."""
    if check is not None:
        yield _code(check, f"{exercise.id}-{name}-check", locked=True)
    points = points_number(exercise.by_name[name].points)
    line = words.grade_line(lang, exercise.number, name, points)
    yield _code(line, f"{exercise.id}-{name}", locked=True, grade=True, points=points)


def _in_language(source: Source, lang: Lang) -> list[NotebookNode]:
    """The cells for readers of that language: code, prose in it, and English prose that nothing translates."""
    cells = source.notebook.cells
    following = [*(cell.metadata.get("lang") for cell in cells[1:]), None]
    return [
        cell
        for cell, after in zip(cells, following, strict=True)
        if cell.metadata.get("lang", lang) == lang or (cell.metadata.get("lang") == "en" and after != lang)
    ]


def _prose(cell: NotebookNode, exercise: Exercise, lang: Lang) -> Iterator[NotebookNode]:
    """A cell of prose; a model answer in it becomes a cell of its own, graded by a person."""
    found = _ANSWER.search(cell.source)
    before, after = (cell.source, "") if found is None else (cell.source[: found.start()], cell.source[found.end() :])
    if before.strip():
        yield new_markdown_cell(before.strip())
    if found is not None:
        points = points_number(exercise.written_points)
        answer = words.model_answer(lang, found.group(1).strip(), points, len(_QUESTION.findall(found.group(1))))
        yield new_markdown_cell(
            f"{words.your_answer(lang)}\n\n{BEGIN_SOLUTION}\n{answer}\n{END_SOLUTION}",
            metadata=_metadata(f"{exercise.id}-written", solution=True, grade=True, points=points),
        )
    if after.strip():
        yield new_markdown_cell(after.strip())


def _defined(code: str) -> list[str]:
    return [node.name for node in ast.parse(code).body if isinstance(node, ast.FunctionDef | ast.ClassDef)]


def _code(source: str, grade_id: str, **flags: Any) -> NotebookNode:
    return new_code_cell(source, metadata=_metadata(grade_id, **flags))


def _metadata(
    grade_id: str,
    *,
    grade: bool = False,
    solution: bool = False,
    locked: bool = False,
    points: int | float | None = None,
) -> dict[str, Any]:
    """nbgrader's metadata of a cell, schema 3."""
    found = {
        "grade": grade,
        "grade_id": grade_id,
        "locked": locked,
        "schema_version": 3,
        "solution": solution,
        "task": False,
    }
    return {"nbgrader": found if points is None else {**found, "points": points}}


def _name(cells: list[NotebookNode]) -> None:
    """Give every cell an id that stays when other cells change: its grade id, or a digest of its text."""
    taken: set[str] = set()
    for cell in cells:
        grade_id = cell.metadata.get("nbgrader", {}).get("grade_id", "")
        digest = hashlib.sha256(cell.source.encode("utf-8")).hexdigest()
        name, more = grade_id or digest[:12], 12
        while name in taken:
            more += 1
            name = digest[:more]
        taken.add(name)
        cell["id"] = name

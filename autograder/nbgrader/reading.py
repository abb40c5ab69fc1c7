"""From file to file: renamed notebooks are found, what is no notebook stops nobody's grading, feedback has its page."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import nbformat
from nbconvert.exporters import HTMLExporter, NotebookExporter
from nbformat import NotebookNode
from nbformat.v4 import new_notebook

from autograder.nbgrader.repair import grade_id
from autograder.submission import exercise_number, look
from autograder.syllabus import SYLLABUS, Exercise


def exercise_of(notebook_id: str) -> Exercise | None:
    """The exercise that a notebook of the course belongs to, by the notebook's name."""
    return next((exercise for exercise in SYLLABUS if exercise.module == notebook_id), None)


def match_renamed(assignment: str, student: str, notebooks: list[str]) -> None:
    """nbgrader's hook before a submission is graded: give a renamed notebook its name back, by a link beside it.

    nbgrader knows notebooks by their names and would give nothing for any other.  The notebook of the exercise is the
    one with most cells of it, else the one whose name tells the exercise, else the only one.  notebooks: changed.
    """
    exercise = next((exercise for exercise in SYLLABUS if exercise.id == assignment), None)
    if exercise is None or not notebooks:
        return
    folder = Path(notebooks[0]).parent
    target = folder / f"{exercise.module}.ipynb"
    if target.is_symlink() and not target.exists():  # what it led to was handed in again under another name
        target.unlink()
        with contextlib.suppress(ValueError):
            notebooks.remove(str(target))
    if target.exists():
        notebooks[:] = [str(target)]
        return
    ranked = sorted(notebooks, key=lambda path: (-_cells_of(Path(path), exercise), not _says(path, exercise), path))
    if not ranked:
        return
    best = ranked[0]
    if len(ranked) == 1 or _cells_of(Path(best), exercise) or _says(best, exercise):
        target.symlink_to(os.path.basename(best))
        notebooks[:] = [str(target)]


def _says(path: str, exercise: Exercise) -> bool:
    return exercise_number(os.path.basename(path)) == exercise.number


def _cells_of(path: Path, exercise: Exercise) -> int:
    """How many cells of the exercise's notebook are in a file."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8", errors="replace"))["cells"]
        return sum(grade_id(cell).startswith(f"{exercise.id}-") for cell in cells if isinstance(cell, dict))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return 0


class SubmissionExporter(NotebookExporter):
    """nbgrader's way from file to file.  A file that cannot be read counts as a notebook without cells.

    resources["autograder"] says what was found: `refused`, a sentence or None, and `renamed`, a name or None.
    """

    def from_filename(self, filename: str, resources: Any = None, **kw: Any) -> Any:
        exercise = exercise_of(os.path.splitext(os.path.basename(filename))[0])
        refused = None
        if exercise is not None:
            (found,), _ = look(filename, {exercise.number})
            if found.verdict == "grader_error":
                raise OSError(found.refused)
            refused = found.refused
        notebook = new_notebook()
        if refused is None:
            notebook, refused = _read(Path(filename))
        found_out = {"refused": refused, "renamed": os.readlink(filename) if os.path.islink(filename) else None}
        resources = {**(resources or {}), "autograder": found_out}
        return self.from_notebook_node(notebook, resources=resources, **kw)


class FeedbackExporter(HTMLExporter):
    """HTML by the course's own template: settings for it leave those of formgrader alone."""


def _read(path: Path) -> tuple[NotebookNode, str | None]:
    """A notebook of any format as one of format 4, and why it could not be read, if so."""
    try:
        notebook = nbformat.reads(path.read_text(encoding="utf-8-sig"), as_version=4)
        if not isinstance(notebook.cells, list):
            raise ValueError("cells is no list")
    except Exception as error:  # whatever a damaged file makes a reader raise
        return new_notebook(), f"{path.name} cannot be read: it is not a valid notebook ({type(error).__name__})."
    return notebook, None

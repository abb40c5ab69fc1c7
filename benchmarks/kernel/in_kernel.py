"""The baseline of `nbgrader.py`: the same hidden checks, called from a grade cell within the student's own kernel."""

from __future__ import annotations

from collections.abc import Sequence

from autograder.grading import Options, Submission, Work, grade
from autograder.sandbox.loading import Part
from autograder.syllabus import EXERCISES

_POINTS: dict[str, float] = {}


def points(number: int, name: str, cells: Sequence[str]) -> float:
    """Points of one function.  All checks run once, when the first function is asked for.

    cells: what the kernel ran so far, as IPython's `In`.
    """
    if not _POINTS:
        parts = tuple(Part(f"cell {i}", text, may_fail=True) for i, text in enumerate(cells[:-1]) if text)
        report = grade(
            Submission("notebook", (Work(EXERCISES[number], parts),)), Options(device="cpu", in_process=True)
        )
        _POINTS.update({function.name: function.points / 100 for function in report.exercises[0].functions})
    return _POINTS[name]

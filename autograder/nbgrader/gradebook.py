"""Late penalties from one table, and the gradebook as a CSV file that spreadsheets read."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Any

from nbgrader.api import Gradebook, MissingEntry
from nbgrader.plugins import ExportPlugin, LateSubmissionPlugin
from traitlets import Float, List, Tuple

COLUMNS = (
    "assignment",
    "duedate",
    "timestamp",
    "student_id",
    "last_name",
    "first_name",
    "email",
    "raw_score",
    "late_submission_penalty",
    "score",
    "max_score",
    "status",
)


class LatePolicy(LateSubmissionPlugin):
    """What handing in late costs: a share of the score that grows by steps.

    The share is computed from the time of submission at every grading, so grading again never adds to it.
    """

    table = List(
        Tuple(Float(), Float()),
        default_value=[],
        help="(hours late, share of the score that is lost from then on), in rising order of hours.",
    ).tag(config=True)

    def late_submission_penalty(self, student_id: str, score: float, total_seconds_late: float) -> float:
        """Points to take off."""
        share = 0.0
        for hours, lost in self.table:
            if total_seconds_late > hours * 3600:
                share = lost
        return round(score * share, 2)


class GradebookCsv(ExportPlugin):
    """nbgrader's own columns, quoted as RFC 4180 says, and a status.

    status: graded, needs manual grade, needs attention (no automatic score yet: the score is left empty) or missing.
    """

    def export(self, gradebook: Gradebook) -> None:
        path = self.to or "grades.csv"
        self.log.info("Exporting grades to %s", path)
        with open(path, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(COLUMNS)
            for row in self.rows(gradebook):
                writer.writerow([_cell(row.get(column)) for column in COLUMNS])

    def rows(self, gradebook: Gradebook) -> Iterator[dict[str, Any]]:
        """One row for each assignment and student."""
        assignments, students = {str(name) for name in self.assignment}, {str(name) for name in self.student}
        for assignment in gradebook.assignments:
            if assignments and assignment.name not in assignments:
                continue
            for student in gradebook.students:
                if not students or student.id in students:
                    yield _row(gradebook, assignment, student)


def _row(gradebook: Gradebook, assignment: Any, student: Any) -> dict[str, Any]:
    row: dict[str, Any] = {
        "assignment": assignment.name,
        "duedate": assignment.duedate,
        "student_id": student.id,
        "last_name": student.last_name,
        "first_name": student.first_name,
        "email": student.email,
        "max_score": assignment.max_score,
    }
    try:
        submission = gradebook.find_submission(assignment.name, student.id)
    except MissingEntry:
        return {**row, "raw_score": 0.0, "late_submission_penalty": 0.0, "score": 0.0, "status": "missing"}
    row["timestamp"] = submission.timestamp
    grades = [grade for notebook in submission.notebooks for grade in notebook.grades]
    automatic = [grade for grade in grades if grade.cell.cell_type == "code"]
    if any(grade.auto_score is None and grade.manual_score is None for grade in automatic):
        return {**row, "status": "needs attention"}
    penalty = submission.late_submission_penalty or 0.0
    row["status"] = "needs manual grade" if any(grade.needs_manual_grade for grade in grades) else "graded"
    score = round(max(0.0, submission.score - penalty), 2)
    return {**row, "raw_score": submission.score, "late_submission_penalty": penalty, "score": score}


def _cell(value: Any) -> str:
    """A value as text; what a spreadsheet would compute gets an apostrophe in front."""
    text = "" if value is None else str(value)
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text

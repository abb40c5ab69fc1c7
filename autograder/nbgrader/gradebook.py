"""Late penalties from one table, and the gradebook as a CSV file that spreadsheets read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from nbgrader.api import Gradebook
from nbgrader.plugins import ExportPlugin, LateSubmissionPlugin
from sqlalchemy.orm import Session
from traitlets import Float, List, Tuple

from autograder.nbgrader import scores
from autograder.render.tables import written

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
            file.write(csv_text(gradebook.db, map(str, self.assignment), map(str, self.student)))


def csv_text(session: Session, assignments: Iterable[str] = (), students: Iterable[str] = ()) -> str:
    """One row for each assignment and student.  assignments, students: only those, or all if there are none."""
    return written([COLUMNS, *_rows(session, set(assignments), set(students))])


def _rows(session: Session, only_assignments: set[str], only_students: set[str]) -> Iterator[list[str]]:
    everybody = scores.students(session)
    for assignment in scores.assignments(session):
        if only_assignments and assignment.name not in only_assignments:
            continue
        totals = scores.totals(session, assignment)
        for student in everybody:
            if only_students and student.id not in only_students:
                continue
            total = totals.get(student.id, scores.MISSING)
            row = (
                *(assignment.name, assignment.duedate, total.timestamp),
                *(student.id, student.last_name, student.first_name, student.email),
                *(total.raw, total.penalty, total.score, assignment.max_score, total.status),
            )
            yield ["" if value is None else str(value) for value in row]

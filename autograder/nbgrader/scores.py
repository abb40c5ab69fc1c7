"""What the gradebook says of everybody: totals as nbgrader counts them, and whether they are grades yet."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from nbgrader import api
from sqlalchemy import select
from sqlalchemy.orm import Session

#: needs manual grade: a person has to mark something.  needs attention: there is no automatic score yet.
Status = Literal["graded", "needs manual grade", "needs attention", "missing"]


@dataclass(frozen=True)
class Total:
    """A student's submission of an assignment.  raw: automatic and manual scores and extra credit; score: less penalty.

    Both are 0 where nothing was handed in, and None where there is no score to tell.
    """

    status: Status
    raw: float | None = 0.0
    penalty: float | None = 0.0
    score: float | None = 0.0
    timestamp: datetime | None = None


MISSING = Total("missing")


def assignments(session: Session) -> Sequence[api.Assignment]:
    return session.scalars(select(api.Assignment).order_by(api.Assignment.duedate, api.Assignment.name)).all()


def students(session: Session) -> Sequence[Any]:
    """Everybody in the gradebook: id, last_name, first_name, email, lms_user_id."""
    who = api.Student
    columns = select(who.id, who.last_name, who.first_name, who.email, who.lms_user_id)
    return session.execute(columns.order_by(who.last_name, who.first_name, who.id)).all()


def totals(session: Session, assignment: api.Assignment) -> dict[str, Total]:
    """For each student who has handed it in.

    One query for all: nbgrader's own sum looks through all grades again for each student.
    """
    submission, notebook, grade, cell = api.SubmittedAssignment, api.SubmittedNotebook, api.Grade, api.GradeCell
    rows = session.execute(
        select(
            submission.student_id,
            submission.timestamp,
            notebook.id,
            notebook.late_submission_penalty,
            grade.id,
            grade.score,
            grade.auto_score,
            grade.manual_score,
            grade.needs_manual_grade,
            cell.cell_type,
        )
        .select_from(submission)
        .outerjoin(notebook, notebook.assignment_id == submission.id)
        .outerjoin(grade, grade.notebook_id == notebook.id)
        .outerjoin(cell, cell.id == grade.cell_id)
        .where(submission.assignment_id == assignment.id)
    )
    sums: defaultdict[str, _Sum] = defaultdict(_Sum)
    for who, timestamp, notebook_id, penalty, grade_id, score, automatic, manual, waits, kind in rows:
        so_far = sums[who]
        so_far.timestamp = timestamp
        so_far.penalties[notebook_id] = penalty or 0.0
        if grade_id is not None:
            so_far.scores.append(score)
            so_far.waits |= bool(waits)
            so_far.at_fault |= kind == "code" and automatic is None and manual is None
    return {who: so_far.total() for who, so_far in sums.items()}


@dataclass
class _Sum:
    scores: list[float] = field(default_factory=list)
    penalties: dict[str | None, float] = field(default_factory=dict)
    timestamp: datetime | None = None
    waits: bool = False
    at_fault: bool = False

    def total(self) -> Total:
        raw, penalty = sum(self.scores), sum(self.penalties.values())
        if self.at_fault or not math.isfinite(raw) or not math.isfinite(penalty):
            return Total("needs attention", None, None, None, self.timestamp)
        score = round(max(0.0, raw - penalty), 2)
        return Total("needs manual grade" if self.waits else "graded", raw, penalty, score, self.timestamp)

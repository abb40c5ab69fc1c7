"""Results into nbgrader's gradebook: all scores of a student in one transaction, and what people entered stays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TypeVar

from nbgrader import api
from sqlalchemy import Engine, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from autograder.nbgrader.assignments import Notebook, add_assignment, notebooks
from autograder.render.words import Lang, one_line
from autograder.report import ExerciseReport, FunctionReport, Report, points_number
from autograder.syllabus import EXERCISES, Exercise

Written = TypeVar("Written")

#: Two commands may add the same student or assignment at once: the one that comes second starts again, so many times.
_TRIES = 5


class Refused(ValueError):
    """Results that the gradebook cannot take; the message says why.  Nothing of the student was written."""


@dataclass
class Recorded:
    """What became of a student.  scores: how many were written anew.  notes: sentences for the instructor."""

    is_new: bool = False
    scores: int = 0
    notes: list[str] = field(default_factory=list)


def record(engine: Engine, student: str, reports: Sequence[Report]) -> Recorded:
    """Write all scores of a student or none.  A report that needs attention takes its scores away, manual ones stay.

    Raises Refused, and SQLAlchemyError; then the gradebook is as it was.
    """
    return _in_one_transaction(engine, lambda session: _Writing(session, student).all_of(reports))


def record_assignment(engine: Engine, exercise: Exercise, lang: Lang) -> bool:
    """Record an exercise's assignment, if the gradebook lacks it: see `add_assignment`."""
    return _in_one_transaction(engine, lambda session: add_assignment(session, exercise, lang))


def _in_one_transaction(engine: Engine, write: Callable[[Session], Written]) -> Written:
    for left in reversed(range(_TRIES)):
        try:
            with Session(engine) as session, session.begin():
                return write(session)
        except IntegrityError:
            if not left:
                raise
    raise AssertionError("the last try returns or raises")


class _Writing:
    """One transaction."""

    def __init__(self, session: Session, student: str) -> None:
        self._session = session
        self._student = student
        self._done = Recorded()

    def all_of(self, reports: Sequence[Report]) -> Recorded:
        # The lock on the student's row makes two commands write one after the other (SQLite locks as a whole).
        if self._session.get(api.Student, self._student, with_for_update=True) is None:
            self._done.is_new = True
            self._session.add(api.Student(id=self._student))
            self._session.flush()
        for report in reports:
            for exercise in report.exercises:
                self._exercise(exercise, with_scores=not report.needs_attention)
        self._session.flush()
        return self._done

    def _exercise(self, exercise: ExerciseReport, with_scores: bool) -> None:
        known = next((known for known in EXERCISES.values() if known.id == exercise.id), None)
        if known is None:
            raise Refused(f"this course has no exercise {one_line(exercise.id)}")
        of_assignment = notebooks(self._session, exercise.id)
        if known.module not in of_assignment:
            raise Refused(f"the gradebook's assignment {exercise.id} has no notebook {known.module}")
        functions = {f"{exercise.id}-{function.name}": function for function in exercise.functions}
        _agree(of_assignment[known.module], functions, exercise.id)
        submitted = self._submitted(exercise.id, of_assignment)[known.module]
        grades = {grade.cell_id: grade for grade in submitted.grades}
        changed = 0
        for name, (cell, _) in of_assignment[known.module].automatic.items():
            grade = grades.get(cell)
            if grade is None:
                grade = api.Grade(cell_id=cell, notebook=submitted)
                self._session.add(grade)
            changed += _set(grade, _score(functions[name]) if with_scores else None)
        self._done.scores += changed
        if changed and submitted.late_submission_penalty:
            self._done.notes.append(
                f"{exercise.id} of {one_line(self._student)}: the late penalty of "
                f"{submitted.late_submission_penalty:g} points stays, but the score it was computed from has changed"
            )

    def _submitted(self, assignment: str, of_assignment: dict[str, Notebook]) -> dict[str, api.SubmittedNotebook]:
        """The student's notebooks of that assignment, made with all their grades and comments where there are none."""
        submission = self._session.scalars(
            select(api.SubmittedAssignment)
            .join(api.Assignment)
            .where(api.Assignment.name == assignment, api.SubmittedAssignment.student_id == self._student)
        ).one_or_none()
        if submission is None:
            parent = self._session.scalars(select(api.Assignment).where(api.Assignment.name == assignment)).one()
            submission = api.SubmittedAssignment(assignment_id=parent.id, student_id=self._student)
            self._session.add(submission)
        found = {notebook.notebook_id: notebook for notebook in submission.notebooks}
        by_name = {}
        for name, notebook in of_assignment.items():
            if notebook.id not in found:
                found[notebook.id] = api.SubmittedNotebook(notebook_id=notebook.id, assignment=submission)
                self._session.add(found[notebook.id])
                cells = [*(cell for cell, _ in notebook.automatic.values()), *notebook.by_person.values()]
                self._session.add_all(api.Grade(cell_id=cell, notebook=found[notebook.id]) for cell in cells)
                comments = notebook.commented.values()
                self._session.add_all(api.Comment(cell_id=cell, notebook=found[notebook.id]) for cell in comments)
            by_name[name] = found[notebook.id]
        self._session.flush()
        return by_name


def _agree(notebook: Notebook, functions: dict[str, FunctionReport], assignment: str) -> None:
    """The gradebook and the result must be of one version of the course.  Raises Refused."""
    again = f"grade again with this version of the course, or run `nbgrader generate_assignment {assignment}` again"
    if set(notebook.automatic) != set(functions):
        differ = ", ".join(sorted(one_line(name) for name in set(notebook.automatic) ^ set(functions)))
        raise Refused(f"{assignment} has other functions in the gradebook than in the result ({differ}): {again}")
    for name, function in functions.items():
        worth = notebook.automatic[name][1]
        if function.max_points != worth:
            raise Refused(
                f"{name} is worth {points_number(worth)} in the gradebook and {points_number(function.max_points)} in "
                f"the result: {again}"
            )


def _score(function: FunctionReport) -> float:
    return min(max(function.points, 0), function.max_points) / 100


def _set(grade: api.Grade, score: float | None) -> bool:
    """Write an automatic score; whether it is another than before.

    Where a person has given a score that one stays and counts, and is to be looked at again if the automatic one moves.
    """
    moved: bool = grade.auto_score != score
    grade.auto_score = score
    if moved or grade.manual_score is None:
        grade.needs_manual_grade = score is None or grade.manual_score is not None
    return moved

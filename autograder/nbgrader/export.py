"""The gradebook as a file that a learning management system or a spreadsheet takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from sqlalchemy.orm import Session

from autograder.nbgrader import scores
from autograder.nbgrader.gradebook import csv_text
from autograder.render.tables import Clash, canvas_file, inert, written
from autograder.render.words import Lang
from autograder.syllabus import SYLLABUS

Rows = dict[str, list[str]]


def canvas(session: Session, lang: Lang) -> tuple[str, int]:
    """For Canvas, Grades › Import, and how many grades are not finished: those are left empty.

    Raises Clash, as `moodle` does, if two students or two assignments would look the same in the file.
    """
    titles, worth, rows, waiting = _by_student(session, lang)
    people = [
        (f"{who.last_name or ''}, {who.first_name or ''}".strip(", ") or who.id, who.lms_user_id or "", who.id)
        for who in scores.students(session)
    ]
    _all_differ(login for _, _, login in people)
    return canvas_file(titles, worth, ((*person, rows[person[2]]) for person in people)), waiting


def moodle(session: Session, lang: Lang) -> tuple[str, int]:
    """For Moodle, Grades › Import › CSV file, and how many grades are not finished: "-", Moodle's word for no grade."""
    titles, _, rows, waiting = _by_student(session, lang)
    table = [["Username", "Email address", *titles]]
    for who in scores.students(session):
        email = who.email or (who.id if "@" in who.id else "")
        table.append([who.id, email, *(score or "-" for score in rows[who.id])])
    _all_differ(row[0] for row in table[1:])
    return written(table, spare=("-",)), waiting


def table(session: Session, lang: Lang) -> tuple[str, int]:
    """nbgrader's columns and a status, which tells unfinished grades."""
    return csv_text(session), 0


FORMATS: dict[str, Callable[[Session, Lang], tuple[str, int]]] = {"canvas": canvas, "moodle": moodle, "csv": table}


def _by_student(session: Session, lang: Lang) -> tuple[list[str], list[str], Rows, int]:
    """The assignments' titles, what each is worth, every student's scores as text, and how many are not finished."""
    known = {exercise.id: exercise.title_zh if lang == "zh" else exercise.title for exercise in SYLLABUS}
    titles, worth, waiting = [], [], 0
    rows: Rows = {who.id: [] for who in scores.students(session)}
    for assignment in scores.assignments(session):
        titles.append(f"{assignment.name} {known[assignment.name]}" if assignment.name in known else assignment.name)
        worth.append(f"{assignment.max_score:g}")
        totals = scores.totals(session, assignment)
        for who, row in rows.items():
            total = totals.get(who, scores.MISSING)
            row.append(f"{total.score:.10g}" if total.status == "graded" else "")
            waiting += total.status in ("needs manual grade", "needs attention")
    _all_differ(titles)
    return titles, worth, rows, waiting


def _all_differ(names: Iterable[str]) -> None:
    """What a platform tells rows and columns by must be there once, as it stands in the file.  Raises Clash."""
    seen: set[str] = set()
    for name in names:
        shown = inert(name)
        if shown in seen:
            raise Clash(f"two names in the gradebook are both written as {shown}: rename one of them there")
        seen.add(shown)

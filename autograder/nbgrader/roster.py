"""Whose results a folder holds: which student each belongs to, and what cannot be told is left out and said."""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autograder.batch.stored import Unreadable, read_result, result_files
from autograder.render.tables import student
from autograder.render.words import one_line
from autograder.report import Report
from autograder.submission import UsageError

#: nbgrader's student ids have room for so many characters.
ID_LIMIT = 128
#: What stands where a name had something that cannot be shown.
_REPLACED = "\ufffd"


@dataclass
class Roster:
    """files: the results of each student, and what submission each was.  left_out: what was not taken, and why.

    exercises: the ids of all exercises that there are results of.
    """

    files: dict[str, list[tuple[Path, str]]] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    exercises: set[str] = field(default_factory=set)


def roster(folder: str, table: str | None) -> Roster:
    """Read all results once, and keep of each no more than whose it is.

    table: a CSV file with the columns `submission` and `student_id`, or None.  Raises UsageError.
    """
    students = None if table is None else _students(table)
    found = Roster()
    claims: dict[tuple[str, str], list[Path]] = defaultdict(list)
    for path in result_files(folder):
        report = read_result(path)
        if isinstance(report, Unreadable):
            found.left_out.append(f"{path}: {report.why}")
            continue
        name = one_line(report.submission)
        if not report.exercises:
            why = one_line(report.notes[0]) if report.notes else "it has no exercise"
            found.left_out.append(f"{name}: nothing was graded ({why})")
            continue
        who, why = _who(report, students)
        if why:
            found.left_out.append(f"{name}: {why}")
            continue
        found.files.setdefault(who, []).append((path, report.submission))
        found.exercises.update(exercise.id for exercise in report.exercises)
        for exercise in report.exercises:
            claims[who, exercise.id].append(path)
    _drop_clashes(found, claims)
    return found


def read_again(files: Sequence[tuple[Path, str]]) -> list[Report]:
    """The results of one student.  Raises UsageError if one is another than before."""
    reports = []
    for path, submission in files:
        report = read_result(path)
        if isinstance(report, Unreadable) or report.submission != submission:
            raise UsageError(f"{path} has changed meanwhile: run the same command again when nothing writes there")
        reports.append(report)
    return reports


def _who(report: Report, students: dict[str, str] | None) -> tuple[str, str]:
    """Whose a result is, or why that cannot be told."""
    who = student(report)
    if students is not None:
        named = students.get(one_line(report.submission), students.get(who))
        return (named, "") if named is not None else ("", "the table of students does not name it")
    if _REPLACED in who or not who:
        return "", "the name cannot be a student id: name it in a table, --students"
    if len(who) > ID_LIMIT:
        return (
            "",
            f"the name is longer than {ID_LIMIT} characters, a student id's limit: name it in a table, --students",
        )
    return who, ""


def _drop_clashes(found: Roster, claims: dict[tuple[str, str], list[Path]]) -> None:
    """Of two results with one exercise of one student neither is taken: which one counts, a person must say."""
    clashing: dict[Path, list[str]] = {}
    for (who, exercise), paths in claims.items():
        for path in paths if len(paths) > 1 else []:
            others = ", ".join(other.name for other in paths if other is not path) or "it twice"
            clashing.setdefault(path, []).append(f"{exercise} of {one_line(who)} is in {others} too")
    for path, why in clashing.items():
        found.left_out.append(f"{path}: {'; '.join(why)}: keep the one that counts")
    for who, files in list(found.files.items()):
        found.files[who] = [entry for entry in files if entry[0] not in clashing]
        if not found.files[who]:
            del found.files[who]


def _students(table: str) -> dict[str, str]:
    try:
        with open(table, encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, strict=True)
            rows = list(reader)
            columns = reader.fieldnames or []
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"--students {table}: cannot be read as a CSV file in UTF-8 ({error})") from None
    if not {"submission", "student_id"} <= set(columns):
        raise UsageError(
            f"--students {table}: the first line must name the columns `submission` and `student_id`; it names "
            f"{', '.join(map(one_line, columns)) or 'none'}"
        )
    found: dict[str, str] = {}
    for number, row in enumerate(rows, 2):
        submission, who = one_line(row["submission"] or ""), (row["student_id"] or "").strip()
        if not submission or not who:
            raise UsageError(f"--students {table}, row {number}: `submission` or `student_id` is empty")
        if one_line(who) != who or len(who) > ID_LIMIT:
            raise UsageError(
                f"--students {table}, row {number}: a student id is one line of at most {ID_LIMIT} characters that can "
                "be shown"
            )
        if found.setdefault(submission, who) != who:
            raise UsageError(f"--students {table}, row {number}: {submission} has two student ids")
    return found

"""Gradebooks: CSV (RFC 4180) with nbgrader's columns, and for Canvas and Moodle to import."""

from __future__ import annotations

import csv
import html
import io
from collections.abc import Iterable, Sequence

from autograder.render.reasons import at_fault, functions, groups
from autograder.render.words import Lang, exercise_title, explained, one_line, out_of, say, verdict
from autograder.report import ExerciseReport, FunctionReport, Report, plain_text, points_number
from autograder.submission import SUFFIXES, exercise_number

NBGRADER = (
    *("assignment", "duedate", "timestamp", "student_id", "last_name", "first_name", "email"),
    *("raw_score", "late_submission_penalty", "score", "max_score"),
)
CANVAS = ("Student", "ID", "SIS User ID", "SIS Login ID", "Section")
POINTS_POSSIBLE = "    Points Possible"
#: What a spreadsheet takes for a formula; the full-width ones too.
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠", "\t")


class Clash(ValueError):
    """Two reports that one gradebook cannot hold; the message says which."""


def gradebook(reports: Sequence[Report], lang: Lang = "en") -> str:
    """One row for each exercise of each submission: nbgrader's columns, a status, and one column a function.

    What a report does not know (dates, names, lateness) stays empty, and so does a score that is not a grade yet.
    """
    columns = list(dict.fromkeys(f"{e}.{f.name}" for report in reports for e, f in functions(report)))
    rows = [[*NBGRADER, "status", "submission", *columns]]
    for report in reports:
        who, where = student(report), report.submission
        if not report.exercises:
            nothing = say("nothing graded", lang)
            rows.append(["", "", "", who, "", "", "", "", "", "", "", nothing, where, *[""] * len(columns)])
        for exercise in report.exercises:
            score = _score(exercise)
            status = say("graded" if score else "not graded", lang)
            by_column = {f"{exercise.id}.{function.name}": _score(function) for function in exercise.functions}
            rows.append(
                [exercise.id, "", "", who, "", "", "", score, "", score, _number(exercise.max_points), status, where]
                + [by_column.get(column, "") for column in columns]
            )
    return written(rows)


def canvas(reports: Sequence[Report], lang: Lang = "en") -> str:
    """A file for Canvas, Grades › Import: one row a student, one column an exercise.

    Raises Clash if two reports have the same exercise of one student, or disagree about what it is worth.
    """
    exercises, rows = _by_student(reports)
    for first in exercises.values():
        for report in reports:
            for exercise in report.exercises:
                if exercise.id == first.id and exercise.max_points != first.max_points:
                    raise Clash(f"the results disagree about what {first.id} is worth: grade them with one version")
    worth = [_number(exercise.max_points) for exercise in exercises.values()]
    return canvas_file(
        _titles(exercises, lang),
        worth,
        ((who, "", who, [_score(done[e]) if e in done else "" for e in exercises]) for who, done in rows.items()),
    )


def canvas_file(
    titles: Sequence[str], worth: Sequence[str], students: Iterable[tuple[str, str, str, Sequence[str]]]
) -> str:
    """The file itself.  students: name, Canvas's own id, login, and a score for each title; "" is no grade."""
    table = [[*CANVAS, *titles], [POINTS_POSSIBLE, "", "", "", "", *worth]]
    for who, number, login, scores in students:
        name = "" if POINTS_POSSIBLE.strip() in who else who  # Canvas would take the row for the one above
        table.append([name, number, "", login, "", *scores])
    return written(table)


def moodle(reports: Sequence[Report], lang: Lang = "en") -> str:
    """A file for Moodle, Grades › Import › CSV file: a grade and a feedback column for each exercise.

    "-" is what Moodle takes for no grade.  Raises Clash if two reports have the same exercise of one student.
    """
    exercises, rows = _by_student(reports)
    header = ["Username", "Email address"]
    for title in _titles(exercises, lang):
        header += [title, say("feedback", lang, item=title)]
    table = [header]
    for who, done in rows.items():
        row = [who, who if "@" in who else ""]
        for name in exercises:
            row += [_score(done[name]) or "-", html.escape(_feedback(done[name], lang))] if name in done else ["-", ""]
        table.append(row)
    return written(table, spare=("-",))


def student(report: Report) -> str:
    """Who handed in: the last part of the path that does not tell an exercise (class/zoe, class/zoe/ex02.py: zoe)."""
    parts = [part for part in report.submission.split("/") if part not in ("", ".")]
    while len(parts) > 1 and exercise_number(parts[-1]) is not None:
        parts.pop()
    name = parts[-1] if parts else report.submission
    for suffix in SUFFIXES:
        name = name.removesuffix(suffix)
    return one_line(name)


def _by_student(reports: Iterable[Report]) -> tuple[dict[str, ExerciseReport], dict[str, dict[str, ExerciseReport]]]:
    """The exercises there are, in order, and for each student the exercises that are graded."""
    exercises: dict[str, ExerciseReport] = {}
    rows: dict[str, dict[str, ExerciseReport]] = {}
    for report in reports:
        done = rows.setdefault(student(report), {})
        for exercise in report.exercises:
            if exercise.id in done:
                raise Clash(f"two results have {exercise.id} of {student(report)}: give the one that counts")
            exercises.setdefault(exercise.id, exercise)
            done[exercise.id] = exercise
    return dict(sorted(exercises.items())), rows


def _titles(exercises: dict[str, ExerciseReport], lang: Lang) -> list[str]:
    return [one_line(f"{name} {exercise_title(exercise, lang)}") for name, exercise in exercises.items()]


def _feedback(exercise: ExerciseReport, lang: Lang) -> str:
    lines = []
    for function in exercise.functions:
        lines.append(f"{function.name}{say('colon', lang)}{out_of(function, lang)}")
        for group in groups(function.checks):
            lines += [f"{one_line(check.title)} ({verdict(check, lang)})" for check in group]
            lines.append(explained(group[0], lang).text(lang))
    graded = not _at_fault(exercise)
    return "\n".join([*lines] if graded else [say("not graded", lang), *lines])


def _score(part: ExerciseReport | FunctionReport) -> str:
    """Points as text; nothing where the grader itself failed."""
    return "" if _at_fault(part) else _number(part.points)


def _at_fault(part: ExerciseReport | FunctionReport) -> bool:
    if isinstance(part, FunctionReport):
        return at_fault(part.checks)
    return any(at_fault(function.checks) for function in part.functions)


def _number(hundredths: int) -> str:
    return str(points_number(hundredths))


def written(rows: Iterable[Iterable[str]], spare: tuple[str, ...] = ()) -> str:
    """A CSV file (RFC 4180) that no spreadsheet computes.  spare: cells that are written as they are."""
    stream = io.StringIO(newline="")
    writer = csv.writer(stream, lineterminator="\r\n")
    writer.writerows([cell if cell in spare else inert(cell) for cell in row] for row in rows)
    return stream.getvalue()


def inert(text: str) -> str:
    """A cell that no spreadsheet computes."""
    clean = plain_text(text, 30_000)  # a cell of Excel holds 32,767
    return f"'{clean}" if clean.startswith(_FORMULA) else clean

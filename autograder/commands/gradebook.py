"""`autograder gradebook` and `autograder export`: results into nbgrader's gradebook, and grades out of it."""

from __future__ import annotations

import argparse
import importlib
from typing import Any

from autograder.commands.console import GRADED, GRADER_ERROR, hand_out, say, terminable
from autograder.render.words import LANGUAGES, one_line
from autograder.submission import UsageError
from autograder.syllabus import SYLLABUS

_DB = "sqlite:///gradebook.db"
_DB_HELP = (
    "the gradebook's database as nbgrader takes it: sqlite:///FILE, postgresql+psycopg://USER@HOST/NAME, … "
    f"(default: {_DB})"
)


def add(commands: Any) -> None:
    gradebook = commands.add_parser(
        "gradebook",
        help="write results into nbgrader's gradebook",
        description="Write the results that `grade --out` or `batch --out` has stored into nbgrader's gradebook: all "
        "scores of a student or none. What people entered there stays. A result that needs attention gets no score. "
        "Exit status 3 if anything was left out; what, and why, is said.",
    )
    gradebook.set_defaults(run=_gradebook)
    gradebook.add_argument("results", metavar="RESULTS", help="the folder of results")
    gradebook.add_argument("--db", metavar="URL", default=_DB, help=_DB_HELP)
    gradebook.add_argument(
        "--students",
        metavar="FILE.csv",
        help="a table with the columns `submission` and `student_id`, where submissions are not named by student ids",
    )
    gradebook.add_argument(
        "--lang",
        choices=LANGUAGES,
        default="en",
        help="the course, English or Chinese, whose notebooks make the assignments that the gradebook lacks "
        "(default: en)",
    )

    export = commands.add_parser(
        "export",
        help="write the gradebook's grades into a file for Canvas, Moodle or a spreadsheet",
        description="Write what the gradebook holds (automatic and manual scores, extra credit, less late penalties) "
        "into a file.",
    )
    export.set_defaults(run=_export)
    export.add_argument("--db", metavar="URL", default=_DB, help=_DB_HELP)
    export.add_argument("--format", choices=["canvas", "moodle", "csv"], required=True)
    export.add_argument("--lang", choices=LANGUAGES, default="en", help="language of the titles (default: en)")
    export.add_argument("--out", metavar="FILE", help="write there, as a whole or not at all (default: print)")


def _gradebook(arguments: argparse.Namespace) -> int:
    _needs_nbgrader("gradebook")
    from sqlalchemy.exc import SQLAlchemyError

    from autograder.nbgrader.database import explained, opened
    from autograder.nbgrader.recording import Refused, record, record_assignment
    from autograder.nbgrader.roster import read_again, roster

    found = roster(arguments.results, arguments.students)
    left_out = len(found.left_out)
    for line in found.left_out:
        say(f"not written: {line}")
    students = new = scores = 0
    with terminable(), opened(arguments.db, writes=True) as engine:
        for exercise in SYLLABUS:
            if exercise.id in found.exercises and record_assignment(engine, exercise, arguments.lang):
                say(f"the gradebook had no assignment {exercise.id}: added")
        for who, files in sorted(found.files.items()):
            reports = read_again(files)
            try:
                done = record(engine, who, reports)
            except Refused as error:
                left_out += len(reports)
                say(f"not written: {one_line(who)}: {error}")
                continue
            except SQLAlchemyError as error:
                raise UsageError(
                    f"{one_line(who)}: {explained(error)}. Nothing of this student was written; {students} students "
                    "before are. Run the same command again when it is put right"
                ) from error
            students, new, scores = students + 1, new + done.is_new, scores + done.scores
            for note in done.notes:
                say(note)
            for report in reports:
                if report.needs_attention:
                    left_out += 1
                    say(f"{one_line(report.submission)}: needs attention: it has no score in the gradebook")
    print(f"{students} students, {new} of them new: {scores} scores written, the others were there.")
    if left_out:
        print(f"{left_out} results were left out; each is named above.")
    return GRADER_ERROR if left_out else GRADED


def _export(arguments: argparse.Namespace) -> int:
    _needs_nbgrader("export")
    from sqlalchemy.orm import Session

    from autograder.nbgrader.database import opened
    from autograder.nbgrader.export import FORMATS

    with opened(arguments.db, writes=False) as engine, Session(engine) as session:
        try:
            text, waiting = FORMATS[arguments.format](session, arguments.lang)
        except ValueError as error:
            raise UsageError(f"--format {arguments.format}: {error}") from None
    if waiting:
        say(f"{waiting} grades are not finished (a person has to mark, or the grader failed), and left empty")
    hand_out(text, arguments.out)
    return GRADED


def _needs_nbgrader(command: str) -> None:
    try:
        importlib.import_module("nbgrader")
    except ImportError:
        raise UsageError(
            f"`autograder {command}` needs nbgrader: pip install -c constraints.txt -e '.[notebook]'"
        ) from None

"""`autograder grade`: grade submissions with all checks."""

from __future__ import annotations

import argparse
import contextlib
import sys
from pathlib import Path
from typing import Any

from autograder.commands.arguments import add_grading_arguments, grading_options, jobs, points
from autograder.commands.console import (
    BELOW_MIN_SCORE,
    GRADED,
    GRADER_ERROR,
    colour,
    first_fault,
    made_folder,
    print_document,
    say,
    terminable,
    width,
)
from autograder.files import file_stems, write_atomically
from autograder.render.formats import FORMATS, STORED_ONLY
from autograder.render.words import LANGUAGES
from autograder.report import Report
from autograder.submission import UsageError, find


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "grade",
        help="grade submissions with all checks",
        description="Grade submissions with all checks. What is graded runs in a process of its own, walled off from "
        "this one. One PATH gives a report, several give a table.",
    )
    parser.set_defaults(run=grade)
    parser.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="a module (.py), a notebook (.ipynb), or a folder of them; which exercise a file is, its name tells: "
        "ex02_mlm_loss.py, EX 2.ipynb, …",
    )
    add_grading_arguments(parser)
    parser.add_argument(
        "--format",
        choices=["terminal", *(name for name in FORMATS if name not in STORED_ONLY)],
        default="terminal",
        help="json: one line for each PATH, in their order; the others are documents, written when all is graded: see "
        "docs/formats.md (default: terminal)",
    )
    parser.add_argument("--lang", choices=LANGUAGES, default="en", help="language of a document (default: en)")
    parser.add_argument(
        "--min-score", type=points, metavar="X", help="exit with 1 if any submission has less than X points"
    )
    parser.add_argument("--out", metavar="DIR", help="also write one JSON file for each PATH into DIR")
    parser.add_argument("-v", "--verbose", action="store_true", help="show passed checks too, and whole messages")
    parser.add_argument("--in-process", action="store_true", help=argparse.SUPPRESS)  # no walls: authors only


def grade(arguments: argparse.Namespace) -> int:
    if not (Path(__file__).parents[1] / "hidden" / "catalogue.py").exists():
        raise UsageError(
            "this copy has no hidden checks, so it cannot grade; `autograder check N` runs the visible ones"
        )
    wanted = set(arguments.exercise) or None
    submissions = [find(path, wanted) for path in arguments.paths]
    check_format(arguments, len(submissions))
    options = grading_options(arguments)
    folder = None if arguments.out is None else made_folder(arguments.out)
    at_a_time = jobs(arguments.jobs)

    from autograder.pool import grade_in_order
    from autograder.render import jsonlines, terminal

    stdout = sys.stdout
    as_json = arguments.format == "json"
    as_document = arguments.format not in ("terminal", "json")
    several = len(submissions) > 1
    in_colour, columns = colour(stdout), width()
    names = file_stems([submission.name for submission in submissions])
    status = GRADED
    reports: list[Report] = []

    def emit(report: Report) -> None:
        nonlocal status
        if folder is not None:
            write_atomically(folder / f"{names[len(reports)]}.json", jsonlines.stored(report) + "\n")
        if report.needs_attention:
            status = GRADER_ERROR
            say(f"{report.submission}: the grader itself failed: {first_fault(report)}")
        elif arguments.min_score is not None and report.points < arguments.min_score * 100:
            status = max(status, BELOW_MIN_SCORE)
        if as_json:
            print(jsonlines.line(report), file=stdout, flush=True)
        if as_json or as_document:
            for note in report.notes:
                say(f"{report.submission}: {note}")
        elif not several or arguments.verbose:
            print(
                terminal.report_text(report, verbose=arguments.verbose, colour=in_colour, width=columns),
                file=stdout,
                flush=True,
            )
        elif sys.stderr.isatty():
            print(f"\r{len(reports) + 1} of {len(submissions)} graded", end="", file=sys.stderr, flush=True)
        reports.append(report)

    try:
        with terminable(), contextlib.redirect_stdout(sys.stderr):
            grade_in_order(submissions, options, at_a_time, emit)
    finally:
        if as_json or as_document:
            if gpu := next((line for report in reports if (line := terminal.gpu_line(report))), ""):
                say(gpu)
        elif several and reports:
            if sys.stderr.isatty():
                print(file=sys.stderr)
            print(terminal.table_text(reports, colour=in_colour, width=columns), end="", file=stdout, flush=True)
    if as_document:
        print_document(FORMATS[arguments.format].render(reports, arguments.lang))
    return status


def check_format(arguments: argparse.Namespace, count: int) -> None:
    if arguments.lang != "en" and arguments.format in ("terminal", "json"):
        raise UsageError(f"--lang {arguments.lang}: the format {arguments.format} is in English only")
    if count > 1 and arguments.format in FORMATS and FORMATS[arguments.format].single:
        raise UsageError(f"--format {arguments.format} takes one submission at a time; here are {count}")

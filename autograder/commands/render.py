"""`autograder render`: turn stored results into another format."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from autograder.commands.console import GRADED, colour, hand_out, say, width
from autograder.commands.grade import check_format
from autograder.render.formats import FORMATS
from autograder.render.words import LANGUAGES
from autograder.report import Report
from autograder.submission import UsageError


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "render",
        help="turn stored results into another format",
        description="Turn results that `autograder grade --out DIR` has stored into another format. "
        "docs/formats.md says what each is for.",
    )
    parser.set_defaults(run=render)
    parser.add_argument("results", nargs="*", metavar="RESULT.json", help="a file of --out DIR, or of lines of JSON")
    parser.add_argument("--format", choices=["terminal", *FORMATS], default="terminal", help="(default: terminal)")
    parser.add_argument("--lang", choices=LANGUAGES, default="en", help="language of a document (default: en)")
    parser.add_argument("--out", metavar="FILE", help="write there, as a whole or not at all (default: print)")
    parser.add_argument(
        "--unfinished",
        action="store_true",
        help="for Gradescope: the file that stands until grading has finished, and says that it has not",
    )


def render(arguments: argparse.Namespace) -> int:
    from autograder.render import gradescope, jsonlines, terminal

    if arguments.unfinished:
        if arguments.results or arguments.format != "gradescope":
            raise UsageError("--unfinished goes with --format gradescope, and without results")
        text = gradescope.not_finished(arguments.lang)
    else:
        reports: list[Report] = []
        for path in arguments.results:
            try:
                lines = Path(path).read_text(encoding="utf-8").splitlines()
                reports += [jsonlines.read(line) for line in lines if line.strip()]
            except OSError as error:
                raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
            except ValueError as error:
                raise UsageError(f"{path}: {error}") from None
        if not reports:
            raise UsageError(
                "there is no result to render: name the files that `autograder grade --out DIR` has written"
            )
        check_format(arguments, len(reports))
        if arguments.format == "terminal":
            in_colour, columns = arguments.out is None and colour(sys.stdout), width()
            if len(reports) > 1:
                text = terminal.table_text(reports, colour=in_colour, width=columns)
            else:
                text = terminal.report_text(reports[0], colour=in_colour, width=columns)
        else:
            try:
                text = FORMATS[arguments.format].render(reports, arguments.lang)
            except ValueError as error:
                raise UsageError(f"--format {arguments.format}: {error}") from None
        for report in reports:
            if report.needs_attention:
                say(f"{report.submission}: the grader itself failed: this is not a grade yet")
    hand_out(text, arguments.out)
    return GRADED

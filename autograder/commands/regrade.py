"""`autograder regrade`: what a new grading would change, before anything is published."""

from __future__ import annotations

import argparse
import sys
from typing import Any

from autograder.commands.console import GRADED, colour, width


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "regrade",
        help="compare two gradings of the same class: who goes up or down, by which check",
        description="Compare two folders of results. Nothing is changed or published. Exit status 0 whatever the "
        "comparison shows.",
    )
    parser.set_defaults(run=regrade)
    parser.add_argument("new", metavar="NEW", help="the folder of the new results")
    parser.add_argument("--against", metavar="OLD", required=True, help="the folder of the results that stand")
    parser.add_argument(
        "--format",
        choices=["terminal", "json"],
        default="terminal",
        help="json: one line for each submission that differs, and a last one with the counts (default: terminal)",
    )


def regrade(arguments: argparse.Namespace) -> int:
    from autograder.batch.regrade import regraded
    from autograder.render.regrade import Tally, json_line, json_summary, table_text

    tally = Tally()
    as_json = arguments.format == "json"
    for found in regraded(arguments.against, arguments.new):
        tally.add(found)
        if as_json and (line := json_line(found)):
            print(line, flush=True)
    if as_json:
        print(json_summary(tally))
    else:
        print(table_text(tally, colour=colour(sys.stdout), width=width()), end="")
    return GRADED

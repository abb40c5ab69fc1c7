"""`autograder report`: pages about a whole class, for its instructor."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from autograder.commands.console import GRADED, say
from autograder.render.words import LANGUAGES
from autograder.submission import UsageError


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "report",
        help="write pages about a whole class: scores, misconceptions, near-identical work",
        description="Write a folder of pages about a class, for its instructor. They load nothing and send nothing; "
        "open SITE/index.html.",
    )
    parser.set_defaults(run=report)
    parser.add_argument("results", metavar="RESULTS", help="the folder that `autograder batch --out` has written")
    parser.add_argument(
        "--out", metavar="SITE", required=True, help="the folder to write; an earlier report is replaced"
    )
    parser.add_argument("--lang", choices=LANGUAGES, default="en", help="language of the pages (default: en)")
    parser.add_argument(
        "--submissions",
        metavar="SUBMISSIONS",
        help="what `autograder batch` was given: for the times of handing in, and to find near-identical work",
    )
    parser.add_argument(
        "--similarity-export", metavar="DIR", help="write the code there as well, for JPlag and Dolos to compare"
    )


def report(arguments: argparse.Namespace) -> int:
    from autograder.classreport.build import build

    if arguments.similarity_export and not arguments.submissions:
        raise UsageError("--similarity-export needs the code: give --submissions too")
    written = build(
        arguments.results, arguments.out, arguments.lang, arguments.submissions, arguments.similarity_export
    )
    for note in written.notes:
        say(note)
    if arguments.submissions and written.with_code < written.submissions:
        say(f"no code found for {written.submissions - written.with_code} of {written.submissions} submissions")
    if written.attention:
        say(f"{written.attention} need attention, and have no grade yet")
    near = "" if written.groups is None else f"; groups of near-identical work: {written.groups}"
    print(f"{Path(arguments.out) / 'index.html'}: {written.submissions} submissions{near}")
    if arguments.similarity_export:
        print(f"For JPlag and Dolos: {Path(arguments.similarity_export) / 'README.md'}")
    return GRADED

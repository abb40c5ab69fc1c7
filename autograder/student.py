"""The command `autograder` of a student's copy of the course: `autograder bundle` puts this file in place of cli.py."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from autograder import __version__
from autograder.commands import student
from autograder.commands.console import run


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit status: 0 all checks pass, 1 not, 2 the command makes no sense."""
    parser = argparse.ArgumentParser(
        "autograder",
        description="Check your own work on the BERT exercises.",
        epilog="exit status: 0 all visible checks pass, 1 not, 2 the command makes no sense. "
        "Only instructors can grade: this copy has no hidden checks.",
    )
    parser.add_argument("--version", action="version", version=f"autograder {__version__}, for students")
    student.add(parser.add_subparsers(metavar="COMMAND", required=True))
    return run(parser, sys.argv[1:] if argv is None else argv)

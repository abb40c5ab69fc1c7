"""The command `autograder`."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from autograder import __version__
from autograder.commands import batch, bundle, ci, grade, gradebook, others, regrade, render, report, student
from autograder.commands.console import run


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit status: 0 graded, 1 below --min-score, 2 usage, 3 the grader itself failed."""
    given = list(sys.argv[1:] if argv is None else argv)
    return run(_parser(for_authors=given[:1] == ["authors"]), given)


def _parser(for_authors: bool) -> argparse.ArgumentParser:
    """for_authors: whether the authors' tools are asked for; only then are they, and with them PyTorch, loaded."""
    parser = argparse.ArgumentParser(
        "autograder",
        description="Grade work on the BERT exercises.",
        epilog="exit status: 0 graded, 1 below --min-score, 2 the command makes no sense, 3 the grader itself failed",
    )
    parser.add_argument("--version", action="version", version=f"autograder {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    for module in (grade, batch, render, gradebook, regrade, report, student, bundle, ci, others):
        module.add(commands)
    if for_authors:
        from autograder.authors.commands import add

        add(commands)
    else:
        commands.add_parser("authors", help="tools for authors of checks")
    return parser

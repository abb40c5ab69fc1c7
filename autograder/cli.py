"""The command `autograder`."""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence

from autograder import __version__
from autograder.commands import batch, grade, others, render
from autograder.commands.console import GRADER_ERROR, INTERRUPTED, USAGE, say
from autograder.submission import UsageError


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit status: 0 graded, 1 below --min-score, 2 usage, 3 the grader itself failed."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):  # what a test put there
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        given = list(sys.argv[1:] if argv is None else argv)
        arguments = _parser(for_authors=given[:1] == ["authors"]).parse_args(given)
        return int(arguments.run(arguments))
    except UsageError as error:
        say(str(error))
        return USAGE
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # whoever read our output has closed it
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return GRADER_ERROR


def _parser(for_authors: bool) -> argparse.ArgumentParser:
    """for_authors: whether the authors' tools are asked for; only then are they, and with them PyTorch, loaded."""
    parser = argparse.ArgumentParser(
        "autograder",
        description="Grade work on the BERT exercises.",
        epilog="exit status: 0 graded, 1 below --min-score, 2 the command makes no sense, 3 the grader itself failed",
    )
    parser.add_argument("--version", action="version", version=f"autograder {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    for module in (grade, batch, render, others):
        module.add(commands)
    if for_authors:
        from autograder.authors.commands import add

        add(commands)
    else:
        commands.add_parser("authors", help="tools for authors of checks")
    return parser

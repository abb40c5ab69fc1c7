"""What all commands share: exit statuses, and how they speak."""

from __future__ import annotations

import argparse
import contextlib
import os
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TextIO

from autograder.files import CannotWrite, write_atomically
from autograder.plain import plain_text
from autograder.submission import UsageError

if TYPE_CHECKING:
    from autograder.report import Report

GRADED, BELOW_MIN_SCORE, USAGE, GRADER_ERROR, INTERRUPTED = 0, 1, 2, 3, 130


def run(parser: argparse.ArgumentParser, given: Sequence[str]) -> int:
    """Run what was asked for; the exit status, whatever becomes of it."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):  # what a test put there
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]  # TextIO does not tell
    try:
        arguments = parser.parse_args(given)
        return int(arguments.run(arguments))
    except UsageError as error:
        say(str(error))
        return USAGE
    except CannotWrite as error:
        say(str(error))
        return GRADER_ERROR
    except KeyboardInterrupt:
        say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # whoever read our output has closed it
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return GRADER_ERROR


def say(text: str) -> None:
    """One line on standard error, whatever is in it."""
    with contextlib.suppress(OSError):
        print(f"autograder: {' '.join(plain_text(text).split())}", file=sys.stderr, flush=True)


def colour(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def width() -> int:
    return max(60, min(120, shutil.get_terminal_size((100, 24)).columns))


def print_document(text: str) -> None:
    """Print in UTF-8, whatever the locale: that is what the formats are in."""
    with contextlib.suppress(AttributeError):  # what a test put there
        sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]  # TextIO does not tell
    print(text, end="", flush=True)


def hand_out(text: str, out: str | None) -> None:
    """Print a document, or write it into the file `out`, as a whole or not at all.  Raises UsageError."""
    if out is None:
        print_document(text)
        return
    try:
        write_atomically(Path(out), text)
    except CannotWrite as error:
        raise UsageError(f"--out {error}") from None


@contextlib.contextmanager
def terminable() -> Iterator[None]:
    """SIGTERM ends the command as Ctrl-C does: with everything it started."""

    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def made_folder(text: str) -> Path:
    folder = Path(text)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out {text}: the folder cannot be made ({error.strerror})") from None
    return folder


def first_fault(report: Report) -> str:
    return next(check.message for check in report.checks if check.verdict == "grader_error")

"""`autograder batch`: grade a whole class; what is stored is not run again."""

from __future__ import annotations

import argparse
import contextlib
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.commands.arguments import add_grading_arguments, grading_options, jobs
from autograder.commands.console import GRADED, GRADER_ERROR, INTERRUPTED, made_folder, say, terminable
from autograder.files import CannotWrite
from autograder.submission import UsageError

if TYPE_CHECKING:
    from autograder.batch.run import Progress


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "batch",
        help="grade a whole class, and go on where an interrupted run stopped",
        description="Grade all submissions of a class. OUT holds one JSON file for each when it is done. The same "
        "command again goes on where it stopped, and runs nothing twice.",
    )
    parser.set_defaults(run=batch)
    parser.add_argument(
        "submissions",
        metavar="SUBMISSIONS",
        help="a folder with a folder or file for each, nbgrader's folder submitted/, a ZIP archive of Canvas, Moodle "
        "or Gradescope, or a .csv file with a column `path`",
    )
    parser.add_argument("--out", metavar="OUT", required=True, help="the folder for the results")
    add_grading_arguments(parser)
    parser.add_argument("--scheduler", metavar="ADDRESS", help="grade on the Dask cluster of that scheduler: tcp://…")


def batch(arguments: argparse.Namespace) -> int:
    from autograder.batch.run import Stopped, run
    from autograder.batch.sources import handed_in
    from autograder.pool import grade_as_they_finish

    if arguments.scheduler and arguments.jobs != 1:
        raise UsageError("--jobs is for this machine; with --scheduler, the cluster decides")
    options = grading_options(arguments)
    at_a_time = jobs(arguments.jobs)
    out = made_folder(arguments.out)
    found, notes = handed_in(arguments.submissions, out / ".handed-in")
    for note in notes:
        say(note)

    def engine(submissions: Any, emit: Any) -> None:
        if arguments.scheduler:
            from autograder.batch.cluster import grade_on

            grade_on(arguments.scheduler, submissions, options, emit, say)
        else:
            grade_as_they_finish(submissions, options, at_a_time, emit)

    done = 0
    try:
        with terminable(), contextlib.redirect_stdout(sys.stderr), _progress() as shown:

            def progress(stored: int, graded: int, total: int) -> None:
                nonlocal done
                done = stored + graded
                shown(stored, graded, total)

            summary = run(found, set(arguments.exercise) or None, options, out, engine, progress)
    except (KeyboardInterrupt, CannotWrite, Stopped) as end:
        say(
            f"{str(end) or 'interrupted'}: {done} of {len(found)} submissions have their result in {_shown(out)}; "
            "the same command goes on from there"
        )
        return INTERRUPTED if isinstance(end, KeyboardInterrupt) else GRADER_ERROR
    print(summary.text)
    print(f"One report for each is in {_shown(out)}.")
    return GRADER_ERROR if summary.attention else GRADED


@contextlib.contextmanager
def _progress() -> Iterator[Progress]:
    """A bar with rate and time left on a terminal; elsewhere a line now and then.

    Rate and time left are of what is graded: what is stored already is there at once.
    """
    started = time.monotonic()
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

        columns = (BarColumn(), MofNCompleteColumn(), TextColumn("{task.description}"))
        with Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task("")

            def advance(stored: int, graded: int, total: int) -> None:
                text = _rate(stored, graded, total, time.monotonic() - started)
                bar.update(task, total=total, completed=stored + graded, description=text)

            yield advance
        return
    said = started

    def tell(stored: int, graded: int, total: int) -> None:
        nonlocal said
        now = time.monotonic()
        if now - said > 10:
            said = now
            say(" ".join(f"{stored + graded} of {total} {_rate(stored, graded, total, now - started)}".split()))

    yield tell


def _rate(stored: int, graded: int, total: int, seconds: float) -> str:
    """How fast it goes and how long it will, once there is something to tell it from."""
    if not graded or seconds <= 0:
        return ""
    left = round((total - stored - graded) * seconds / graded)
    return f"{graded / seconds:.2f} a second, {left // 3600}:{left // 60 % 60:02d}:{left % 60:02d} left"


def _shown(folder: Path) -> str:
    return f"{folder}/"

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
from autograder.commands.console import GRADED, GRADER_ERROR, made_folder, say, terminable
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
    from autograder.batch.run import run
    from autograder.batch.sources import handed_in
    from autograder.pool import grade_in_order

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

            grade_on(arguments.scheduler, submissions, options, emit)
        else:
            grade_in_order(submissions, options, at_a_time, emit)

    with terminable(), contextlib.redirect_stdout(sys.stderr), _progress(len(found)) as progress:
        summary = run(found, set(arguments.exercise) or None, options, out, engine, progress)
    print(summary.text)
    print(f"One report for each is in {_shown(out)}.")
    return GRADER_ERROR if summary.attention else GRADED


@contextlib.contextmanager
def _progress(total: int) -> Iterator[Progress]:
    """A bar with rate and time left on a terminal; elsewhere a line now and then."""
    if sys.stderr.isatty():
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"),
            TimeRemainingColumn(compact=True),
        )
        with Progress(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task("", total=total, rate="")
            started = time.monotonic()

            def advance(done: int, _: int) -> None:
                bar.update(task, completed=done, rate=f"{done / (time.monotonic() - started):.2f} a second")

            yield advance
        return
    said = time.monotonic()

    def tell(done: int, total: int) -> None:
        nonlocal said
        if time.monotonic() - said > 10:
            said = time.monotonic()
            say(f"{done} of {total}")

    yield tell


def _shown(folder: Path) -> str:
    return f"{folder}/"

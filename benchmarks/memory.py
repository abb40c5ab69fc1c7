"""How much memory grading takes: one grading process with eight workers alive, and eight grading processes.

    python -m benchmarks.memory workers N | jobs N

Prints the largest proportional set size seen, in bytes, and the walls.  In a process of its own: what a benchmark has
loaded or left in memory must not count.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from benchmarks.measuring import Measured, Row, proportional_memory, run

EXERCISES = (1, 2, 3, 4, 5)
GIB = 1024**3


@dataclass(frozen=True)
class Plan:
    """workers: how many are alive at once, so often as `repeats`.  jobs: how many grading processes; 0 for none."""

    workers: int = 8
    jobs: int = 8
    repeats: int = 3


def measure(plan: Plan) -> Measured:
    """Part (e) of the table."""
    workers = [_measured("workers", plan.workers) for _ in range(plan.repeats)]
    rows = [
        Row(
            f"PSS, one grading process, its zygote and {plan.workers} workers",
            [size / GIB for size, _ in workers],
            "GiB",
            at_most=1.5,
        )
    ]
    notes = [
        f"Proportional set size (smaps_rollup), the most after any submission. Walls: {workers[0][1]}. Every worker "
        "has been through all checks of one of exercises 1–5 with a right submission, and is kept alive."
    ]
    if plan.jobs:
        size, _ = _measured("jobs", plan.jobs)
        rows.append(Row(f"PSS, {plan.jobs} jobs, which share a zygote", [size / GIB], "GiB", at_most=1.5))
        notes.append(
            f"{plan.jobs} jobs are what `--jobs {plan.jobs}` starts on a machine with that many cores: the pool is "
            "asked directly, because the command starts no more jobs than there are cores."
        )
    return Measured("(e) memory", rows, notes)


def _measured(what: str, number: int) -> tuple[float, str]:
    _, said = run([sys.executable, "-m", "benchmarks.memory", what, str(number)])
    result = json.loads(said.splitlines()[-1])
    return result["bytes"], result["walls"]


def main(what: str, number: int) -> None:
    from autograder.grading import Options

    measured = workers if what == "workers" else jobs
    try:
        size, walls = measured(number, Options(device="cpu"))
    except PermissionError:  # only root may look at a process that has given up its rights
        size, walls = measured(number, Options(device="cpu", sandbox="off"))
    print(json.dumps({"bytes": size, "walls": walls}))


def workers(number: int, options: Any) -> tuple[float, str]:
    """One grading process; workers stay alive after their submission is graded."""
    from autograder.grading import chosen_device, grade_in
    from autograder.report import Report
    from autograder.wire.classroom import Classrooms
    from autograder.wire.remote import RemoteStudent
    from benchmarks.overhead import written

    class Kept(Classrooms):
        """Classrooms in which nobody leaves before the end."""

        def __init__(self, *settings: Any) -> None:
            super().__init__(*settings)
            self.students = contextlib.ExitStack()

        def open(self, work: Any) -> contextlib.AbstractContextManager[RemoteStudent]:
            @contextlib.contextmanager
            def opened() -> Iterator[RemoteStudent]:
                yield self.students.enter_context(Classrooms.open(self, work))

            return opened()

    most, walls, alive = 0.0, "", 0

    def on_report(report: Report) -> None:
        nonlocal most, walls, alive
        alive += 1
        walls = report.sandbox
        most = max(most, proportional_memory(os.getpid()))

    submissions = [written(EXERCISES[place % len(EXERCISES)], "solutions") for place in range(number)]
    kept = Kept(options.sandbox, chosen_device("cpu"), options.seed, options.limits)
    with kept, kept.students:
        grade_in(kept, submissions, options, on_report)
    assert alive == number
    return most, walls


def jobs(number: int, options: Any) -> tuple[float, str]:
    """So many grading processes of the pool, with one zygote and, while they grade, a worker each."""
    from autograder.pool import grade_in_order
    from autograder.report import Report
    from benchmarks.overhead import written

    most, walls = 0.0, ""

    def emit(report: Report) -> None:
        nonlocal most, walls
        walls = report.sandbox
        most = max(most, proportional_memory(os.getpid()))

    submissions = [written(EXERCISES[place % len(EXERCISES)], "solutions") for place in range(3 * number)]
    grade_in_order(submissions, options, number, emit)
    return most, walls


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))

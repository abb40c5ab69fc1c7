"""`autograder batch` as a whole: does a second job double the throughput, and does the cost grow linearly?"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from autograder.syllabus import EXERCISES
from benchmarks.measuring import ROOT, Measured, Row, Spent, run, run_until
from benchmarks.overhead import named

CHEAP = 1  # the exercise whose stub is the class of part (f)


@dataclass(frozen=True)
class Throughput:
    """submissions: size of the class, right in all these exercises.  pairs: how often one and two jobs run."""

    submissions: int = 40
    exercises: Sequence[int] = (1, 2, 3, 4, 5)
    pairs: int = 3


@dataclass(frozen=True)
class Growth:
    """sizes: of the classes."""

    sizes: Sequence[int] = (125, 250, 500, 1000, 2000)


def throughput(plan: Throughput) -> Measured:
    """Part (d) of the table."""
    rates: dict[int, list[float]] = {1: [], 2: []}
    whole: dict[int, list[float]] = {1: [], 2: []}
    with tempfile.TemporaryDirectory(prefix="bench-jobs-") as name:
        folder = Path(name, "class")
        for number in range(plan.submissions):
            _hand_in(folder / f"s{number:04d}", "examples/submissions/right", plan.exercises, number)
        for pair in range(plan.pairs):
            for jobs in (1, 2) if pair % 2 == 0 else (2, 1):
                out = Path(name, f"out-{pair}-{jobs}")
                whole[jobs].append(run(_batch(folder, out, jobs))[0].wall)
                rates[jobs].append(_rate(out, jobs))
    ratios = [b / a for a, b in zip(rates[1], rates[2], strict=True)]
    rows = [
        Row("right submissions a minute, --jobs 1", [60 * rate for rate in rates[1]]),
        Row("right submissions a minute, --jobs 2", [60 * rate for rate in rates[2]]),
        Row("throughput, 2 jobs / 1 job", ratios, "×", at_least=1.8),
        Row(
            f"wall of the whole command, 1 job / 2 jobs, {plan.submissions} submissions",
            [a / b for a, b in zip(whole[1], whole[2], strict=True)],
            "×",
        ),
    ]
    note = (
        "Throughput is taken between the results, after every job has written its first: it leaves out the start, "
        "which the whole command has in it. Both are wall time, and mean nothing while other programs want the cores."
    )
    return Measured(f"(d) two jobs: {named(plan.exercises)}", rows, [note])


def growth(plan: Growth) -> Measured:
    """Part (f) of the table."""
    first: dict[int, Spent] = {}
    rest: dict[int, Spent] = {}
    whole: dict[int, Spent] = {}
    with tempfile.TemporaryDirectory(prefix="bench-growth-") as name:
        for size in sorted(plan.sizes, reverse=True):  # a machine that gets busier must not look like growth
            folder, out = Path(name, f"class-{size}"), Path(name, f"out-{size}")
            for number in range(size):
                _hand_in(folder / f"s{number:04d}", "exercises", [CHEAP], number)
            laps = run_until(_batch(folder, out, 1), out, size)
            first[size], rest[size] = laps[:2]
            whole[size] = Spent(sum(lap.cpu for lap in laps), sum(lap.wall for lap in laps))
    sizes = sorted(first)
    rows = [Row("CPU until the first result", [first[size].cpu for size in sizes], "s")]
    for size in sizes:
        rows.append(Row(f"CPU, a batch of {size:,}", [whole[size].cpu], "s"))
        rows.append(Row(f"wall, a batch of {size:,}", [whole[size].wall], "s"))
    more = [size - 1 for size in sizes]
    cpu = [rest[size].cpu for size in sizes]
    rows.append(Row("CPU, one more, at each size", [1000 * used / n for used, n in zip(cpu, more, strict=True)], "ms"))
    rows.append(
        Row("exponent of CPU over size, from the first result to the last", [exponent(more, cpu)], at_most=1.05)
    )
    wall = [rest[size].wall for size in sizes]
    rows.append(Row("exponent of wall over size, from the first result to the last", [exponent(more, wall)]))
    note = (
        f"Stubs of exercise {CHEAP}, every one different, --jobs 1, each size once, the largest first. The exponent is "
        "the slope of a straight line through the logarithms: 1 is linear."
    )
    return Measured("(f) a growing class", rows, [note])


def exponent(sizes: Sequence[int], costs: Sequence[float]) -> float:
    """The p of cost ∝ sizeᵖ: least squares on logarithms.  Raises ValueError for a cost that is not above zero."""
    if min(costs) <= 0:
        raise ValueError(f"submissions that cost nothing have no exponent: {list(costs)}")
    return float(np.polyfit(np.log(sizes), np.log(costs), 1)[0])


def _hand_in(folder: Path, source: str, exercises: Sequence[int], number: int) -> None:
    folder.mkdir(parents=True)
    for exercise in exercises:
        name = f"{EXERCISES[exercise].module}.py"
        text = (ROOT / source / name).read_text(encoding="utf-8")
        (folder / name).write_text(f"{text}\n# handed in by {number}\n", encoding="utf-8")


def _batch(submissions: Path, out: Path, jobs: int) -> list[str | Path]:
    grade = [sys.executable, "-m", "autograder", "batch", "--jobs", str(jobs), "--device", "cpu"]
    return [*grade, submissions, "--out", out]


def _rate(out: Path, jobs: int) -> float:
    """Submissions a second between the results: from when every job has written one to the last."""
    times = sorted(file.stat().st_mtime for file in out.glob("*.json"))
    return (len(times) - jobs) / (times[-1] - times[jobs - 1])

"""What the boundary costs: the hidden checks on the reference solutions, across the wire and in-process, in one run.

    python benchmarks/overhead.py [--repeats 5] [--exercises 1 2 3 4 5]

Both ways run in turn, so that a change in the machine's load hits both; the ratio is taken pair by pair.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import time
from pathlib import Path

import torch

from autograder.grading import Options, Submission, Work, grade_all
from autograder.report import Report
from autograder.sandbox.loading import Part
from autograder.syllabus import EXERCISES

ROOT = Path(__file__).parents[1]


def reference(numbers: list[int], folder: str = "solutions") -> Submission:
    works = []
    for number in numbers:
        name = f"{EXERCISES[number].module}.py"
        works.append(Work(EXERCISES[number], (Part(name, (ROOT / folder / name).read_text(encoding="utf-8")),)))
    return Submission(folder, tuple(works))


def timed(submissions: list[Submission], in_process: bool) -> tuple[float, list[float], list[float], str]:
    """Start-up seconds, then wall and grader-CPU seconds of every submission, and the sandbox level."""
    started = time.perf_counter()
    wall, cpu, level = [], [], ""
    marks = [started, time.process_time()]

    def on_report(report: Report) -> None:
        nonlocal level
        now, used = time.perf_counter(), time.process_time()
        wall.append(now - marks[0])
        cpu.append(used - marks[1])
        marks[:] = [time.perf_counter(), time.process_time()]
        level = report.sandbox
        assert report.submission != "solutions" or report.points == report.max_points, "the reference lost points"

    grade_all(submissions, Options(in_process=in_process), on_report)
    return wall[0], wall[1:], cpu[1:], level


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--exercises", type=int, nargs="*", default=[1, 2, 3, 4, 5])
    options = parser.parse_args()
    right, stub = reference(options.exercises), reference(options.exercises, "exercises")
    ratios, cpu_ratios, local, remote, stubs, starts = [], [], [], [], [], []
    for _ in range(options.repeats):
        first_local, wall_local, cpu_local, _ = timed([right, right], in_process=True)
        first_remote, wall_remote, cpu_remote, level = timed([right, right, stub], in_process=False)
        local.append(wall_local[0])
        remote.append(wall_remote[0])
        stubs.append(wall_remote[1])
        starts.append((first_remote - wall_remote[0]) - (first_local - wall_local[0]))
        ratios.append(wall_remote[0] / wall_local[0])
        cpu_ratios.append(cpu_remote[0] / cpu_local[0])
    median = statistics.median
    print(f"exercises {options.exercises}, {options.repeats} pairs, sandbox: {level}")
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, "
        f"Python {platform.python_version()}, PyTorch {torch.__version__}\n"
    )
    print(f"{'':34}{'median':>9}{'min':>9}{'max':>9}")
    for name, values, unit in (
        ("in-process, a right submission", local, "s"),
        ("across the wire, a right submission", remote, "s"),
        ("across the wire, a stub", stubs, "s"),
        ("wall ratio wire / in-process", ratios, "×"),
        ("grader-CPU ratio wire / in-process", cpu_ratios, "×"),
        ("start of the zygote (once a batch)", starts, "s"),
    ):
        print(f"{name:36}{median(values):7.2f}{unit}{min(values):8.2f}{unit}{max(values):8.2f}{unit}")
    print(f"\nright submissions a minute, one grader: {60 / median(remote):.0f}")


if __name__ == "__main__":
    main()

"""What one submission of each exercise costs in a batch that is under way: CPU seconds, and bytes of the result.

    python benchmarks/cost.py [--exercises 1 2 3] [--repeats 3]

CPU time of the grading process and of all that it started, from one report to the next; each exercise is graded once
beforehand, so that what is done once for a batch is not counted.  Seconds of CPU do not wait, but a machine that is
busy with other things makes them a little longer: the load is printed.
"""

from __future__ import annotations

import argparse
import os
import platform
import statistics
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[0] = str(ROOT)  # the folder of this file has an nbgrader of its own

from autograder.authors import banks  # noqa: E402 — the path first
from autograder.grading import Options, grade_all  # noqa: E402 — likewise
from autograder.render import jsonlines  # noqa: E402 — likewise
from autograder.report import Report  # noqa: E402 — likewise
from autograder.syllabus import EXERCISES  # noqa: E402 — likewise

TICK = os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exercises", type=int, nargs="+", default=sorted(EXERCISES), metavar="E")
    parser.add_argument(
        "--repeats", type=int, default=3, metavar="N", help="wrong submissions, and times of each right"
    )
    options = parser.parse_args()
    print(
        f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, "
        f"Python {platform.python_version()}.\n\n"
        "| exercise | right | wrong | unwritten | stored result of a right one |\n| --- | --- | --- | --- | --- |"
    )
    for number in options.exercises:
        print(_row(number, options.repeats), flush=True)


def _row(number: int, repeats: int) -> str:
    """Median CPU seconds of each kind, as a line of the table."""
    exercise = EXERCISES[number]
    wrong = banks.impostors({number})
    paths = {"right": [ROOT / "solutions" / f"{exercise.module}.py"] * repeats}
    paths["wrong"] = [entry.path for entry in wrong[:: max(1, len(wrong) // repeats)][:repeats]]
    paths["unwritten"] = [ROOT / "exercises" / f"{exercise.module}.py"]
    first = paths["right"][:1]
    class_ = [banks.submission(exercise, path, kind) for kind, some in paths.items() for path in some]
    class_ = [banks.submission(exercise, path, "first") for path in first] + class_
    spent: dict[str, list[float]] = {}
    size = 0
    before = 0.0

    def on_report(report: Report) -> None:
        nonlocal before, size
        now = _cpu()
        spent.setdefault(report.submission, []).append(now - before)
        size = len(jsonlines.stored(report)) if report.submission == "right" else size
        before = _cpu()

    grade_all(class_, Options(device="cpu"), on_report)
    seconds = " | ".join(f"{statistics.median(spent[kind]):.2f} s" for kind in ("right", "wrong", "unwritten"))
    return f"| {exercise.id} | {seconds} | {size / 1e3:.1f} kB |"


def _cpu() -> float:
    """CPU seconds of this process and of all below it, also of those that ended there (proc(5), stat)."""
    return time.process_time() + sum(map(_cpu_of, _children(os.getpid())))


def _cpu_of(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, fields[11:15])) / TICK + sum(map(_cpu_of, _children(pid)))


def _children(pid: int) -> list[int]:
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()]
    except OSError:
        return []


if __name__ == "__main__":
    main()

"""What one submission of each exercise costs in a batch that is under way: CPU seconds, and bytes of the result.

    python -m benchmarks.cost [--exercises 1 2 3] [--repeats 3]

CPU time of the grading process and of all that it started, from one report to the next; each exercise is graded once
beforehand, so that what is done once for a batch is not counted.  Seconds of CPU do not wait, but a machine that is
busy with other things makes them a little longer: the load is printed.
"""

from __future__ import annotations

import argparse
import statistics

from autograder.authors import banks
from autograder.grading import Options, grade_all
from autograder.render import jsonlines
from autograder.report import Report
from autograder.syllabus import EXERCISES
from benchmarks.measuring import ROOT, Laps, load, machine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--exercises", type=int, nargs="+", default=sorted(EXERCISES), metavar="E")
    parser.add_argument(
        "--repeats", type=int, default=3, metavar="N", help="wrong submissions, and times of each right"
    )
    options = parser.parse_args()
    print(
        f"{machine()} Load {load():.1f}.\n\n"
        "| exercise | right | wrong | unwritten | stored result of a right one |\n| --- | --- | --- | --- | --- |"
    )
    for number in options.exercises:
        print(_row(number, options.repeats), flush=True)


def _row(number: int, repeats: int) -> str:
    """Median CPU seconds of each kind, as a line of the table."""
    exercise = EXERCISES[number]
    wrong = banks.impostors({number})
    right = ROOT / "solutions" / f"{exercise.module}.py"
    paths = {
        "first": [right],  # pays for what is done once
        "right": [right] * repeats,
        "wrong": [entry.path for entry in wrong[:: max(1, len(wrong) // repeats)][:repeats]],
        "unwritten": [ROOT / "exercises" / f"{exercise.module}.py"],
    }
    class_ = [banks.submission(exercise, path, kind) for kind, some in paths.items() for path in some]
    spent: dict[str, list[float]] = {}
    size = 0
    clock = Laps()

    def on_report(report: Report) -> None:
        nonlocal size
        spent.setdefault(report.submission, []).append(clock.lap().cpu)
        size = len(jsonlines.stored(report)) if report.submission == "right" else size

    grade_all(class_, Options(device="cpu"), on_report)
    seconds = " | ".join(f"{statistics.median(spent[kind]):.2f} s" for kind in ("right", "wrong", "unwritten"))
    return f"| {exercise.id} | {seconds} | {size / 1e3:.1f} kB |"


if __name__ == "__main__":
    main()

"""What one more notebook of twelve checks costs: plain nbgrader, otter-grader and this grader, scores compared."""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from autograder.sandbox.zygote import LARGE_PAGES_FROM
from benchmarks.measuring import Measured, Row, run
from benchmarks.twelve import checks, peers
from benchmarks.twelve.notebooks import hand_in, works
from benchmarks.twelve.peers import Class

KINDS = 3  # right, wrong and unwritten, in turn
#: What one more costs is known once what workers are forked from has taken large pages, which it does one time.
SETTLED = (LARGE_PAGES_FROM // KINDS + 2) * KINDS


@dataclass(frozen=True)
class Plan:
    """rounds: how often everything runs, in turn.  students: of the peers' class.  ours: of ours.

    peers: whether the peers run at all; installing and starting them takes longer than all the rest.
    """

    rounds: int = 3
    students: int = 6
    ours: int = 450  # the kernel counts the time of others in steps of 10 ms
    peers: bool = True


def measure(plan: Plan) -> Measured:
    """Part (c) of the table."""
    notes = [
        "The notebook has one solution cell and twelve grade cells of one point; the class hands in right, wrong and "
        "unwritten work in turn. Every grader runs the same text of the checks; only ours confines the submissions. "
        "CPU time of all processes; “one more” leaves out what a command spends once, which “the first” has in it. Of "
        f"ours it is taken after the first {SETTLED}, among which large pages are made, for as much as they had saved."
    ]
    graders: dict[str, Callable[[Sequence[str]], Class]] = {}
    if plan.peers:
        for package, grade in (("nbgrader", peers.nbgrader_class), ("otter-grader", peers.otter_class)):
            try:
                python = peers.installed(package)
            except peers.NotThere as reason:
                notes.append(f"NOT MEASURED: {reason}.")
                continue
            graders[f"{package} {peers.PINS[package]}"] = partial(grade, python)
    else:
        notes.append("nbgrader and otter-grader are not run with --quick.")
    found: dict[str, list[Class]] = {name: [] for name in graders}
    ours: list[Class] = []
    right: list[float] = []
    for turn in range(plan.rounds):
        for name, graded_by in list(graders.items())[:: 1 if turn % 2 else -1]:
            found[name].append(graded_by(works(plan.students)))
        graded, of_right = ours_class(works(max(plan.ours, plan.students)))
        ours.append(graded)
        right.append(of_right)
    rows = []
    for name, classes in found.items():
        rows.append(Row(f"CPU, one more by {name}", [one.each for one in classes], "s"))
    rows.append(Row("CPU, one more by ours, right, wrong and unwritten", [one.each for one in ours], "s"))
    rows.append(Row("CPU, one more by ours, a right one", right, "s"))
    for name, classes in found.items():
        ratios = [theirs.each / mine for theirs, mine in zip(classes, right, strict=True)]
        rows.append(Row(f"CPU, {name} / ours, a right one", ratios, "×", at_least=100))
    for name, classes in found.items():
        rows.append(Row(f"CPU, the first by {name}, start included", [one.first for one in classes], "s"))
    rows.append(Row("CPU, the first by ours, start included", [one.first for one in ours], "s"))
    if found:
        equal = [
            theirs.points == mine.points[: plan.students]
            for classes in found.values()
            for theirs, mine in zip(classes, ours, strict=True)
        ]
        notes.append(f"The points of all {plan.students} were equal in {sum(equal)} of {len(equal)} comparisons.")
    return Measured("(c) twelve checks in a notebook, exercise 2", rows, notes)


def points(code: str) -> int:
    """What the submission is worth, found by running its code and the checks here."""
    functions: dict[str, Any] = {}
    exec(compile(code, "submission", "exec"), functions)
    return checks.points({name: functions[name] for name in checks.FUNCTIONS})


def ours_class(texts: Sequence[str]) -> tuple[Class, float]:
    """The class by this grader, and the CPU seconds of one more right submission."""
    with tempfile.TemporaryDirectory(prefix="bench-ours-") as name:
        paths = [hand_in(Path(name, f"s{number:03d}"), code) for number, code in enumerate(texts)]
        spent, said = run([sys.executable, "-m", "benchmarks.twelve.ours", *map(str, paths)])
    result = json.loads(said.splitlines()[-1])
    if result["points"] != [points(code) for code in texts]:
        raise SystemExit(f"The twelve checks gave other points than without a boundary: {result['points']}")
    cpu = result["cpu"]
    after = SETTLED if len(cpu) > SETTLED else KINDS
    return (
        Class(spent.cpu - sum(cpu[1:]), statistics.fmean(cpu[after:]), result["points"]),
        statistics.fmean(cpu[after::KINDS]),
    )

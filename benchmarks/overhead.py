"""What the boundary costs: hidden checks of exercises 1 to 5 across the wire and in-process; stubs and wrong work.

Both ways run in turn in one process, so that a change in the machine's load hits both; ratios are taken pair by pair.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass

from autograder.authors import banks
from autograder.grading import Options, Submission, Work, grade_all
from autograder.report import Report
from autograder.sandbox.loading import Part
from autograder.syllabus import EXERCISES
from benchmarks.measuring import ROOT, Laps, Measured, Row, Spent

#: An impostor of these endings has no fair time: it would be measured by how long the grader waits for it.
_ENDLESS = ("_exit", "while True", "sleep(")


@dataclass(frozen=True)
class Plan:
    """How much is measured.  wrong: how many wrong submissions of each exercise."""

    exercises: Sequence[int] = (1, 2, 3, 4, 5)
    pairs: int = 5
    wrong: int = 4


def measure(plan: Plan) -> list[Measured]:
    """Parts (a) and (b) of the table."""
    right = [written(number, "solutions") for number in plan.exercises]
    stubs = [written(number, "exercises") for number in plan.exercises]
    wrong = [one for number in plan.exercises for one in impostors(number, plan.wrong)]
    local: list[list[Spent]] = []
    batch: list[list[Spent]] = []
    alone: list[list[Spent]] = []
    level = ""
    for pair in range(plan.pairs):
        for way in (local, batch, alone) if pair % 2 == 0 else (alone, batch, local):
            if way is local:
                laps, _ = timed([*right, *right], in_process=True)
            else:
                laps, level = timed([*right, *right, *stubs, *wrong], precedents=way is batch)
            way.append(laps[len(right) :])
    return [
        _boundary(plan.exercises, local, batch, alone, level),
        _wrong(plan, len(right), batch, alone, [one.name for one in wrong]),
    ]


def written(number: int, folder: str) -> Submission:
    """The module of one exercise in a folder of the repository, as a submission of its own."""
    name = f"{EXERCISES[number].module}.py"
    text = (ROOT / folder / name).read_text(encoding="utf-8")
    return Submission(f"{folder}/{name}", (Work(EXERCISES[number], (Part(name, text),)),))


def impostors(number: int, wanted: int) -> list[Submission]:
    """So many wrong submissions of one exercise, evenly from the bank in the order of their names."""
    bank = sorted(banks.impostors({number}), key=lambda one: one.name)
    usable = [one for one in bank if not any(mark in one.path.read_text(encoding="utf-8") for mark in _ENDLESS)]
    chosen = usable[:: max(1, len(usable) // wanted)][:wanted]
    return [banks.submission(one.exercise, one.path, one.name) for one in chosen]


def timed(
    submissions: Sequence[Submission], in_process: bool = False, precedents: bool = True
) -> tuple[list[Spent], str]:
    """What every submission took, and the walls it ran between.  The first one's time has the start in it."""
    laps: list[Spent] = []
    level = ""
    clock = Laps()

    def on_report(report: Report) -> None:
        nonlocal level
        laps.append(clock.lap())
        level = report.sandbox
        if report.submission.startswith("solutions/") and report.points != report.max_points:
            raise SystemExit(f"{report.submission} lost points: there is nothing to compare.")

    grade_all(submissions, Options(device="cpu", in_process=in_process, precedents=precedents), on_report)
    return laps, level


def _boundary(
    exercises: Sequence[int], local: list[list[Spent]], batch: list[list[Spent]], alone: list[list[Spent]], level: str
) -> Measured:
    count = len(exercises)
    remote, first = ([laps[:count] for laps in way] for way in (batch, alone))
    pairs = list(zip(local, remote, strict=True))
    rows = [
        Row("CPU, in-process, right", [_cpu(laps) for laps in local], "s"),
        Row("CPU, across the wire, right", [_cpu(laps) for laps in remote], "s"),
        Row("CPU, wire / in-process", [_cpu(b) / _cpu(a) for a, b in pairs], "×", at_most=1.2),
        Row("wall, wire / in-process", [_wall(b) / _wall(a) for a, b in pairs], "×", at_most=1.2),
    ]
    for place, number in enumerate(exercises):
        ratios = [b[place].cpu / a[place].cpu for a, b in pairs]
        rows.append(Row(f"CPU, wire / in-process, exercise {number}", ratios, "×"))
    unlike = [_cpu(b) / _cpu(a) for a, b in zip(local, first, strict=True)]
    rows.append(Row("CPU, wire / in-process, one that answers like no other", unlike, "×"))
    return Measured(
        f"(a) the boundary: {named(exercises)}, a right submission",
        rows,
        [
            f"Walls: {level}. The grading process, the process that workers are made from and the workers are counted. "
            "Both are warm: the start of neither is in.",
            "Across the wire a check whose answers are, bit by bit, those of an earlier submission ends as it ended "
            "then. The reference comes a second time here, as right work mostly does in a class; the last row is "
            "without that, for work whose every answer is new.",
        ],
    )


def _wrong(plan: Plan, count: int, batch: list[list[Spent]], alone: list[list[Spent]], names: list[str]) -> Measured:
    ratios = {name: statistics.median(_to_right(plan, count, alone, place)) for place, name in enumerate(names)}
    to_known = [statistics.median(_to_right(plan, count, batch, place)) for place, _ in enumerate(names)]
    stubs = [_cpu(laps[count : 2 * count]) / _cpu(laps[:count]) for laps in batch]
    dearer = sorted((name for name in ratios if ratios[name] > 1), key=lambda name: -ratios[name])
    rows = [
        Row("CPU, stub / right", stubs, "×", at_most=1.0),
        Row("CPU, wrong / right, both with answers like no other's", list(ratios.values()), "×", at_most=1.0),
        Row("the dearest of those / right", [max(ratios.values())], "×", at_most=1.0),
        Row("share of those that cost more than right", [100 * len(dearer) / len(ratios)], "%"),
        Row("CPU, wrong / right, the right one with answers that are known", to_known, "×", at_most=1.0),
    ]
    note = f"{len(names)} wrong submissions, evenly from the bank of impostors; each by the median over the pairs."
    if dearer:
        shown = ", ".join(f"{name} ({ratios[name]:.2f})" for name in dearer[:5])
        note += f" Dearest: {shown}."
    return Measured("(b) a stub or a wrong submission against a right one", rows, [note])


def _to_right(plan: Plan, count: int, way: list[list[Spent]], place: int) -> list[float]:
    """What a wrong submission took for every second of the right one of its exercise."""
    return [laps[2 * count + place].cpu / laps[place // plan.wrong].cpu for laps in way]


def named(exercises: Sequence[int]) -> str:
    """“exercise 1” or “exercises 1–5”."""
    first, last = exercises[0], exercises[-1]
    return f"exercise {first}" if first == last else f"exercises {first}–{last}"


def _cpu(laps: Sequence[Spent]) -> float:
    return sum(lap.cpu for lap in laps)


def _wall(laps: Sequence[Spent]) -> float:
    return sum(lap.wall for lap in laps)

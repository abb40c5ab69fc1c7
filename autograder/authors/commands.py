"""`autograder authors …`: the commands for whoever writes checks."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from autograder.authors import audit, matrix, mutants
from autograder.grading import Options
from autograder.syllabus import EXERCISES

ROOT = Path(__file__).parents[2]


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add the commands to the parser of `autograder`."""
    parser = commands.add_parser("authors", help="tools for authors of checks")
    authors = parser.add_subparsers(dest="tool", required=True, metavar="TOOL")
    for name, run, text in (
        ("matrix", _matrix, "grade both banks: every impostor must be caught, every honest submission spared"),
        ("mutants", _mutants, "grade small systematic faults of the reference solutions"),
        ("audit", _audit, "grade the banks under many seeds: no verdict may change"),
        ("statistics", _statistics, "false alarms and powers of the random checks, computed"),
    ):
        tool = authors.add_parser(name, help=text, description=text)
        tool.set_defaults(run=run)
        if name == "statistics":
            continue
        tool.add_argument("-e", "--exercise", type=int, action="append", choices=list(EXERCISES), default=[])
        tool.add_argument("--jobs", type=int, default=None, help="processes (default: one a core)")
        if name == "matrix":
            tool.add_argument("--out", type=Path, help="also write the matrix, as Markdown, to this file")
        if name == "audit":
            tool.add_argument("--repeats", type=int, default=20, help="how many seeds (default: 20)")
            tool.add_argument("--right-only", action="store_true", help="leave the impostors out")


def _progress(what: str) -> Callable[[int, int], None]:
    started = time.monotonic()

    def show(done: int, total: int) -> None:
        if sys.stderr.isatty():
            left = (time.monotonic() - started) / done * (total - done)
            print(f"\r{what}: {done} of {total}, {left:.0f} s left   ", end="", file=sys.stderr, flush=True)

    return show


def _numbers(arguments: argparse.Namespace) -> set[int] | None:
    return set(arguments.exercise) or None


def _matrix(arguments: argparse.Namespace) -> int:
    started = time.monotonic()
    found = matrix.run(_numbers(arguments), jobs=arguments.jobs, progress=_progress("banks"))
    if arguments.out is not None:
        arguments.out.write_text(matrix.as_markdown(found), encoding="utf-8")
    print(f"{'exercise':10}{'impostors':>10}{'honest':>8}{'checks':>8}{'sole killers':>14}")
    for exercise in EXERCISES.values():
        mine = [impostor for impostor in found.impostors if impostor.exercise == exercise]
        if mine:
            right = sum(entry.exercise == exercise for entry in found.honest)
            checks = [only for name, only in found.sole.items() if name.startswith(f"{exercise.id} ")]
            alone = sum(bool(only) for only in checks)
            print(f"{exercise.id:10}{len(mine):10}{right:8}{len(checks):8}{alone:14}")
    for problem in found.problems:
        print(f"- {problem}")
    caught = sum(bool(killed) for killed in found.killed.values())
    print(
        f"{caught} of {len(found.impostors)} impostors caught, {len(found.honest)} honest submissions, "
        f"{len(found.problems)} problems, {(time.monotonic() - started) / 60:.1f} minutes"
    )
    return 1 if found.problems else 0


def _mutants(arguments: argparse.Namespace) -> int:
    started = time.monotonic()
    found = mutants.run(_numbers(arguments), ROOT, Options(), arguments.jobs, _progress("mutants"))
    for mutant in found.survivors:
        print(f"survives: {mutant.name}: {mutant.before}  →  {mutant.after}")
    for entry in found.unused:
        print(f"on record as equivalent, but no mutant any more: {entry}")
    print(
        f"{len(found.killed)} mutants killed, {len(found.equivalent)} equivalent, {len(found.survivors)} survive: "
        f"mutation score {found.score:.1%}, {(time.monotonic() - started) / 60:.1f} minutes"
    )
    return 1 if found.survivors or found.unused else 0


def _audit(arguments: argparse.Namespace) -> int:
    started = time.monotonic()
    seeds = range(arguments.repeats)
    found = audit.run(
        _numbers(arguments),
        ROOT,
        seeds,
        Options(),
        with_impostors=not arguments.right_only,
        jobs=arguments.jobs,
        progress=_progress("gradings"),
    )
    for (name, check), verdicts in found.changes.items():
        print(f"- {name}: {check} was {' and '.join(sorted(verdicts))}")
    for name, seed, check, message in found.losses:
        print(f"- {name}, seed {seed}: lost points in {check}: {message}")
    print(
        f"{found.submissions} submissions × {len(found.seeds)} seeds: {len(found.changes)} verdicts changed, "
        f"{len(found.losses)} losses of right ones, {(time.monotonic() - started) / 60:.1f} minutes"
    )
    return 1 if found.changes or found.losses else 0


def _statistics(arguments: argparse.Namespace) -> int:
    from autograder.hidden import statistics

    print(statistics.as_markdown())
    return 0

"""`make bench`: what grading costs, in one run and one table, with the targets beside it.

    python -m benchmarks.bench [--quick] [--only PART…] [--out results/bench.md]

Ratios of CPU time hold better on a busy machine than CPU time itself; wall time says little there.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

from autograder.files import write_atomically
from benchmarks import batches, memory, overhead
from benchmarks.measuring import ROOT, Measured, load, machine, table
from benchmarks.twelve import compare

#: part: (in full, quick), in the order in which they run
PARTS: dict[str, tuple[Callable[[], list[Measured]], Callable[[], list[Measured]]]] = {
    "overhead": (
        lambda: overhead.measure(overhead.Plan()),
        lambda: overhead.measure(overhead.Plan(exercises=(1,), pairs=1, wrong=1)),
    ),
    "twelve": (
        lambda: [compare.measure(compare.Plan())],
        lambda: [compare.measure(compare.Plan(rounds=1, students=3, ours=6, peers=False))],
    ),
    "throughput": (
        lambda: [batches.throughput(batches.Throughput())],
        lambda: [batches.throughput(batches.Throughput(submissions=3, exercises=(1,), pairs=1))],
    ),
    "memory": (
        lambda: [memory.measure(memory.Plan())],
        lambda: [memory.measure(memory.Plan(workers=2, jobs=0, repeats=1))],
    ),
    "growth": (
        lambda: [batches.growth(batches.Growth())],
        lambda: [batches.growth(batches.Growth(sizes=(6, 18)))],
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="small sizes: shows that it works, not what it costs")
    parser.add_argument("--only", metavar="PART", nargs="+", choices=PARTS, help=f"of: {', '.join(PARTS)}")
    parser.add_argument("--out", type=Path, default=ROOT / "results" / "bench.md", help="(default: results/bench.md)")
    options = parser.parse_args()
    command = " ".join(["python -m benchmarks.bench", *sys.argv[1:]])
    if not sys.argv[1:]:
        command = "make bench"
    options.out.parent.mkdir(parents=True, exist_ok=True)
    started, load_before = time.monotonic(), load()
    measured: list[Measured] = []
    for name, (full, quick) in PARTS.items():
        if options.only is None or name in options.only:
            print(f"{name} …", file=sys.stderr, flush=True)
            measured += (quick if options.quick else full)()
            page = _page(command, measured, load_before, time.monotonic() - started, options.quick)
            write_atomically(options.out, page + "\n")  # after each part: a run that is ended leaves what it has
    print(page)


def _page(command: str, measured: list[Measured], load_before: float, seconds: float, quick: bool) -> str:
    judged = [row.met for part in measured for row in part.rows if row.met]
    small = " Small sizes (`--quick`): the numbers show that everything runs, and nothing else." if quick else ""
    return "\n".join(
        [
            "# What grading costs",
            "",
            f"`{command}`, {time.strftime('%Y-%m-%d')}, {seconds / 60:.0f} minutes.{small}",
            machine(),
            f"Load at the start {load_before:.1f}, at the end {load():.1f}; this benchmark itself keeps one core busy, "
            "or two. Each number is the median of n repeats, in turn with what it is compared with, and ratios are "
            "taken pair by pair. On a busy machine CPU time is higher too, its ratios hold better, and wall time says "
            "little.",
            f"Targets: {judged.count('met')} of {len(judged)} met.",
            "",
            table(measured),
        ]
    )


if __name__ == "__main__":
    main()

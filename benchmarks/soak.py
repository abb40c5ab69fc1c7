"""A class graded twice: undisturbed, and with processes killed at random.  The results must be the same.

    python -m benchmarks.soak [--submissions 2000] [--kills 24] [--jobs 2] [--seed 0] [--out results/soak.md]
    python -m benchmarks.soak --quick

Right, wrong, hostile and broken submissions go through `autograder batch`.  In the second run a process is killed by
SIGKILL now and then: the command, one that grades, what those or workers are forked from, a worker.  Whenever the
command ends by that, the same command is started again.  Exit status 1 if anything is lost, different, left behind, or
grows.
"""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from autograder.batch.store import STORE
from autograder.commands.console import terminable
from autograder.pool import cores
from autograder.syllabus import EXERCISES
from benchmarks.soak_check import (
    BOUNDS,
    different,
    faults_of,
    growth,
    left_files,
    left_processes,
    results,
    wrong_files,
)
from benchmarks.soak_class import make_class
from benchmarks.soak_run import Run, Watched


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--submissions", type=int, default=2000, metavar="N", help="size of the class (default: 2000)")
    parser.add_argument("--kills", type=int, default=24, metavar="K", help="processes to kill (default: 24)")
    parser.add_argument("--jobs", type=int, default=2, metavar="J", help="graded at a time (default: 2)")
    parser.add_argument("--seed", type=int, default=0, metavar="S", help="of the class and the kills (default: 0)")
    parser.add_argument("--exercises", type=int, nargs="+", default=sorted(EXERCISES), metavar="E")
    parser.add_argument(
        "--quick", action="store_true", help="a small class of exercises 1 and 2, and a kill of each kind"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the table into a file, too")
    options = parser.parse_args()
    if options.quick:
        options.submissions, options.kills, options.exercises, options.seed = 40, 5, [1, 2], 9  # 9: some of each kind
    folder = Path(tempfile.mkdtemp(prefix="soak-"))
    try:
        with terminable():
            faults, table = soak(folder, options)
    finally:
        shutil.rmtree(folder)
    print(table)
    if options.out is not None:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(table + "\n", encoding="utf-8")
    for fault in faults[:50]:
        print(f"soak: {fault}", file=sys.stderr)
    return 1 if faults else 0


def soak(folder: Path, options: argparse.Namespace) -> tuple[list[str], str]:
    """What went wrong, and the table."""
    submissions, temporary = folder / "class", folder / "tmp"
    temporary.mkdir()
    jobs = min(options.jobs, cores())
    kinds = make_class(submissions, options.submissions, options.seed, options.exercises)
    runs: dict[str, Run] = {}
    found: dict[str, dict[str, Any]] = {}
    faults: list[str] = []
    for name, out, kills in (("undisturbed", "calm", 0), ("disturbed", "rough", options.kills), ("again", "rough", 0)):
        command = [sys.executable, "-m", "autograder", "batch", str(submissions), "--out", str(folder / out)]
        command += ["--device", "cpu", "--jobs", str(jobs)]
        log = folder / f"{name}.log"
        runs[name] = Watched(command, folder / out, temporary, options.submissions, jobs, log).run(kills, options.seed)
        print(f"soak: {name}: {runs[name].seconds:.0f} s, {runs[name].starts} starts", file=sys.stderr, flush=True)
        found[name] = results(folder / out)
        more = [*faults_of(runs[name], kills), *wrong_files(submissions, folder / out)]
        if name == "again" and f"{len(found[name])} submissions: 0 graded" not in log.read_text(encoding="utf-8"):
            more.append("what was stored was graded again")
        if more:
            print(log.read_text(encoding="utf-8", errors="replace")[-2000:], file=sys.stderr)
        faults += [f"{name}: {fault}" for fault in more]
    calm, rough, again = runs.values()
    expected, got = found["undisturbed"], found["disturbed"]
    differing = sorted({*different(expected, got), *different(expected, found["again"])})
    left, files = left_processes(temporary), left_files(temporary)
    samples = calm.samples["grading" if jobs > 1 else "command"]
    gained = {of: growth(samples, of, jobs) for of in BOUNDS}
    faults += [f"not the undisturbed result: {name}" for name in differing]
    faults += [f"left running: {pid}" for pid in left]
    faults += [f"left in the temporary folder: {name}" for name in files]
    faults += [
        f"a grading process gains {number:.3g} {of} with a thousand submissions, more than {BOUNDS[of]:.3g}"
        for of, number in gained.items()
        if number is not None and number > BOUNDS[of]
    ]
    sizes = [path.stat().st_size for path in (folder / "rough" / STORE).rglob("*.json")]
    in_out = sum("left in OUT" in fault for fault in faults)
    rows = {
        "submissions": f"{options.submissions}: {counted(kinds)}",
        "results stored, without copies": f"{len(sizes)}, {sum(sizes) / max(1, len(sizes)) / 1e3:.1f} kB each",
        "undisturbed": f"{calm.seconds:.0f} s, {calm.cpu:.0f} CPU s, --jobs {jobs}",
        "disturbed": f"{rough.seconds:.0f} s, {rough.starts} starts of the command",
        "killed": f"{sum(rough.kills.values())}: {counted(rough.kills)}",
        "the same command again, nothing to grade": f"{again.seconds:.0f} s, {again.cpu:.0f} CPU s",
        "submissions with exactly one result": f"{len(expected.keys() & got.keys())} of {len(expected)}",
        "results that differ from the undisturbed run's": str(len(differing)),
        "processes left": str(len(left) + sum(len(run.outlived) for run in runs.values())),
        "files left in the temporary folder or OUT": str(len(files) + in_out),
        "most memory of one process, undisturbed (PSS)": _largest(calm),
        "growth of a grading process with 1,000 submissions": _growth(gained),
    }
    head = (
        f"Soak, seed {options.seed}. {platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, "
        f"Python {platform.python_version()}."
    )
    return faults, "\n".join(
        [head, "", "| | |", "| --- | --- |", *(f"| {what} | {row} |" for what, row in rows.items())]
    )


def counted(of: Counter[str]) -> str:
    return ", ".join(f"{count} {what}" for what, count in sorted(of.items()))


def _largest(run: Run) -> str:
    """The most that one process of each kind held at a time: its share of memory, with what is shared divided."""
    return ", ".join(
        f"{kind} {max(sample.pss for sample in samples) / 1e6:.0f} MB"
        for kind, samples in run.samples.items()
        if samples
    )


def _growth(gained: dict[str, float | None]) -> str:
    rss, pss, descriptors = gained.values()
    if rss is None or pss is None or descriptors is None:
        return "too few submissions to tell"
    bound = f"at most {BOUNDS['rss'] / 1e6:.0f} MB"
    return f"{rss / 1e6:.1f} MB RSS, {pss / 1e6:.1f} MB PSS ({bound}), {descriptors:.1f} descriptors (at most 1)"


if __name__ == "__main__":
    sys.exit(main())

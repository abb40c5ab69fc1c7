"""What the soak holds against a run: results that differ, things left behind, memory that grows."""

from __future__ import annotations

import json
import os
import re
import statistics
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from autograder.batch.sources import handed_in
from autograder.files import file_stems
from autograder.render import jsonlines
from benchmarks.soak_run import Run, Sample

#: How much a grading process may gain with a thousand submissions: bytes, bytes, descriptors.  Ten thousand graded by
#: one process then take less than it had to begin with.
BOUNDS = {"rss": 30e6, "pss": 30e6, "descriptors": 1.0}
#: Growth is told from so many submissions a process on, over at least as many: before, every exercise's checks run for
#: the first time, libraries are loaded, and Hypothesis fills its caches, which are bounded.
WARM = 250
#: In a message: how long something took.
_SECONDS = re.compile(r"\b\d+(\.\d+)? s\b( of computing)?")
#: PyTorch makes it for each user who loads its compiler, and keeps it; there is nothing in it here.
_PYTORCHS = "torchinductor_"


def results(out: Path) -> dict[str, Any]:
    """All that stands in the results but how long things took, by the name of the file."""
    return {file.name: _bare(json.loads(file.read_text(encoding="utf-8"))) for file in sorted(out.glob("*.json"))}


def _bare(record: Any) -> Any:
    if isinstance(record, dict):
        return {name: _bare(value) for name, value in record.items() if name != "seconds"}
    if isinstance(record, list):
        return [_bare(value) for value in record]
    return _SECONDS.sub("… s", record) if isinstance(record, str) else record


def wrong_files(submissions: Path, out: Path) -> list[str]:
    """Submissions without a result, results without a submission, and anything half written."""
    found, _ = handed_in(str(submissions), out)
    expected = {f"{stem}.json" for stem in file_stems([one.name for one in found])}
    there = {entry.name for entry in out.iterdir()} - {".store"}
    faults = [f"no result: {name}" for name in sorted(expected - there)]
    faults += [f"left in OUT: {name}" for name in sorted(there - expected)]
    for folder, _, names in os.walk(out / ".store"):
        for name in names:
            if name.endswith(".json"):
                jsonlines.read(Path(folder, name).read_text(encoding="utf-8"))
            elif name != "lock":
                faults.append(f"left in OUT/.store: {name}")
    return faults


def faults_of(run: Run, kills: int) -> list[str]:
    """What the run itself tells."""
    faults = [f"outlived its command: {process}" for process in run.outlived]
    if run.status != 0:
        faults.append(f"exit status {run.status}")
    if (done := sum(run.kills.values())) < kills:
        faults.append(f"only {done} of {kills} kills: the run was over too soon")
    return faults


def different(undisturbed: dict[str, Any], disturbed: dict[str, Any]) -> list[str]:
    names = sorted(undisturbed.keys() | disturbed.keys())
    return [name for name in names if undisturbed.get(name) != disturbed.get(name)]


def left_files(temporary: Path) -> list[str]:
    return sorted(
        path.name
        for path in temporary.iterdir()
        if not (path.name.startswith(_PYTORCHS) and path.is_dir() and not any(path.iterdir()))
    )


def left_processes(temporary: Path) -> list[str]:
    """Processes that were started by a run: its temporary folder stands in their command line or environment."""
    mark = os.fsencode(str(temporary))
    pids = [pid for pid in filter(str.isdigit, os.listdir("/proc")) if int(pid) != os.getpid()]
    return [pid for pid in pids if mark in started_with(pid)]


def started_with(pid: str) -> bytes:
    """Its command line and environment; empty for one that has ended.

    Both are empty, too, while execve has given a process its new memory but not yet filled it in (on a busy machine,
    for milliseconds): such a process has a program already, which one that has ended and the kernel's own have not.
    """
    deadline = time.monotonic() + 10
    try:
        while True:
            known = Path(f"/proc/{pid}/cmdline").read_bytes() + Path(f"/proc/{pid}/environ").read_bytes()
            if known or time.monotonic() > deadline:
                return known
            os.readlink(f"/proc/{pid}/exe")
            time.sleep(0.001)
    except OSError:
        return b""


def growth(samples: Iterable[Sample], of: str, jobs: int) -> float | None:
    """Bytes, or descriptors, that a process gains with a thousand submissions; None if too few were watched.

    The median over all pairs of samples of one process (Theil-Sen), which single high samples do not move; of several
    processes, the one that gains most.
    """
    slopes = []
    by_process: dict[int, list[Sample]] = {}
    for sample in samples:
        by_process.setdefault(sample.pid, []).append(sample)
    for process in by_process.values():
        warm = [(sample.done / jobs, getattr(sample, of)) for sample in process if sample.done / jobs >= WARM]
        if warm and warm[-1][0] - warm[0][0] >= WARM:
            slopes.append(_theil_sen(warm))
    return max(slopes) * 1000 if slopes else None


def _theil_sen(points: Sequence[tuple[float, float]]) -> float:
    points = points[:: max(1, len(points) // 300)]
    return statistics.median(
        (y2 - y1) / (x2 - x1) for i, (x1, y1) in enumerate(points) for x2, y2 in points[i + 1 :] if x2 > x1
    )

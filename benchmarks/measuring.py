"""What is measured and how: CPU time and memory of a whole tree of processes, medians with their spread, the table."""

from __future__ import annotations

import os
import platform
import resource
import statistics
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
_TICK = os.sysconf("SC_CLK_TCK")
Command = Sequence[str | Path]


@dataclass(frozen=True)
class Spent:
    """CPU seconds of all processes that took part, and seconds on the clock."""

    cpu: float
    wall: float


@dataclass(frozen=True)
class Row:
    """One line of the table.  values: what every repeat gave.  at_most, at_least: the target, if there is one."""

    what: str
    values: Sequence[float]
    unit: str = ""
    at_most: float | None = None
    at_least: float | None = None

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def target(self) -> str:
        if self.at_most is not None:
            return f"≤ {self._number(self.at_most)}"
        return "" if self.at_least is None else f"≥ {self._number(self.at_least)}"

    @property
    def met(self) -> str:
        if not self.target:
            return ""
        above = self.at_most is None or self.median <= self.at_most
        below = self.at_least is None or self.median >= self.at_least
        return "met" if above and below else "not met"

    @property
    def cells(self) -> list[str]:
        spread = f"{self._number(min(self.values))} … {self._number(max(self.values))}"
        shown = spread if len(self.values) > 1 else ""
        return [self.what, self._number(self.median), shown, str(len(self.values)), self.target, self.met]

    def _number(self, value: float) -> str:
        digits = 0 if abs(value) >= 100 or value == 0 else 1 if abs(value) >= 20 else 2 if abs(value) >= 0.1 else 3
        return f"{value:,.{digits}f}{' ' if self.unit and self.unit != '×' else ''}{self.unit}"


@dataclass
class Measured:
    """What one part of the benchmark found.  notes: what a reader must know to read the rows."""

    title: str
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def table(parts: Sequence[Measured]) -> str:
    """All parts as one Markdown table, and their notes under it."""
    lines = ["| | median | min … max | n | target | |", "| --- | ---: | ---: | ---: | ---: | --- |"]
    for part in parts:
        lines.append(f"| **{part.title}** | | | | | |")
        lines += [f"| {' | '.join(row.cells)} |" for row in part.rows]
    notes = [f"- {part.title.partition(' ')[0]} {note}" for part in parts for note in part.notes]
    return "\n".join([*lines, "", *notes])


def machine() -> str:
    """Where and with what this runs, and how busy the machine is now."""
    model = next(
        (
            line.partition(":")[2].strip()
            for line in _text("/proc/cpuinfo").splitlines()
            if line.startswith(("model name", "Model"))
        ),
        platform.machine(),
    )
    memory = int(next(line.split()[1] for line in _text("/proc/meminfo").splitlines() if line.startswith("MemTotal")))
    packages = ", ".join(f"{name} {_version(name)}" for name in ("torch", "numpy", "pytest", "hypothesis"))
    return (
        f"{len(os.sched_getaffinity(0))} cores ({model}), {memory / 1024**2:.0f} GiB, Linux {platform.release()}, "
        f"Python {platform.python_version()}, {packages}."
    )


def load() -> float:
    """How many processes have wanted to run in the last minute."""
    return os.getloadavg()[0]


def run(command: Command, cwd: Path = ROOT, **environment: str) -> tuple[Spent, str]:
    """Run a command to its end; what it and all its children spent, and its standard output.

    Raises SystemExit with what it said, should it fail.
    """
    before, started = _ended(), time.perf_counter()
    done = subprocess.run(command, cwd=cwd, env=_environment(environment), capture_output=True, text=True)
    spent = Spent(_ended() - before, time.perf_counter() - started)
    if done.returncode != 0:
        raise _failed(command, done.returncode, f"{done.stdout}{done.stderr}")
    return spent, done.stdout


def run_until(command: Command, folder: Path, size: int) -> tuple[Spent, Spent, Spent]:
    """Run a command that fills a folder with so many .json files.

    What it spent up to the first of them, from there to the last, and after that.
    Raises SystemExit with what it said, should it fail.
    """
    clock = Laps(own=False)
    laps = []
    with subprocess.Popen(
        command, cwd=ROOT, env=_environment({}), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    ) as process:
        for files in (1, size):
            while process.poll() is None and sum(1 for _ in folder.glob("*.json")) < files:
                time.sleep(0.05)
            laps.append(clock.lap())
        _, said = process.communicate()
    if process.returncode != 0:
        raise _failed(command, process.returncode, said)
    return laps[0], laps[1], clock.lap()


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1", **more}


def _failed(command: Command, status: int, said: str) -> SystemExit:
    return SystemExit(f"{said}\n`{' '.join(map(str, command))}` ended with {status}.")


def _ended() -> float:
    """CPU seconds of all children that have ended and been waited for, theirs included (getrusage(2))."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


class Laps:
    """CPU and wall time between two points of this process, its living and ended descendants included.

    own: False to count the descendants alone.
    """

    def __init__(self, own: bool = True) -> None:
        self._counts_own = own
        self._wall = self._own = self._below = 0.0
        self.lap()

    def lap(self) -> Spent:
        """What was spent since the last lap; the looking itself is left out."""
        wall, own = time.perf_counter(), time.process_time()
        below = _descendants_cpu()
        spent = Spent((own - self._own if self._counts_own else 0.0) + below - self._below, wall - self._wall)
        self._below = below
        self._own, self._wall = time.process_time(), time.perf_counter()
        return spent


def _descendants_cpu() -> float:
    """CPU seconds of what this process has started, directly or not; ended ones count once they are waited for."""
    ended = _ended()
    return ended + sum(sum(map(int, fields[11:15])) / _TICK for pid, fields in descendants(os.getpid()).items())


def descendants(root: int) -> Mapping[int, list[str]]:
    """The processes below `root`: the fields of /proc/PID/stat from the state on (proc(5), its field 3)."""
    found = dict(_all_processes())
    children: dict[int, list[int]] = {}
    for pid, fields in found.items():
        children.setdefault(int(fields[1]), []).append(pid)
    below: dict[int, list[str]] = {}
    waiting = [root]
    while waiting:
        for pid in children.get(waiting.pop(), []):
            below[pid] = found[pid]
            waiting.append(pid)
    return below


def _all_processes() -> Iterator[tuple[int, list[str]]]:
    for name in os.listdir("/proc"):
        if name.isdecimal():
            try:
                yield int(name), _text(f"/proc/{name}/stat").rpartition(")")[2].split()
            except OSError:
                continue  # it has just ended


def proportional_memory(root: int) -> float:
    """Proportional set size of `root` and all below it, in bytes: shared pages count in parts (proc(5)).

    Raises PermissionError where a worker's memory is nobody's business, not even that of who started it.
    """
    total = 0
    for pid in [root, *descendants(root)]:
        try:
            text = _text(f"/proc/{pid}/smaps_rollup")
        except (FileNotFoundError, ProcessLookupError):
            continue
        total += next(int(line.split()[1]) for line in text.splitlines() if line.startswith("Pss:"))
    return total * 1024


def _text(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "(none)"

"""One run of `autograder batch` for the soak: watched, and if wished, with its processes killed at random."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
#: What may be killed: the command itself, a process that grades, what those are forked from, what workers are forked
#: from, a worker.
KINDS = ("command", "grading", "forkserver", "zygote", "worker")
GRADED, GRADER_ERROR = 0, 3
#: So long may what is left of a killed command take to end.
ENDS_WITHIN = 30.0
SAMPLE_EVERY = 2.0


class Process(NamedTuple):
    """A process, told from a later one with its number by when it started."""

    pid: int
    started: str
    kind: str


@dataclass(frozen=True)
class Sample:
    """What a process held when so many submissions were done.  Bytes; descriptors."""

    pid: int
    done: int
    rss: int
    pss: int
    descriptors: int


@dataclass
class Run:
    """What came of a run.  outlived: processes that were there long after their command had ended."""

    seconds: float = 0.0
    cpu: float = 0.0
    starts: int = 0
    kills: Counter[str] = field(default_factory=Counter)
    samples: dict[str, list[Sample]] = field(default_factory=lambda: {kind: [] for kind in KINDS})
    outlived: list[str] = field(default_factory=list)
    status: int = 0


class Watched:
    """A command that is started until it is done."""

    def __init__(self, command: Sequence[str], out: Path, temporary: Path, size: int, jobs: int, log: Path) -> None:
        self._command = command
        alone = jobs == 1  # then the command grades itself
        self._kinds = [kind for kind in KINDS if not (alone and kind in ("grading", "forkserver"))]
        self._out = out
        self._size = size
        self._log = log
        self._environment = {**os.environ, "TMPDIR": str(temporary), "OMP_NUM_THREADS": "1"}
        self._ending: list[tuple[float, set[Process]]] = []
        self._sampled = 0.0

    def run(self, kills: int = 0, seed: int = 0) -> Run:
        """Run it to its end.  kills: so many processes are killed on the way, each kind as often as the others."""
        rng = random.Random(seed)
        kinds = [self._kinds[number % len(self._kinds)] for number in range(kills)]
        rng.shuffle(kinds)
        # spread over the run: each after so many results are there, and a moment more
        self._plan = [
            (self._size * 0.7 * (number + rng.random()) / kills, rng.uniform(0, min(3, self._size / 50)), kind)
            for number, kind in enumerate(kinds)
        ]
        run = Run()
        before, started = os.times(), time.monotonic()
        failures = 0
        while True:
            run.starts += 1
            killed = self._once(run, rng)
            if killed:
                continue
            failures += run.status == GRADER_ERROR
            if run.status != GRADER_ERROR or failures > 2:
                break
        run.seconds = time.monotonic() - started
        while self._ending:
            self._look_for_outlived(run)
            time.sleep(0.1)
        after = os.times()
        run.cpu = after.children_user + after.children_system - before.children_user - before.children_system
        return run

    def _once(self, run: Run, rng: random.Random) -> bool:
        """Start the command and wait for its end; whether it was killed."""
        with open(self._log, "ab") as log:
            process = subprocess.Popen(
                self._command, cwd=ROOT, env=self._environment, stdout=log, stderr=log, start_new_session=True
            )
        seen: set[Process] = set()
        try:
            while process.poll() is None:
                family = _family(process.pid, seen)
                seen |= set(family)
                self._sample(run, family)
                self._kill(run, rng, process.pid, seen)
                self._look_for_outlived(run)
                time.sleep(0.1)
        except BaseException:
            process.terminate()
            process.wait()
            raise
        self._ending.append((time.monotonic() + ENDS_WITHIN, seen))
        run.status = process.returncode
        return process.returncode == -signal.SIGKILL

    def _done(self) -> int:
        try:
            return sum(name.endswith(".json") for name in os.listdir(self._out))
        except FileNotFoundError:
            return 0

    def _sample(self, run: Run, family: list[Process]) -> None:
        if time.monotonic() - self._sampled < SAMPLE_EVERY:
            return
        self._sampled, done = time.monotonic(), self._done()
        for process in family:
            if process.kind in run.samples and (sample := _sample_of(process.pid, done)) is not None:
                run.samples[process.kind].append(sample)

    def _kill(self, run: Run, rng: random.Random, command: int, seen: set[Process]) -> None:
        if not self._plan or self._done() < self._plan[0][0]:
            return
        _, delay, kind = self._plan[0]
        time.sleep(delay)
        family = _family(command, seen)
        if self._done() > 0.85 * self._size:  # what is not there now will hardly come any more
            there = {process.kind for process in family}
            kind = next((one for one in (kind, "grading", "command") if one in there), kind)
        victims = [process for process in family if process.kind == kind]
        if not victims:  # it is starting, or will only be started when another is killed: those first
            kinds = [kind for _, _, kind in self._plan]
            kinds = [*kinds[1:], kinds[0]]
            self._plan = [(done, wait, kind) for (done, wait, _), kind in zip(self._plan, kinds, strict=True)]
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(rng.choice(victims).pid, signal.SIGKILL)
            run.kills[kind] += 1
            self._plan.pop(0)

    def _look_for_outlived(self, run: Run) -> None:
        for deadline, processes in list(self._ending):
            alive = {process for process in processes if _started(process.pid) == process.started}
            if alive and time.monotonic() < deadline:
                continue
            run.outlived += [f"{process.kind} {process.pid}" for process in alive]
            self._ending.remove((deadline, processes))


def _family(command: int, seen: set[Process]) -> list[Process]:
    """The command and all below it, each with its kind.

    seen: what was there before; a grading process goes on when what it was forked from is killed.
    """
    found = _below(command, "command")
    there = {process.pid for process in found}
    for process in seen:
        if process.kind == "grading" and process.pid not in there and _started(process.pid) == process.started:
            found += _below(process.pid, process.kind)
    return found


def _below(pid: int, kind: str) -> list[Process]:
    found: list[Process] = []
    level = [(pid, kind)]
    while level:
        found += [Process(pid, started, kind) for pid, kind in level if (started := _started(pid))]
        level = [(child, _kind(child, kind)) for pid, kind in level for child in _children(pid)]
    return found


def _kind(pid: int, parent: str) -> str:
    """What a child is: told by what its parent is, and by how deep it lies in pid namespaces (proc(5), NSpid)."""
    if parent == "command":
        command = _text(pid, "cmdline")
        return "forkserver" if "forkserver" in command else "zygote" if "sandbox.zygote" in command else "other"
    if parent == "forkserver":
        return "grading"
    if parent == "grading":  # where the one that all share has ended
        return "zygote"
    if parent == "zygote":
        namespaces = next((line for line in _text(pid, "status").splitlines() if line.startswith("NSpid:")), "")
        return "zygote" if len(namespaces.split()) == 3 else "worker"
    return "worker" if parent == "worker" else "other"


def _children(pid: int) -> list[int]:
    found: list[int] = []
    with contextlib.suppress(OSError):  # it may end while it is looked at
        for task in os.listdir(f"/proc/{pid}/task"):
            found += map(int, _text(pid, f"task/{task}/children").split())
    return found


def _text(pid: int, name: str) -> str:
    try:
        return Path(f"/proc/{pid}/{name}").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _started(pid: int) -> str:
    """When it started, in ticks since boot; empty for one that is not there, or ended and not yet waited for."""
    fields = _text(pid, "stat").rpartition(")")[2].split()
    return fields[19] if len(fields) > 19 and fields[0] not in "ZX" else ""


def _sample_of(pid: int, done: int) -> Sample | None:
    sizes = dict(line.split(":", 1) for line in _text(pid, "smaps_rollup").splitlines()[1:])
    try:
        rss, pss = (int(sizes[name].split()[0]) * 1024 for name in ("Rss", "Pss"))
        return Sample(pid, done, rss, pss, len(os.listdir(f"/proc/{pid}/fd")))
    except (KeyError, OSError):
        return None

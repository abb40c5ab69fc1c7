"""One run of a batch: what is stored is taken from the store, the rest is graded and stored at once."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import overload

from autograder.batch.sources import HandedIn
from autograder.batch.store import STORE, Store, alone_in, key, renamed
from autograder.files import file_stems, write_atomically
from autograder.grading import Options, Submission
from autograder.render import jsonlines
from autograder.report import Report, points_number
from autograder.submission import UsageError, find

#: Grades submissions and hands every Report on as soon as it is there, with the number of its submission: the pool's
#: `grade_as_they_finish`, or a cluster's.
Engine = Callable[[Sequence[Submission], Callable[[int, Report], None]], None]
#: Told of every submission that is done: how many were taken from the store, how many are graded, of how many.
Progress = Callable[[int, int, int], None]


class Stopped(Exception):
    """The run cannot go on, for a reason that is no submission's.  What is done is stored."""


@dataclass
class Summary:
    """What a run came to.  points: hundredths of each graded submission; attention: those that have no grade yet."""

    submissions: int = 0
    from_store: int = 0
    seconds: float = 0.0
    points: list[int] = field(default_factory=list)
    max_points: list[int] = field(default_factory=list)
    verdicts: Counter[str] = field(default_factory=Counter)
    attention: list[str] = field(default_factory=list)

    def add(self, report: Report) -> None:
        self.verdicts.update(check.verdict for check in report.checks)
        if report.needs_attention:
            self.attention.append(report.submission)
        else:
            self.points.append(report.points)
            self.max_points.append(report.max_points)

    @property
    def text(self) -> str:
        ran = self.submissions - self.from_store
        lines = [
            f"{self.submissions} submissions: {ran} graded in {self.seconds:.0f} s, "
            f"{self.from_store} taken from stored results."
        ]
        if self.points:
            mean = sum(self.points) / len(self.points) / 100
            full = sum(got == most for got, most in zip(self.points, self.max_points, strict=True))
            at_most = points_number(max(self.max_points))
            lines.append(f"Mean {mean:.2f} points of at most {at_most}; {full} with full marks.")
        if self.verdicts:
            counted = ", ".join(f"{count} {verdict}" for verdict, count in self.verdicts.most_common())
            lines.append(f"Checks: {counted}.")
        if self.attention:
            shown = ", ".join(sorted(self.attention)[:10]) + (", …" if len(self.attention) > 10 else "")
            lines.append(f"{len(self.attention)} need attention, and have no grade yet: {shown}")
        return "\n".join(lines)


class _Pending(Sequence[Submission]):
    """Submissions read when they are needed, so that a large class does not lie in memory.

    keys: those of what is being graded, by index: a file may have changed since it was looked up in the store.
    """

    def __init__(self, found: Sequence[HandedIn], wanted: set[int] | None, options: Options) -> None:
        self._found = found
        self._wanted = wanted
        self._options = options
        self.keys: dict[int, str] = {}

    def __len__(self) -> int:
        return len(self._found)

    @overload
    def __getitem__(self, index: int) -> Submission: ...
    @overload
    def __getitem__(self, index: slice) -> list[Submission]: ...
    def __getitem__(self, index: int | slice) -> Submission | list[Submission]:
        if isinstance(index, slice):
            return [self[number] for number in range(*index.indices(len(self)))]
        submission = read(self._found[index], self._wanted)
        self.keys[index] = key(submission, self._options)
        return submission


def read(handed_in: HandedIn, wanted: set[int] | None) -> Submission:
    """The submission; one in which nothing tells what it is has no exercises, and a note that says so."""
    try:
        return replace(find(handed_in.path, wanted), name=handed_in.name)
    except UsageError as error:
        return Submission(handed_in.name, (), (str(error),))


def run(
    found: Sequence[HandedIn],
    wanted: set[int] | None,
    options: Options,
    out: Path,
    engine: Engine,
    progress: Progress,
) -> Summary:
    """Grade all of them; OUT then holds one JSON file for each, and OUT/.store what later runs need not do again.

    Every result is stored as soon as it is there.  Raises UsageError if OUT cannot be written or is in use, CannotWrite
    if it cannot be written any more.
    """
    started = time.monotonic()
    store = Store(out / STORE)
    files = [out / f"{stem}.json" for stem in file_stems([one.name for one in found])]
    summary = Summary(submissions=len(found))
    graded = 0

    def look_up(indices: Iterable[int], once: bool) -> tuple[list[int], list[int]]:
        """Take what is stored; what is left to grade, and, if only once, what has the same code as one of those."""
        waiting: list[int] = []
        same: list[int] = []
        seen: set[str] = set()
        for index in indices:
            submission = read(found[index], wanted)
            name = key(submission, options)
            report = store.get(name)
            if report is None:
                (same if once and name in seen else waiting).append(index)
                seen.add(name)
                continue
            summary.from_store += 1
            _write(files[index], renamed(report, submission))
            summary.add(report)
            progress(summary.from_store, graded, len(found))
        return waiting, same

    def grade(waiting: list[int]) -> None:
        pending = _Pending([found[index] for index in waiting], wanted, options)

        def emit(number: int, report: Report) -> None:
            nonlocal graded
            store.put(pending.keys.pop(number), report)
            _write(files[waiting[number]], report)
            summary.add(report)
            graded += 1
            progress(summary.from_store, graded, len(found))

        if waiting:
            engine(pending, emit)

    with alone_in(out):
        waiting, same = look_up(range(len(found)), once=True)
        grade(waiting)
        grade(look_up(same, once=False)[0])
    summary.seconds = time.monotonic() - started
    return summary


def _write(file: Path, report: Report) -> None:
    text = jsonlines.stored(report) + "\n"
    try:
        if file.read_text(encoding="utf-8") == text:
            return
    except (OSError, UnicodeDecodeError):
        pass
    write_atomically(file, text)

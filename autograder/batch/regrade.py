"""Two gradings of the same work: who goes up or down, and by which check."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from autograder.batch.stored import Unreadable, read_result, result_files
from autograder.report import Check, Report, Verdict

Side = Literal["old", "new"]


@dataclass(frozen=True, slots=True)
class Turned:
    """A check that came out otherwise.  before, after: None where that grading did not have it.

    points: hundredths gained or lost by it.  misconception_before, misconception_after: ids in the catalogue.
    """

    exercise: str
    function: str
    check: str
    title: str
    before: Verdict | None
    after: Verdict | None
    points: int
    misconception_before: str | None
    misconception_after: str | None


@dataclass(frozen=True, slots=True)
class Compared:
    """A submission that both gradings have.  Points in hundredths.  turned: the checks that came out otherwise."""

    submission: str
    before: int
    after: int
    max_before: int
    max_after: int
    turned: tuple[Turned, ...]
    versions: tuple[str, str]

    @property
    def change(self) -> int:
        return self.after - self.before

    @property
    def differs(self) -> bool:
        return bool(self.turned) or self.change != 0 or self.max_before != self.max_after


@dataclass(frozen=True, slots=True)
class OnlyIn:
    submission: str
    side: Side


@dataclass(frozen=True, slots=True)
class NoGrade:
    """A result that cannot be compared: the grader itself failed, or the file is damaged."""

    submission: str
    side: Side
    why: str


def regraded(old: str, new: str) -> Iterator[Compared | OnlyIn | NoGrade]:
    """What became of every submission, read one by one: files of one name first, then what is left, by its name.

    old, new: folders of results.  Raises UsageError, before anything is read, if one has none.
    """
    before = {path.name: path for path in result_files(old)}
    after = {path.name: path for path in result_files(new)}
    return _regraded(before, after)


def compare(old: Report, new: Report) -> Compared:
    """Points and checks of two gradings.  What each says that needs attention is no verdict: see `NoGrade`."""
    before, after = _by_place(old), _by_place(new)
    turned = []
    for place in dict.fromkeys([*after, *before]):
        was, now = before.get(place), after.get(place)
        if was is not None and now is not None and (was.verdict, was.points) == (now.verdict, now.points):
            continue
        shown = now or was
        assert shown is not None
        turned.append(
            Turned(
                exercise=place[0],
                function=place[1],
                check=shown.id,
                title=shown.title,
                before=None if was is None else was.verdict,
                after=None if now is None else now.verdict,
                points=(0 if now is None else now.points) - (0 if was is None else was.points),
                misconception_before=None if was is None else was.misconception,
                misconception_after=None if now is None else now.misconception,
            )
        )
    return Compared(
        submission=new.submission,
        before=old.points,
        after=new.points,
        max_before=old.max_points,
        max_after=new.max_points,
        turned=tuple(turned),
        versions=(old.grader_version, new.grader_version),
    )


def _regraded(before: dict[str, Path], after: dict[str, Path]) -> Iterator[Compared | OnlyIn | NoGrade]:
    left: dict[Side, dict[str, list[Path]]] = {"old": defaultdict(list), "new": defaultdict(list)}
    for name in sorted({*before, *after}):
        was = read_result(before[name]) if name in before else None
        now = read_result(after[name]) if name in after else None
        if isinstance(was, Unreadable) or isinstance(now, Unreadable):
            yield from _unreadable(before.get(name), was, "old")
            yield from _unreadable(after.get(name), now, "new")
        elif was is not None and now is not None and was.submission == now.submission:
            yield from _pair(was, now)
        else:
            if was is not None:
                left["old"][was.submission].append(before[name])
            if now is not None:
                left["new"][now.submission].append(after[name])
    for submission in sorted({*left["old"], *left["new"]}):
        olds, news = left["old"].get(submission, []), left["new"].get(submission, [])
        for index in range(max(len(olds), len(news))):
            if index < len(olds) and index < len(news):
                yield from _pair_of(olds[index], news[index])
            else:
                yield OnlyIn(submission, "old" if index < len(olds) else "new")


def _pair_of(old: Path, new: Path) -> Iterator[Compared | NoGrade]:
    was, now = read_result(old), read_result(new)
    if isinstance(was, Report) and isinstance(now, Report):
        yield from _pair(was, now)
    else:  # changed since it was read the first time
        yield from _unreadable(old, was, "old")
        yield from _unreadable(new, now, "new")


def _pair(old: Report, new: Report) -> Iterator[Compared | NoGrade]:
    if not old.needs_attention and not new.needs_attention:
        yield compare(old, new)
    sides: list[tuple[Side, Report]] = [("old", old), ("new", new)]
    for side, report in sides:
        if report.needs_attention:
            why = next(check.message for check in report.checks if check.verdict == "grader_error")
            yield NoGrade(report.submission, side, why)


def _unreadable(path: Path | None, found: Report | Unreadable | None, side: Side) -> Iterator[NoGrade]:
    if path is not None and isinstance(found, Unreadable):
        yield NoGrade(path.name, side, found.why)


def _by_place(report: Report) -> dict[tuple[str, str, str, int], Check]:
    """Every check by exercise, function, id, and which of that id it is."""
    found: dict[tuple[str, str, str, int], Check] = {}
    for exercise in report.exercises:
        for function in exercise.functions:
            seen: defaultdict[str, int] = defaultdict(int)
            for check in function.checks:
                found[exercise.id, function.name, check.id, seen[check.id]] = check
                seen[check.id] += 1
    return found

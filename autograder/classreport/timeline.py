"""When work was handed in, and what was handed in when."""

from __future__ import annotations

import calendar
import os
import stat
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from autograder.submission import SUFFIXES

#: What nbgrader's collect leaves beside the work: "2026-01-31 15:58:23.948203 UTC".
NBGRADER_TIME = "timestamp.txt"
COLUMNS = 12
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_STEPS = (
    *(n * _MINUTE for n in (1, 5, 15, 30)),
    *(n * _HOUR for n in (1, 2, 3, 6, 12)),
    *(n * _DAY for n in (1, 2, 7, 14, 28, 84, 336)),
)
#: A time before 1980 or after 2200 is none: an archive without times, or a file whose owner plays with them.
_SENSIBLE = range(315_532_800, 7_258_118_400)


def handed_in_at(path: str) -> float | None:
    """Seconds since the epoch: what nbgrader noted, else the last change of the newest file of the work."""
    try:
        found = _noted(Path(path) / NBGRADER_TIME)
        if found is None:
            found = _changed(path)
    except (OSError, ValueError):
        return None
    return found if found is not None and int(found) in _SENSIBLE else None


def _changed(path: str) -> float | None:
    status = os.lstat(path)
    if not stat.S_ISDIR(status.st_mode):
        return status.st_mtime
    with os.scandir(path) as entries:
        work = (entry for entry in entries if os.path.splitext(entry.name)[1].lower() in SUFFIXES)
        return max((entry.stat(follow_symlinks=False).st_mtime for entry in work), default=None)


def _noted(file: Path) -> float | None:
    try:
        if not stat.S_ISREG(os.lstat(file).st_mode):
            return None
        with open(file, encoding="utf-8") as stream:
            text = stream.read(100).strip()
        moment = datetime.fromisoformat(text.removesuffix(" UTC"))
        return (moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)).timestamp()
    except (OSError, ValueError, OverflowError):
        return None


@dataclass(frozen=True)
class Period:
    """One column of the timeline.  rows: indices of the submissions in it."""

    label: str
    rows: tuple[int, ...]


def periods(times: Sequence[float | None]) -> list[Period]:
    """At most twelve periods of one length, from the first time to the last, in this machine's time zone.

    Nothing if no two times differ by a minute: then files have lost their times on the way.
    """
    known = sorted((_by_the_clock(moment), index) for index, moment in enumerate(times) if moment is not None)
    if not known or known[-1][0] - known[0][0] < _MINUTE:
        return []
    first, last = known[0][0], known[-1][0]
    step = next((step for step in _STEPS if (last - first // step * step) // step < COLUMNS), last - first)
    start = first // step * step
    found: list[list[int]] = [[] for _ in range((last - start) // step + 1)]
    for clock, index in known:
        found[(clock - start) // step].append(index)
    several_years = _shown(start, "%Y") != _shown(last, "%Y")
    form = ("%Y-" if several_years else "") + ("%m-%d" if step >= _DAY else "%m-%d %H:%M")
    return [Period(_shown(start + number * step, form), tuple(sorted(rows))) for number, rows in enumerate(found)]


def zone(times: Sequence[float | None]) -> str:
    """The name of this machine's time zone, at the first of these times."""
    return time.strftime("%Z", time.localtime(next((moment for moment in times if moment is not None), 0.0)))


def by_the_clock(moment: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))


def _by_the_clock(moment: float) -> int:
    """Seconds as a clock on the wall counts them: a day has 24 hours of them, whatever summer time does."""
    return calendar.timegm(time.localtime(moment))


def _shown(clock: int, form: str) -> str:
    return time.strftime(form, time.gmtime(clock))

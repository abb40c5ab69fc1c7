"""The numbers behind the pictures: a histogram of scores, and shares of a whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import median

from autograder.classreport.counting import Score
from autograder.report import points_number

#: Ten bars for 0 to 9 per cent of the points, 10 to 19, …, and one for all of them.
BARS = 11
_WIDTH, _HEIGHT, _STEP = 24, 96, 29


@dataclass(frozen=True)
class Bar:
    """label: the first per cent of the bar.  x, y, width, height: where it is in the picture."""

    label: str
    count: int
    x: int
    y: int
    width: int
    height: int

    @property
    def middle(self) -> int:
        return self.x + self.width // 2


@dataclass(frozen=True)
class Histogram:
    """How many submissions got which share of the points.  Numbers are points, rounded here and nowhere before."""

    bars: tuple[Bar, ...]
    graded: int
    mean: int | float
    median: int | float
    most: int | float
    full: int


def histogram(scores: Sequence[Score]) -> Histogram | None:
    """The distribution of the scores that are grades; None if there are none."""
    grades = [score for score in scores if not score.at_fault and score.most > 0]
    if not grades:
        return None
    counts = [0] * BARS
    for score in grades:
        counts[BARS - 1 if score.points >= score.most else 10 * max(0, score.points) // score.most] += 1
    largest = max(counts)
    bars = []
    for number, count in enumerate(counts):
        height = max(1, round(_HEIGHT * count / largest)) if count else 0
        bars.append(Bar(str(10 * number), count, 4 + _STEP * number, 16 + _HEIGHT - height, _WIDTH, height))
    points = [score.points for score in grades]
    return Histogram(
        bars=tuple(bars),
        graded=len(grades),
        mean=_rounded(Fraction(sum(points), len(points))),
        median=_rounded(Fraction(median(points))),
        most=points_number(max(score.most for score in grades)),
        full=counts[-1],
    )


def _rounded(hundredths: Fraction) -> int | float:
    return points_number(round(hundredths))


def per_cent(part: int, whole: int) -> int:
    """A share that reads 100 only if it is whole, and 0 only if it is nothing."""
    return 0 if whole <= 0 or part <= 0 else max(1, 100 * part // whole)

"""The record of one grading: every output format is a pure function of it."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

Verdict = Literal[
    "passed",
    "failed",
    "not_implemented",
    "timeout",
    "out_of_memory",
    "crashed",
    "skipped",
    "grader_error",
]

MESSAGE_LIMIT = 4_000
_UNPRINTABLE = re.compile(r"[^\n\t\x20-\x7e\xa0-\ud7ff\ue000-\ufeff\uff00-\ufff9\U00010000-\U0010ffff]")
_BIDIRECTIONAL = re.compile(r"[\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def plain_text(text: str, limit: int = MESSAGE_LIMIT) -> str:
    """Text that is safe to show anywhere text is shown: no control or direction characters, at most `limit` long."""
    clean = _BIDIRECTIONAL.sub("�", _UNPRINTABLE.sub("�", text.replace("\r\n", "\n").replace("\r", "\n")))
    return clean if len(clean) <= limit else clean[:limit] + f" … ({len(clean) - limit} more characters)"


class Check(msgspec.Struct, frozen=True):
    """One check of one function.  Points are hundredths here and numbers of points in JSON.

    misconception: its id in the catalogue, where a failed check names one.
    """

    id: str
    title: str
    verdict: Verdict
    points: int
    max_points: int
    message: str
    hint: str
    seconds: float
    misconception: str | None = None


class FunctionReport(msgspec.Struct, frozen=True):
    name: str
    checks: tuple[Check, ...]

    @property
    def points(self) -> int:
        return sum(check.points for check in self.checks)

    @property
    def max_points(self) -> int:
        return sum(check.max_points for check in self.checks)


class ExerciseReport(msgspec.Struct, frozen=True):
    id: str
    title: str
    functions: tuple[FunctionReport, ...]

    @property
    def points(self) -> int:
        return sum(function.points for function in self.functions)

    @property
    def max_points(self) -> int:
        return sum(function.max_points for function in self.functions)


class Report(msgspec.Struct, frozen=True):
    """The grade of one submission and everything needed to explain or repeat it."""

    submission: str
    exercises: tuple[ExerciseReport, ...]
    sandbox: str
    device: str
    seed: int
    grader_version: str
    notes: tuple[str, ...] = ()

    @property
    def points(self) -> int:
        return sum(exercise.points for exercise in self.exercises)

    @property
    def max_points(self) -> int:
        return sum(exercise.max_points for exercise in self.exercises)

    @property
    def checks(self) -> list[Check]:
        return [c for e in self.exercises for f in e.functions for c in f.checks]

    @property
    def needs_attention(self) -> bool:
        """True if the grader itself failed somewhere: the points are then not a grade yet."""
        return any(check.verdict == "grader_error" for check in self.checks)


def points_number(hundredths: int) -> int | float:
    """Points as a JSON number: 250 -> 2.5, 300 -> 3."""
    return hundredths // 100 if hundredths % 100 == 0 else hundredths / 100

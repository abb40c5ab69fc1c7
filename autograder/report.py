"""The record of one grading: every output format is a pure function of it."""

from __future__ import annotations

from typing import Literal

import msgspec

from autograder.plain import MESSAGE_LIMIT as MESSAGE_LIMIT
from autograder.plain import plain_text as plain_text
from autograder.plain import points_number as points_number

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

"""A Report as one line of JSON, and back."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

import msgspec

from autograder.report import Check, ExerciseReport, FunctionReport, Report, Verdict, points_number


def line(report: Report) -> str:
    """One line, without its line break, in ASCII: any stream can carry it."""
    return json.dumps(as_dict(report), allow_nan=False)


def stored(report: Report) -> str:
    """The line with all that `read` needs to give the same Report back: the notes and the misconceptions' ids too."""
    record = as_dict(report)
    for exercise, its_record in zip(report.exercises, record["exercises"], strict=True):
        for function, its_functions in zip(exercise.functions, its_record["functions"], strict=True):
            for check, its_check in zip(function.checks, its_functions["checks"], strict=True):
                its_check["misconception"] = check.misconception
    record["notes"] = list(report.notes)
    return json.dumps(record, allow_nan=False)


def read(text: str) -> Report:
    """The Report that a line, of either kind, was written from.  Raises ValueError that says why there is none."""
    try:
        record = json.loads(text, parse_float=Decimal, parse_constant=_no_number)
        submission = msgspec.convert(record, _Submission)
    except (RecursionError, ArithmeticError, ValueError) as error:  # msgspec's ValidationError is a ValueError
        raise ValueError(f"not a result of `autograder grade` ({error})") from error
    report = Report(
        submission=submission.submission,
        exercises=tuple(_read_exercise(exercise) for exercise in submission.exercises),
        sandbox=submission.sandbox,
        device=submission.device,
        seed=submission.seed,
        grader_version=submission.grader_version,
        notes=submission.notes,
    )
    _agree("the submission", submission, report)
    return report


def as_dict(report: Report) -> dict[str, Any]:
    """The record that graders of other systems read.  The names and their order are fixed."""
    return {
        "submission": report.submission,
        "points": points_number(report.points),
        "max_points": points_number(report.max_points),
        "sandbox": report.sandbox,
        "device": report.device,
        "seed": report.seed,
        "grader_version": report.grader_version,
        "exercises": [_exercise(exercise) for exercise in report.exercises],
    }


def _exercise(exercise: ExerciseReport) -> dict[str, Any]:
    return {
        "id": exercise.id,
        "title": exercise.title,
        "points": points_number(exercise.points),
        "max_points": points_number(exercise.max_points),
        "functions": [_function(function) for function in exercise.functions],
    }


def _function(function: FunctionReport) -> dict[str, Any]:
    return {
        "name": function.name,
        "points": points_number(function.points),
        "max_points": points_number(function.max_points),
        "checks": [_check(check) for check in function.checks],
    }


def _check(check: Check) -> dict[str, Any]:
    return {
        "id": check.id,
        "title": check.title,
        "verdict": check.verdict,
        "points": points_number(check.points),
        "max_points": points_number(check.max_points),
        "message": check.message,
        "hint": check.hint,
        "seconds": check.seconds,
    }


# -- the way back: numbers of points are read as decimals, so that hundredths come out exact ---------------------------


class _Scored(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    points: int | Decimal
    max_points: int | Decimal


class _Checked(_Scored, forbid_unknown_fields=True, kw_only=True):
    id: str
    title: str
    verdict: Verdict
    message: str
    hint: str
    seconds: int | Decimal
    misconception: str | None = None


class _Function(_Scored, forbid_unknown_fields=True, kw_only=True):
    name: str
    checks: tuple[_Checked, ...]


class _Exercise(_Scored, forbid_unknown_fields=True, kw_only=True):
    id: str
    title: str
    functions: tuple[_Function, ...]


class _Submission(_Scored, forbid_unknown_fields=True, kw_only=True):
    submission: str
    sandbox: str
    device: str
    seed: int
    grader_version: str
    exercises: tuple[_Exercise, ...]
    notes: tuple[str, ...] = ()


def _read_exercise(record: _Exercise) -> ExerciseReport:
    exercise = ExerciseReport(record.id, record.title, tuple(_read_function(f) for f in record.functions))
    _agree(f"exercise {record.id}", record, exercise)
    return exercise


def _read_function(record: _Function) -> FunctionReport:
    function = FunctionReport(record.name, tuple(_read_check(check) for check in record.checks))
    _agree(f"function {record.name}", record, function)
    return function


def _read_check(record: _Checked) -> Check:
    return Check(
        id=record.id,
        title=record.title,
        verdict=record.verdict,
        points=_hundredths(record.points),
        max_points=_hundredths(record.max_points),
        message=record.message,
        hint=record.hint,
        seconds=_finite(float(record.seconds)),
        misconception=record.misconception,
    )


def _agree(what: str, record: _Scored, read: Report | ExerciseReport | FunctionReport) -> None:
    """A file whose sums are wrong was changed by hand or by an accident: no grade comes from it."""
    if (_hundredths(record.points), _hundredths(record.max_points)) != (read.points, read.max_points):
        raise ValueError(f"not a result of `autograder grade` (the points of {what} are not the sum of its parts)")


def _hundredths(points: int | Decimal) -> int:
    if not -(10**9) < points < 10**9:
        raise ValueError("not a result of `autograder grade` (too many points)")
    hundredths = points * 100
    if hundredths != int(hundredths):
        raise ValueError(f"not a result of `autograder grade` ({points} points are not hundredths of a point)")
    return int(hundredths)


def _finite(number: float) -> float:
    if not math.isfinite(number):
        raise ValueError("not a result of `autograder grade` (a number that is too large)")
    return number


def _no_number(name: str) -> float:
    raise ValueError(f"{name} is no number")

"""A Report as one line of JSON."""

from __future__ import annotations

import json
from typing import Any

from autograder.report import Check, ExerciseReport, FunctionReport, Report, points_number


def line(report: Report) -> str:
    """One line, without its line break, in ASCII: any stream can carry it."""
    return json.dumps(as_dict(report), allow_nan=False)


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

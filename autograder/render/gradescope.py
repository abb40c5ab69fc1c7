"""Gradescope's results.json: for one submission, and what stands there until it is graded."""

from __future__ import annotations

import json
from typing import Any

from autograder.render.words import (
    Lang,
    circumstances,
    exercise_number,
    exercise_title,
    explained,
    one_line,
    out_of,
    say,
    total,
    verdict,
)
from autograder.report import Check, ExerciseReport, FunctionReport, Report, points_number


def results(report: Report, lang: Lang = "en") -> str:
    """The whole file.

    Gradescope wants a number as the score, always.  Where the grader itself failed, the number is what the other
    checks gave, students are not shown it, and the output says that it is not a grade.
    """
    attention = report.needs_attention
    document: dict[str, Any] = {
        "score": points_number(report.points),
        "execution_time": round(sum(check.seconds for check in report.checks), 3),
        "output": "\n".join(_output(report, lang)),
        "output_format": "text",
        "test_output_format": "text",
        "test_name_format": "text",
        "visibility": "hidden" if attention else "visible",
        "stdout_visibility": "hidden",
        "extra_data": {
            "status": "needs_attention" if attention else "graded",
            "max_points": points_number(report.max_points),
            "sandbox": one_line(report.sandbox),
            "device": one_line(report.device),
            "seed": report.seed,
            "grader_version": one_line(report.grader_version),
        },
        "tests": [
            _test(exercise, function, check, f"{exercise_number(exercise)}.{f}.{c}", lang)
            for exercise in report.exercises
            for f, function in enumerate(exercise.functions, 1)
            for c, check in enumerate(function.checks, 1)
        ],
    }
    return _written(document)


def not_finished(lang: Lang = "en") -> str:
    """The file to write before grading begins, so that whatever happens there is a valid one that says what it is."""
    document = {
        "score": 0,
        "output": say("unfinished", lang),
        "output_format": "text",
        "visibility": "hidden",
        "stdout_visibility": "hidden",
        "extra_data": {"status": "not_finished"},
        "tests": [],
    }
    return _written(document)


def _output(report: Report, lang: Lang) -> list[str]:
    lines = [say("needs attention", lang)] if report.needs_attention else []
    lines.append(f"{say('total', lang)}{say('colon', lang)}{total(report, lang)}")
    for exercise in report.exercises:
        heading = say("exercise", lang, number=exercise_number(exercise))
        lines.append(f"{heading} · {exercise_title(exercise, lang)}{say('colon', lang)}{out_of(exercise, lang)}")
    lines += [one_line(note) for note in report.notes]
    return [*lines, circumstances(report, lang), *([] if report.device == "cuda" else [say("cpu only", lang)])]


def _test(exercise: ExerciseReport, function: FunctionReport, check: Check, number: str, lang: Lang) -> dict[str, Any]:
    text = "" if check.verdict == "passed" else explained(check, lang).text(lang)
    test: dict[str, Any] = {
        "name": one_line(f"{function.name}: {check.title}"),
        "number": number,
        "status": "passed" if check.verdict == "passed" else "failed",
        "output": text if check.verdict in ("passed", "failed") else f"{verdict(check, lang)}\n{text}".rstrip("\n"),
        "tags": [one_line(tag) for tag in (exercise.id, check.verdict, check.misconception) if tag is not None],
        "extra_data": {"id": one_line(check.id), "seconds": check.seconds},
    }
    if check.verdict != "grader_error":  # without a score it is information, not a zero
        test["score"] = points_number(check.points)
        test["max_score"] = points_number(check.max_points)
    return test


def _written(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=1, allow_nan=False) + "\n"

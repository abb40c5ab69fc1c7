"""What GitHub shows: a step's summary, annotations, and the results that GitHub Classroom's reporter reads."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Sequence
from typing import Any

from autograder.render.markdown import blocks
from autograder.render.reasons import WORST_FIRST, at_fault, functions, groups
from autograder.render.words import Lang, exercise_title, explained, one_line, out_of, say, short_names, verdict
from autograder.report import Check, ExerciseReport, FunctionReport, Report, plain_text, points_number
from autograder.syllabus import EXERCISES

SUMMARY_LIMIT = 1024 * 1024
ANNOTATIONS = 10
ANNOTATION_LIMIT = 1_500


def summary(reports: Sequence[Report], lang: Lang = "en", limit: int = SUMMARY_LIMIT) -> str:
    """Markdown of at most `limit` bytes for $GITHUB_STEP_SUMMARY; what does not fit is left out, and counted."""
    pieces = list(blocks(reports, lang))
    sizes = [len(piece.encode()) for piece in pieces]
    if sum(sizes) <= limit:
        return "".join(pieces)
    room = limit - len(_cut(len(pieces), limit, lang).encode())
    count = 0
    while room >= sizes[count]:
        room -= sizes[count]
        count += 1
    return "".join(pieces[:count]) + _cut(len(pieces) - count, limit, lang)


def _cut(left_out: int, limit: int, lang: Lang) -> str:
    return f"\n> **{say('left out', lang, n=left_out, limit=limit // 1024)}**\n"


def annotate(reports: Sequence[Report], lang: Lang = "en") -> str:
    """Workflow commands, the most useful first, and no more than a step shows.

    First faults of the grader, then failures whose misconception is known (each once), then the others; among equals
    those that cost most.
    """
    found: list[tuple[tuple[int, int], str]] = []
    for name, report in zip(short_names(reports), reports, strict=True):
        prefix = f"{name}{say('colon', lang)}" if len(reports) > 1 else ""
        named: set[str] = set()
        for exercise_id, function in functions(report):
            for group in groups(function.checks):
                first = group[0]
                if first.verdict == "skipped":
                    continue
                known = first.misconception is not None and first.misconception not in named
                named |= {first.misconception} if first.misconception is not None else set()
                rank = 0 if first.verdict == "grader_error" else 1 if known else 2 + WORST_FIRST.index(first.verdict)
                lost = sum(check.max_points - check.points for check in group)
                found.append(((rank, -lost), _annotation(prefix, exercise_id, function, group, lang)))
    found.sort(key=lambda item: item[0])
    lines = [text for _, text in found[:ANNOTATIONS]]
    if len(found) > ANNOTATIONS:
        rest = len(found) - ANNOTATIONS + 1
        lines[-1] = _command("notice", {"title": say("report", lang)}, say("more", lang, n=rest))
    return "".join(f"{line}\n" for line in lines)


def _annotation(prefix: str, exercise_id: str, function: FunctionReport, group: list[Check], lang: Lang) -> str:
    first = group[0]
    told = explained(first, lang)
    titles = "\n".join(f"{one_line(c.title)} ({verdict(c, lang)}, {out_of(c, lang)})" for c in group[:3])
    more = "…\n" if len(group) > 3 else ""
    module = next((f"exercises/{e.module}.py" for e in EXERCISES.values() if e.id == exercise_id), None)
    properties = {"file": module} if module is not None else {}
    heading = told.misconception or verdict(first, lang)
    properties["title"] = one_line(f"{prefix}{function.name}{say('colon', lang)}{heading}")
    return _command("error", properties, plain_text(f"{titles}\n{more}{told.text(lang)}", ANNOTATION_LIMIT))


def _command(kind: str, properties: dict[str, str], message: str) -> str:
    """One workflow command on one line, whatever is in it."""
    given = ",".join(
        f"{name}={_data(value).replace(':', '%3A').replace(',', '%2C')}" for name, value in properties.items()
    )
    return f"::{kind} {given}::{_data(message)}"


def _data(text: str) -> str:
    return plain_text(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def between_stop_commands(text: str) -> str:
    """Text that a log may show: the runner obeys nothing in it."""
    token = secrets.token_hex(16)
    return f"::stop-commands::{token}\n{plain_text(text, len(text))}\n::{token}::\n"


def classroom(report: Report, lang: Lang = "en") -> str:
    """Lines for $GITHUB_OUTPUT: an exercise's id and what the reporter of GitHub Classroom reads as its results.

    Each exercise is a runner of its own.  The reporter sums up the scores; where the grader itself failed there is
    nothing to be had (a maximum of zero), and then it sends no grade.
    """
    lines = []
    for exercise in report.exercises:
        record = json.dumps(classroom_results(exercise, lang, graded=not report.needs_attention), allow_nan=False)
        lines.append(f"{one_line(exercise.id)}={base64.b64encode(record.encode()).decode()}\n")
    return "".join(lines)


def classroom_results(exercise: ExerciseReport, lang: Lang = "en", graded: bool = True) -> dict[str, Any]:
    """What the reporter reads of one exercise.  graded: False if its points are not a grade."""
    module = next((f"exercises/{e.module}.py" for e in EXERCISES.values() if e.id == exercise.id), "")
    full = exercise.points == exercise.max_points
    tests = [_classroom_test(function, module, lang, graded) for function in exercise.functions]
    if not graded or not tests:
        message = say("needs attention" if not graded else "nothing graded", lang)
        name = exercise_title(exercise, lang)
        tests.insert(0, _test(name, "pass" if graded else "error", 0, message, module, 0.0))
    else:
        tests[0]["message"] = f"{out_of(exercise, lang, 'authoritative')}\n{tests[0]['message']}".rstrip("\n")
    return {
        "version": 1,
        "status": "error" if not graded else "pass" if full else "fail",
        "max_score": points_number(exercise.max_points) if graded else 0,
        "tests": tests,
    }


def _classroom_test(function: FunctionReport, module: str, lang: Lang, graded: bool) -> dict[str, Any]:
    full = function.points == function.max_points
    status = "error" if at_fault(function.checks) else "pass" if full else "fail"
    lines = [f"{out_of(function, lang)}"]
    for group in groups(function.checks):
        lines += [f"{one_line(check.title)} ({verdict(check, lang)})" for check in group]
        lines.append(explained(group[0], lang).text(lang))
    score = points_number(function.points) if graded else 0
    seconds = sum(check.seconds for check in function.checks)
    return _test(function.name, status, score, plain_text("\n".join(lines)), module, seconds)


def _test(name: str, status: str, score: float, message: str, module: str, seconds: float) -> dict[str, Any]:
    return {
        "name": one_line(name),
        "status": status,
        "score": score,
        "message": message,
        "test_code": "",
        "filename": module,
        "line_no": 0,
        "duration": round(seconds, 3),
    }

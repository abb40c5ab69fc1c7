"""Whatever is handed in ends with a report and a plain sentence; none with a traceback of ours."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder.grading import Options, Submission, grade_all
from autograder.limits import Limits
from autograder.render import jsonlines, terminal
from autograder.report import Report
from autograder.submission import find
from tests.attacks.junk import KINDS, make

CASES = 1_000
SLICE = 10
QUICK = Limits(load_cpu=4, check_cpu=2, check_wall=10, function_cpu=3, function_wall=12, exercise_cpu=30)


def submissions(folder: Path, seeds: range) -> list[tuple[str, Submission]]:
    found = []
    for seed in seeds:
        place = folder / str(seed)
        place.mkdir()
        kind, path = make(seed, place)
        found.append((kind, find(str(path), {2})))
    return found


def check(kind: str, report: Report) -> None:
    assert report.exercises[0].id == "ex02", kind
    assert len(report.checks) >= 30, kind
    assert not report.needs_attention or kind == "unreadable", (kind, report.checks[0].message)
    bad = [c for c in report.checks if c.verdict != "passed"]
    assert all(c.message for c in bad), kind
    for text in (jsonlines.line(report), terminal.report_text(report)):
        assert "Traceback" not in text, kind
        assert "autograder/" not in text, kind
        assert "\x1b" not in text, kind


@pytest.mark.parametrize("part", range(SLICE))
def test_junk_gets_a_report(part: int, tmp_path: Path) -> None:
    """A thousand cases, in ten parts."""
    found = submissions(tmp_path, range(part, CASES, SLICE))
    assert len({kind for kind, _ in found}) >= len(set(KINDS)) // 2
    reports: list[Report] = []
    grade_all([submission for _, submission in found], Options(limits=QUICK), reports.append)
    assert len(reports) == len(found)
    for (kind, _), report in zip(found, reports, strict=True):
        check(kind, report)

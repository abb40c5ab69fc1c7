"""A second attempt at a check tells the first fault, whatever it ends in; cut short, it is no precedent."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from autograder import grading
from autograder.authors import banks
from autograder.grading import Options, Submission, Work, grade, grade_all
from autograder.hidden import expect
from autograder.hidden.attempts import second_attempt
from autograder.report import Report, Verdict
from autograder.sandbox.loading import Part
from autograder.syllabus import EXERCISES
from autograder.wire.errors import Interrupted, Raised, remote_error

FIRST = expect.Wrong("the first fault", "model-reused")
CUT_SHORT: list[Verdict] = ["failed", "timeout", "crashed", "out_of_memory"]


@pytest.mark.parametrize(
    "ending",
    [
        expect.Wrong("another", "not-the-best-setting"),
        remote_error(Raised("ValueError", "ValueError", "another")),
        *(Interrupted(verdict, "another") for verdict in CUT_SHORT),
    ],
    ids=repr,
)
def test_the_first_fault_is_told(ending: BaseException) -> None:
    with pytest.raises(expect.Wrong) as told, second_attempt(FIRST):
        raise ending
    assert told.value is FIRST


def test_a_second_attempt_may_pass() -> None:
    with second_attempt(FIRST):
        passed = True
    assert passed


@pytest.mark.parametrize(
    "ending", [Interrupted("grader_error", "ours"), KeyboardInterrupt(), OSError("ours")], ids=repr
)
def test_what_is_no_fault_of_the_submission_goes_on(ending: BaseException) -> None:
    with pytest.raises(type(ending)) as raised, second_attempt(FIRST):
        raise ending
    assert raised.value is ending


CHECK = """
import pytest
from autograder.hidden import expect
from autograder.hidden.attempts import second_attempt

@pytest.mark.worth("mean_nll", 1.0)
def test_twice(student):
    if student.mean_nll(1) == "right":
        return
    with second_attempt(expect.Wrong("the first answer was wrong")):
        expect.close(student.mean_nll(2), 2, student.last)
"""


def test_what_was_cut_short_is_no_precedent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two submissions give the same wrong answer first; the second attempt ends the process of one of them."""
    (tmp_path / "test_ex02_twice.py").write_text(CHECK)
    monkeypatch.setattr(grading, "HIDDEN", tmp_path)
    codes = {
        "ends": "import os\ndef mean_nll(x): return 'wrong' if x == 1 else os._exit(3)",
        "recovers": "def mean_nll(x): return 'wrong' if x == 1 else x",
        "ends again": "import os\ndef mean_nll(x):\n    return 'wrong' if x == 1 else os._exit(3)",
    }
    works = [Submission(n, (Work(EXERCISES[2], (Part("student.py", textwrap.dedent(c)),)),)) for n, c in codes.items()]
    reports: list[Report] = []
    grade_all(works, Options(), reports.append)
    checks = {report.submission: report.checks[0] for report in reports}
    assert {name: check.verdict for name, check in checks.items()} == {
        "ends": "failed",
        "recovers": "passed",
        "ends again": "failed",
    }
    assert checks["ends"].message == checks["ends again"].message == "the first answer was wrong"


def named(report: Report) -> list[Any]:
    return [check.misconception for check in report.checks if check.verdict == "failed"]


def test_models_kept_from_an_earlier_check() -> None:
    """Models that are kept tell nobody what is done with them once the check is over: a second attempt cannot go on."""
    (kept,) = (one for one in banks.impostors({9}) if one.path.stem == "compare_one_model_for_all")
    report = grade(banks.submission(kept.exercise, kept.path, kept.name))
    assert named(report)[:2] == ["trained-another-way", "model-reused"]

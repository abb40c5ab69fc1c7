"""No hostile submission earns a point, hurts another's report, or leaves anything behind."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
import torch

from autograder.authors.banks import submission
from autograder.grading import Options, Submission, Work, grade_in
from autograder.limits import Limits
from autograder.render import jsonlines, terminal
from autograder.report import Report
from autograder.sandbox import confine
from autograder.sandbox.loading import Part
from autograder.syllabus import EXERCISES
from autograder.wire.classroom import Classrooms
from tests.attacks.corpus import ATTACKS, Attack
from tests.attacks.corpus_models import MODELS
from tests.attacks.corpus_replies import REPLIES

ROOT = Path(__file__).parents[2]
EVERY = [*ATTACKS, *REPLIES, *MODELS]
#: What an attack may earn honestly: nothing so far, worked examples known by heart neither.
EARNED: dict[str, set[str]] = {}


#: Attacks that burn time need not burn all of it here.
QUICK = Limits(
    load_cpu=4, check_cpu=1, check_wall=4, function_cpu=1.5, function_wall=5, exercise_cpu=12, exercise_wall=15
)


def bystander() -> Submission:
    return submission(EXERCISES[2], ROOT / "solutions" / "ex02_mlm_loss.py", "bystander")


def of(attack: Attack) -> Submission:
    exercise = EXERCISES[attack.exercise]
    return Submission(attack.name, (Work(exercise, (Part(f"{exercise.module}.py", attack.code),)),))


def without_seconds(report: Report) -> str:
    return re.sub(r'"seconds": ?[0-9.e-]+', "", jsonlines.line(report))


def leftovers() -> tuple[list[str], list[str], int]:
    """Files that an attack may have left, processes of our workers' user or below us, and our open descriptors."""
    files = [name for name in os.listdir("/tmp") if name.startswith(("pwned", "left-by"))]
    uid = confine.FIRST_UID + os.getpid() % confine.UIDS
    processes = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            parent = int(Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[1])
            if os.stat(f"/proc/{pid}").st_uid == uid or parent == os.getpid():
                processes.append(pid)
        except OSError:
            continue
    return files, processes, len(os.listdir("/proc/self/fd"))


@pytest.fixture(scope="module")
def reports() -> dict[str, Report]:
    """All attacks in one run, one bystander first and one last, who have all the time that there is usually."""
    before = leftovers()
    found: list[Report] = []
    with Classrooms("auto", torch.device("cpu"), 0, QUICK) as classrooms:
        room = classrooms.room("torch")
        for submissions, limits in (
            ([bystander()], Limits()),
            ([of(attack) for attack in EVERY], QUICK),
            ([bystander()], Limits()),
        ):
            room.limits = limits
            grade_in(classrooms, submissions, Options(), found.append)
    assert leftovers() == before
    assert [r.submission for r in found] == ["bystander", *(a.name for a in EVERY), "bystander"]
    assert without_seconds(found[0]) == without_seconds(found[-1])
    assert found[0].points == found[0].max_points
    return {report.submission: report for report in found}


def test_the_corpus_is_large_enough() -> None:
    assert len(EVERY) >= 140
    assert len({a.name for a in EVERY}) == len(EVERY)
    assert len({a.code for a in EVERY}) == len(EVERY)


@pytest.mark.parametrize("attack", EVERY, ids=lambda a: a.name)
def test_an_attack_earns_nothing(attack: Attack, reports: dict[str, Report]) -> None:
    report = reports[attack.name]
    passed = {check.id for check in report.checks if check.points}
    assert passed <= EARNED.get(attack.name, set()), attack.tries
    assert not report.needs_attention, [c.message for c in report.checks if c.verdict == "grader_error"][:1]
    if attack.conduct is not None and report.sandbox.startswith("full"):
        assert any(attack.conduct in note for note in report.notes), report.notes


@pytest.mark.parametrize("attack", EVERY, ids=lambda a: a.name)
def test_its_report_is_inert(attack: Attack, reports: dict[str, Report]) -> None:
    report = reports[attack.name]
    shown = terminal.report_text(report, verbose=True, colour=False, width=100)
    for text in (shown, jsonlines.line(report), *report.notes):
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
    assert not re.search(r"^\s*::", shown, re.MULTILINE)
    assert "Traceback" not in shown
    assert "def test_" not in shown.replace("def test_it", "")  # a line of their own
    assert len(shown) < 200_000


def test_nothing_was_written_by_an_attack(reports: dict[str, Report]) -> None:
    assert not [name for name in os.listdir("/tmp") if name.startswith(("pwned", "left-by"))]
    assert not (ROOT / "conftest.py").exists()
    assert torch.allclose(torch.zeros(2), torch.ones(2)) is False

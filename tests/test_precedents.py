"""Whatever others answered, a submission gets the report that it would get alone; the same answers are judged once."""

from __future__ import annotations

import random
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from autograder import grading
from autograder.authors import banks
from autograder.grading import Options, Submission, Work, grade_all
from autograder.limits import Limits
from autograder.report import Report
from autograder.sandbox.loading import Part
from autograder.syllabus import EXERCISES
from autograder.wire import precedents
from autograder.wire.precedents import Conversation, Precedents

ROOT = Path(__file__).parents[1]


def graded(submissions: Sequence[Submission], **options: Any) -> list[Report]:
    reports: list[Report] = []
    grade_all(submissions, Options(device="cpu", **options), reports.append)
    return reports


def said(report: Report) -> list[tuple[Any, ...]]:
    """All that a report says but how long it took."""
    checks = [(c.id, c.verdict, c.points, c.message, c.hint, c.misconception) for c in report.checks]
    return [*checks, report.notes]


def alone_and_together(submissions: Sequence[Submission], **options: Any) -> None:
    alone, together = graded(submissions, precedents=False, **options), graded(submissions, **options)
    for one, other in zip(alone, together, strict=True):
        assert said(other) == said(one), one.submission


def written(number: int, folder: str) -> Submission:
    exercise = EXERCISES[number]
    return banks.submission(exercise, ROOT / folder / f"{exercise.module}.py", folder)


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The checks that were run, not decided by precedent."""
    run: list[str] = []
    original = grading.runtestprotocol

    def note(item: pytest.Item, **more: Any) -> Any:
        run.append(item.name)
        return original(item, **more)

    monkeypatch.setattr(grading, "runtestprotocol", note)
    return run


@pytest.mark.parametrize("number", range(1, 6))
def test_a_mixed_class_is_graded_as_if_each_were_alone(number: int) -> None:
    found = [*banks.honest({number})[::8], *banks.impostors({number})[::20]]
    some = [banks.submission(one.exercise, one.path, one.name) for one in found]
    some += 2 * [written(number, "solutions"), written(number, "exercises")]
    chance = ("generator_replaced_by_a_fresh_one", "seeded_by_the_system")  # answers otherwise each time
    some = [one for one in some if not one.name.endswith(chance)]
    random.Random(number).shuffle(some)
    alone_and_together(some)


@pytest.mark.parametrize("number", range(1, 6))
def test_the_same_answers_are_judged_once(number: int, judged: list[str]) -> None:
    first, second = graded([written(number, "solutions")] * 2)
    assert judged == [check.id for check in first.checks]
    assert said(first) == said(second)


FAULTS = {
    "ends": "import os; os._exit(3)",
    "is late": "while True: pass",
    "changes an argument": "args[0].fill_(7)",
    "moves a generator": "torch.rand(1)",
    "returns something else": "return 0.0",
    "raises": "raise RuntimeError('no')",
    "returns what cannot cross": "return object()",
    "tries to look around": "open('/etc/passwd')",
    "keeps its answer for later": "import threading; threading.Timer(0.0, print).start()",
}


def unlike_at(place: int, fault: str) -> Submission:
    """The reference of exercise 2, which does something else at a certain call."""
    right = (ROOT / "solutions" / "ex02_mlm_loss.py").read_text(encoding="utf-8")
    code = f"""
_right, _calls = mlm_loss, 0
def mlm_loss(*args, **kwargs):
    global _calls
    _calls += 1
    if _calls == {place}:
        {fault}
    return _right(*args, **kwargs)
"""
    return Submission(f"{fault} at {place}", (Work(EXERCISES[2], (Part("ex02_mlm_loss.py", right + code),)),))


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_what_happens_in_the_middle_is_seen(fault: str) -> None:
    limits = Limits(load_cpu=4, check_cpu=2, check_wall=8, function_cpu=5, function_wall=20, exercise_cpu=30)
    some = [written(2, "solutions"), *(unlike_at(place, fault) for place in (1, 60)), written(2, "solutions")]
    alone_and_together(some, limits=limits)


# -- checks of our own -------------------------------------------------------------------------------------------------
CHECKS = """
import itertools
import pytest
import torch
from autograder.hidden import expect

turns = itertools.count()

def doubled(student):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = student.stable_log_softmax(x)
    y.sum().backward()
    return student.mean_nll([3.0]) + float(x.grad.sum())

@pytest.mark.worth("mlm_loss", 1.0)
def test_after_a_call(student):
    before = student.mlm_loss(torch.tensor([5.0]))
    assert_is(student.once("doubled", lambda: doubled(student)), 10.0)
    assert_is(student.mlm_loss(before), 5.0)

@pytest.mark.worth("mlm_loss", 1.0)
def test_after_another(student):
    assert_is(student.once("doubled", lambda: doubled(student)) + student.mean_nll([1.0]), 12.0)

@pytest.mark.worth("mean_nll", 1.0)
def test_lends(student):
    asked = []
    def told(x):
        asked.append(x)
        return 2 * x
    assert_is(student.mean_nll(student.lend(told)), 8.0)
    assert_is(float(sum(asked)), 2.0)

@pytest.mark.worth("mlm_loss", 1.0)
def test_leaves_its_argument(student):
    student.mlm_loss(torch.tensor([1.0]), student.lend(lambda x: x))
    expect.unchanged(student, "mlm_loss")

@pytest.mark.worth("mean_nll", 1.0)
def test_asks_something_else_each_time(student):
    number = float(next(turns))
    assert_is(student.mean_nll([number]), 2 * number)

def assert_is(got, wanted):
    if got != wanted:
        expect.wrong(f"{got} is not {wanted}.")
"""
DOUBLES = """
def mean_nll(values):
    return values(0.5) + values(1.5) + 4 if callable(values) else 2 * values[0]
def stable_log_softmax(x):
    return 2 * x
def mlm_loss(x, ask=None):
    result = x.clone() if hasattr(x, "clone") else x
    if ask is not None:
        ask(1.0)
    return result
"""


@pytest.fixture
def own_checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "test_ex02_own.py").write_text(CHECKS)
    monkeypatch.setattr(grading, "HIDDEN", tmp_path)


def doubles(name: str, *changes: tuple[str, str]) -> Submission:
    code = DOUBLES
    for old, new in changes:
        assert old in code
        code = code.replace(old, new)
    return Submission(name, (Work(EXERCISES[2], (Part("ex02_mlm_loss.py", textwrap.dedent(code)),)),))


def verdicts(report: Report) -> dict[str, str]:
    return {check.id: check.verdict for check in report.checks}


@pytest.mark.usefixtures("own_checks")
def test_what_checks_share_is_decided_by_its_own_answers(judged: list[str]) -> None:
    right, again, other, right_again = graded(
        [
            doubles("right"),
            doubles("again"),
            doubles("other", ("2 * x", "3 * x")),
            doubles("right again"),
        ]
    )
    chance = "test_asks_something_else_each_time"
    for report in (right, again, right_again):
        assert set(verdicts(report).values()) == {"passed"}
    assert verdicts(other) == {**verdicts(right), "test_after_a_call": "failed", "test_after_another": "failed"}
    # this one asks otherwise, which is noticed, and judged again without precedents
    first, other_again = judged[:5], [name for name in judged[5:] if name != chance]
    assert sorted(first) == sorted(verdicts(right))
    assert other_again == ["test_after_a_call", "test_after_another"]


@pytest.mark.usefixtures("own_checks")
def test_an_answer_after_those_that_are_known_is_judged(judged: list[str]) -> None:
    right, wrong = graded([doubles("right"), doubles("wrong", ("values(1.5) + 4", "values(1.5) + 4.5"))])
    assert verdicts(wrong) == {**verdicts(right), "test_lends": "failed"}
    assert "8.5 is not 8.0" in next(check for check in wrong.checks if check.id == "test_lends").message


@pytest.mark.usefixtures("own_checks")
def test_an_argument_that_is_changed_after_the_answers_is_seen() -> None:
    right, wrong = graded([doubles("right"), doubles("wrong", ("ask(1.0)", "x.fill_(ask(3.0) - ask(2.0) + 6.0)"))])
    late, again = graded([doubles("late", ("ask(1.0)", "ask(1.0); x.fill_(3.0)")), doubles("right")])
    seen = {**verdicts(right), "test_leaves_its_argument": "failed"}
    assert verdicts(wrong) == verdicts(late) == seen
    assert verdicts(again) == verdicts(right)


@pytest.mark.usefixtures("own_checks")
def test_an_argument_that_is_changed_though_the_answers_are_the_same_is_seen() -> None:
    right, late = graded([doubles("right"), doubles("late", ("ask(1.0)", "ask(1.0); x.fill_(1.0); x += 1"))])
    assert verdicts(late) == {**verdicts(right), "test_leaves_its_argument": "failed"}


# -- a conversation ----------------------------------------------------------------------------------------------------
def held(precedents: Precedents[str], *asked: tuple[bytes, bytes], stored: Sequence[np.ndarray] = ()) -> Conversation:
    conversation = precedents.begin("ex02", "check")
    for number, (message, answer) in enumerate(asked):
        identity = bytes([number]) * 16
        conversation.note(message + identity, identity, answer + identity, stored)
    return conversation


def retraced(precedents: Precedents[str], *answers: bytes) -> tuple[Conversation, list[bytes]]:
    conversation, messages = precedents.begin("ex02", "check"), []
    for answer in answers:
        request = conversation.next_request(b"i" * 16)
        assert request is not None
        messages.append(request.message)
        if not conversation.answered(request, answer + request.identity):
            break
    return conversation, messages


def test_an_ending_is_found_again_under_other_identities() -> None:
    known: Precedents[str] = Precedents()
    held(known, (b"one", b"1"), (b"two", b"2")).close("passed")
    conversation, messages = retraced(known, b"1", b"2")
    assert conversation.ending == "passed"
    assert messages == [b"one" + b"i" * 16, b"two" + b"i" * 16]
    assert retraced(known, b"1", b"3")[0].ending is None
    assert retraced(known, b"2")[0].ending is None


def test_what_was_asked_already_is_told_and_nothing_else() -> None:
    known: Precedents[str] = Precedents()
    held(known, (b"one", b"1"), (b"two", b"2")).close("passed")
    conversation, messages = retraced(known, b"1", b"3")
    assert conversation.told(messages[0]) == b"1" + b"i" * 16
    with pytest.raises(LookupError):
        conversation.told(b"another question")
    conversation, messages = retraced(known, b"1", b"3")
    assert [conversation.told(message) for message in messages] == [b"1" + b"i" * 16, b"3" + b"i" * 16]
    assert conversation.told(b"a new question") is None


def test_what_depends_on_more_than_answers_is_no_precedent() -> None:
    known: Precedents[str] = Precedents()
    conversation = held(known, (b"one", b"1"))
    conversation.forget()
    conversation.close("passed")
    assert known.begin("ex02", "check").next_request(b"i" * 16) is None


def test_there_is_an_end_to_what_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precedents, "ALL_BYTES", 5_000)
    known: Precedents[str] = Precedents()
    held(known, (b"one", b"1"), stored=[np.zeros(3_000, np.uint8)]).close("passed")
    held(known, (b"one", b"2"), stored=[np.ones(3_000, np.uint8)]).close("failed")
    assert retraced(known, b"1")[0].ending == "passed"
    assert retraced(known, b"2")[0].ending is None


def test_one_check_takes_only_so_much(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(precedents, "CHECK_BYTES", 5_000)
    known: Precedents[str] = Precedents()
    held(known, (b"one", b"1"), (b"two", b"2"), stored=[np.zeros(3_000, np.uint8)]).close("passed")
    assert known.begin("ex02", "check").next_request(b"i" * 16) is None


def test_no_check_keeps_what_it_knows_of_a_submission_but_through_the_student() -> None:
    """What is kept elsewhere would be lost where a check is decided by precedent, and missing where the next runs."""
    for file in (ROOT / "autograder" / "hidden").rglob("*.py"):
        if file.parent.name not in ("impostors", "honest"):
            assert "WeakKeyDictionary" not in file.read_text(encoding="utf-8"), file

"""Every submission is tried on what Hypothesis would choose, and a failure is made as simple as it makes it."""

from __future__ import annotations

import copy
import importlib.util
import inspect
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import torch
from hypothesis import example, settings
from hypothesis import strategies as st

from autograder.examples import reproducible
from autograder.grading import HIDDEN
from autograder.hidden.oracles import remembered
from autograder.hidden.properties import given
from autograder.wire.proxy import frozen

Tried = list[tuple[int, list[int]]]
STRATEGIES: dict[str, Any] = {"number": st.integers(0, 1000), "several": st.lists(st.integers(0, 9), max_size=4)}


@pytest.fixture(autouse=True)
def as_in_grading() -> Any:
    with reproducible():
        yield


def a_property(given: Callable[..., Any], wrong: Callable[[int, list[int]], bool]) -> tuple[Callable[..., None], Tried]:
    tried: Tried = []

    @given(**STRATEGIES)
    @example(number=7, several=[1, 2])
    @settings(max_examples=12)
    def holds(student: str, number: int, several: list[int]) -> None:
        tried.append((number, list(several)))
        assert student == "zoe"
        if wrong(number, several):
            raise ValueError(f"{number} {several}")
        several.append(99)  # whoever gets the example next must not see this

    return holds, tried


def test_a_right_submission_is_tried_on_what_hypothesis_chooses() -> None:
    plain, expected = a_property(hypothesis.given, lambda number, several: False)
    plain(student="zoe")
    replayed, tried = a_property(given, lambda number, several: False)
    for _ in range(3):
        tried.clear()
        replayed(student="zoe")
        assert tried == expected
    assert len(expected) > 10
    assert expected[0] == (7, [1, 2])


def test_a_failure_is_made_as_simple_as_hypothesis_makes_it() -> None:
    def wrong(number: int, several: list[int]) -> bool:
        return number > 100 and len(several) > 1

    messages = []
    for how in (hypothesis.given, given):
        failing, _ = a_property(how, wrong)
        with pytest.raises(ValueError) as caught:
            failing(student="zoe")
        messages.append(str(caught.value))
    assert messages == ["101 [0, 0]", "101 [0, 0]"]


def test_what_fails_once_does_not_pass() -> None:
    calls = 0

    def once(number: int, several: list[int]) -> bool:
        nonlocal calls
        calls += 1
        return calls == 3

    failing, _ = a_property(given, once)
    with pytest.raises(ValueError):
        failing(student="zoe")


def test_what_ends_a_check_is_not_searched_for_again() -> None:
    class Ended(BaseException):
        pass

    calls = 0

    def end(number: int, several: list[int]) -> bool:
        nonlocal calls
        calls += 1
        raise Ended

    ending, _ = a_property(given, end)
    with pytest.raises(Ended):
        ending(student="zoe")
    assert calls == 1


def test_pytest_sees_the_fixtures_only() -> None:
    holds, _ = a_property(given, lambda number, several: False)
    assert list(inspect.signature(holds).parameters) == ["student"]


def test_an_oracle_answers_the_same_question_once() -> None:
    asked: list[torch.Tensor] = []

    @remembered
    def doubled(numbers: torch.Tensor, factor: float = 2) -> torch.Tensor:
        asked.append(numbers)
        return numbers * factor

    zeros = torch.zeros(3)
    questions = [zeros, -zeros, zeros.double(), zeros.int(), zeros.reshape(3, 1), torch.full((3,), math.nan)]
    for question in questions:
        for _ in range(2):
            answer = doubled(question)
            assert answer.shape == question.shape
            assert answer.dtype == question.dtype
            answer += 1  # whoever asks next must not see this
    assert len(asked) == len(questions)
    assert torch.equal(doubled(zeros), torch.zeros(3))
    doubled(zeros, 2.0)
    doubled(zeros, factor=2)
    assert len(asked) == len(questions) + 2  # 2 and 2.0 are two questions


@pytest.mark.parametrize(
    ("one", "other"),
    [([0.0], [-0.0]), ([1], [True]), ([1], [1.0]), ([[1], 2], [[1, 2]]), ([1], (1,)), ({"a": 1}, {"a": 2})],
)
def test_an_argument_that_changed_is_told_from_one_that_did_not(one: Any, other: Any) -> None:
    assert frozen(one) != frozen(other)
    assert frozen(one) == frozen(copy.deepcopy(one))
    assert frozen([one, (1, math.nan), 2**70, "\ud800"]) == frozen([copy.deepcopy(one), (1, math.nan), 2**70, "\ud800"])
    assert frozen([one, (1, 2)]) != frozen([other, (1, 2)])


def test_examples_do_not_depend_on_what_is_loaded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hypothesis takes constants from the modules of a project: other ones with every exercise that is graded."""
    tried: list[list[int]] = []

    @hypothesis.given(several=st.lists(st.integers(0, 10**6), min_size=20, max_size=30))
    def holds(several: list[int]) -> None:
        tried.append(several)

    holds()
    (tmp_path / "full_of_constants.py").write_text(f"numbers = {list(range(500_000, 501_000))}")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.import_module("full_of_constants")
    before, tried = tried, []
    holds()
    monkeypatch.delitem(sys.modules, "full_of_constants")
    assert tried == before


def test_checks_have_the_settings_of_grading_wherever_they_are_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of exercise 5 drew other examples each time, and left them as they were, where a test had imported them."""
    hypothesis.settings.load_profile("default")
    found = []
    for file in sorted(HIDDEN.glob("test_ex*.py")):
        spec = importlib.util.spec_from_file_location(f"fresh_{file.stem}", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, spec.name, module)  # dataclasses look there
        spec.loader.exec_module(module)
        checks = [check for name, check in vars(module).items() if name.startswith("test_")]
        found += [check._hypothesis_internal_use_settings for check in checks if hasattr(check, "hypothesis")]
    assert len(found) > 50
    for chosen in found:
        assert chosen.derandomize
        assert (chosen.database, chosen.deadline, chosen.report_multiple_bugs) == (None, None, False)

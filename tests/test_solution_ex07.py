"""Exercise 7: the right implementations are right, all faults are asked for, and tricks do not expose anything."""

from __future__ import annotations

import random
import re
import textwrap
from pathlib import Path
from typing import Any

import pytest
import torch

from autograder.grading import Options, Submission, Work, grade
from autograder.hidden.oracles import ex02
from autograder.hidden.testing_ex07 import bench, collating, losses, masking, masking_faults, predicting
from autograder.report import Report
from autograder.sandbox.loading import Part
from autograder.syllabus import EXERCISES
from autograder.wire import testing

HIDDEN = Path(__file__).parents[1] / "autograder" / "hidden"
HERE = Options(in_process=True)


def graded(number: int, code: str) -> Report:
    exercise = EXERCISES[number]
    return grade(Submission("", (Work(exercise, (Part(f"{exercise.module}.py", textwrap.dedent(code)),)),)), HERE)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(masking.FAMILIES)))
def test_the_right_ways_of_masking_pass_exercise_5(number: int) -> None:
    report = graded(
        5,
        f"""
        from autograder.hidden.testing_ex07 import collating, masking
        def own(function):
            def call(*args, **kwargs):
                try: return function(*args, **kwargs)
                except ValueError as error: raise ValueError(str(error)) from None
            return call
        mask_tokens = own(masking.FAMILIES[{number}](12345))
        collate_mlm = own(collating.FAMILIES[{number % len(collating.FAMILIES)}](678))
        """,
    )
    assert [(c.id, c.message) for c in report.checks if c.verdict != "passed"] == []


@pytest.mark.parametrize("family", losses.FAMILIES)
def test_the_right_losses_are_the_definition(family: type[losses.Loss]) -> None:
    loss = family(0)
    for seed in range(20):
        source = torch.Generator().manual_seed(seed)
        logits = torch.randn(3, 4, 6, generator=source, dtype=torch.float64) * 10.0 ** (seed % 4)
        labels = torch.randint(6, (3, 4), generator=source)
        labels[torch.rand(3, 4, generator=source) < 0.5] = -7
        labels[0, 0] = 5
        expected = ex02.mlm_loss(logits, labels, -7)
        spoiled = torch.where((labels == -7)[..., None], float("nan"), logits)
        for given in (logits, spoiled):
            assert loss(given, labels, -7).item() == pytest.approx(float(expected), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("family", predicting.FAMILIES)
def test_right_classifiers_tell_texts_apart(family: type[predicting.Predicting]) -> None:
    """Both classes are common among texts that begin and end alike, so that a fault shows."""
    for salt in range(30):
        ids = torch.randint(6, 38, (200, 12), generator=torch.Generator().manual_seed(salt))
        ids[:, 0], ids[:, -1] = 38, 1
        share = family(salt)(ids, torch.ones_like(ids)).double().mean()
        assert 0.1 < share < 0.9


def faults() -> dict[str, list[str]]:
    modules = {"faults": masking_faults, "collating": collating, "losses": losses, "predicting": predicting}
    right = {base.__name__ for families in bench.FAMILIES.values() for base in families}
    right |= {"Masking", "Collating", "Loss", "Predicting"}
    return {
        alias: [
            name
            for name, value in vars(module).items()
            if isinstance(value, type) and value.__module__ == module.__name__ and name not in right
        ]
        for alias, module in modules.items()
    }


def test_every_fault_is_asked_for() -> None:
    text = "".join(path.read_text(encoding="utf-8") for path in HIDDEN.glob("test_ex07_*.py"))
    named = [f"{alias}.{name}" for alias, names in faults().items() for name in names]
    assert len(named) >= 50
    assert [name for name in named if not re.search(rf"\b{re.escape(name)}\b", text)] == []


def test_only_what_is_called_is_made() -> None:
    """Most tests call one function of `impl`; what the others would answer is not worked out."""
    made: list[int] = []

    class Implementation:
        """One."""

        def __init__(self, salt: int) -> None:
            made.append(salt)

        def __call__(self, value: int) -> tuple[int, int]:
            """Answer."""
            return made[-1], value

    called: set[str] = set()
    function = bench._made(Implementation, 5, "mask_tokens", called)
    assert (function.__name__, function.__doc__, made, called) == ("mask_tokens", "Answer.", [], set())
    assert [function(1), function(value=2)] == [(5, 1), (5, 2)]
    assert (made, called) == ([5], {"mask_tokens"})


@pytest.mark.parametrize(("fault", "family"), [(f, m) for f in faults()["faults"] for m in masking.FAMILIES])
def test_a_wrong_masking_answers_where_right_ones_do(fault: str, family: type[masking.Masking]) -> None:
    """No fault makes an ordinary call raise: what exposes it is what it returns."""
    wrong = type("Wrong", (getattr(masking_faults, fault), family), {})(5)
    ids = torch.randint(6, 38, (4, 30), generator=torch.Generator().manual_seed(1))
    ids[:, 20:] = 3
    attention, special = (ids != 3).long(), (ids < 6).long()
    settings: list[dict[str, Any]] = [{}, {"mlm_probability": 1.0}, {"mask_rate": 0.0, "random_rate": 1.0}]
    settings += [{"random_rate": 0.0, "mask_rate": 1.0}, {"mlm_probability": 1e-6}, {"generator": None}]
    for changes in settings:
        usual = {"mask_token_id": 5, "ordinary_ids": torch.arange(6, 38), "generator": torch.Generator()}
        state = torch.get_rng_state()
        batch = wrong(ids.clone(), attention.clone(), special.clone(), **{**usual, **changes})
        torch.set_rng_state(state)
        assert all(tensor.shape == ids.shape for tensor in batch)


TRICKS = {
    "fails by chance": """
        import os, pytest
        @pytest.mark.parametrize("number", range(60))
        def test_dice(impl, number):
            use(impl)
            assert os.urandom(1)[0] > 20
    """,
    "fails from the ninth run on": """
        RUNS = []
        def test_counts(impl):
            use(impl)
            RUNS.append(0)
            assert len(RUNS) <= 8
    """,
    "calls everything wrong that it does not know": """
        SEEN = []
        def test_remembers(impl):
            found = use(impl)
            if len(SEEN) < 8: SEEN.append(found)
            assert found in SEEN
    """,
    "always fails": "def test_no(impl):\n    use(impl)\n    assert False",
    "never fails": "def test_yes(impl):\n    use(impl)",
}


@pytest.mark.parametrize("trick", TRICKS.values(), ids=TRICKS)
def test_tricks_expose_nothing(trick: str) -> None:
    code = """
        import torch
        def use(impl):
            ids = torch.randint(6, 38, (4, 12), generator=torch.Generator().manual_seed(1))
            ones = torch.ones_like(ids)
            source = torch.Generator().manual_seed(1)
            batch = impl.mask_tokens(
                ids, ones, 0 * ones, mask_token_id=5, ordinary_ids=torch.arange(6, 38), generator=source
            )
            more = impl.predict(ids, ones).tolist()
            return batch.labels.tolist(), more
    """
    report = graded(7, textwrap.dedent(code) + textwrap.dedent(trick))
    # sixty dice may guess a line-up right: one in some hundred times for each fault
    allowed = 60 if "urandom" in trick else 0
    assert sum(check.points for check in report.checks) <= allowed


def test_what_does_not_count_is_named() -> None:
    code = "def test_mask(impl):\n    assert 1 == 2, 'never'\ndef test_later(impl):\n    raise NotImplementedError"
    report = graded(7, code)
    message = report.checks[0].message
    assert "`test_mask` does not count, because it fails on a right implementation: AssertionError: never" in message
    assert "Not written yet: test_later" in message
    assert {check.verdict for check in report.checks} == {"failed"}


@pytest.mark.parametrize("code", ["", "x = 1\n", "def test_a(impl): raise NotImplementedError\n"])
def test_nothing_written_is_not_implemented(code: str) -> None:
    assert {check.verdict for check in graded(7, code).checks} == {"not_implemented"}


def test_a_slow_suite_is_told_which_tests_are_slow() -> None:
    code = "import time\ndef test_a(impl): time.sleep(4)\ndef test_b(impl): time.sleep(3)\ndef test_c(impl): pass"
    report = graded(7, code)
    assert {check.verdict for check in report.checks} == {"timeout"}
    assert (
        "took 7 s on one implementation, and 2 s are allowed: `test_a` 4.0 s, `test_b` 3.0 s"
        in report.checks[0].message
    )


def test_too_large_a_call_is_refused_by_all() -> None:
    ids = torch.zeros(1001, 1000, dtype=torch.int64)
    with pytest.raises(MemoryError):
        masking.Independent(0)(ids, ids, ids, mask_token_id=1, ordinary_ids=ids[0])


# -- Line-ups ----------------------------------------------------------------------------------------------------------
class Scripted:
    """A student with one test, which answers as `outcome` says; an implementation is whether it is wrong."""

    def __init__(self, outcome: Any) -> None:
        self.outcome = outcome

    def run_test(self, name: str, implementation: bool, seconds: float) -> testing.Tested:
        return testing.Tested("failed" if self.outcome(implementation) else "passed")


@pytest.fixture
def line_up(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Whether a test comes through a line-up."""
    monkeypatch.setattr(bench, "_faulty", lambda *_: True)
    monkeypatch.setattr(bench, "_right", lambda *_: False)

    def come_through(outcome: Any, known: bench.Survey) -> bool:
        return bench._stands_out(Scripted(outcome), 0, "f", int, "test_it", known)

    return come_through


def knowing() -> bench.Survey:
    return bench.Survey(testing.Collected((), 0, ()), counted=["test_it"], calls={"test_it": {"f"}})


def test_a_test_that_knows_wrong_from_right_comes_through(line_up: Any) -> None:
    known = knowing()
    assert all(line_up(lambda wrong: wrong, known) for _ in range(20))
    assert known.beside == {"test_it": [20 * bench.RIGHT_IN_LINE, 0]}
    assert known.counted == ["test_it"]


def test_a_coin_does_not_come_through_and_is_struck_off(line_up: Any) -> None:
    coin = random.Random(0)
    through = sum(line_up(lambda wrong: coin.random() < 0.42, knowing()) for _ in range(20_000))
    assert through < 40  # 14 are expected: 20,000 times 0.0007
    known = knowing()
    for _ in range(4):
        line_up(lambda wrong: coin.random() < 0.42, known)
    assert known.calling("f") == []
    assert known.uncounted["test_it"].outcome == "failed"


def test_a_rare_false_alarm_is_forgiven() -> None:
    known = knowing()
    for number in range(300):
        known.note_beside("test_it", testing.Tested("failed" if number % 100 == 50 else "passed"))
    assert known.counted == ["test_it"]

"""What stays on the student's side is held from here; what is lent to it answers from here.  Both ways of grading."""

from __future__ import annotations

import contextlib
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from autograder.grading import Work, open_in_process
from autograder.limits import Limits
from autograder.sandbox.loading import Part
from autograder.syllabus import EXERCISES
from autograder.wire.classroom import RemoteClassroom
from autograder.wire.errors import Interrupted, RemoteError
from autograder.wire.proxy import Handle, Student
from exercises.kit import FineTuneConfig, FineTuneResult

QUICK = Limits(load_cpu=5, check_cpu=5, check_wall=20, function_cpu=5, function_wall=20, exercise_cpu=20)


@pytest.fixture(scope="module")
def room() -> Iterator[RemoteClassroom]:
    with RemoteClassroom("auto", torch.device("cpu"), limits=QUICK) as classroom:
        yield classroom


@pytest.fixture(params=["in-process", "across the wire"])
def side(request: pytest.FixtureRequest, room: RemoteClassroom) -> Any:
    """Opens code on either side of the boundary, as exercise 2."""

    @contextlib.contextmanager
    def opened(code: str) -> Iterator[Student]:
        work = Work(EXERCISES[2], (Part("student.py", textwrap.dedent(code)),))
        with (open_in_process if request.param == "in-process" else room.open)(work) as student:
            student.begin_check("mean_nll")
            yield student
            student.end_check()

    return opened


MODULE = """
    import torch
    class Scale(torch.nn.Module):
        def __init__(self, factor):
            super().__init__()
            self.factor = torch.nn.Parameter(factor)
        def forward(self, x): return x * self.factor
    def mean_nll(factor): return Scale(factor)
    def mlm_loss(model, x): return model(x).sum()
"""


def test_a_model_is_called_from_here_gradient_and_all(side: Any) -> None:
    with side(MODULE) as student:
        model = student.mean_nll(torch.tensor(3.0))
        assert isinstance(model, Handle)
        assert repr(model) == "<Scale>"
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        model(x).sum().backward()
        assert torch.equal(x.grad, torch.tensor([3.0, 3.0]))


def test_a_handle_is_an_argument_and_fixtures_read_it(side: Any) -> None:
    with side(MODULE) as student:
        model = student.mean_nll(torch.tensor(3.0))
        assert student.mlm_loss(model, torch.tensor([1.0, 2.0])).item() == 9.0
        assert student.fixtures.parameters(model) == [("factor", True, 1)]
        assert student.fixtures.state(model)["factor"].item() == 3.0


def test_a_kept_result_stays_there_whatever_it_is(side: Any) -> None:
    with side("def mean_nll(x): return [x, x]\ndef mlm_loss(pair, _): return pair[0] is pair[1]") as student:
        pair = student.mean_nll.kept(torch.ones(2))
        assert isinstance(pair, Handle)
        assert student.mlm_loss(pair, None) is True


def test_records_bring_their_functions(side: Any) -> None:
    code = """
        from exercises.kit import FineTuneResult
        def mean_nll(config): return FineTuneResult(1, 2, [], 1, 0.5, 0.5, lambda ids, mask: ids + config.batch_size)
    """
    with side(code) as student:
        result = student.mean_nll(FineTuneConfig("full", 1e-3, 1e-3, batch_size=7))
        assert isinstance(result, FineTuneResult)
        assert result.predict(torch.tensor([1]), torch.tensor([1])).item() == 8


def test_a_lent_function_answers_here_and_its_changes_arrive(side: Any) -> None:
    code = """
        import torch
        def mean_nll(ask):
            x, items, generator = torch.zeros(2), [1, 2], torch.Generator().manual_seed(3)
            drawn = ask(x, items, generator=generator)
            return x, items, drawn, torch.rand(1, generator=generator)
        def mlm_loss(ask, x):
            try: ask(x)
            except KeyError as e: return type(e).__name__
    """

    def answer(x: torch.Tensor, items: list[int], generator: torch.Generator) -> torch.Tensor:
        x += 5
        items.append(3)
        return torch.rand(1, generator=generator)

    def refuse(x: Any) -> Any:
        raise KeyError("no")

    with side(code) as student:
        here = torch.Generator().manual_seed(3)
        x, items, drawn, after = student.mean_nll(student.lend(answer))
        assert x.tolist() == [5.0, 5.0]
        assert items == [1, 2, 3]
        assert torch.equal(drawn, torch.rand(1, generator=here))
        assert torch.equal(after, torch.rand(1, generator=here))
        assert student.mlm_loss(student.lend(refuse), 1) == "KeyError"


KEEPS = """
    kept = []
    def mean_nll(ask):
        kept.append(ask)
        return ask(1)
    def stable_log_softmax(x): return mlm_loss(x)
    def mlm_loss(x):
        try: return kept[0](x)
        except Exception as e: return f"{type(e).__name__}"
"""


def test_a_lent_function_is_of_no_use_after_the_check(room: RemoteClassroom) -> None:
    """A submission kept a right function that had stood in for one of its own, and called it in later checks."""
    work = Work(EXERCISES[2], (Part("student.py", textwrap.dedent(KEEPS)),))
    with room.open(work) as student:
        student.begin_check("mean_nll")
        assert student.mean_nll(student.lend(lambda x: x + 1)) == 2
        assert student.mlm_loss(5) == 6
        student.end_check()
        student.begin_check("mlm_loss")
        student.lend(lambda x: "another one's answer")
        assert student.mlm_loss(5) == "RuntimeError"
        assert student.mlm_loss(6) == "RuntimeError"
        assert not student.conduct


def test_a_stand_in_is_of_no_use_once_it_is_gone(room: RemoteClassroom) -> None:
    code = """
        import sys
        kept = []
        def mean_nll(x):
            kept.append(mlm_loss)
            return mlm_loss(x)
        def mlm_loss(x): return kept[0](x)
    """
    work = Work(EXERCISES[2], (Part("student.py", textwrap.dedent(code)),))
    with room.open(work) as student:
        student.begin_check("mean_nll")
        with student.replacing(mlm_loss=lambda x: x + 1):
            assert student.mean_nll(1) == 2
        with pytest.raises(RemoteError, match="lent for a call or a check that is over"):
            student.mlm_loss(1)
        assert not student.conduct


def test_served_splits_are_read_here_one_by_one(side: Any) -> None:
    data = {"train": [([1, 2], 0), ([3], 1)], "validation": [([4], 1)], "test": [([5, 6], 0)]}
    log = []

    def read(part: str, index: int) -> tuple[list[int], int]:
        log.append((part, index))
        return data[part][index]

    code = """
        def mean_nll(splits):
            last = splits.train[-1]
            return len(splits.train), last.input_ids, [e.label for e in splits.train], splits.test[0:1][0].input_ids
    """
    with side(code) as student:
        splits = student.fixtures.served_splits(student.lend(read), 2, 1, 1)
        assert student.mean_nll(splits) == (2, [3], [0, 1], [5, 6])
    assert log == [("train", 1), ("train", 0), ("train", 1), ("test", 0)]


def test_what_is_made_once_is_made_once_failures_too(side: Any) -> None:
    code = "calls = 0\ndef mean_nll():\n    global calls\n    calls += 1\n    raise ValueError(f'call {calls}')"
    with side(code) as student:
        for _ in range(2):
            with pytest.raises(RemoteError, match="call 1"):
                student.once("run", student.mean_nll)


def test_a_handle_of_a_worker_that_ended_says_so(room: RemoteClassroom) -> None:
    code = MODULE + "    def stable_log_softmax(x): import os; os._exit(3)\n"
    work = Work(EXERCISES[2], (Part("student.py", textwrap.dedent(code)),))
    with room.open(work) as student:
        student.begin_check("mean_nll")
        model = student.mean_nll(torch.tensor(3.0))
        with pytest.raises(Interrupted):
            student.stable_log_softmax(1)
        with pytest.raises(Interrupted, match="ended before"):
            student.mlm_loss(model, torch.ones(1))


def test_a_library_that_wants_a_temporary_folder_at_once_finds_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """PyTorch imports dill where it is installed, and dill asks for the folder when it is imported."""
    stage = RemoteClassroom._stage

    def stage_more(room: RemoteClassroom) -> None:
        stage(room)
        (room._folder / "runtime" / "wants_a_folder.py").write_text("import tempfile\ntempfile.gettempdir()\n")

    monkeypatch.setattr(RemoteClassroom, "_stage", stage_more)
    with RemoteClassroom("auto", torch.device("cpu"), limits=QUICK, preload=["wants_a_folder"]) as classroom:
        assert classroom.level

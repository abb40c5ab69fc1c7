"""PyTorch in the grading process and in workers: seeds are noted without the stack of whoever asked, and count."""

from __future__ import annotations

import traceback

import pytest
import torch

from autograder.grading import Work
from autograder.sandbox import torch_setup
from autograder.sandbox.loading import Part
from autograder.syllabus import EXERCISES
from autograder.wire.classroom import RemoteClassroom

#: How often a stack is put into words while PyTorch is seeded, and the first numbers drawn then.
SEEDING = """
import traceback
import torch

def mean_nll(*_):
    formatted = []
    original = traceback.StackSummary.format
    traceback.StackSummary.format = lambda self, **given: formatted.append(1) or original(self, **given)
    try:
        torch.manual_seed(3)
    finally:
        traceback.StackSummary.format = original
    return len(formatted), torch.rand(4)
"""


def drawn(seed: int) -> torch.Tensor:
    return torch.rand(4, generator=torch.Generator().manual_seed(seed))


def test_no_stack_is_put_into_words_for_a_seed(monkeypatch: pytest.MonkeyPatch) -> None:
    torch_setup.set_up()

    def refuse(*_: object) -> list[str]:
        raise AssertionError("a stack was put into words")

    monkeypatch.setattr(traceback, "format_stack", refuse)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(3)
        assert torch.equal(torch.rand(4), drawn(3))


def test_nor_in_a_worker() -> None:
    work = Work(EXERCISES[2], (Part("student.py", SEEDING),))
    with RemoteClassroom("auto", torch.device("cpu")) as room, room.open(work) as student:
        student.begin_check(EXERCISES[2].functions[0].name)
        formatted, numbers = student.mean_nll([0.5])
    assert formatted == 0
    assert torch.equal(numbers, drawn(3))


def test_a_version_of_pytorch_without_such_notes_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.cuda, "traceback")
    monkeypatch.delattr(torch, "mtia")
    torch_setup.set_up()
    assert not hasattr(torch.cuda, "traceback")

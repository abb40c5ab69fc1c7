"""Hidden checks of exercise 6: the function predict that fine_tune returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from autograder.hidden import expect
from autograder.hidden.cases_ex06 import MARKS, Case, forgiving, learning, marked_texts, scripted, started, with_ours
from autograder.hidden.oracles import ex06 as oracle
from autograder.sandbox.fixtures.models import classifier
from autograder.wire.proxy import Function, Handle, Student
from autograder.wire.show import show

Predict = Callable[..., Any]


def predicting(student: Student, case: Case, check: Callable[[Predict, Handle], None]) -> None:
    """Fine-tune and look at the function predict of the result."""

    def attempt(ours: bool) -> None:
        with with_ours(student, ours):
            model, _, tune = started(student, case)
            result = tune()
            predict = getattr(result, "predict", None)
            if not isinstance(predict, Handle):
                expect.wrong(f"predict of {student.last.text}\nis {show(predict)}, not a function.", "result-form")
            check(Function(student, "predict", ("input_ids", "attention_mask"), predict), model)

    forgiving(student, attempt)


def batch(texts: list[tuple[list[int], int]], device: torch.device, more: int = 0, fill: int = 7) -> tuple[Any, Any]:
    """Ids and mask of texts, with `more` columns of padding than they need."""
    width = max(len(ids) for ids, _ in texts) + more
    ids = torch.tensor([ids + [fill] * (width - len(ids)) for ids, _ in texts])
    mask = torch.tensor([[1] * len(ids) + [0] * (width - len(ids)) for ids, _ in texts])
    return ids.to(device), mask.to(device)


def check_classes(student: Student, got: Any, expected: list[int], device: torch.device, misconception: str) -> None:
    if not isinstance(got, torch.Tensor) or list(got.shape) != [len(expected)] or got.tolist() != expected:
        expect.wrong(f"{student.last.text}\nreturned {show(got)}\nexpected the classes {expected}", misconception)


@pytest.mark.worth("fine_tune", 0.15, misconception="classes-form")
def test_predicted_classes(student: Student, device: torch.device) -> None:
    """predict returns the classes of a batch, int64 and of shape (m,), for one text and for many."""
    classes = (1, 0, 0, 1, 1, 0, 1, 0, 1)
    case = scripted("f1-other", device, (0.4,), test=[classes], test_labels=(1, 0) * 4 + (0,), max_epochs=1)

    def check(predict: Predict, model: Handle) -> None:
        texts = case.texts["test"]
        for places in ([0], [1], [3, 2], list(range(9)), [4, 4, 4, 0]):
            ids, mask = batch([texts[place] for place in places], device, fill=0)
            for given in (mask, mask.bool(), mask.int()):
                got = predict(ids, given)
                right = torch.tensor([classes[place] for place in places], device=device)
                expect.close(got, right, student.last, misconception="classes-form")

    predicting(student, case, check)


@pytest.mark.worth("fine_tune", 0.15, misconception="padding-in-predictions")
def test_predictions_ignore_padding(student: Student, device: torch.device) -> None:
    """The classes predicted are the same whatever ids stand at the padding, and however much padding there is."""
    case = learning("predicting", device, max_epochs=4)

    def check(predict: Predict, model: Handle) -> None:
        texts = marked_texts(9, 30, longest=14)
        copy = rebuilt_now(student, case, model)
        scores = oracle.logits(copy, texts)
        clear = [text for text, row in zip(texts, scores, strict=True) if abs(float(row[1] - row[0])) > 1e-3]
        classes = oracle.logits(copy, clear).argmax(dim=-1).tolist()
        if len(set(classes)) < 2:
            expect.wrong(
                f"{student.last.text}\nleft a model that gives all of {len(clear)} texts one class.", "nothing-learned"
            )
        for more, fill in ((0, 7), (0, MARKS[0]), (11, MARKS[1]), (25, 0), (17, MARKS[0])):
            check_classes(
                student, predict(*batch(clear, device, more, fill)), classes, device, "padding-in-predictions"
            )

    predicting(student, case, check)


def rebuilt_now(student: Student, case: Case, model: Handle) -> Any:
    copy = classifier(**case.settings)
    copy.load_state_dict({name: value.cpu() for name, value in student.fixtures.state(model).items()})
    return copy


@pytest.mark.worth("fine_tune", 0.1, misconception="dropout-while-predicting")
def test_predictions_without_dropout(student: Student, device: torch.device) -> None:
    """predict uses no dropout, even if the model was switched to training mode before.

    With dropout each text gets the other class with probability 1/4: a predict that uses it passes with (3/4)^200.
    """
    labels = (1,) * 25
    case = scripted("dropping", device, (0.4,), test=[labels], test_labels=labels, dropout=0.5, max_epochs=1)

    def check(predict: Predict, model: Handle) -> None:
        for _ in range(8):
            student.fixtures.training_mode(model)
            got = predict(*batch(case.texts["test"], device, fill=0))
            check_classes(student, got, list(labels), device, "dropout-while-predicting")

    predicting(student, case, check)


@pytest.mark.worth("fine_tune", 0.15, misconception="bad-input-accepted")
def test_row_of_padding_is_refused(student: Student, device: torch.device) -> None:
    """A row of padding only is a ValueError that names attention_mask."""
    case = scripted("f1-other", device, (0.4,), test=[(1, 0, 1)], test_labels=(1, 0, 1), max_epochs=1)

    def check(predict: Predict, model: Handle) -> None:
        ids, mask = batch(case.texts["test"], device, fill=0)
        check_classes(student, predict(ids, mask), [1, 0, 1], device, "classes-form")
        for row in range(3):
            empty = mask.clone()
            empty[row] = 0
            for given in (empty, empty.bool()):
                expect.refuses(
                    predict, ids, given, names=("attention_mask",), because=f"row {row} of attention_mask is all 0"
                )

    predicting(student, case, check)


@pytest.mark.worth("fine_tune", 0.05, misconception="wrong-device")
def test_predictions_on_the_device_of_the_ids(student: Student, device: torch.device) -> None:
    """The classes are on the device of input_ids."""
    case = scripted("f1-other", device, (0.4,), test=[(1, 0, 1)], test_labels=(1, 0, 1), max_epochs=1)

    def check(predict: Predict, model: Handle) -> None:
        for where in {torch.device("cpu"), device}:
            ids, mask = batch(case.texts["test"], where, fill=0)
            with student.device_trap() as faults:
                got = predict(ids, mask)
            expect.close(got, torch.tensor([1, 0, 1], device=where), student.last, dtype=False)
            if faults:
                expect.wrong(f"{student.last.text}\n{faults[0]}", "wrong-device")

    predicting(student, case, check)

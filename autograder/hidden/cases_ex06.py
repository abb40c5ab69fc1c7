"""Runs of fine_tune for the hidden checks of exercise 6: what is prescribed, what the grader saw, what came back."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import torch

from autograder.hidden import expect
from autograder.hidden.attempts import second_attempt
from autograder.hidden.oracles import ex06 as oracle
from autograder.sandbox.fixtures.ex06 import FIRST, NUMBER, PARTS
from autograder.wire.errors import RemoteError
from autograder.wire.proxy import Call, Handle, Student
from autograder.wire.show import show
from exercises.kit import FineTuneConfig

#: So small a learning rate leaves every weight as it is, bit by bit.
STILL = 1e-30
Text = tuple[list[int], int]
Look = Callable[["Run"], None]


@dataclass(frozen=True)
class Case:
    """A model, data and settings.

    texts: part -> (ids, label) of each.  script: of a scripted model, or None for a small BERT with these settings.
    before: (fixture, arguments) to call with the model first; a global one without it is called first of all.
    """

    name: str
    texts: dict[str, list[Text]]
    config: FineTuneConfig
    script: dict[str, Any] | None = None
    settings: dict[str, Any] = field(default_factory=dict)
    before: tuple[tuple[str, tuple[Any, ...]], ...] = ()
    stirred: int | None = None

    def labels(self, part: str) -> list[int]:
        return [label for _, label in self.texts[part]]


@dataclass
class Run:
    """What came of a case.

    timeline: ("read", part, index) and what a scripted model told, in order.  old, new: all weights before and after.
    """

    case: Case
    call: Call
    result: Any
    timeline: list[tuple[Any, ...]]
    old: dict[str, torch.Tensor]
    new: dict[str, torch.Tensor]
    counted: list[tuple[str, bool, int]]

    @property
    def text(self) -> str:
        return self.call.text

    def get(self, name: str) -> Any:
        """A field of the result."""
        if not hasattr(self.result, name):
            expect.wrong(f"{self.text}\nreturned {show(self.result)}\nwhich has no {name}.", "result-form")
        return getattr(self.result, name)

    def number(self, name: str) -> float:
        return number(self.get(name), name, self.call)

    def history(self, name: str) -> list[float]:
        """That metric of every epoch."""
        entries = self.get("history")
        if not isinstance(entries, list | tuple) or not entries:
            expect.wrong(f"history of {self.text}\nis {show(entries)}, not a list of EpochMetrics.", "result-form")
        if not all(hasattr(entry, name) for entry in entries):
            expect.wrong(f"history of {self.text}\nhas entries without {name}: {show(entries[0])}", "result-form")
        return [number(getattr(entry, name), f"{name} in history", self.call) for entry in entries]

    def forwards(self, part: str) -> list[tuple[Any, ...]]:
        """The calls of a scripted model's encoder that held texts of this part."""
        place = PARTS.index(part)
        return [event for event in self.timeline if event[0] == "forward" and any(r[0] == place for r in event[1])]

    def backwards(self) -> list[tuple[Any, ...]]:
        return [event for event in self.timeline if event[0] == "backward"]

    def learned(self) -> list[int]:
        """The training texts in the order in which they were learned from."""
        return [index for _, rows in self.backwards() for _, index in rows]


def number(value: Any, what: str, call: Call) -> float:
    """A number of any kind as a float."""
    if isinstance(value, torch.Tensor | np.ndarray | np.generic) and math.prod(value.shape) == 1:
        value = value.item()
    if not expect.is_number(value):
        expect.wrong(f"{what} of {call.text}\nis {show(value)}, not a number.", "result-form")
    return float(value)


# -- Making runs -------------------------------------------------------------------------------------------------------
def started(student: Student, case: Case) -> tuple[Handle, list[tuple[Any, ...]], Callable[[], Any]]:
    """(the model, the timeline, a function that fine-tunes it) for a case."""
    timeline: list[tuple[Any, ...]] = []

    def read(part: str, index: int) -> Text:
        timeline.append(("read", part, index))
        return case.texts[part][index]

    def told(*event: Any) -> None:
        timeline.append(event)

    if case.script is not None:
        model = student.fixtures.scripted(student.lend(told), case.script)
    else:
        model = student.fixtures.classifier(**case.settings)
    for name, arguments in case.before:
        getattr(student.fixtures, name)(model, *arguments)
    splits = student.fixtures.served_splits(student.lend(read), *(len(case.texts[part]) for part in PARTS))
    if case.stirred is not None:
        student.fixtures.stir(case.stirred)
    return model, timeline, lambda: student.fine_tune(model, splits, case.config)


def fine_tuned(student: Student, case: Case) -> Run:
    """Make a run."""
    model, timeline, tune = started(student, case)
    old = student.fixtures.state(model)
    result = tune()
    call = student.last
    events = list(timeline)
    return Run(case, call, result, events, old, student.fixtures.state(model), student.fixtures.parameters(model))


@contextlib.contextmanager
def right_functions(student: Student) -> Iterator[None]:
    """While active, set_trainable and parameter_groups are right: a fault in the submission's costs nothing here."""
    trainable = student.fixtures.decided_trainable(student.lend(oracle.trainable))
    groups = student.fixtures.decided_groups(student.lend(oracle.groups))
    with student.replacing(set_trainable=trainable, parameter_groups=groups):
        yield


def forgiving(student: Student, check: Callable[[bool], None], raising: str = "fine-tuning-fails") -> None:
    """Make a check of fine_tune with right functions beside it, or else with the submission's own.

    A fine_tune that depends on more than the contract says of its own functions may pass with what was handed in.
    The check is told which: True for ours.  raising: the misconception to name where fine_tune raises an error.
    """
    fault: expect.Wrong | RemoteError
    try:
        check(True)
        return
    except (expect.Wrong, RemoteError) as error:
        fault = error
    if isinstance(fault, RemoteError):
        if fault.raised.base == "NotImplementedError":
            raise fault
        if fault.raised.base != "MemoryError":
            call = getattr(fault, "call", student.last)
            fault = expect.Wrong(f"{call.text}\nraised {fault.raised.text}", raising)
    with second_attempt(fault):
        check(False)


def with_ours(student: Student, ours: bool) -> contextlib.AbstractContextManager[None]:
    return right_functions(student) if ours else contextlib.nullcontext()


def runs(student: Student, *cases: Case, ours: bool) -> list[Run]:
    """The runs of the cases, each made once a submission."""

    def make(case: Case) -> Run:
        with with_ours(student, ours):
            return fine_tuned(student, case)

    return [student.once((case.name, ours), partial(make, case)) for case in cases]


def judged(student: Student, case: Case, look: Look, raising: str = "fine-tuning-fails") -> None:
    """Look at the run of a case, in which something must have been learned: of a run that never was, anything holds."""

    def check(ours: bool) -> None:
        (run,) = runs(student, case, ours=ours)
        if case.script is not None and case.config.mode == "full" and not run.learned():
            expect.wrong(f"{run.text}\nlearned from no training text: no gradient came back from any.")
        look(run)

    forgiving(student, check, raising)


# -- Scripted cases ----------------------------------------------------------------------------------------------------
#: Training losses far from their mean, so that no batch is like the whole.
TRAIN = (0.2, 2.0, 0.3, 1.8, 0.25, 2.2, 0.35, 1.9, 0.15)


def scripted(
    name: str,
    device: torch.device,
    validation: Sequence[float | Sequence[float]],
    *,
    test: Sequence[Sequence[int]] | None = None,
    test_labels: Sequence[int] = (1, 1, 0, 1, 0, 0, 1, 0, 1, 1, 0, 1, 0),
    dropout: float = 0.0,
    **changes: Any,
) -> Case:
    """A scripted case.

    validation: for each epoch the losses of the validation texts, or one loss for all of them; the last also holds for
        later epochs.  test: for each epoch the classes predicted; by default epoch e gets the first e texts wrong.
    changes: of the config.
    """
    losses = [[each] * 7 if isinstance(each, float) else list(each) for each in validation]
    if test is None:
        test = [
            [1 - y if place < epoch else y for place, y in enumerate(test_labels)]
            for epoch in range(1, len(test_labels) + 1)
        ]
    settings = FineTuneConfig("full", STILL, STILL, batch_size=4, max_epochs=12, seed=1, device=str(device))
    config = replace(settings, **changes)
    labels = {
        "train": [place % 2 for place in range(len(TRAIN))],
        "validation": [1] * len(losses[0]),
        "test": list(test_labels),
    }
    rng = np.random.default_rng(len(name))
    texts = {
        part: [_text(rng, part, place, y, config.pad_id) for place, y in enumerate(labels[part])] for part in PARTS
    }
    logits = [
        [oracle.logits_of_loss(loss, y) for loss, y in zip(TRAIN, labels["train"], strict=True)],
        [[oracle.logits_of_loss(loss, 1) for loss in row] for row in losses],
        [[[1.0, 2.5] if y else [2.5, 1.0] for y in row] for row in test],
    ]
    script = {
        "hidden_size": 4,
        "dropout": dropout,
        "pad_id": config.pad_id,
        "lengths": [[len(ids) for ids, _ in texts[part]] for part in PARTS],
        "logits": logits,
    }
    return Case(name, texts, config, script)


def _text(rng: np.random.Generator, part: str, place: int, label: int, pad_id: int) -> Text:
    """A text that a scripted encoder recognises; pad_id and 0 are ordinary tokens in it, at its end too."""
    length = [3, 9, 5, 2, 12, 7, 4][(place + len(part)) % 7]
    inside = [int(i) for i in rng.choice([pad_id, 0, 5, 6], length - 2)]
    if length > 3:
        inside[-1] = pad_id
    return [FIRST + PARTS.index(part), NUMBER + place, *inside], label


# -- Cases with a small BERT -------------------------------------------------------------------------------------------
MARKS = (5, 6)


def marked_texts(seed: int, count: int, longest: int = 9) -> list[Text]:
    """Texts with one of two marks in them, twice; the mark is the label.  Ids 0 and 7 are ordinary tokens in them."""
    rng = np.random.default_rng(seed)
    texts = []
    for place in range(count):
        label = place * 7 % 5 % 2
        inside = [int(i) for i in rng.choice([0, *range(7, 23)], rng.integers(1, longest - 1))]
        for _ in range(2):
            inside.insert(int(rng.integers(len(inside) + 1)), MARKS[label])
        texts.append(([1, *inside, 7 if place % 3 == 0 else 2], label))
    return texts


def learning(name: str, device: torch.device, *, settings: dict[str, Any] | None = None, **changes: Any) -> Case:
    """A small BERT with random weights, texts whose label is the mark in them; changes: of the case or the config."""
    config = FineTuneConfig(
        "full", 0.01, 0.02, batch_size=8, max_epochs=12, patience=4, seed=3, device=str(device), pad_id=7
    )
    of_case = {key: changes.pop(key) for key in ("before", "stirred") if key in changes}
    texts = {"train": marked_texts(1, 59), "validation": marked_texts(2, 16), "test": marked_texts(3, 27)}
    return Case(name, texts, replace(config, **changes), settings={"seed": 5, **(settings or {})}, **of_case)


def rebuilt(run: Run) -> Any:
    """The model with the weights that the run left, made here."""
    from autograder.sandbox.fixtures.models import classifier

    model = classifier(**run.case.settings)
    model.load_state_dict({name: value.cpu() for name, value in run.new.items()})
    return model

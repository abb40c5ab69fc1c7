"""The records that a comparison of methods returns: are they all there, and do their fields fit each other?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch

from autograder.hidden import expect
from autograder.hidden.journal import Comparison, Key, key
from autograder.wire.show import show
from exercises.kit import RunRecord

Records = Mapping[Key, RunRecord]
#: Methods without an encoder.
WORDS = "bag_of_words"


def named(of: Key) -> str:
    """A record, for messages."""
    seed, method, max_length, strategy = of
    more = "" if max_length is None else f", max_length {max_length}, strategy {strategy!r}"
    return f"the record of {method!r} with seed {seed}{more}"


def table(
    c: Comparison,
    methods: Sequence[str],
    variants: Sequence[tuple[int | None, str | None]] = ((None, None),),
) -> dict[Key, RunRecord]:
    """The records by key; fails unless there is exactly one for each seed, method and variant."""
    if not isinstance(c.returned, list | tuple):
        expect.wrong(f"{c.text}\nreturned {show(c.returned)}\nexpected a list of RunRecord", "no-run-records")
    for record in c.returned:
        if not isinstance(record, RunRecord):
            expect.wrong(f"{c.text}\nreturned a list that holds {show(record)}, no RunRecord.", "no-run-records")
    found = [key(record) for record in c.returned]
    wanted = [(seed, method, *variant) for seed in c.config.seeds for method in methods for variant in variants]
    for one in wanted:
        if found.count(one) != 1:
            expect.wrong(
                f"{c.text}\nreturned {found.count(one)} times {named(one)}; expected one for every seed and method.\n"
                f"It returned those of (seed, method, max_length, strategy): {show(found)}",
                "runs-missing",
            )
    for one in found:
        if one not in wanted:
            expect.wrong(f"{c.text}\nreturned {named(one)}, which nobody asked for.", "runs-missing")
    return {key(record): record for record in c.returned}


def number(c: Comparison, of: Key, record: RunRecord, name: str) -> float:
    """The number in that field."""
    value = getattr(record, name)
    if isinstance(value, torch.Tensor | np.ndarray) and value.ndim == 0:
        value = value.item()
    if isinstance(value, bool) or not isinstance(value, Real) or math.isnan(value):
        likely = "undefined-f1" if name == "f1" else "no-run-records"
        expect.wrong(f"{c.text}\n{named(of)} has {name}={show(value)}, which is no number.", likely)
    return float(value)


def count(c: Comparison, of: Key, record: RunRecord, name: str) -> int:
    """The integer in that field."""
    value = getattr(record, name)
    if isinstance(value, bool) or not isinstance(value, Integral):
        expect.wrong(f"{c.text}\n{named(of)} has {name}={show(value)}, which is no integer.", "no-run-records")
    return int(value)


def predictions(c: Comparison, of: Key, record: RunRecord) -> list[int]:
    """test_predictions, one class for each test text."""
    value = record.test_predictions
    values: Any = value.tolist() if isinstance(value, torch.Tensor | np.ndarray) else value
    size = len(c.texts.test)
    if not isinstance(values, list | tuple) or not all(isinstance(v, Integral) for v in values) or len(values) != size:
        expect.wrong(
            f"{c.text}\n{named(of)} has test_predictions={show(value)}\nexpected the classes of the {size} test "
            f"texts, in their order",
            "wrong-predictions",
        )
    return [int(v) for v in values]


# -- Scores ------------------------------------------------------------------------------------------------------------
def f1(guesses: Sequence[int], labels: Sequence[int], positive: int = 1) -> float:
    """2·TP / (2·TP + FP + FN) of one class, 0 where that is 0/0."""
    pairs = list(zip(guesses, labels, strict=True))
    hits = sum(g == positive and y == positive for g, y in pairs)
    misses = sum((g == positive) != (y == positive) for g, y in pairs)
    return 2 * hits / (2 * hits + misses) if hits + misses else 0.0


def f1_mistakes(guesses: list[int], labels: list[int], batch_size: int) -> list[tuple[str, float]]:
    """(misconception, value) of what is often taken for F1."""
    one, zero = f1(guesses, labels), f1(guesses, labels, 0)
    share = sum(labels) / len(labels)
    parts = [slice(at, at + batch_size) for at in range(0, len(labels), batch_size)]
    return [
        ("f1-is-accuracy", accuracy(guesses, labels)),
        ("f1-averaged", (one + zero) / 2),
        ("f1-averaged", share * one + (1 - share) * zero),
        ("f1-of-class-0", zero),
        ("f1-per-batch", sum(f1(guesses[p], labels[p]) for p in parts) / len(parts)),
    ]


def accuracy(guesses: Sequence[int], labels: Sequence[int]) -> float:
    return sum(g == y for g, y in zip(guesses, labels, strict=True)) / len(labels)


def check_scores(c: Comparison, records: Records) -> None:
    """Accuracy and F1 follow from test_predictions and the labels of the test split."""
    labels = [text.label for text in c.texts.test]
    for of, record in records.items():
        guesses = predictions(c, of, record)
        right = {"accuracy": accuracy(guesses, labels), "f1": f1(guesses, labels)}
        for name, value in right.items():
            got = number(c, of, record, name)
            if abs(got - value) > 1e-6:
                other = f1_mistakes(guesses, labels, c.config.batch_size) if name == "f1" else []
                likely = next((m for m, v in other if abs(v - got) < 1e-6), f"wrong-{name}")
                expect.wrong(
                    f"{c.text}\n{named(of)} has {name}={got:.6f}\nexpected {value:.6f} from its test_predictions "
                    f"{show(guesses)} and the labels {show(labels)}",
                    likely,
                )


def check_parameters(c: Comparison, records: Records, expected: Mapping[str, tuple[int, int]]) -> None:
    """expected: method -> (trainable, total)."""
    for of, record in records.items():
        got = count(c, of, record, "trainable_parameters"), count(c, of, record, "total_parameters")
        if got != expected[of[1]]:
            swapped = got == expected[of[1]][::-1]
            expect.wrong(
                f"{c.text}\n{named(of)} has (trainable_parameters, total_parameters) = {got}\nexpected "
                f"{expected[of[1]]}" + (" (they are swapped)" if swapped else ""),
                "parameters-miscounted",
            )


def chosen_setting(c: Comparison, of: Key, record: RunRecord) -> float:
    """The setting in chosen_hyperparameters; fails unless it is one of those to try, under its name."""
    name = "C" if of[1] == WORDS else "learning_rate"
    chosen = record.chosen_hyperparameters
    value = chosen.get(name) if isinstance(chosen, Mapping) else None
    if not isinstance(value, Real) or not any(math.isclose(value, s) for s in c.config.settings[of[1]]):
        expect.wrong(
            f"{c.text}\n{named(of)} has chosen_hyperparameters={show(chosen)}\nexpected {{{name!r}: one of "
            f"{c.config.settings[of[1]]}}}",
            "setting-not-reported",
        )
    return float(value)


def check_chosen(
    c: Comparison, of: Key, record: RunRecord, setting: float, because: str, misconception: str = "not-the-best-setting"
) -> None:
    """Fail unless that setting was chosen.  because: why it must be, in words."""
    got = chosen_setting(c, of, record)
    if not math.isclose(got, setting):
        expect.wrong(f"{c.text}\n{named(of)} chose {got:g}\nexpected {setting:g}: {because}", misconception)

"""Values as messages show them."""

from __future__ import annotations

from collections import namedtuple
from dataclasses import asdict, replace

import torch

from autograder.wire.show import show
from exercises.kit import RunRecord

RECORD = RunRecord(
    method="lora",
    seed=3,
    accuracy=0.5,
    f1=0.25,
    train_seconds=1.2345,
    predict_seconds=0.0321,
    peak_memory_bytes=123_456,
    trainable_parameters=7,
    total_parameters=9,
    encoder_forward_calls=1,
    encoder_backward_calls=1,
    updates=2,
    examples_per_update=4,
    validation_score=1.0,
    chosen_hyperparameters={"learning_rate": 0.1},
    test_predictions=[0, 1],
)


def test_what_is_measured_is_no_number_in_a_message() -> None:
    """Two gradings of one submission had different reports."""
    again = replace(RECORD, train_seconds=2.5, predict_seconds=10.0, peak_memory_bytes=5)
    assert show(RECORD) == show(again)
    assert show([RECORD, RECORD]) == show([again, RECORD])
    assert show(RECORD).startswith(
        "RunRecord(method='lora', seed=3, accuracy=0.5, f1=0.25, train_seconds=(measured), p"
    )


def test_a_number_that_is_no_measurement_is_shown() -> None:
    assert "train_seconds=-1.0," in show(replace(RECORD, train_seconds=-1.0))
    assert "predict_seconds=0.0," in show(replace(RECORD, train_seconds=1e-3, predict_seconds=0.0))
    assert "train_seconds=float64 () 2.5" in show(replace(RECORD, train_seconds=torch.tensor(2.5).double()))


def test_records_of_another_form_show_no_measured_numbers_either() -> None:
    form = namedtuple("form", ["seed", "train_seconds"])
    for one, other in (
        (asdict(RECORD), asdict(RECORD) | {"train_seconds": 2.51, "peak_memory_bytes": 5}),
        (form(1, 0.5), form(1, 0.25)),
    ):
        assert show(one) == show(other)
        assert show([one, one]) == show([one, other])
        assert "seconds" in show(one)
    assert show({"seed": 0.5}) == "{'seed': 0.5}"

"""Hidden checks of exercise 6: what fine_tune does in an epoch.  Losses, batches, padding, dropout, gradients, seeds.

The model is scripted: the loss of every text is prescribed, and the encoder tells what it is given.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
import torch

from autograder.hidden import expect
from autograder.hidden.cases_ex06 import TRAIN, Case, Run, forgiving, judged, runs, scripted
from autograder.sandbox.fixtures.ex06 import PARTS
from autograder.wire.proxy import Student

#: Unequal losses, those of a small last batch far from the others.
UNEQUAL = [0.1 if place < 128 else 1.5 for place in range(131)]
TWO = (0.5, 0.4)


def two_epochs(device: torch.device, name: str = "two", **changes: Any) -> Case:
    return scripted(name, device, TWO, max_epochs=2, **changes)


def by_epoch(run: Run) -> list[list[int]]:
    """The training texts that were learned from, epoch by epoch."""
    learned, epochs = run.learned(), len(run.history("epoch"))
    size = math.ceil(len(learned) / epochs)
    if not learned:
        expect.wrong(f"{run.text}\nlearned from no training text.", "examples-left-out")
    return [learned[start : start + size] for start in range(0, len(learned), size)]


@pytest.mark.worth("fine_tune", 0.15, misconception="mean-of-batch-means")
def test_train_loss(student: Student, device: torch.device) -> None:
    """train_loss is the mean over the training examples, also if the last batch is smaller than the others."""

    def look(run: Run) -> None:
        got = run.history("train_loss")
        head = run.old["classifier.weight"]
        if not run.new["classifier.weight"].sub(head).abs().max() < 0.2:
            expect.wrong(
                f"{run.text}\nleft other weights in the classification layer, though the learning rates are next to 0.",
                "model-replaced",
            )
        for place, learned in enumerate(by_epoch(run)):
            right = sum(TRAIN[index] for index in learned) / len(learned)
            size = run.case.config.batch_size
            batches = [learned[start : start + size] for start in range(0, len(learned), size)]
            means = [sum(TRAIN[index] for index in batch) / len(batch) for batch in batches]
            likely = [
                ("mean-of-batch-means", sum(means) / len(means)),
                ("last-batch-only", means[-1]),
                ("sum-for-a-mean", right * len(learned)),
                ("sum-for-a-mean", sum(means)),
                ("last-batch-only", sum(m * len(b) for m, b in zip(means, batches, strict=True)) / size / len(means)),
            ]
            expect.close(
                got[place], right, run.call, likely=likely, tolerance=1e-5, what=f"train_loss of epoch {place + 1}"
            )

    judged(student, two_epochs(device), look)


@pytest.mark.worth("fine_tune", 0.15, misconception="mean-of-batch-means")
def test_validation_loss(student: Student, device: torch.device) -> None:
    """validation_loss is the mean over the validation examples, also if the last batch is smaller than the others."""

    def look(run: Run) -> None:
        size = run.case.config.batch_size
        batches = [UNEQUAL[start : start + size] for start in range(0, len(UNEQUAL), size)]
        means = [sum(batch) / len(batch) for batch in batches]
        right = sum(UNEQUAL) / len(UNEQUAL)
        likely = [
            ("mean-of-batch-means", sum(means) / len(means)),
            ("last-batch-only", means[-1]),
            ("sum-for-a-mean", sum(UNEQUAL)),
            ("sum-for-a-mean", sum(means)),
        ]
        got = run.history("validation_loss")[0]
        expect.close(got, right, run.call, likely=likely, tolerance=1e-5, what="validation_loss")

    judged(student, scripted("unequal", device, [UNEQUAL], max_epochs=1), look)


@pytest.mark.worth("fine_tune", 0.1, misconception="mean-of-batch-means")
def test_validation_accuracy(student: Student, device: torch.device) -> None:
    """validation_accuracy is the share of the validation examples that are classified right."""

    def look(run: Run) -> None:
        right = 128 / 131
        likely = [("not-a-share", 100 * right), ("mean-of-batch-means", 32 / 33), ("not-a-share", 128)]
        got = run.history("validation_accuracy")[0]
        expect.close(got, right, run.call, likely=likely, what="validation_accuracy")

    judged(student, scripted("unequal", device, [UNEQUAL], max_epochs=1), look)


@pytest.mark.worth("fine_tune", 0.15, misconception="dropout-in-evaluation")
def test_no_dropout_in_evaluation(student: Student, device: torch.device) -> None:
    """The validation loss is computed without dropout, in every epoch."""

    def look(run: Run) -> None:
        for place, got in enumerate(run.history("validation_loss")):
            if abs(got - TWO[place]) > 1e-5:
                expect.wrong(
                    f"validation_loss of {run.text}\nis {got:.6f} in epoch {place + 1}, and {TWO[place]:.6f} without "
                    f"dropout.",
                    "dropout-in-evaluation",
                )
        if any(event[5] for part in ("validation", "test") for event in run.forwards(part)):
            expect.wrong(f"{run.text}\nran the encoder in training mode to evaluate it.", "dropout-in-evaluation")

    judged(student, two_epochs(device, "dropout", dropout=0.5), look)


@pytest.mark.worth("fine_tune", 0.15, misconception="dropout-off-in-training")
def test_dropout_in_training(student: Student, device: torch.device) -> None:
    """In mode "full" dropout is on while training, after an evaluation again."""

    def look(run: Run) -> None:
        still = sum(TRAIN) / len(TRAIN)
        for place, got in enumerate(run.history("train_loss")):
            if abs(got - still) < 1e-5:
                expect.wrong(
                    f"train_loss of {run.text}\nis in epoch {place + 1} exactly what it is without dropout.",
                    "dropout-off-in-training",
                )
        if any(not event[5] for event in run.forwards("train") if event[0] == "forward"):
            expect.wrong(f"{run.text}\ntrained with the encoder in evaluation mode.", "dropout-off-in-training")

    judged(student, two_epochs(device, "dropout", dropout=0.5), look)


@pytest.mark.worth("fine_tune", 0.15, misconception="examples-left-out")
def test_every_example_in_every_epoch(student: Student, device: torch.device) -> None:
    """Every epoch learns from each training example exactly once."""

    def look(run: Run) -> None:
        for number, learned in enumerate(by_epoch(run), start=1):
            times = Counter(learned)
            for index in range(len(TRAIN)):
                if times[index] != 1:
                    expect.wrong(
                        f"{run.text}\nlearned from training example {index} {times[index]} times in epoch {number}.",
                        "examples-left-out",
                    )

    judged(student, two_epochs(device), look)


@pytest.mark.worth("fine_tune", 0.1, misconception="batch-size-ignored")
def test_batch_size(student: Student, device: torch.device) -> None:
    """Training batches have config.batch_size examples; only the last of an epoch may be smaller."""

    def look(run: Run) -> None:
        size, left = run.case.config.batch_size, len(run.learned()) // 2
        expected = sorted(2 * ([size] * (left // size) + [left % size] * (left % size > 0)))
        got = sorted(len(rows) for _, rows in run.backwards())
        if got != expected:
            expect.wrong(
                f"{run.text}\nlearned from batches of {got} examples in two epochs, not {expected}.",
                "batch-size-ignored",
            )

    judged(student, two_epochs(device), look)
    judged(student, two_epochs(device, "two-of-five", batch_size=5), look)


@pytest.mark.worth("fine_tune", 0.15, misconception="not-padded-to-the-longest")
def test_padding(student: Student, device: torch.device) -> None:
    """Every batch is padded on the right, with config.pad_id, and to its own longest text."""

    def look(run: Run) -> None:
        for part in PARTS:
            calls = run.forwards(part)
            if not calls:
                expect.wrong(f"{run.text}\nnever gave the encoder a {part} text.", "not-padded-to-the-longest")
            for _, rows, width, _, filled, _ in calls:
                lengths = [len(run.case.texts[PARTS[place]][index][0]) for place, index in rows if place >= 0]
                if len(lengths) < len(rows):
                    expect.wrong(f"{run.text}\nmade a {part} batch in which a text does not begin at column 0.")
                if width != max(lengths):
                    expect.wrong(
                        f"{run.text}\nmade a {part} batch {width} wide from texts of {lengths} ids.",
                        "not-padded-to-the-longest",
                    )
                if not filled:
                    pad_id = run.case.config.pad_id
                    expect.wrong(
                        f"{run.text}\nfilled a {part} batch with another id than config.pad_id, {pad_id}.",
                        "pad-id-ignored",
                    )

    judged(student, two_epochs(device, "pads", pad_id=77), look)
    judged(student, two_epochs(device), look)


@pytest.mark.worth("fine_tune", 0.15, misconception="attention-mask-left-out")
def test_attention_mask(student: Student, device: torch.device) -> None:
    """The model is given an attention mask that is 1 at the tokens and 0 at the padding, in training and evaluation; an
    id inside a text that equals config.pad_id is a token."""

    def look(run: Run) -> None:
        for part in PARTS:
            calls = run.forwards(part)
            if not calls:
                expect.wrong(f"{run.text}\nnever gave the encoder a {part} text.", "attention-mask-left-out")
            for _, rows, _, masked, _, _ in calls:
                if not masked:
                    ids = [run.case.texts[PARTS[place]][index][0] for place, index in rows if place >= 0]
                    expect.wrong(
                        f"{run.text}\ngave the model a {part} batch whose attention mask does not fit its texts "
                        f"{ids[:4]} (config.pad_id is {run.case.config.pad_id}).",
                        "attention-mask-left-out",
                    )

    judged(student, two_epochs(device), look)


@pytest.mark.worth("fine_tune", 0.15, misconception="gradients-not-zeroed")
def test_gradients_of_one_batch(student: Student, device: torch.device) -> None:
    """An update follows the gradient of its own batch: those of earlier batches are gone."""

    def look(run: Run) -> None:
        by_epoch(run)
        alone = [event[1] for event in run.timeline if event[0] == "accumulated"]
        if not all(alone):
            expect.wrong(
                f"{run.text}\nadded the gradient of batch {alone.index(False) + 1} to those of earlier batches.",
                "gradients-not-zeroed",
            )

    judged(student, two_epochs(device), look)


@pytest.mark.worth("fine_tune", 0.15, misconception="order-not-from-seed")
def test_order_from_the_seed(student: Student, device: torch.device) -> None:
    """config.seed decides the order of the training examples: the same seed gives the same order, another seed another.

    A right solution fails with probability 1 / (9!)^2, below 1e-11.
    """
    cases = [two_epochs(device, f"order-{place}", seed=seed) for place, seed in enumerate((1, 1, 2))]

    def check(ours: bool) -> None:
        first, again, other = (run.learned() for run in runs(student, *cases, ours=ours))
        if first != again:
            expect.wrong(
                f"{student.last.text}\nand a run with config.seed 1 again:\nthe training examples came in the order "
                f"{first[:9]} … and then {again[:9]} …",
                "order-not-from-seed",
            )
        if first == other:
            expect.wrong(
                f"{student.last.text}\nand a run with config.seed 1: both took the training examples in the order "
                f"{first[:9]} …",
                "order-fixed",
            )

    forgiving(student, check)


@pytest.mark.worth("fine_tune", 0.1, misconception="decay-not-by-groups")
def test_weight_decay_while_training(student: Student, device: torch.device) -> None:
    """Weights without a gradient of their own shrink by weight decay; biases and LayerNorm weights stay."""
    case = scripted("decay", device, (0.4,), max_epochs=1, learning_rate=0.01, weight_decay=0.5, seed=4)

    def look(run: Run) -> None:
        if all(run.new[name].equal(value) for name, value in run.old.items() if name != "encoder.clock"):
            expect.wrong(f"{run.text}\nmoved no weight at all.", "nothing-learned")
        for name, decays in (("quiet.weight", True), ("quiet.bias", False), ("norm.weight", False)):
            old, new = run.old[f"encoder.{name}"], run.new[f"encoder.{name}"]
            if decays and not bool((new < old - 1e-6).all()):
                expect.wrong(
                    f"{run.text}\nleft a weight matrix as it was, whose gradient is 0: weight decay (here 0.5) did not "
                    f"make it smaller.",
                    "decay-not-by-groups",
                )
            if not decays and not new.equal(old):
                what = "a bias" if "bias" in name else "the weight of a LayerNorm"
                expect.wrong(f"{run.text}\nmoved {what} whose gradient is 0.", "decay-not-by-groups")

    judged(student, case, look)

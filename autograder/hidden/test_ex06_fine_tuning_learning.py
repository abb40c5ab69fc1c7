"""Hidden checks of exercise 6: fine_tune on a small BERT.

What a run reports is computed again here, from the weights that it left in the model.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from autograder.hidden import expect
from autograder.hidden.cases_ex06 import (
    STILL,
    Case,
    Run,
    forgiving,
    judged,
    learning,
    rebuilt,
    runs,
    scripted,
)
from autograder.hidden.oracles import ex06 as oracle
from autograder.hidden.test_ex06_fine_tuning import HEAD
from autograder.wire.proxy import Student
from autograder.wire.show import show

ENCODER_MATRIX = "encoder.encoder.layer.0."


def moved(run: Run, name: str) -> float:
    """How far a weight was moved at most."""
    if name not in run.new or run.new[name].shape != run.old[name].shape:
        expect.wrong(f"After {run.text}\nthe model has another {name} than before.", "model-replaced")
    return float((run.new[name].double() - run.old[name].double()).abs().max())


def check_head_moved(run: Run, misconception: str = "nothing-learned") -> None:
    if max(moved(run, name) for name in sorted(HEAD)) < 1e-4:
        expect.wrong(f"{run.text}\nleft the classification layer as it was.", misconception)


# -- Learning ----------------------------------------------------------------------------------------------------------
@pytest.mark.worth("fine_tune", 0.15, misconception="nothing-learned")
def test_full_fine_tuning_learns(student: Student, device: torch.device) -> None:
    """In mode "full" the training loss falls, and texts whose label is a token in them are classified right."""

    def look(run: Run) -> None:
        losses, accuracy = run.history("train_loss"), run.number("test_accuracy")
        if not min(losses) < 0.4 * losses[0]:
            expect.wrong(
                f"{run.text}\nhas the training losses {', '.join(f'{loss:.3f}' for loss in losses)}: none is below "
                f"{0.4 * losses[0]:.3f}, 0.4 of the first.",
                "nothing-learned",
            )
        if not accuracy >= 0.85:
            expect.wrong(f"{run.text}\nhas a test accuracy of {accuracy:.3f}.", "nothing-learned")

    judged(student, learning("full", device, max_epochs=8), look)


@pytest.mark.worth("fine_tune", 0.15, misconception="frozen-weights-move")
def test_frozen_encoder_stays(student: Student, device: torch.device) -> None:
    """In mode "frozen" the classification layer learns, and the encoder's parameters stay as they are, bit by bit, even
    if gradients are left in it from before."""
    before = (("leave_gradients", (11,)),)
    case = learning("frozen", device, mode="frozen", max_epochs=3, weight_decay=0.3, before=before)

    def look(run: Run) -> None:
        check_head_moved(run)
        for name in run.old:
            if name.startswith("encoder.") and moved(run, name) > 0:
                expect.wrong(
                    f"{run.text}\nmoved {name} by up to {moved(run, name):.2g}, though the encoder is frozen.",
                    "frozen-weights-move",
                )

    judged(student, case, look)


@pytest.mark.worth("fine_tune", 0.1, misconception="optimizer-before-unfreezing")
def test_model_that_comes_frozen(student: Student, device: torch.device) -> None:
    """In mode "full" the encoder learns, even if the model comes with a frozen encoder."""
    before = (("require_gradients", (sorted(HEAD),)),)
    case = learning("thawed", device, max_epochs=2, before=before)

    def look(run: Run) -> None:
        check_head_moved(run)
        for name in run.old:
            if name.startswith(ENCODER_MATRIX) and "dense.weight" in name and moved(run, name) < 1e-4:
                expect.wrong(f"{run.text}\nleft {name} as it was.", "optimizer-before-unfreezing")

    judged(student, case, look)


@pytest.mark.worth("fine_tune", 0.1, misconception="learning-rates-mixed-up")
def test_two_learning_rates(student: Student, device: torch.device) -> None:
    """The encoder learns at config.learning_rate, the classification layer at config.head_learning_rate."""

    def look_at_head(run: Run) -> None:
        check_head_moved(run, "learning-rates-mixed-up")
        most = max(moved(run, name) for name in run.old if name not in HEAD)
        if most > 1e-12:
            expect.wrong(
                f"{run.text}\nmoved the encoder by up to {most:.2g}, though config.learning_rate is {STILL:g}.",
                "learning-rates-mixed-up",
            )

    def look_at_encoder(run: Run) -> None:
        most = max(moved(run, name) for name in HEAD)
        if most > 1e-12:
            expect.wrong(
                f"{run.text}\nmoved the classification layer by up to {most:.2g}, though config.head_learning_rate is "
                f"{STILL:g}.",
                "learning-rates-mixed-up",
            )
        if max(moved(run, name) for name in run.old if name not in HEAD) < 1e-4:
            expect.wrong(f"{run.text}\nleft the encoder as it was.", "learning-rates-mixed-up")

    judged(student, learning("head-only", device, max_epochs=2, learning_rate=STILL), look_at_head)
    judged(student, learning("encoder-only", device, max_epochs=2, head_learning_rate=STILL), look_at_encoder)


@pytest.mark.worth("fine_tune", 0.15, misconception="report-off-the-weights")
def test_report_fits_the_weights(student: Student, device: torch.device) -> None:
    """The weights left in the model have the validation loss of an epoch of the history, and the test scores that are
    reported."""
    case = learning("report", device, max_epochs=6, learning_rate=0.03, head_learning_rate=0.1, seed=2)

    def look(run: Run) -> None:
        model = rebuilt(run)
        labels = {part: run.case.labels(part) for part in ("validation", "test")}
        scores = {part: oracle.logits(model, run.case.texts[part]) for part in labels}
        loss = oracle.mean_loss(scores["validation"], labels["validation"])
        reported = run.history("validation_loss")
        if min(abs(loss - each) for each in reported) > 1e-4 * max(1.0, loss):
            expect.wrong(
                f"After {run.text}\nthe validation loss of the model, computed text by text without padding, is "
                f"{loss:.5f}. The history has {', '.join(f'{each:.5f}' for each in reported)}: it is none of them.",
                "report-off-the-weights",
            )
        margin = (scores["test"][:, 1] - scores["test"][:, 0]).abs()
        close = int((margin < 1e-4).sum())
        classes = scores["test"].argmax(dim=-1).tolist()
        right = sum(p == y for p, y in zip(classes, labels["test"], strict=True)) / len(classes)
        if abs(run.number("test_accuracy") - right) > close / len(classes) + 1e-6:
            expect.wrong(
                f"test_accuracy of {run.text}\nis {run.number('test_accuracy'):.6f}; the weights left in the model "
                f"classify {right:.6f} of the test texts right.",
                "report-off-the-weights",
            )
        f1 = oracle.f1_of_class_one(classes, labels["test"])
        if not close and abs(run.number("test_f1") - f1) > 1e-6:
            expect.wrong(f"test_f1 of {run.text}\nis {run.number('test_f1'):.6f}, not {f1:.6f}.", "wrong-f1")

    judged(student, case, look)


# -- Chance ------------------------------------------------------------------------------------------------------------
def shaken(name: str, device: torch.device, stirred: int, **changes: Any) -> Case:
    """A run with dropout, after the global generators were put into some state."""
    return learning(name, device, settings={"dropout": 0.3}, max_epochs=2, stirred=stirred, **changes)


@pytest.mark.worth("fine_tune", 0.1, misconception="seed-not-used")
def test_same_seed_same_result(student: Student, device: torch.device) -> None:
    """The same model, splits and config give the same result, whatever state the global generators are in; another
    config.seed gives another."""
    cases = [
        shaken("shaken-1", device, 1),
        shaken("shaken-2", device, 2),
        shaken("shaken-3", device, 1, seed=4),
    ]

    def check(ours: bool) -> None:
        first, again, other = (run.history("train_loss") for run in runs(student, *cases, ours=ours))
        if not np.allclose(first, again, rtol=0, atol=1e-6) or len(first) != len(again):
            expect.wrong(
                f"{student.last.text}\nThe same run, with the global generators in another state, had the training "
                f"losses {show(again)} instead of {show(first)}.",
                "seed-not-used",
            )
        if np.allclose(first, other, rtol=0, atol=1e-6):
            expect.wrong(
                f"{student.last.text}\nhas the same training losses with another config.seed.", "seed-not-used"
            )

    forgiving(student, check)


@pytest.mark.worth("fine_tune", 0.1, misconception="global-generator")
def test_global_generators_are_left_alone(student: Student, device: torch.device) -> None:
    """The global generators of torch, numpy and random are left as they were."""

    def check(ours: bool) -> None:
        (run,) = runs(student, shaken("shaken-1", device, 1), ours=ours)
        check_head_moved(run)

    forgiving(student, check)
    expect.unchanged(student, "fine_tune")


@pytest.mark.worth("fine_tune", 0.1, misconception="parameters-miscounted")
def test_parameter_counts(student: Student, device: torch.device) -> None:
    """trainable_parameters and total_parameters are counted after freezing; a shared parameter counts once."""
    frozen = (("leave_gradients", (11,)),)
    cases = (
        learning("frozen", device, mode="frozen", max_epochs=3, weight_decay=0.3, before=frozen),
        scripted("first", device, (0.5, 0.6, 0.65, 0.4), patience=2),
        learning("thawed", device, max_epochs=2, before=(("require_gradients", (sorted(HEAD),)),)),
    )

    def look(run: Run) -> None:
        total = sum(size for _, _, size in run.counted)
        head = sum(size for name, _, size in run.counted if name in HEAD)
        learns = head if run.case.config.mode == "frozen" else total
        for name, right in (("total_parameters", total), ("trainable_parameters", learns)):
            got = run.number(name)
            if got != right:
                expect.wrong(f"{name} of {run.text}\nis {got:g}, not {right}.", "parameters-miscounted")

    for case in cases:
        judged(student, case, look)

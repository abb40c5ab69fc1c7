"""Hidden checks of exercise 6: what fine_tune decides.  When it stops, which weights it keeps, when it reads the test.

The model is scripted: its validation loss in every epoch is prescribed, whatever the way it is trained.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import pytest
import torch

from autograder.hidden import expect
from autograder.hidden.cases_ex06 import TRAIN, Run, judged, scripted
from autograder.hidden.oracles import ex06 as oracle
from autograder.sandbox.fixtures.ex06 import PARTS
from autograder.wire.proxy import Student
from autograder.wire.show import show

#: The lowest of the first five is that of epoch 2; 4 and 5 are lower than the epoch before; 6 would be lower still.
EARLY = (0.6, 0.4, 0.5, 0.45, 0.42, 0.3, 0.55, 0.52, 0.5, 0.48, 0.47, 0.46)
PATIENCE = 3


def epochs_run(run: Run) -> int:
    return len(run.history("epoch"))


def epochs_trained(run: Run) -> int:
    """Epochs that the encoder was trained for."""
    return max(1, math.ceil(len(run.learned()) / len(TRAIN)))


def kept_epoch(run: Run) -> int:
    """The epoch whose weights the model was left with."""
    return int(run.new["encoder.clock"])


def check_epochs(run: Run, losses: tuple[float, ...], early: str = "stops-early", late: str = "stops-late") -> None:
    """Fail unless training stopped when it should."""
    config = run.case.config
    expected, _ = oracle.early_stopping(losses, config.patience, config.max_epochs)
    got = epochs_run(run)
    if got == expected:
        return
    named = early if got < expected else "never-stops" if got >= config.max_epochs and late == "stops-late" else late
    expect.wrong(
        f"{run.text}\ntrained for {got} epochs, not {expected}. The validation losses were "
        f"{', '.join(f'{loss:g}' for loss in losses[: max(got, expected)])}, and patience is {config.patience}.",
        named,
    )


# -- When the test split is read ---------------------------------------------------------------------------------------
@pytest.mark.worth("fine_tune", 0.2, misconception="test-read-twice")
def test_test_split_is_read_once(student: Student, device: torch.device) -> None:
    """Each example of the test split is read exactly once."""

    def look(run: Run) -> None:
        reads = Counter(event[2] for event in run.timeline if event[:2] == ("read", "test"))
        for place in range(len(run.case.texts["test"])):
            if reads[place] != 1:
                expect.wrong(
                    f"{run.text}\nread example {place} of the test split {reads[place]} times.",
                    "test-read-twice" if reads[place] else "test-not-read",
                )

    judged(student, scripted(f"early-{PATIENCE}", device, EARLY, patience=PATIENCE), look)


@pytest.mark.worth("fine_tune", 0.2, misconception="test-read-early")
def test_test_split_is_read_last(student: Student, device: torch.device) -> None:
    """Nothing of the test split is read before the last epoch is trained and validated."""

    def look(run: Run) -> None:
        kinds = [
            "test"
            if event[:2] == ("read", "test") or (event[0] == "forward" and any(row[0] == 2 for row in event[1]))
            else "work"
            if event[0] == "backward" or (event[0] == "forward" and any(row[0] < 2 for row in event[1]))
            else ""
            for event in run.timeline
        ]
        if "test" not in kinds:
            expect.wrong(f"{run.text}\ndid not read the test split.", "test-not-read")
        if "work" in kinds[kinds.index("test") :]:
            what = next(event for event in run.timeline[kinds.index("test") :] if _is_work(event))
            told = "a training step" if what[0] == "backward" else f"a batch of {PARTS[what[1][0][0]]} texts"
            expect.wrong(f"{run.text}\nread the test split, and after it came {told}.", "test-read-early")

    judged(student, scripted(f"early-{PATIENCE}", device, EARLY, patience=PATIENCE), look)


def _is_work(event: tuple) -> bool:
    return event[0] == "backward" or (event[0] == "forward" and any(row[0] in (0, 1) for row in event[1]))


# -- When to stop ------------------------------------------------------------------------------------------------------
@pytest.mark.worth("fine_tune", 0.3, misconception="stops-late")
def test_stops_when_patience_runs_out(student: Student, device: torch.device) -> None:
    """Training stops after config.patience epochs in a row without a validation loss below the lowest so far."""
    for patience in (PATIENCE, 1):
        case = scripted(f"early-{patience}", device, EARLY, patience=patience)
        judged(student, case, lambda run: check_epochs(run, EARLY))


@pytest.mark.worth("fine_tune", 0.2, misconception="patience-not-reset")
def test_patience_starts_anew(student: Student, device: torch.device) -> None:
    """Each improvement gives training its whole patience again."""
    losses = (0.6, 0.65, 0.5, 0.55, 0.4, 0.45, 0.42, 0.3, 0.2)
    case = scripted("anew", device, losses, patience=2)
    judged(student, case, lambda run: check_epochs(run, losses, early="patience-not-reset"))


@pytest.mark.worth("fine_tune", 0.15, misconception="ties-count-as-better")
def test_equal_loss_is_no_improvement(student: Student, device: torch.device) -> None:
    """An epoch whose validation loss equals the lowest so far does not improve."""
    losses = (0.6, 0.5, 0.5, 0.5, 0.5, 0.3)
    case = scripted("ties", device, losses, patience=2)
    judged(student, case, lambda run: check_epochs(run, losses, late="ties-count-as-better"))


@pytest.mark.worth("fine_tune", 0.1, misconception="small-gains-ignored")
def test_small_improvement_counts(student: Student, device: torch.device) -> None:
    """However little lower the validation loss is, it is lower."""
    losses = (0.5, 0.49999, 0.49998, 0.49997, 0.49996, 0.6, 0.7, 0.2)
    case = scripted("small", device, losses, patience=2)
    judged(student, case, lambda run: check_epochs(run, losses, early="small-gains-ignored"))


@pytest.mark.worth("fine_tune", 0.1, misconception="nan-as-best")
def test_nan_is_not_lower(student: Student, device: torch.device) -> None:
    """A validation loss of NaN is no improvement."""
    losses = (0.6, 0.5, math.nan, 0.55, 0.4, 0.3)
    case = scripted("nan", device, losses, patience=2)
    judged(student, case, lambda run: check_epochs(run, losses, early="nan-as-best", late="nan-as-best"))


@pytest.mark.worth("fine_tune", 0.15, misconception="wrong-number-of-epochs")
def test_max_epochs(student: Student, device: torch.device) -> None:
    """As long as the loss keeps falling, training goes on to config.max_epochs and no further."""
    losses = tuple(0.6 - 0.03 * epoch for epoch in range(16))
    wrong = "wrong-number-of-epochs"
    for limit in (1, 3, 12):
        case = scripted(f"limit-{limit}", device, losses, max_epochs=limit)
        judged(student, case, lambda run: check_epochs(run, losses, early=wrong, late=wrong))


# -- What to keep ------------------------------------------------------------------------------------------------------
def check_kept(run: Run, losses: tuple[float, ...]) -> None:
    """Fail unless the model has the weights of the best of the epochs that were trained."""
    trained = epochs_trained(run)
    best = min(range(trained), key=lambda place: losses[place]) + 1
    if trained < 2 or best == trained:
        expect.wrong(f"{run.text}\ntrained for {trained} epochs only.", "stops-early")
    kept = kept_epoch(run)
    if kept != best:
        expect.wrong(
            f"After {run.text}\nthe model has the weights of epoch {kept}. The validation losses were "
            f"{', '.join(f'{loss:g}' for loss in losses[:trained])}: the best is epoch {best}.",
            "last-weights-kept" if kept == trained else "chosen-by-another-score",
        )


@pytest.mark.worth("fine_tune", 0.3, misconception="last-weights-kept")
def test_best_weights_after_early_stopping(student: Student, device: torch.device) -> None:
    """When training stopped early, the weights of the best epoch are back in the model."""
    case = scripted(f"early-{PATIENCE}", device, EARLY, patience=PATIENCE)
    judged(student, case, lambda run: check_kept(run, EARLY))


@pytest.mark.worth("fine_tune", 0.2, misconception="last-weights-kept")
def test_best_weights_at_max_epochs(student: Student, device: torch.device) -> None:
    """When training ran to max_epochs, the weights of the best epoch are back in the model, too."""
    losses = (0.6, 0.3, 0.5, 0.55)
    case = scripted("end", device, losses, max_epochs=4, patience=9)
    judged(student, case, lambda run: check_kept(run, losses))


@pytest.mark.worth("fine_tune", 0.15, misconception="chosen-by-another-score")
def test_chosen_by_validation_loss(student: Student, device: torch.device) -> None:
    """The best epoch is that of the lowest validation loss, whatever its validation accuracy."""
    rows = [
        [0.5, 0.5, 0.6, 0.5, 0.5, 0.6, 0.6],  # all right, but barely
        [0.1, 0.1, 0.1, 0.9, 0.1, 0.8, 0.1],  # lowest loss, two wrong
        [0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6],
        [0.4, 0.6, 0.6, 0.6, 0.6, 0.6, 0.5],
    ]
    losses = tuple(sum(row) / len(row) for row in rows)
    case = scripted("accuracy", device, rows, max_epochs=4, patience=9)

    def look(run: Run) -> None:
        kept = kept_epoch(run)
        if kept != min(range(4), key=lambda place: losses[place]) + 1 and kept != epochs_trained(run):
            expect.wrong(
                f"After {run.text}\nthe model has the weights of epoch {kept}. The validation losses were "
                f"{', '.join(f'{loss:.3f}' for loss in losses)}: the best is epoch 2, though its accuracy is lower.",
                "chosen-by-another-score",
            )

    judged(student, case, look)


@pytest.mark.worth("fine_tune", 0.15, misconception="wrong-best-epoch")
def test_best_epoch(student: Student, device: torch.device) -> None:
    """best_epoch is the number of the best epoch, counted from 1."""
    case = scripted(f"early-{PATIENCE}", device, EARLY, patience=PATIENCE)
    other = (0.5, 0.6, 0.65, 0.4)
    first = scripted("first", device, other, patience=2)

    def look(run: Run) -> None:
        losses = EARLY if run.case is case or run.case.name == case.name else other
        got, trained = run.number("best_epoch"), epochs_trained(run)
        best = min(range(trained), key=lambda place: losses[place]) + 1
        if got != best:
            expect.wrong(
                f"best_epoch of {run.text}\nis {got:g}, not {best}. The validation losses were "
                f"{', '.join(f'{loss:g}' for loss in losses[:trained])}.",
                "counted-from-zero" if got == best - 1 else "wrong-best-epoch",
            )

    judged(student, case, look)
    judged(student, first, look)


# -- The test scores ---------------------------------------------------------------------------------------------------
def predicted(run: Run) -> list[int]:
    """The classes that the script gives the test texts, with the weights that the model was left with."""
    table = run.case.script["logits"][2] if run.case.script else []
    row = table[min(max(kept_epoch(run), 1), len(table)) - 1]
    return [int(second > first) for first, second in row]


@pytest.mark.worth("fine_tune", 0.2, misconception="wrong-test-accuracy")
def test_test_accuracy(student: Student, device: torch.device) -> None:
    """test_accuracy is the share of test texts that the weights left in the model classify right."""

    def look(run: Run) -> None:
        labels = run.case.labels("test")
        script: Any = run.case.script
        last = [int(second > first) for first, second in script["logits"][2][epochs_trained(run) - 1]]
        share = [sum(p == y for p, y in zip(row, labels, strict=True)) / len(labels) for row in (predicted(run), last)]
        got = run.number("test_accuracy")
        likely = [("tested-with-other-weights", share[1]), ("not-a-share", 100 * share[0])]
        expect.close(got, share[0], run.call, likely=likely, what="test_accuracy", misconception="wrong-test-accuracy")

    judged(student, scripted(f"early-{PATIENCE}", device, EARLY, patience=PATIENCE), look)


@pytest.mark.worth("fine_tune", 0.2, misconception="wrong-f1")
def test_test_f1(student: Student, device: torch.device) -> None:
    """test_f1 is the F1 score of class 1 on the test split."""
    labels = (1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0)
    classes = (1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 0, 0)
    case = scripted("f1", device, (0.4,), test=[classes], test_labels=labels, max_epochs=1)

    def look(run: Run) -> None:
        flipped = oracle.f1_of_class_one([1 - p for p in classes], [1 - y for y in labels])
        right = oracle.f1_of_class_one(classes, labels)
        likely = [
            ("f1-averaged", (right + flipped) / 2),
            ("f1-of-class-0", flipped),
            ("f1-is-accuracy", sum(p == y for p, y in zip(classes, labels, strict=True)) / len(labels)),
        ]
        expect.close(run.number("test_f1"), right, run.call, likely=likely, what="test_f1", misconception="wrong-f1")

    judged(student, case, look)


@pytest.mark.worth("fine_tune", 0.1, misconception="f1-of-nothing")
def test_f1_of_nothing(student: Student, device: torch.device) -> None:
    """Where no test text has class 1 or is given it, test_f1 is 0.0."""
    case = scripted("f1-zero", device, (0.4,), test=[(0,) * 6], test_labels=(0,) * 6, max_epochs=1)

    def look(run: Run) -> None:
        expect.close(run.number("test_f1"), 0.0, run.call, what="test_f1", misconception="f1-of-nothing")
        expect.close(run.number("test_accuracy"), 1.0, run.call, what="test_accuracy")

    judged(student, case, look, raising="f1-of-nothing")


@pytest.mark.worth("fine_tune", 0.1, misconception="result-form")
def test_form_of_the_result(student: Student, device: torch.device) -> None:
    """history has one entry an epoch, numbered from 1, and all numbers of the result are Python numbers."""

    def look(run: Run) -> None:
        trained = epochs_trained(run)
        numbers = run.history("epoch")
        if numbers != list(range(1, trained + 1)):
            expect.wrong(
                f"history of {run.text}\nnumbers its epochs {show(numbers)}; {trained} were trained.",
                "counted-from-zero" if numbers[0] == 0 else "result-form",
            )
        for name in ("train_loss", "validation_loss", "validation_accuracy"):
            run.history(name)
        values = {name: run.get(name) for name in ("test_accuracy", "test_f1", "best_epoch")}
        values |= {name: run.get(name) for name in ("trainable_parameters", "total_parameters")}
        entry = run.get("history")[0]
        values |= {name: getattr(entry, name) for name in ("train_loss", "validation_loss", "validation_accuracy")}
        for name, value in values.items():
            if not expect.is_number(value):
                expect.wrong(f"{name} of {run.text}\nis {show(value)}, not a Python number.", "result-form")

    judged(student, scripted(f"early-{PATIENCE}", device, EARLY, patience=PATIENCE), look)

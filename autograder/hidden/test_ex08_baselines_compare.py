"""Exercise 8: is the comparison of bag of words, frozen encoder and full fine-tuning a fair one?"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
import torch

from autograder.hidden import expect, journal, protocol
from autograder.hidden.cases_ex08 import (
    COLD,
    LEARNING,
    METHODS,
    NEURAL,
    STILL,
    configuration,
    last_learns,
    plain,
    plain_again,
    ties,
    turned,
)
from autograder.hidden.journal import Comparison, by_learning, make_texts
from autograder.hidden.run_records import accuracy, named, predictions
from autograder.sandbox.fixtures.comparison import fresh_model
from autograder.wire.proxy import Student

records = partial(protocol.table, methods=METHODS)


def neural(c: Comparison) -> protocol.Records:
    """The records of the methods with an encoder."""
    return {of: record for of, record in records(c).items() if of[1] in NEURAL}


@pytest.mark.worth("compare_baselines", 0.4, misconception="runs-missing")
def test_one_record_a_seed_and_method(student: Student, device: torch.device) -> None:
    """There is one record for each seed and method, and every number in it is one."""
    for c in (plain(student, device), last_learns(student, device)):
        for of, record in records(c).items():
            predictions(c, of, record)
            protocol.chosen_setting(c, of, record)


@pytest.mark.worth("compare_baselines", 0.7, misconception="model-reused")
def test_every_run_starts_from_a_fresh_model(student: Student, device: torch.device) -> None:
    """Every training run has a model of its own from make_model, with the seed of its record, and keeps the budget."""
    for c in (plain(student, device), last_learns(student, device), ties(student, device)):
        protocol.check_fresh_models(c, records(c), by_learning)


@pytest.mark.worth("compare_baselines", 0.3, misconception="dropout-while-predicting")
def test_texts_reach_the_encoder_as_they_are(student: Student, device: torch.device) -> None:
    """Padding has config.pad_id and attention mask 0, texts are whole, predictions are made without dropout."""
    for c in (plain(student, device), last_learns(student, device)):
        for record in neural(c).items():
            predictions(c, *record)
        protocol.check_batches(c)


@pytest.mark.worth("compare_baselines", 0.5, misconception="wrong-f1")
def test_scores_follow_from_the_predictions(student: Student, device: torch.device) -> None:
    """Accuracy and F1 of class 1 are those of test_predictions on the whole test split."""
    for c in (plain(student, device), last_learns(student, device), ties(student, device)):
        protocol.check_scores(c, neural(c))


@pytest.mark.worth("compare_baselines", 0.8, misconception="test-read-twice")
def test_test_split_is_read_once_a_record(student: Student, device: torch.device) -> None:
    """Each test text is read once for each seed and method, when the choice is over."""
    for c in (plain(student, device), last_learns(student, device)):
        protocol.check_test_readings(c, records(c), by_learning)


@pytest.mark.worth("compare_baselines", 0.6, misconception="budget-not-kept")
def test_update_budget(student: Student, device: torch.device) -> None:
    """Every update takes batch_size training texts, and the records say how many updates there were."""
    for c in (plain(student, device), last_learns(student, device), ties(student, device)):
        protocol.check_budget(c, records(c), by_learning)


@pytest.mark.worth("compare_baselines", 0.8, misconception="calls-miscounted")
def test_encoder_calls(student: Student, device: torch.device) -> None:
    """Encoder calls are those of the chosen training run and of the prediction of the test split, and no others."""
    for c in (plain(student, device), last_learns(student, device)):
        protocol.check_calls(c, records(c), by_learning)


@pytest.mark.worth("compare_baselines", 0.5, misconception="parameters-miscounted")
def test_parameter_counts(student: Student, device: torch.device) -> None:
    """Frozen trains the classification layer only, full everything; both need the whole model."""
    for c in (plain(student, device), ties(student, device)):
        model = fresh_model(0, **c.model_settings)
        head = sum(parameter.numel() for parameter in model.classifier.parameters())
        total = sum(parameter.numel() for parameter in model.parameters())
        protocol.check_parameters(c, neural(c), {"frozen": (head, total), "full": (total, total)})


@pytest.mark.worth("compare_baselines", 1.0, misconception="not-the-best-setting")
def test_validation_chooses(student: Student, device: torch.device) -> None:
    """The setting with the highest accuracy on the validation split is used, wherever it stands among the settings."""
    c = turned(student, device)
    for of, record in neural(c).items():
        because = "the validation labels contradict the training texts, so the setting that learns nothing does better"
        protocol.check_chosen(c, of, record, STILL, because)
        protocol.check_untrained(c, of, record, "not-the-best-setting")
    protocol.check_choice(c, neural(c), by_learning)
    c = last_learns(student, device)
    for of, record in neural(c).items():
        protocol.check_chosen(c, of, record, LEARNING[of[1]], "the others change nothing")
    protocol.check_choice(c, neural(c), by_learning)
    for of, record in neural(c).items():
        got = accuracy(predictions(c, of, record), [text.label for text in c.texts.test])
        if got < 0.7:
            expect.wrong(
                f"{c.text}\n{named(of)} classifies {got:.2f} of the test texts right; texts as easy as these "
                f"give 0.85 and more.",
                "wrong-predictions",
            )
    c = plain(student, device)
    for of, record in neural(c).items():
        protocol.check_chosen(c, of, record, LEARNING[of[1]], "the other changes nothing")
    protocol.check_choice(c, neural(c), by_learning)


@pytest.mark.worth("compare_baselines", 0.2, misconception="not-the-best-setting")
def test_first_of_equals(student: Student, device: torch.device) -> None:
    """Of settings with equal scores the first one is used."""
    c = ties(student, device)
    for of, record in neural(c).items():
        protocol.check_chosen(c, of, record, STILL, "both change nothing, and the first of equals counts")
        protocol.check_untrained(c, of, record, "wrong-predictions")


@pytest.mark.worth("compare_baselines", 0.2, misconception="implausible-time")
def test_costs_are_measured(student: Student, device: torch.device) -> None:
    """Times are positive, and neither longer nor much shorter than what was seen; the peak is a positive integer."""
    c = plain(student, device)
    protocol.check_costs(c, records(c), by_learning)


@pytest.mark.worth("compare_baselines", 0.2, misconception="no-warm-up")
def test_times_are_measured_after_a_warm_up(student: Student, device: torch.device) -> None:
    """The very first call of an encoder, which takes longer, is in no record."""
    c = plain(student, device)
    protocol.check_warm_up(c, records(c), by_learning, COLD)


@pytest.mark.worth("compare_baselines", 0.2, misconception="not-reproducible")
def test_same_again_and_nothing_touched(student: Student, device: torch.device) -> None:
    """The same arguments give the same records, and no global random generator is used."""
    first, second = plain(student, device), plain_again(student, device)
    protocol.check_reproducible(first, neural(first), second, neural(second))
    expect.unchanged(student, "compare_baselines")


@pytest.mark.worth("compare_baselines", 0.1, misconception="bad-input-accepted")
def test_unequal_numbers_of_settings_are_refused(student: Student, device: torch.device) -> None:
    """A method without settings, or with more than others, gets a ValueError."""
    c = ties(student, device)
    records(c)
    texts = make_texts(8)
    notes = journal.Journal(texts)
    splits = student.fixtures.served_splits(student.lend(notes.read), 24, 12, 15)
    make_model = student.fixtures.watched_models(student.lend(notes.told), **c.model_settings)
    right = configuration((1,), (STILL, None), updates=1)
    for method in METHODS:
        for unequal, because in (
            ({**right.settings, method: (STILL,)}, f"{method} has 1 setting and the others have 2"),
            ({m: s for m, s in right.settings.items() if m != method}, f"{method} has no settings"),
        ):
            expect.refuses(
                student.compare_baselines,
                splits,
                make_model,
                replace(right, settings=unequal),
                names=("settings", "config"),
                because=because,
            )

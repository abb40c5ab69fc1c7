"""Exercise 9: is the comparison of frozen encoder, full fine-tuning and LoRA a fair one?

It is judged with the submission's own LoRA or, where that fails, with a right one in its place.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import pytest
import torch

from autograder.hidden import expect, journal, protocol
from autograder.hidden.cases_ex09 import allowed, forgiving
from autograder.hidden.journal import Comparison, by_learning, make_texts
from autograder.hidden.run_records import predictions
from autograder.hidden.runs_ex09 import COLD, LEARNING, METHODS, STILL, LoRARun, Runs, Transfer, configuration, judged
from autograder.sandbox.fixtures.comparison import fresh_model
from autograder.wire.proxy import Student
from autograder.wire.show import show

records = partial(protocol.table, methods=METHODS)


@pytest.mark.worth("compare_transfer", 0.3, misconception="wrong-f1")
def test_scores_follow_from_the_predictions(student: Student, device: torch.device) -> None:
    """Accuracy and F1 of class 1 are those of test_predictions on the whole test split."""

    def check(runs: Runs) -> None:
        for c in (runs.plain().comparison, runs.middle().comparison, runs.ties().comparison):
            protocol.check_scores(c, records(c))

    judged(student, device, check)


@pytest.mark.worth("compare_transfer", 0.45, misconception="test-read-twice")
def test_test_split_is_read_once_a_record(student: Student, device: torch.device) -> None:
    """Each test text is read once for each seed and method, when the choice is over."""

    def check(runs: Runs) -> None:
        for c in (runs.plain().comparison, runs.middle().comparison):
            protocol.check_test_readings(c, records(c), by_learning)

    judged(student, device, check)


@pytest.mark.worth("compare_transfer", 0.35, misconception="model-reused")
def test_every_run_starts_from_a_fresh_model(student: Student, device: torch.device) -> None:
    """Every training run has a model of its own from make_model, with the seed of its record, and keeps the budget."""

    def check(runs: Runs) -> None:
        for c in (runs.plain().comparison, runs.middle().comparison, runs.ties().comparison):
            protocol.check_fresh_models(c, records(c), by_learning)

    judged(student, device, check)


@pytest.mark.worth("compare_transfer", 0.25, misconception="budget-not-kept")
def test_update_budget(student: Student, device: torch.device) -> None:
    """Every update takes batch_size training texts, and the records say how many updates there were."""

    def check(runs: Runs) -> None:
        for c in (runs.plain().comparison, runs.middle().comparison, runs.ties().comparison):
            protocol.check_budget(c, records(c), by_learning)

    judged(student, device, check)


@pytest.mark.worth("compare_transfer", 0.3, misconception="calls-miscounted")
def test_encoder_calls(student: Student, device: torch.device) -> None:
    """Encoder calls are those of the chosen training run and of the prediction of the test split, and no others."""

    def check(runs: Runs) -> None:
        for c in (runs.plain().comparison, runs.middle().comparison, runs.ties().comparison):
            protocol.check_calls(c, records(c), by_learning)

    judged(student, device, check)


def counts(c: Comparison) -> dict[str, tuple[int, int]]:
    """(trainable, total) of each method."""
    model = fresh_model(0, **c.model_settings)
    head = sum(parameter.numel() for parameter in model.classifier.parameters())
    total = sum(parameter.numel() for parameter in model.parameters())
    sizes = [
        module.weight.shape
        for name, module in model.encoder.named_modules()
        if isinstance(module, torch.nn.Linear) and name.rpartition(".")[2] in c.config.lora_targets
    ]
    added = c.config.lora_rank * sum(sum(shape) for shape in sizes)
    return {"frozen": (head, total), "full": (total, total), "lora": (added + head, total + added)}


@pytest.mark.worth("compare_transfer", 0.25, misconception="parameters-miscounted")
def test_parameter_counts(student: Student, device: torch.device) -> None:
    """Frozen trains the classification layer only, full everything, LoRA A, B and the classification layer of the rank
    and targets that the configuration gives."""

    def check(runs: Runs) -> None:
        for c in (runs.plain().comparison, runs.middle().comparison):
            protocol.check_parameters(c, records(c), counts(c))

    judged(student, device, check)


@pytest.mark.worth("compare_transfer", 0.35, misconception="not-the-best-setting")
def test_validation_chooses(student: Student, device: torch.device) -> None:
    """The setting with the highest accuracy on the validation split is used, wherever it stands among the settings."""

    def check(runs: Runs) -> None:
        c = runs.turned().comparison
        for of, record in records(c).items():
            because = "the validation labels contradict the training texts, so the setting that learns nothing is best"
            protocol.check_chosen(c, of, record, STILL, because)
            protocol.check_untrained(c, of, record, "not-the-best-setting")
        protocol.check_choice(c, records(c), by_learning)
        for c in (runs.middle().comparison, runs.plain().comparison):
            for of, record in records(c).items():
                protocol.check_chosen(c, of, record, LEARNING[of[1]], "the others change nothing")
            protocol.check_choice(c, records(c), by_learning)

    judged(student, device, check)


@pytest.mark.worth("compare_transfer", 0.15, misconception="not-the-best-setting")
def test_first_of_equals(student: Student, device: torch.device) -> None:
    """Of settings with equal scores the first one is used."""

    def check(runs: Runs) -> None:
        c = runs.ties().comparison
        for of, record in records(c).items():
            protocol.check_chosen(c, of, record, STILL, "both change nothing, and the first of equals counts")
            protocol.check_untrained(c, of, record, "other-seed")

    judged(student, device, check)


def _whole_runs(transfer: Transfer) -> list[LoRARun]:
    """The LoRA runs that kept the budget, warm-ups left out; fails if there are none."""
    c = transfer.comparison
    found = [run for run in transfer.lora.values() if len(run.scales) >= c.config.updates - 1]
    if not found:
        expect.wrong(f"{c.text}\ntrained no model with a low-rank update in its first query layer.", "lora-not-there")
    return found


@pytest.mark.worth("compare_transfer", 0.3, misconception="setting-not-handed-on")
def test_lora_runs_with_the_configured_alpha(student: Student, device: torch.device) -> None:
    """In the LoRA runs A and B learn, and their product is added with the scale lora_alpha / lora_rank."""

    def check(runs: Runs) -> None:
        for transfer in (runs.plain(), runs.middle()):
            c, whole = transfer.comparison, _whole_runs(transfer)
            wanted = c.config.lora_alpha / c.config.lora_rank
            learned = [run for run in whole if run.scales[-1] != 0]
            if not learned:
                expect.wrong(f"{c.text}\ntrained no B: it stayed at zero in all LoRA runs.", "lora-never-trained")
            for run in learned:
                if abs(run.scales[-1] - wanted) > 0.01 * wanted:
                    expect.wrong(
                        f"{c.text}\nadded B A with the scale {run.scales[-1]:.4g} in a LoRA run with seed {run.seed}\n"
                        f"expected {wanted:.4g} = lora_alpha / lora_rank"
                    )

    judged(student, device, check)


@pytest.mark.worth("compare_transfer", 0.15, misconception="lora-seed")
def test_lora_starts_from_the_seed(student: Student, device: torch.device) -> None:
    """A starts from numbers that the seed decides: others for another seed, the same for every setting of one seed."""

    def check(runs: Runs) -> None:
        transfer = runs.plain()
        c = transfer.comparison
        starts: dict[int, list[torch.Tensor]] = {}
        for run in _whole_runs(transfer):
            if run.start is not None:
                starts.setdefault(run.seed, []).append(run.start)
        for seed, found in starts.items():
            if any(not torch.equal(found[0], other) for other in found):
                expect.wrong(f"{c.text}\nstarted LoRA runs with seed {seed} from unequal A.", "not-reproducible")
        firsts = [found[0] for found in starts.values()]
        if len(firsts) > 1 and torch.equal(firsts[0], firsts[1]):
            expect.wrong(f"{c.text}\nstarted LoRA runs of different seeds from the same A: {show(firsts[0])}.")

    judged(student, device, check)


@pytest.mark.worth("compare_transfer", 0.1, misconception="implausible-time")
def test_costs_are_measured(student: Student, device: torch.device) -> None:
    """Times are positive, and neither longer nor much shorter than what was seen; the peak is a positive integer."""

    def check(runs: Runs) -> None:
        c = runs.plain().comparison
        protocol.check_costs(c, records(c), by_learning)

    judged(student, device, check)


@pytest.mark.worth("compare_transfer", 0.15, misconception="no-warm-up")
def test_times_are_measured_after_a_warm_up(student: Student, device: torch.device) -> None:
    """The very first call of an encoder, which takes longer, is in no record."""

    def check(runs: Runs) -> None:
        c = runs.plain().comparison
        protocol.check_warm_up(c, records(c), by_learning, COLD)

    judged(student, device, check)


@pytest.mark.worth("compare_transfer", 0.15, misconception="dropout-while-predicting")
def test_texts_reach_the_encoder_as_they_are(student: Student, device: torch.device) -> None:
    """Padding has config.pad_id and attention mask 0, texts are whole, predictions are made without dropout."""

    def check(runs: Runs) -> None:
        for c in (runs.plain().comparison, runs.middle().comparison):
            for record in records(c).items():
                predictions(c, *record)
            protocol.check_batches(c)

    judged(student, device, check)


@pytest.mark.worth("compare_transfer", 0.15, misconception="not-reproducible")
def test_same_again(student: Student, device: torch.device) -> None:
    """The same arguments give the same records."""

    def check(runs: Runs) -> None:
        first, second = runs.plain().comparison, runs.again().comparison
        protocol.check_reproducible(first, records(first), second, records(second))

    judged(student, device, check)


@pytest.mark.worth("compare_transfer", 0.05, misconception="global-generator")
def test_global_generators_are_left_alone(student: Student, device: torch.device) -> None:
    """No global random generator is used."""

    def check(runs: Runs) -> None:
        for transfer in (runs.ties(), runs.plain()):
            c = transfer.comparison
            records(c)
            if transfer.moved:
                expect.wrong(f"{c.text}\nused the global random generator of {transfer.moved[0]}.")

    judged(student, device, check)


@pytest.mark.worth("compare_transfer", 0.05, misconception="bad-input-accepted")
def test_unequal_numbers_of_settings_are_refused(student: Student, device: torch.device) -> None:
    """A method without settings, or with more than others, gets a ValueError."""

    def check(runs: Runs) -> None:
        records(runs.ties().comparison)

    judged(student, device, check)
    texts = make_texts(8)
    notes = journal.Journal(texts)
    splits = student.fixtures.served_splits(student.lend(notes.read), 24, 12, 15)
    settings = Runs(student, device, right=False).model_settings
    make_model = student.fixtures.watched_models(student.lend(notes.told), **settings)
    one = configuration((1,), (STILL,), updates=1)

    def one_setting_each() -> None:
        returned = allowed(student.compare_transfer, splits, make_model, one)
        count = len(returned) if isinstance(returned, list | tuple) else 0
        if count != len(METHODS):
            expect.wrong(
                f"{student.compare_transfer.last.text}\nreturned {count} records where each method has one setting\n"
                f"expected {len(METHODS)}",
                "runs-missing",
            )

    forgiving(student, one_setting_each, "LoRALinear", "add_lora", "merge_lora")
    right = configuration((1,), (STILL, None), updates=1)
    names, because = ("settings", "config"), "no method has settings"
    nothing = replace(right, settings={})
    expect.refuses(student.compare_transfer, splits, make_model, nothing, names=names, because=because)
    for method in METHODS:
        for unequal, because in (
            ({**right.settings, method: (STILL,)}, f"{method} has 1 setting and the others have 2"),
            ({m: s for m, s in right.settings.items() if m != method}, f"{method} has no settings"),
        ):
            expect.refuses(
                student.compare_transfer,
                splits,
                make_model,
                replace(right, settings=unequal),
                names=names,
                because=because,
            )

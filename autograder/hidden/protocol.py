"""What every comparison of methods must keep to (exercises 8, 9 and 10): assertions on a `journal.Comparison`.

Each takes the comparison and its records by key (`table`), and fails with the message that students see.  `place` tells
which method a run belongs to (`journal.by_learning`, for instance).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from autograder.hidden import expect
from autograder.hidden.journal import Comparison, Key, Place, Run
from autograder.hidden.run_records import (
    WORDS,
    Records,
    check_chosen,
    check_parameters,
    check_scores,
    chosen_setting,
    count,
    named,
    number,
    predictions,
    table,
)
from autograder.wire.show import show
from exercises.kit import RunRecord

__all__ = [
    "check_batches",
    "check_budget",
    "check_calls",
    "check_choice",
    "check_chosen",
    "check_costs",
    "check_fresh_models",
    "check_parameters",
    "check_reproducible",
    "check_scores",
    "check_test_readings",
    "check_untrained",
    "check_warm_up",
    "table",
]


# -- The test split ----------------------------------------------------------------------------------------------------
def groups(c: Comparison, records: Records, place: Place) -> dict[Key, list[Run]]:
    """The runs of each neural method and seed; fails if there is none for one of them."""
    found: dict[Key, list[Run]] = {of: [] for of in records if of[1] != WORDS}
    for run in c.runs:
        where = place(c, run)
        if where is not None and (run.seed, *where) in found:
            found[run.seed, *where].append(run)
    for of, runs in found.items():
        if not runs:
            seeds = [run.seed for run in c.runs]
            expect.wrong(
                f"{c.text}\nmade no model that was trained as {named(of)} says.  make_model was called with "
                f"{show(seeds)}.",
                "trained-another-way" if of[0] in seeds else "other-seed",
            )
    return found


def tested(c: Comparison, of: Key, runs: Sequence[Run]) -> Run:
    """The one run whose model predicted the test split."""
    chosen = [run for run in runs if run.forward("test")]
    if not chosen:
        expect.wrong(
            f"{c.text}\nmade {len(runs)} models for {named(of)}, but none of their encoders ever saw a test text.",
            "trained-another-way",
        )
    if len(chosen) > 1:
        expect.wrong(
            f"{c.text}\npredicted the test split with {len(chosen)} models for {named(of)}; only the model of the "
            f"setting that the validation split chose may see it.",
            "test-for-selection",
        )
    return chosen[0]


def recognised(c: Comparison, records: Records, place: Place) -> dict[Key, Run]:
    """The runs whose models predicted the test split, as far as there is exactly one for a record.

    For checks of something else than the runs: they leave out what other checks complain about.
    """
    found: dict[Key, Run] = {}
    for of in (of for of in records if of[1] != WORDS):
        runs = [run for run in c.runs if run.forward("test") and (run.seed, *(place(c, run) or ())) == of]
        if len(runs) == 1:
            found[of] = runs[0]
    return found


def check_test_readings(c: Comparison, records: Records, place: Place) -> None:
    """Every test text is read once a record, when training and choice of that record are over."""
    reads = c.reads("test")
    for index, times in enumerate(reads):
        if len(times) != len(records):
            more = len(times) > len(records)
            expect.wrong(
                f"{c.text}\nread test text {index} {len(times)} times.\nexpected {len(records)}: once for each seed "
                f"and method, to predict it with the model that was chosen",
                "test-read-twice" if more else "test-read-once-for-all",
            )
    for of, runs in groups(c, records, place).items():
        chosen = tested(c, of, runs)
        over = max(run.selected(len(c.texts.validation)) for run in runs)
        for event in chosen.forward("test"):
            if event.at < over:
                expect.wrong(
                    f"{c.text}\npredicted test texts for {named(of)} before all its settings were trained and scored "
                    f"on the validation split.",
                    "test-read-early",
                )
            for row in event.rows:
                if row is not None and row[0] == "test" and not any(over < t < event.at for t in reads[row[1]]):
                    expect.wrong(
                        f"{c.text}\nread test text {row[1]} for {named(of)} before all its settings were trained and "
                        f"scored on the validation split.",
                        "test-read-early",
                    )


def check_ran(c: Comparison) -> None:
    """For checks of how models were run: where none ever was, anything would hold."""
    if not any(event.kind == "forward" for event in c.events):
        expect.wrong(f"{c.text}\nran the encoder of no model that make_model gave.")


# -- Training runs -----------------------------------------------------------------------------------------------------
def check_fresh_models(c: Comparison, records: Records, place: Place) -> None:
    """make_model is called with the record's seed for every training run, and no model is trained twice."""
    budget = c.config.updates
    for run in c.runs:
        whole = [event for event in run.forward("train") if len(event.rows) == c.config.batch_size]
        frozen_steps = sum(event.training and not event.graph for event in whole)
        if run.backward_calls > budget or frozen_steps > budget or (run.backward_calls and frozen_steps >= budget):
            expect.wrong(
                f"{c.text}\ntrained one model (the {run.model + 1}. that make_model gave, seed {run.seed}) for "
                f"{run.backward_calls + frozen_steps} updates; one run has {budget}.",
                "model-reused" if (run.backward_calls + frozen_steps) % budget == 0 else "budget-not-kept",
            )
    for seed in c.config.seeds:
        needed = sum(len(c.config.settings[of[1]]) for of in records if of[0] == seed and of[1] != WORDS)
        made = [run for run in c.runs if run.seed == seed]
        if len(made) < needed:
            seeds = [run.seed for run in c.runs]
            expect.wrong(
                f"{c.text}\ncalled make_model({seed}) {len(made)} times.\nexpected {needed} or more: once for every "
                f"method and setting.  It was called with {show(seeds)}.",
                "other-seed" if len(seeds) >= needed * len(c.config.seeds) else "settings-not-tried",
            )
    for of, runs in groups(c, records, place).items():
        full = [run for run in runs if run.learning]
        wanted = len(c.config.settings[of[1]])
        complete = sum(run.backward_calls == budget for run in full)
        if full and complete < wanted:
            other = sorted({run.backward_calls for run in full} - {budget})
            expect.wrong(
                f"{c.text}\ntrained {complete} models for exactly {budget} updates for {named(of)}; there are {wanted} "
                f"settings to try." + (f"\nOthers had {show(other)} updates." if other else ""),
                "budget-not-kept" if other else "settings-not-tried",
            )


def check_budget(c: Comparison, records: Records, place: Place) -> None:
    """Every update has batch_size training texts; the records say so."""
    config = c.config
    for of, record in records.items():
        words = of[1] == WORDS
        for name, value in (("updates", config.updates), ("examples_per_update", config.batch_size)):
            got = count(c, of, record, name)
            if got != (0 if words else value):
                expect.wrong(
                    f"{c.text}\n{named(of)} has {name}={got}, not {0 if words else value}.", "budget-not-reported"
                )
    for of, chosen in recognised(c, records, place).items():
        frozen_steps = [e for e in chosen.forward("train") if e.training and not e.graph]
        for event in chosen.steps or (frozen_steps if len(frozen_steps) == config.updates else []):
            if event.of("validation") or event.of("test"):
                expect.wrong(f"{c.text}\ntrained {named(of)} on texts that are not in splits.train.", "trained-on-more")
            if len(event.rows) != config.batch_size:
                expect.wrong(
                    f"{c.text}\nmade an update with {len(event.rows)} texts for {named(of)}; batch_size is "
                    f"{config.batch_size}.",
                    "budget-not-kept",
                )
        if chosen.learning and chosen.backward_calls != config.updates:
            expect.wrong(
                f"{c.text}\ntrained the model that predicted the test split for {chosen.backward_calls} updates for "
                f"{named(of)}; there are {config.updates}.",
                "budget-not-kept",
            )


def check_calls(c: Comparison, records: Records, place: Place) -> None:
    """Encoder calls are those of the chosen training run and of the prediction of the test split."""
    runs_of = groups(c, records, place)
    for of, record in records.items():
        got = count(c, of, record, "encoder_forward_calls"), count(c, of, record, "encoder_backward_calls")
        if of[1] == WORDS:
            if got != (0, 0):
                expect.wrong(f"{c.text}\n{named(of)} has {got} encoder calls; it has no encoder.", "calls-miscounted")
            continue
        chosen = tested(c, of, runs_of[of])
        test = len(chosen.forward("test"))
        training = len(chosen.forward("train"))
        budget = c.config.updates
        if chosen.learning:
            least = most = chosen.backward_calls + test
        elif sum(len(event.rows) == c.config.batch_size for event in chosen.forward("train")) >= budget:
            least, most = budget + test, training + test
        else:  # the features were kept: only those who computed them are left to count
            elsewhere = sum(len(run.forward("train")) + len(run.forward("validation")) for run in runs_of[of])
            least, most = test, elsewhere + test
        if got[1] != chosen.backward_calls:
            expect.wrong(
                f"{c.text}\n{named(of)} has encoder_backward_calls={got[1]}; {chosen.backward_calls} were seen in the "
                f"run that was chosen.",
                "calls-miscounted",
            )
        if not least <= got[0] <= most:
            texts = sum(len(event.rows) for event in chosen.forward("train") + chosen.forward("test"))
            validation = len(chosen.forward("validation"))
            if got[0] in (texts, budget * c.config.batch_size + len(c.texts.test)):
                likely = "calls-per-text"
            elif not chosen.learning and training < budget:
                likely = "kept-features-not-counted"
            elif validation and got[0] == most + validation:
                likely = "validation-calls-counted"
            else:
                likely = "calls-miscounted"
            wanted = str(least) if least == most else f"{least} to {most}"
            expect.wrong(
                f"{c.text}\n{named(of)} has encoder_forward_calls={got[0]}\nexpected {wanted}: the encoder was seen "
                f"to run {training} times on training texts and {test} times on test texts in the run that was chosen",
                likely,
            )


# -- The choice --------------------------------------------------------------------------------------------------------
def check_choice(c: Comparison, records: Records, place: Place) -> None:
    """The setting chosen is one of those to try and has the best accuracy on the validation split.

    Computed again from what the models gave the validation texts, where whole models were called on them.
    """
    labels = torch.tensor([text.label for text in c.texts.validation])
    for of, record in records.items():
        chosen_setting(c, of, record)
        got = number(c, of, record, "validation_score")
        if of[1] == WORDS:
            continue
        runs = groups(c, records, place)[of]
        chosen = tested(c, of, runs)
        scores: dict[int, float] = {}
        for run in runs:
            logits = run.logits("validation", len(labels))
            trained = max(run.backward_calls, sum(e.training for e in run.forward("train"))) >= c.config.updates
            if logits is not None and trained:
                scores[run.model] = float((logits.argmax(-1) == labels).double().mean())
        if chosen.model in scores and abs(got - scores[chosen.model]) > 1e-6:
            expect.wrong(
                f"{c.text}\n{named(of)} has validation_score={got:.6f}; the model that predicted the test split has "
                f"accuracy {scores[chosen.model]:.6f} on the validation split.",
                "wrong-validation-score",
            )
        if chosen.model in scores and scores[chosen.model] < max(scores.values()) - 1e-6:
            expect.wrong(
                f"{c.text}\npredicted the test split for {named(of)} with a model whose validation accuracy is "
                f"{scores[chosen.model]:.4f}; another setting has {max(scores.values()):.4f}.",
                "not-the-best-setting",
            )
        logits = chosen.logits("test", len(c.texts.test))
        if logits is not None and logits.argmax(-1).tolist() != predictions(c, of, record):
            expect.wrong(
                f"{c.text}\n{named(of)} has test_predictions={show(record.test_predictions)}\nthe model gave the test "
                f"texts the classes {show(logits.argmax(-1).tolist())}",
                "wrong-predictions",
            )


def check_untrained(c: Comparison, of: Key, record: RunRecord, misconception: str) -> None:
    """Fail unless validation score and test predictions are those of make_model(seed) before any training.

    For comparisons whose best setting hardly moves the weights: computed here, where margins allow.
    """
    for part in ("validation", "test"):
        logits = c.untrained(of[0], part)
        sure = (logits[:, 0] - logits[:, 1]).abs() > 1e-3
        classes = logits.argmax(-1)
        if part == "validation":
            labels = torch.tensor([text.label for text in c.texts.validation])
            right = (classes == labels).double()
            least, most = float((right * sure).mean()), float(torch.where(sure, right, 1.0).mean())
            got = number(c, of, record, "validation_score")
            if not least - 1e-6 <= got <= most + 1e-6:
                expect.wrong(
                    f"{c.text}\n{named(of)} has validation_score={got:.6f}\nexpected {most:.6f}: with a learning rate "
                    f"that small the model stays as make_model({of[0]}) gives it",
                    misconception,
                )
        elif any(int(k) != g for k, g, s in zip(classes, predictions(c, of, record), sure, strict=True) if s):
            expect.wrong(
                f"{c.text}\n{named(of)} has test_predictions={show(record.test_predictions)}\nexpected "
                f"{show(classes.tolist())}: with a learning rate that small the model stays as make_model({of[0]}) "
                f"gives it",
                misconception,
            )


# -- Cost --------------------------------------------------------------------------------------------------------------
def check_costs(c: Comparison, records: Records, place: Place) -> None:
    """Times are positive, and neither longer nor much shorter than what was seen; the peak is a positive integer."""
    total = 0.0
    for of, record in records.items():
        for name in ("train_seconds", "predict_seconds"):
            value = number(c, of, record, name)
            total += value
            if not value > 0 or value > c.seconds:
                expect.wrong(
                    f"{c.text}\n{named(of)} has {name}={value:g}; the whole call took {c.seconds:.3f} s.",
                    "implausible-time",
                )
        if count(c, of, record, "peak_memory_bytes") <= 0:
            expect.wrong(f"{c.text}\n{named(of)} has peak_memory_bytes={record.peak_memory_bytes}.", "no-peak-memory")
    if total > c.seconds:
        expect.wrong(
            f"{c.text}\nreported {total:.3f} s in all; the whole call took {c.seconds:.3f} s.", "implausible-time"
        )
    for of, chosen in recognised(c, records, place).items():
        seen = [e.seconds for e in chosen.events if e.kind == "backward" or (e.graph and e.training)]
        spans = {"train_seconds": seen, "predict_seconds": [e.seconds for e in chosen.forward("test")]}
        for name, times in spans.items():
            span = max(times) - min(times) if times else 0.0
            if getattr(records[of], name) < 0.5 * span:
                expect.wrong(
                    f"{c.text}\n{named(of)} has {name}={getattr(records[of], name):.6f}; at least {span:.6f} s passed "
                    f"between the first and the last call of the encoder.",
                    "implausible-time",
                )


def check_warm_up(c: Comparison, records: Records, place: Place, cold_seconds: float) -> None:
    """For a comparison whose first encoder call was made to take cold_seconds: no record holds that time."""
    check_ran(c)
    cold = [run for run in c.runs if any(event.kind == "cold" for event in run.events)]
    for of, chosen in recognised(c, records, place).items():
        slow = max(records[of].train_seconds, records[of].predict_seconds)
        if chosen in cold and slow >= cold_seconds:
            expect.wrong(
                f"{c.text}\n{named(of)} holds {slow:.3f} s, of which {cold_seconds} s went into the very first call of "
                f"an encoder, which loads code: later runs do not pay for that.",
                "no-warm-up",
            )


# -- The same again ----------------------------------------------------------------------------------------------------
def check_reproducible(first: Comparison, records: Records, second: Comparison, again: Records) -> None:
    """The same seeds give the same results, and models that agree wherever whole models predicted the test split.

    Few test texts may get the same classes by chance; their logits do not agree by chance.
    """
    fields: dict[str, Callable[[Key, RunRecord], Any]] = {
        "test_predictions": lambda of, record: predictions(first, of, record),
        "chosen_hyperparameters": lambda of, record: chosen_setting(first, of, record),
        "validation_score": lambda of, record: round(number(first, of, record, "validation_score"), 9),
    }
    for of, record in records.items():
        for name, value in fields.items():
            was, now = value(of, record), value(of, again[of])
            if was != now:
                expect.wrong(
                    f"{first.text}\ncalled twice gave two different {name} in {named(of)}:\n{show(was)}\n{show(now)}",
                    "not-reproducible",
                )
    size = len(first.texts.test)
    for run in first.runs:
        logits = run.logits("test", size)
        if logits is None:
            continue
        others = [other.logits("test", size) for other in second.runs if other.seed == run.seed]
        if not any(o is not None and o.shape == logits.shape and torch.allclose(o, logits, 1e-3, 1e-3) for o in others):
            expect.wrong(
                f"{first.text}\ncalled twice trained different models with seed {run.seed}: none of the second "
                "call "
                f"gives the test texts the logits {show(logits)}",
                "not-reproducible",
            )


def check_batches(c: Comparison, full_length: bool = True) -> None:
    """Padding has pad_id and attention mask 0, texts are whole, and predictions are made without dropout.

    full_length: False where texts are truncated.
    """
    check_ran(c)
    for event in (event for run in c.runs for event in run.events if event.kind == "forward"):
        for line, row in enumerate(event.rows):
            if row is None or event.input_ids is None:
                continue
            ids = event.input_ids[line].tolist()
            text = getattr(c.texts, row[0])[row[1]].input_ids
            size = min(len(text), len(ids)) if not full_length else len(text)
            where = f"{c.text}\ngave the encoder {row[0]} text {row[1]} ({len(text)} tokens)"
            if full_length and ids[:size] != text:
                expect.wrong(f"{where} as {show(ids)}.", "text-changed")
            if event.lengths[line] != size:
                expect.wrong(
                    f"{where} with an attention mask of {event.lengths[line]} ones.", "attention-mask-left-out"
                )
            if any(i != c.config.pad_id for i in ids[size:]):
                expect.wrong(
                    f"{where}, padded with {show(ids[size:])}; config.pad_id is {c.config.pad_id}.", "padding-with-zero"
                )
            if not event.of("train") and event.training:
                expect.wrong(f"{where} in training mode, with dropout.", "dropout-while-predicting")

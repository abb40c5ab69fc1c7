"""Hidden checks of exercise 10: compare_lengths.

It is judged with right functions for batches and reports in the place of the submission's.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from autograder.hidden import cases_ex10 as cases
from autograder.hidden import expect, protocol
from autograder.hidden.attempts import second_attempt
from autograder.hidden.cases_ex10 import LEARNS, STILL, RightBatches, places
from autograder.hidden.journal import VOCAB_SIZE, Comparison, Key, Run
from autograder.hidden.oracles import ex10 as oracle
from autograder.hidden.run_records import named, number, predictions
from autograder.sandbox.fixtures.comparison import fresh_model
from autograder.wire.proxy import Student
from autograder.wire.show import show
from exercises.kit import ComparisonConfig, RunRecord, Splits


def table(c: Comparison) -> dict[Key, RunRecord]:
    """The records by seed, method, maximum length and strategy; fails unless they are all there."""
    return protocol.table(c, ["full"], cases.variants(c))


def placed(c: Comparison) -> list[tuple[Run, int, str]]:
    """Every run that was trained in full, or predicted the test split, with its maximum length and strategy.

    A warm-up is none: it may be padded in any way.
    """
    place = places(c)
    whole = [run for run in c.runs if run.backward_calls >= c.config.updates or run.forward("test")]
    found = [(run, place(c, run)) for run in whole]
    return [(run, at[1], at[2]) for run, at in found if at is not None and at[1] is not None and at[2] is not None]


@pytest.mark.worth("compare_lengths", 0.25, misconception="runs-missing")
def test_one_record_each(student: Student, device: torch.device) -> None:
    """There is one record for each seed, maximum length and strategy of the configuration, of the method "full"."""
    for c in (cases.plain(student, device), cases.still(student, device), cases.single(student, device)):
        table(c)


@pytest.mark.worth("compare_lengths", 0.3, misconception="texts-not-truncated")
def test_texts_are_truncated(student: Student, device: torch.device) -> None:
    """The encoder gets no more than max_length tokens of a text of any split, the first ones and its [SEP]."""
    for c in (cases.plain(student, device), cases.still(student, device)):
        table(c)
        for run, max_length, _ in placed(c):
            for event in (event for event in run.events if event.kind == "forward"):
                for line, row in enumerate(event.rows):
                    if row is not None and event.input_ids is not None:
                        text = getattr(c.texts, row[0])[row[1]].input_ids
                        _truncated(c, row, text, event.input_ids[line].tolist(), event.lengths[line], max_length)


def _truncated(
    c: Comparison, row: tuple[str, int], text: list[int], ids: list[int], ones: int, max_length: int
) -> None:
    right = oracle.cut(text, max_length)
    size = len(right)
    whole = ones > max_length and ids[: len(text)] == text[: len(ids)]
    if ids[:size] == right and not whole:
        return
    if whole:
        likely = "texts-not-truncated"
    elif ids[:size] == text[:size]:
        likely = "separator-cut"
    elif ids[:size] == text[-size:] or ids[1:size] == text[1 - size :]:
        likely = "truncated-on-the-left"
    elif len(ids) < size or ids[:ones] == oracle.cut(text, max(ones, 1)):
        likely = "special-tokens-counted-apart"
    else:
        likely = "text-changed"
    expect.wrong(
        f"{c.text}\ngave the encoder {row[0]} text {row[1]} with max_length {max_length} as {show(ids)}\n"
        f"expected {show(right)} (of {len(text)} tokens), and padding behind it",
        likely,
    )


@pytest.mark.worth("compare_lengths", 0.3, misconception="dynamic-is-global")
def test_batches_have_their_width(student: Student, device: torch.device) -> None:
    """Batches of all splits are padded to max_length with "global", to their longest text with "dynamic"."""
    for c in (cases.plain(student, device), cases.still(student, device)):
        records = table(c)
        narrow: set[str] = set()
        for run, max_length, strategy in placed(c):
            for event in run.events:
                texts = [getattr(c.texts, row[0])[row[1]].input_ids for row in event.rows if row is not None]
                if event.kind != "forward" or event.input_ids is None or len(texts) != len(event.rows) or not texts:
                    continue
                width = event.input_ids.shape[1]
                right = oracle.width(texts, max_length, strategy)
                if min(max(map(len, texts)), max_length) < max_length:
                    narrow.add(strategy)
                if width != right:
                    named_ = "dynamic-is-global" if strategy == "dynamic" else "global-is-dynamic"
                    expect.wrong(
                        f"{c.text}\ngave the encoder a batch of {width} positions a text with max_length {max_length} "
                        f"and strategy {strategy!r}\nexpected {right}: its texts have "
                        f"{[len(text) for text in texts]} tokens",
                        named_ if width in (max_length, min(max_length, max(map(len, texts)))) else "wrong-padding",
                    )
        missing = sorted({of[3] for of in records if of[3] is not None} - narrow)
        if missing:
            expect.wrong(
                f"{c.text}\nran no batch of short texts through the encoder with strategy {missing[0]!r}.",
                "trained-another-way",
            )


@pytest.mark.worth("compare_lengths", 0.2, misconception="attention-mask-left-out")
def test_padding_takes_no_part(student: Student, device: torch.device) -> None:
    """Padding is config.pad_id with attention mask 0, and predictions are made without dropout."""
    for c in (cases.plain(student, device), cases.still(student, device), cases.dropped(student, device)):
        table(c)
        if not any(run.forward("train") for run in c.runs):
            expect.wrong(f"{c.text}\nran no training text through an encoder.", "trained-another-way")
        protocol.check_batches(c, full_length=False)


@pytest.mark.worth("compare_lengths", 0.3, misconception="ratios-of-other-texts")
def test_ratios(student: Student, device: torch.device) -> None:
    """truncation_ratio and padding_ratio are those of the training texts in their order, in batches of batch_size."""
    for c in (cases.plain(student, device), cases.still(student, device)):
        for of, record in table(c).items():
            assert of[2] is not None
            assert of[3] is not None
            args = of[2], of[3], c.config.batch_size
            sequences = {part: [t.input_ids for t in getattr(c.texts, part)] for part in c.texts._fields}
            right = oracle.padding_report(sequences["train"], *args)
            others = [oracle.padding_report(sequences[part], *args) for part in ("validation", "test")]
            after = oracle.padding_report([oracle.cut(ids, of[2]) for ids in sequences["train"]], *args)
            for name in right._fields:
                got, value = number(c, of, record, name), getattr(right, name)
                if abs(got - value) > 1e-6:
                    likely = None
                    if name == "truncation_ratio" and abs(got - after.truncation_ratio) < 1e-6:
                        likely = "counted-after-truncating"
                    elif any(abs(got - getattr(other, name)) < 1e-6 for other in others):
                        likely = "ratios-of-other-texts"
                    expect.wrong(
                        f"{c.text}\n{named(of)} has {name}={got:.6f}\nexpected {value:.6f}, what padding_report says "
                        f"of the training texts",
                        likely,
                    )


@pytest.mark.worth("compare_lengths", 0.25, misconception="budget-not-kept")
def test_fresh_models_and_budget(student: Student, device: torch.device) -> None:
    """Each training run starts from a fresh model of its seed and makes the updates of the configuration."""
    for c in (cases.plain(student, device), cases.still(student, device)):
        records = table(c)
        protocol.check_fresh_models(c, records, places(c))
        protocol.check_budget(c, records, places(c))


@pytest.mark.worth("compare_lengths", 0.25, misconception="other-batches")
def test_same_batches_everywhere(student: Student, device: torch.device) -> None:
    """Runs of one seed make their updates with the same texts, whatever length, strategy and learning rate; another
    seed has other ones."""
    c = cases.plain(student, device)
    table(c)
    orders: dict[int, list[list[tuple[str, int]]]] = {}
    for run, max_length, strategy in placed(c):
        if run.backward_calls != c.config.updates:
            continue
        order = [sorted(row for row in event.rows if row is not None) for event in run.steps]
        first = orders.setdefault(run.seed, order)
        if order != first:
            update = next(n for n, (a, b) in enumerate(zip(order, first, strict=False)) if a != b)
            expect.wrong(
                f"{c.text}\ntrained with the texts {[row[1] for row in order[update]]} in update {update + 1} with "
                f"max_length {max_length} and strategy {strategy!r}, and with {[row[1] for row in first[update]]} in "
                f"another run of seed {run.seed}: a difference between the two may come from that."
            )
    if set(orders) != set(c.config.seeds):
        expect.wrong(f"{c.text}\nmade no complete training run for some seed.", "budget-not-kept")
    if len({str(order) for order in orders.values()}) == 1:
        expect.wrong(f"{c.text}\ntrained with the same batches for both seeds.", "seed-without-effect")


@pytest.mark.worth("compare_lengths", 0.25, misconception="strategies-disagree")
def test_strategies_agree(student: Student, device: torch.device) -> None:
    """Without dropout, global and dynamic padding give the same model up to rounding."""
    for c in (cases.plain(student, device), cases.still(student, device)):
        records = table(c)
        tested = {(run.seed, at, how): run for run, at, how in placed(c) if run.forward("test")}
        for seed in c.config.seeds:
            for max_length in c.config.max_lengths:
                mine, other = (records[seed, "full", max_length, strategy] for strategy in cases.STRATEGIES)
                if mine.chosen_hyperparameters != other.chosen_hyperparameters:
                    continue  # both may be best, up to rounding; other checks look at the choice
                logits = []
                for strategy in cases.STRATEGIES:
                    run = tested.get((seed, max_length, strategy))
                    logits.append(None if run is None else run.logits("test", len(c.texts.test)))
                if logits[0] is None or logits[1] is None:
                    sure = [False] * len(c.texts.test)
                else:
                    away = float((logits[0] - logits[1]).abs().max())
                    sure = ((logits[0][:, 0] - logits[0][:, 1]).abs() > 0.01).tolist()
                    if away > 0.002:
                        expect.wrong(
                            f"{c.text}\npadding globally and dynamically gave models whose logits for a test text are "
                            f"{away:.4f} apart with seed {seed} and max_length {max_length}."
                        )
                classes = (predictions(c, (seed, "full", max_length, r.strategy), r) for r in (mine, other))
                for index, (a, b) in enumerate(zip(*classes, strict=True)):
                    if sure[index] and a != b:
                        expect.wrong(
                            f"{c.text}\nreported class {a} for test text {index} with global padding and {b} with "
                            f"dynamic padding, with seed {seed} and max_length {max_length}.",
                            "wrong-predictions",
                        )


@pytest.mark.worth("compare_lengths", 0.25, misconception="wrong-accuracy")
def test_scores(student: Student, device: torch.device) -> None:
    """Accuracy and F1 of class 1 follow from test_predictions and the labels of the test split."""
    for c in (cases.plain(student, device), cases.still(student, device)):
        protocol.check_scores(c, table(c))


@pytest.mark.worth("compare_lengths", 0.3, misconception="not-the-best-setting")
def test_validation_chooses(student: Student, device: torch.device) -> None:
    """The learning rate with the highest accuracy on the validation split is used, the first one of equals."""
    c = cases.turned(student, device)
    for of, record in table(c).items():
        protocol.check_chosen(c, of, record, STILL, "the validation labels contradict what the other one learns")
    protocol.check_choice(c, table(c), places(c))
    _untrained(c)
    c = cases.still(student, device)
    for of, record in table(c).items():
        protocol.check_chosen(c, of, record, STILL, "both are so small that their scores are equal; it is the first")
    _untrained(c)
    c = cases.plain(student, device)
    records = table(c)
    for of, record in records.items():
        protocol.check_chosen(c, of, record, LEARNS, "it learns the texts, and the other one learns nothing")
    protocol.check_choice(c, records, places(c))


def _untrained(c: Comparison) -> None:
    """For comparisons that chose a learning rate that changes nothing: scores and predictions, computed here."""
    for of, record in table(c).items():
        assert of[2] is not None
        protocol.check_untrained(cases.truncated(c, of[2]), of, record, "wrong-predictions")


@pytest.mark.worth("compare_lengths", 0.3, misconception="test-read-early")
def test_test_split_is_read_once_and_last(student: Student, device: torch.device) -> None:
    """Each test text is read once a record, when its learning rate has been chosen."""
    for c in (cases.plain(student, device), cases.still(student, device)):
        protocol.check_test_readings(c, table(c), places(c))


@pytest.mark.worth("compare_lengths", 0.15, misconception="calls-miscounted")
def test_calls_and_parameters(student: Student, device: torch.device) -> None:
    """Encoder calls and parameters are those of the run that was chosen."""
    for c in (cases.plain(student, device), cases.still(student, device)):
        records = table(c)
        protocol.check_calls(c, records, places(c))
        total = sum(weight.numel() for weight in fresh_model(0, **c.model_settings).parameters())
        protocol.check_parameters(c, records, {"full": (total, total)})


@pytest.mark.worth("compare_lengths", 0.15, misconception="implausible-time")
def test_costs(student: Student, device: torch.device) -> None:
    """Times and memory are measured, after a warm-up."""
    c = cases.plain(student, device)
    records = table(c)
    protocol.check_costs(c, records, places(c))
    protocol.check_warm_up(c, records, places(c), cases.COLD)


@pytest.mark.worth("compare_lengths", 0.15, misconception="not-reproducible")
def test_same_again(student: Student, device: torch.device) -> None:
    """The same arguments give the same records, with dropout too, and global random generators stay as they were."""
    first, second = cases.dropped(student, device), cases.dropped(student, device, again=True)
    protocol.check_reproducible(first, table(first), second, table(second))
    expect.unchanged(student, "compare_lengths")


@pytest.mark.worth("compare_lengths", 0.1, misconception="bad-input-accepted")
def test_refuses_impossible_comparisons(student: Student, device: torch.device) -> None:
    """No lengths, one below 2, no strategies, an unknown one, and no learning rates are refused."""
    table(cases.turned(student, device))
    texts = cases.make_texts(1)
    for changes, names in (
        ({"max_lengths": ()}, ("max_lengths", "max_length")),
        ({"max_lengths": (8, 1)}, ("max_lengths", "max_length")),
        ({"strategies": ()}, ("strategies", "strategy")),
        ({"strategies": ("dynamic", "longest")}, ("strategies", "strategy")),
        ({"settings": {"frozen": (0.1,)}}, ("settings",)),
        ({"settings": {"full": ()}}, ("settings",)),
    ):
        _refuses(student, cases.configuration((1,), (STILL,), **{"updates": 2, **changes}), names, changes, texts)


def _refuses(student: Student, config: ComparisonConfig, names: Sequence[str], changes: Any, texts: Splits) -> None:
    """Fail unless the configuration is refused, by compare_lengths or by a truncate_and_pad that it calls."""
    splits = student.fixtures.served_splits(
        student.lend(lambda part, index: tuple(getattr(texts, part)[index])), *map(len, texts)
    )
    make_model = student.fixtures.watched_models(student.lend(lambda *event: None), 3, vocab_size=VOCAB_SIZE)
    right = RightBatches()

    def check() -> None:
        (name, value), *_ = changes.items()
        because = f"config.{name} is {show(value)}"
        expect.refuses(student.compare_lengths, splits, make_model, config, names=names, because=because)

    try:
        with student.replacing(truncate_and_pad=right, padding_report=oracle.padding_report):
            check()
    except expect.Wrong as fault:
        raised = student.last.raised
        if raised is not None and raised.base == "ValueError" and raised.message in right.refused:
            return
        with second_attempt(fault):
            check()

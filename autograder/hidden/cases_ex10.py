"""The texts, data sets, configurations and expensive calls of exercise 10's checks."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from autograder.hidden import expect, journal
from autograder.hidden.attempts import second_attempt
from autograder.hidden.journal import CLS, FOR_ONE, FOR_ZERO, MARKERS, NEUTRAL, SEP, Comparison, Place, Run
from autograder.hidden.oracles import ex10 as oracle
from autograder.wire.errors import RemoteError
from autograder.wire.proxy import Student
from autograder.wire.show import show
from exercises.kit import ComparisonConfig, Example, PaddingReport, Splits

STRATEGIES = ("global", "dynamic")


# -- Lists of ids ------------------------------------------------------------------------------------------------------
def make_sequences(
    seed: int, lengths: Sequence[int], pad_id: int, vocab_size: int = 50, odd: float = 0.3
) -> list[list[int]]:
    """Texts of these lengths, whose ids are never equal to a neighbour's.

    odd: share of the ids inside a text that are pad_id or 0, which is an ordinary id.
    """
    rng = np.random.default_rng(seed)
    found = []
    for length in lengths:
        ids: list[int] = []
        for place in range(length):
            one = int(rng.integers(1, vocab_size))
            if 0 < place < length - 1 and rng.random() < odd:
                one = int(rng.choice([pad_id, 0]))
            while (one == pad_id and place in (0, length - 1)) or (ids and one == ids[-1]):
                one = int(rng.integers(1, vocab_size))
            ids.append(one)
        found.append(ids)
    return found


def padded(student: Student, sequences: list[list[int]], max_length: int, strategy: str, pad_id: int) -> Any:
    """(input_ids, attention_mask) of a legal call, two tensors of one shape (m, T); fails if they are not."""
    got = allowed(student.truncate_and_pad, [list(ids) for ids in sequences], max_length, strategy, pad_id)
    call = student.last
    if not isinstance(got, tuple | list) or len(got) != 2 or not all(isinstance(x, torch.Tensor) for x in got):
        expect.wrong(f"{call.text}\nreturned {show(got)}\nexpected two tensors", "not-two-tensors")
    input_ids, attention_mask = got
    if input_ids.ndim != 2 or input_ids.shape != attention_mask.shape or len(input_ids) != len(sequences):
        expect.wrong(
            f"{call.text}\nreturned tensors of the shapes {tuple(input_ids.shape)} and {tuple(attention_mask.shape)}\n"
            f"expected ({len(sequences)}, T) twice",
            "not-two-tensors",
        )
    return input_ids, attention_mask


def allowed(function: Any, *args: Any) -> Any:
    """The result of a call that must not be refused."""
    try:
        return function(*args)
    except RemoteError as error:
        raised = error.raised
        if raised.base != "ValueError" or not raised.explicit:
            raise
        expect.wrong(
            f"{function.last.text}\nraised {raised.text}\nexpected a result: these arguments are all good",
            "valid-input-refused",
        )


# -- A right function in the place of the submission's -----------------------------------------------------------------
class RightBatches:
    """A right truncate_and_pad that padding_report may call: a fault of the submission's must not cost points there.

    refused: the messages of its errors.
    """

    def __init__(self) -> None:
        self.refused: list[str] = []

    def __call__(self, sequences: Any, max_length: int, strategy: str, pad_id: int) -> Any:
        try:
            return oracle.truncate_and_pad(sequences, max_length, strategy, pad_id)
        except ValueError as error:
            self.refused.append(str(error))
            raise


def reported(student: Student, check: Callable[[RightBatches], None]) -> None:
    """Make a check of padding_report with a right truncate_and_pad; if it fails, with the submission's own."""
    right = RightBatches()
    try:
        with student.replacing(truncate_and_pad=right):
            check(right)
        return
    except (expect.Wrong, RemoteError) as error:
        if isinstance(error, RemoteError) and error.raised.base == "NotImplementedError":
            raise
        fault = error
    try:
        check(RightBatches())
    except (expect.Wrong, RemoteError):
        raise fault from None


def report(student: Student, sequences: list[list[int]], *args: Any) -> PaddingReport:
    """The PaddingReport of a legal call; fails if it is none, or holds no numbers."""
    got = allowed(student.padding_report, [list(ids) for ids in sequences], *args)
    ratios: list[Any] = [getattr(got, name, None) for name in PaddingReport._fields]
    if not all(expect.is_number(value) for value in ratios):
        expect.wrong(
            f"{student.last.text}\nreturned {show(got)}\nexpected PaddingReport(truncation_ratio, padding_ratio), "
            f"two floats",
            "no-report",
        )
    return PaddingReport(*ratios)


# -- Comparisons -------------------------------------------------------------------------------------------------------
#: Learning rates that learn the texts below, and one that changes nothing.
LEARNS, STILL = 0.01, 1e-9
#: No text of the comparisons is longer.
LONGEST = 30


def make_texts(seed: int, test: int = 14, wrong_tests: bool = True) -> Splits:
    """Texts whose class the words right behind their two markers give away; most are short, a few are long.

    24 training texts: 18 of 5 … 7 tokens, 3 of 9 … 13, 3 of 16 … 30; 12 validation texts.  So a maximum length of 8
    truncates a quarter, 14 an eighth, and many batches of 3 hold no text that reaches the maximum.
    wrong_tests: every fourth test label is wrong.
    """
    source = random.Random(seed)
    pairs = [(a, b) for a in MARKERS for b in MARKERS]
    source.shuffle(pairs)

    def text(length: int, label: int) -> Example:
        signal = [source.choice(FOR_ONE if label else FOR_ZERO) for _ in range(min(length - 4, 2))]
        rest = [source.choice(NEUTRAL) for _ in range(length - 4 - len(signal))]
        return Example([CLS, *pairs.pop(), *signal, *rest, SEP], label)

    def part(lengths: list[int]) -> list[Example]:
        labels = [int(number % 5 < 2) for number in range(len(lengths))]
        source.shuffle(labels)
        source.shuffle(lengths)
        return [text(length, label) for length, label in zip(lengths, labels, strict=True)]

    train = [*(5 + n % 3 for n in range(18)), 9, 11, 13, 16, 23, LONGEST]
    tests = [*(5 + n % 3 for n in range(test - 5)), 9, 12, 17, 25, LONGEST]
    splits = Splits(part(train), part([5, 6, 7, 6, 5, 6, 7, 10, 8, 16, 22, LONGEST]), part(tests))
    if not wrong_tests:
        return splits
    labels = [t._replace(label=1 - t.label) if n % 4 == 1 else t for n, t in enumerate(splits.test)]
    return splits._replace(test=labels)


def configuration(seeds: Sequence[int], rates: Sequence[float], **changes: Any) -> ComparisonConfig:
    settings = {"settings": {"full": tuple(rates)}, "updates": 24, "batch_size": 3, "max_lengths": (8, 14)}
    return ComparisonConfig(tuple(seeds), **{**settings, **changes})


def variants(c: Comparison) -> list[tuple[int, str]]:
    return [(length, strategy) for length in c.config.max_lengths for strategy in c.config.strategies]


def _seen(c: Comparison, run: Run) -> tuple[str, int, str] | None:
    """What the widths and lengths of a run's batches say."""
    batches = [event for event in run.events if event.kind == "forward" and event.input_ids is not None]
    widths = {event.input_ids.shape[1] for event in batches if event.input_ids is not None}
    longest = max((length for event in batches for length in event.lengths), default=0)
    for length in c.config.max_lengths:
        if widths == {length}:
            return "full", length, "global"
    for length in c.config.max_lengths:
        if min(length, LONGEST) == longest:
            return "full", length, "dynamic"
    return None


def places(c: Comparison) -> Place:
    """Which maximum length and strategy a run belongs to.

    Told from its batches; where these do not fit the configuration, the runs of a seed are taken in its order.
    """
    found = {run.model: _seen(c, run) for run in c.runs}
    tries, wanted = len(c.config.settings["full"]), variants(c)
    for seed in c.config.seeds:
        whole = [run.model for run in c.runs if run.seed == seed and run.backward_calls == c.config.updates]
        counts = Counter(found[model] for model in whole)
        if len(whole) == tries * len(wanted) and any(counts["full", *one] != tries for one in wanted):
            found |= {model: ("full", *wanted[number // tries]) for number, model in enumerate(whole)}
    return lambda comparison, run: found[run.model]


def truncated(c: Comparison, max_length: int) -> Comparison:
    """The same comparison, as if its texts had always been that short."""
    parts = {
        part: [t._replace(input_ids=oracle.cut(t.input_ids, max_length)) for t in getattr(c.texts, part)]
        for part in c.texts._fields
    }
    return replace(c, texts=Splits(**parts))


def _compare(
    student: Student, device: torch.device, texts: Splits, config: ComparisonConfig, **more: Any
) -> Comparison:
    """Call compare_lengths with right functions for batches and reports; if that fails, with the submission's own."""

    def call() -> Comparison:
        return journal.compare(student, student.compare_lengths, texts, config, device=device, **more)

    try:
        with student.replacing(truncate_and_pad=RightBatches(), padding_report=oracle.padding_report):
            return call()
    except RemoteError as error:
        if error.raised.base == "NotImplementedError":
            raise
        first = error
    with second_attempt(first):
        return call()


#: So long takes the first call of an encoder in the comparison `plain`.
COLD = 0.5


def plain(student: Student, device: torch.device) -> Comparison:
    """Two seeds, two lengths, two strategies; the first learning rate learns.  Padding is an id that texts hold too."""
    config = configuration((4, 1), (LEARNS, STILL), pad_id=NEUTRAL[-1], weight_decay=3.0)
    return student.once("plain", lambda: _compare(student, device, make_texts(0), config, cold_seconds=COLD))


def dropped(student: Student, device: torch.device, again: bool = False) -> Comparison:
    """One seed, one length, with dropout everywhere; made twice."""
    config = configuration((7,), (LEARNS,), max_lengths=(14,), updates=12)
    return student.once(("dropped", again), lambda: _compare(student, device, make_texts(3), config, dropout=0.3))


def turned(student: Student, device: torch.device) -> Comparison:
    """Validation labels that contradict the training texts: what learns least is best."""
    texts = journal.with_turned_labels(make_texts(2, wrong_tests=False), "validation")
    config = configuration((2,), (LEARNS, STILL), max_lengths=(10,), updates=40)
    return student.once("turned", lambda: _compare(student, device, texts, config))


def single(student: Student, device: torch.device) -> Comparison:
    """One run of one strategy, with one learning rate."""
    config = configuration((6,), (STILL,), max_lengths=(9,), strategies=("dynamic",), updates=2)
    return student.once("single", lambda: _compare(student, device, make_texts(4, test=8), config))


def still(student: Student, device: torch.device) -> Comparison:
    """Two learning rates that change nothing; one maximum length is longer than every text.  Other numbers."""
    config = configuration((3,), (STILL, STILL / 10), max_lengths=(12, 36), updates=12, batch_size=4)
    return student.once("still", lambda: _compare(student, device, make_texts(5, test=11), config))

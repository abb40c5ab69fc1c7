"""Hidden checks of exercise 10: padding_report.

It is judged with a right truncate_and_pad in the place of the submission's, so that a fault there costs
nothing here.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import example
from hypothesis import strategies as st

from autograder.examples import settings
from autograder.hidden import expect
from autograder.hidden.cases_ex10 import STRATEGIES, RightBatches, make_sequences, report, reported
from autograder.hidden.oracles import ex10 as oracle
from autograder.hidden.properties import given
from autograder.hidden.strategies import seeds
from autograder.wire.proxy import Student
from autograder.wire.show import show

LENGTHS = st.lists(st.integers(1, 15), min_size=2, max_size=18)


def must_be(student: Student, name: str, got: float, right: float, likely: Sequence[tuple[str, float]]) -> None:
    """Fail unless the ratio is right; the likely values that are right as well name nothing."""
    if abs(got - right) <= 1e-6:
        return
    named = next((m for m, value in likely if abs(value - got) <= 1e-6), None)
    expect.wrong(f"{student.last.text}\nreturned {name}={got:.7g}\nexpected {right:.7g}", named)


def padding(sequences: Sequence[Sequence[int]], max_length: int, strategy: str, batch_size: int) -> float:
    return oracle.padding_report(sequences, max_length, strategy, batch_size).padding_ratio


def padding_mistakes(
    sequences: list[list[int]], max_length: int, strategy: str, batch_size: int
) -> list[tuple[str, float]]:
    """(misconception, value) of what is often taken for the padding ratio."""
    args = max_length, strategy, batch_size
    batches = [sequences[at : at + batch_size] for at in range(0, len(sequences), batch_size)]
    ratios = [padding(batch, *args) for batch in batches]
    right = padding(sequences, *args)
    whole = [batch for batch in batches if len(batch) == batch_size]
    zeros = positions = full_positions = 0
    for batch in batches:
        ids, _ = oracle.truncate_and_pad(batch, max_length, strategy, 0)
        zeros += int((ids == 0).sum())
        positions += ids.numel()
        full_positions += ids.shape[1] * batch_size
    other = "dynamic" if strategy == "global" else "global"
    swapped = padding(sequences, max_length, other, batch_size)
    found = [
        ("padding-from-ids", zeros / positions),
        ("batch-ratios-averaged", sum(ratios) / len(ratios)),
        ("tokens-instead-of-padding", 1 - right),
        ("padding-over-tokens", right / (1 - right)),
        ("last-batch-left-out", padding([s for b in whole for s in b], *args) if whole else math.nan),
        (f"{strategy}-is-{other}", swapped),
        ("last-batch-filled-up", 1 - (1 - right) * positions / full_positions),
        ("one-batch-of-all", padding(sequences, max_length, strategy, len(sequences))),
        ("order-changed", padding(sorted(sequences, key=len), *args)),
        ("order-changed", padding(sorted(sequences, key=len, reverse=True), *args)),
        ("texts-not-truncated", padding(sequences, max(map(len, sequences)), strategy, batch_size)),
    ]
    return [(name, value) for name, value in found if abs(value - right) > 1e-6]


@given(lengths=LENGTHS, number=seeds, max_length=st.integers(2, 14), batch_size=st.integers(1, 5))
@example(lengths=[5, 14, 3, 15], number=1, max_length=8, batch_size=2)
@pytest.mark.worth("padding_report", 0.4, misconception="truncation-over-tokens")
def test_truncation_ratio(student: Student, lengths: list[int], number: int, max_length: int, batch_size: int) -> None:
    """The truncation ratio is the share of the texts that are longer than max_length."""
    lengths = [length + (length == max_length) for length in lengths]  # the edge is another check's business
    sequences = make_sequences(number, lengths, 0)
    lost = [max(0, length - max_length) for length in lengths]
    batches = [lengths[at : at + batch_size] for at in range(0, len(lengths), batch_size)]
    shares = [sum(length > max_length for length in batch) / len(batch) for batch in batches]
    right = sum(length > max_length for length in lengths) / len(lengths)
    likely = [
        ("truncation-over-tokens", sum(lost) / sum(lengths)),
        ("batch-ratios-averaged", sum(shares) / len(shares)),
        ("ratio-turned-round", 1 - right),
    ]

    def check(_: RightBatches) -> None:
        for strategy in STRATEGIES:
            got = report(student, sequences, max_length, strategy, batch_size)
            must_be(student, "truncation_ratio", got.truncation_ratio, right, likely)

    reported(student, check)


@given(number=seeds, max_length=st.integers(2, 9), equal=st.integers(1, 4), longer=st.integers(1, 3))
@settings(max_examples=10)
@pytest.mark.worth("padding_report", 0.2, misconception="edge-length-truncated")
def test_fitting_texts_are_not_truncated(
    student: Student, number: int, max_length: int, equal: int, longer: int
) -> None:
    """A text of exactly max_length tokens is not truncated, one of max_length + 1 is."""
    sequences = make_sequences(number, [max_length] * equal + [max_length + 1] * longer + [max_length - 1], 0)
    right, count = longer / len(sequences), len(sequences)
    likely = [
        ("edge-length-truncated", (longer + equal) / count),
        ("edge-length-truncated", 0.0),
        ("special-tokens-counted-apart", 1.0),
    ]

    def check(_: RightBatches) -> None:
        got = report(student, sequences, max_length, "dynamic", count)
        must_be(student, "truncation_ratio", got.truncation_ratio, right, likely)

    reported(student, check)


@given(lengths=LENGTHS, number=seeds, max_length=st.integers(2, 17), batch_size=st.integers(1, 5))
@example(lengths=[5, 3, 9, 2], number=1, max_length=8, batch_size=2)
@pytest.mark.worth("padding_report", 0.3, misconception="padding-over-tokens")
def test_global_padding_ratio(
    student: Student, lengths: list[int], number: int, max_length: int, batch_size: int
) -> None:
    """With "global" padding, the padding ratio is padding over all positions, each text taking max_length of them."""
    _ratio(student, lengths, number, max_length, batch_size, "global")


@given(lengths=LENGTHS, number=seeds, max_length=st.integers(2, 17), batch_size=st.integers(1, 5))
@example(lengths=[5, 3, 9, 2, 12, 13], number=1, max_length=30, batch_size=3)
@example(lengths=[5, 3, 9, 2, 12, 13], number=1, max_length=10, batch_size=2)
@pytest.mark.worth("padding_report", 0.4, misconception="batch-ratios-averaged")
def test_dynamic_padding_ratio(
    student: Student, lengths: list[int], number: int, max_length: int, batch_size: int
) -> None:
    """With "dynamic" padding, padding and positions are summed over batches of batch_size in the order given."""
    _ratio(student, lengths, number, max_length, batch_size, "dynamic")


def _ratio(student: Student, lengths: list[int], number: int, max_length: int, batch_size: int, strategy: str) -> None:
    batch_size = min(batch_size, len(lengths))
    lengths = lengths[: len(lengths) // batch_size * batch_size]  # a smaller last batch is another check's business
    sequences = make_sequences(number, lengths, 0)
    right = padding(sequences, max_length, strategy, batch_size)
    likely = padding_mistakes(sequences, max_length, strategy, batch_size)

    def check(_: RightBatches) -> None:
        got = report(student, sequences, max_length, strategy, batch_size)
        must_be(student, "padding_ratio", got.padding_ratio, right, likely)

    reported(student, check)


@given(number=seeds, rest=st.integers(1, 4), full=st.integers(0, 2))
@example(number=1, rest=1, full=2)
@settings(max_examples=15)
@pytest.mark.worth("padding_report", 0.2, misconception="last-batch-left-out")
def test_smaller_last_batch(student: Student, number: int, rest: int, full: int) -> None:
    """A last batch of fewer texts than batch_size counts with the positions that it has, also if it is the only one."""
    lengths = sorted(2 + number * (place + 3) % 11 for place in range(5 * full + rest))
    sequences = make_sequences(number, lengths, 0, odd=0.0)

    def check(_: RightBatches) -> None:
        likely = padding_mistakes(sequences, 10, "dynamic", 5)
        got = report(student, sequences, 10, "dynamic", 5)
        must_be(student, "padding_ratio", got.padding_ratio, padding(sequences, 10, "dynamic", 5), likely)

    reported(student, check)


@pytest.mark.worth("padding_report", 0.1, misconception="precision-lost")
def test_large_report(student: Student) -> None:
    """288 texts of up to 300 tokens, in batches of 32, give ratios that are right to 1e-6."""
    lengths = sorted(3 + (37 * place * place) % 298 for place in range(288))
    sequences = [[1 + (place + length) % 29_000 for place in range(length)] for length in lengths]

    def check(_: RightBatches) -> None:
        for max_length in (129, 280):
            got = report(student, sequences, max_length, "dynamic", 32)
            right = oracle.padding_report(sequences, max_length, "dynamic", 32)
            must_be(student, "padding_ratio", got.padding_ratio, right.padding_ratio, [])
            must_be(student, "truncation_ratio", got.truncation_ratio, right.truncation_ratio, [])

    reported(student, check)


def report_works(student: Student) -> None:
    """Fails unless good arguments give the right report."""
    got = report(student, [[2, 5, 6, 7, 3], [2, 8, 3]], 4, "dynamic", 2)
    must_be(student, "padding_ratio", got.padding_ratio, 0.125, [])


@pytest.mark.worth("padding_report", 0.15, misconception="bad-input-accepted")
def test_refuses_batches_of_nothing(student: Student) -> None:
    """A batch_size below 1 is refused."""

    def check(_: RightBatches) -> None:
        report_works(student)
        for bad in (0, -2):
            expect.refuses(
                student.padding_report,
                [[2, 5, 3], [2, 3]],
                4,
                "dynamic",
                bad,
                names=("batch_size",),
                values=(bad,),
                because=f"batch_size is {bad}",
            )

    reported(student, check)


@pytest.mark.worth("padding_report", 0.15, misconception="bad-input-accepted")
def test_report_refuses_what_batches_refuse(student: Student) -> None:
    """What truncate_and_pad refuses is refused: an unknown strategy, max_length < 2, no texts, an empty text."""

    def check(right: RightBatches) -> None:
        report_works(student)
        fine = [[2, 5, 3], [2, 3], [2, 4, 5, 3]]
        refuse(right, fine, 4, "longest", "strategy", because='strategy is "longest"')
        refuse(right, fine, 1, "global", "max_length", because="max_length is 1")
        refuse(right, [], 4, "global", "sequences", because="there are no sequences")
        refuse(right, [*fine, []], 4, "dynamic", "sequences", because="sequences[3] is empty")

    def refuse(
        right: RightBatches, sequences: list[list[int]], max_length: int, strategy: str, name: str, because: str
    ) -> None:
        try:
            expect.refuses(student.padding_report, sequences, max_length, strategy, 2, names=(name,), because=because)
        except expect.Wrong:
            raised = student.last.raised  # as told by the right truncate_and_pad, which stands in for the submission's
            if raised is None or raised.base != "ValueError" or raised.message not in right.refused:
                raise

    reported(student, check)


@pytest.mark.worth("padding_report", 0.1, misconception="input-mutated")
def test_report_leaves_sequences_alone(student: Student) -> None:
    """The texts are neither sorted nor cut, and no global random generator is used."""

    def check(_: RightBatches) -> None:
        sequences = make_sequences(3, [9, 3, 5, 12, 1], 7)
        for strategy in STRATEGIES:
            got = report(student, sequences, 6, strategy, 2)
            if not 0 < got.padding_ratio < 1:
                expect.wrong(f"{student.last.text}\nreturned {show(got)}.")
        expect.unchanged(student, "padding_report")

    reported(student, check)

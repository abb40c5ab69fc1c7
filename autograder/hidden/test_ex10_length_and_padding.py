"""Hidden checks of exercise 10: truncate_and_pad."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import example
from hypothesis import strategies as st

from autograder.examples import settings
from autograder.hidden import expect
from autograder.hidden.cases_ex10 import STRATEGIES, make_sequences, padded
from autograder.hidden.oracles import ex10 as oracle
from autograder.hidden.properties import given
from autograder.hidden.strategies import seeds
from autograder.wire.proxy import Student
from autograder.wire.show import show

LENGTHS = st.lists(st.integers(1, 13), min_size=1, max_size=6)
LONG = st.lists(st.integers(12, 29), min_size=1, max_size=5)
PADS = st.sampled_from((0, 1, 7, 49))


@given(lengths=st.lists(st.integers(1, 20), min_size=1, max_size=5), number=seeds)
@settings(max_examples=10)
@pytest.mark.worth("truncate_and_pad", 0.2, misconception="not-two-tensors")
def test_two_int64_tensors(student: Student, lengths: list[int], number: int) -> None:
    """The result is input_ids and attention_mask, two int64 tensors of one shape."""
    for strategy in STRATEGIES:
        got = padded(student, make_sequences(number, lengths, 0), 13, strategy, 0)
        for name, tensor in zip(("input_ids", "attention_mask"), got, strict=True):
            if tensor.dtype != torch.int64 or tensor.device.type != "cpu":
                expect.wrong(
                    f"{name} of {student.last.text}\nis {tensor.dtype} on {tensor.device}, not torch.int64 on the CPU.",
                    "id-dtype",
                )
        if not bool(got[0].any()):
            expect.wrong(f"input_ids of {student.last.text}\nholds only zeros.")


@given(lengths=st.lists(st.integers(1, 20), min_size=1, max_size=5), number=seeds, spare=st.integers(0, 9))
@example(lengths=[5, 3], number=1, spare=4)
@example(lengths=[9], number=1, spare=0)
@pytest.mark.worth("truncate_and_pad", 0.4, misconception="global-is-dynamic")
def test_global_padding(student: Student, lengths: list[int], number: int, spare: int) -> None:
    """With "global", T is max_length, however short the texts of the batch are."""
    for max_length in (max(3, max(lengths) + spare), max(3, max(lengths) - spare)):
        ids, _ = padded(student, make_sequences(number, lengths, 7), max_length, "global", 7)
        if ids.shape[1] != max_length:
            likely = "global-is-dynamic" if ids.shape[1] < max_length else "texts-not-truncated"
            if abs(ids.shape[1] - max_length) == 2 and max(lengths) + 2 != max_length:
                likely = "special-tokens-counted-apart"
            expect.wrong(f"{student.last.text}\nreturned T = {ids.shape[1]}, not {max_length}.", likely)


@given(lengths=st.lists(st.integers(1, 20), min_size=1, max_size=5), number=seeds, max_length=st.integers(3, 24))
@example(lengths=[5, 3], number=1, max_length=9)
@example(lengths=[5, 3, 8], number=1, max_length=6)
@pytest.mark.worth("truncate_and_pad", 0.4, misconception="wrong-padding")
def test_dynamic_padding(student: Student, lengths: list[int], number: int, max_length: int) -> None:
    """With "dynamic", T is the number of tokens of the longest text of the batch, after truncating."""
    ids, _ = padded(student, make_sequences(number, lengths, 7), max_length, "dynamic", 7)
    right = min(max_length, max(lengths))
    if ids.shape[1] != right:
        likely = {max(lengths): "texts-not-truncated", max_length: "dynamic-is-global"}
        named = "special-tokens-counted-apart" if ids.shape[1] < right else likely.get(ids.shape[1])
        expect.wrong(
            f"{student.last.text}\nreturned T = {ids.shape[1]}\nexpected {right}: the texts have {lengths} tokens and "
            f"keep at most {max_length}",
            named,
        )


@given(lengths=LENGTHS, number=seeds, spare=st.integers(0, 5), pad_id=PADS)
@example(lengths=[5, 3], number=1, spare=3, pad_id=7)
@pytest.mark.worth("truncate_and_pad", 0.45, misconception="wrong-padding")
def test_pads_on_the_right(student: Student, lengths: list[int], number: int, spare: int, pad_id: int) -> None:
    """Texts that are short enough stay whole, at the left; all positions to the right of them hold pad_id."""
    sequences = make_sequences(number, lengths, pad_id)
    max_length = max(3, max(lengths) + spare)
    for strategy in STRATEGIES:
        ids, _ = padded(student, sequences, max_length, strategy, pad_id)
        width = ids.shape[1]
        if width < max(lengths):
            expect.wrong(f"{student.last.text}\nreturned T = {width}; a text has {max(lengths)} tokens.")
        right = torch.tensor([[*text, *[pad_id] * (width - len(text))] for text in sequences])
        likely = [
            ("padding-on-the-left", torch.tensor([[pad_id] * (width - len(s)) + s for s in sequences])),
            ("padding-with-zero", torch.tensor([[*s, *[0] * (width - len(s))] for s in sequences])),
        ]
        expect.close(ids, right, student.last, what="input_ids", likely=likely, dtype=False)


@given(lengths=LENGTHS, number=seeds, spare=st.integers(0, 5), pad_id=PADS)
@example(lengths=[5, 3, 9], number=1, spare=2, pad_id=7)
@pytest.mark.worth("truncate_and_pad", 0.45, misconception="attention-mask-off-the-texts")
def test_mask_follows_the_texts(student: Student, lengths: list[int], number: int, spare: int, pad_id: int) -> None:
    """The attention mask is 1 at the tokens of each text, one that equals pad_id included, and 0 at the padding."""
    sequences = make_sequences(number, lengths, pad_id)
    max_length = max(3, max(lengths) + spare)
    for strategy in STRATEGIES:
        ids, mask = padded(student, sequences, max_length, strategy, pad_id)
        width = mask.shape[1]
        right = torch.tensor([[int(place < len(text)) for place in range(width)] for text in sequences])
        likely = [
            ("attention-mask-from-ids", ids.ne(pad_id).long()),
            ("attention-mask-from-ids", ids.ne(0).long()),
            ("mask-polarity", 1 - right),
            ("mask-forgotten", torch.ones_like(right)),
        ]
        expect.close(mask.long(), right, student.last, what="attention_mask", likely=likely, dtype=False)


@given(lengths=LONG, number=seeds, max_length=st.integers(3, 11))
@example(lengths=[12, 15], number=1, max_length=5)
@example(lengths=[12], number=1, max_length=11)
@pytest.mark.worth("truncate_and_pad", 0.5, misconception="separator-cut")
def test_truncating_keeps_the_end_mark(student: Student, lengths: list[int], number: int, max_length: int) -> None:
    """Of a text that is too long the first max_length - 1 ids and the last one, its [SEP], are kept."""
    sequences = make_sequences(number, lengths, 60, odd=0.0)
    for strategy in STRATEGIES:
        ids, mask = padded(student, sequences, max_length, strategy, 60)
        right = torch.tensor([oracle.cut(text, max_length) for text in sequences])
        likely = [
            ("separator-cut", torch.tensor([text[:max_length] for text in sequences])),
            ("truncated-on-the-left", torch.tensor([text[-max_length:] for text in sequences])),
            ("truncated-on-the-left", torch.tensor([[text[0], *text[1 - max_length :]] for text in sequences])),
            ("special-tokens-counted-apart", torch.tensor([oracle.cut(t, max_length + 2) for t in sequences])),
            ("special-tokens-counted-apart", torch.tensor([oracle.cut(t, max_length + 1) for t in sequences])),
            ("texts-not-truncated", lambda width=ids.shape[1]: _whole(sequences, width)),
        ]
        expect.close(ids, right, student.last, what="input_ids", likely=likely, dtype=False)
        if not bool(mask.bool().all()):
            expect.wrong(
                f"attention_mask of {student.last.text}\nis {show(mask)}\nexpected only ones: every text fills its row",
                "attention-mask-off-the-texts",
            )


def _whole(sequences: list[list[int]], width: int) -> torch.Tensor | None:
    """The texts as they are, filled up; None if they do not fit."""
    if max(map(len, sequences)) > width:
        return None
    return torch.tensor([[*text, *[60] * (width - len(text))] for text in sequences])


@pytest.mark.worth("truncate_and_pad", 0.1, misconception="valid-input-refused")
def test_shortest_possible(student: Student) -> None:
    """A maximum length of 2 keeps the first and the last id; a text of one id is a text."""
    for sequences in ([[5, 6, 8, 9]], [[5, 6], [8, 9, 10, 11]], [[5, 6], [9]]):
        for strategy in STRATEGIES:
            ids, mask = padded(student, sequences, 2, strategy, 0)
            right = oracle.truncate_and_pad(sequences, 2, strategy, 0)
            expect.close(ids, right[0], student.last, what="input_ids", dtype=False)
            expect.close(mask.long(), right[1], student.last, what="attention_mask", dtype=False)


@pytest.mark.worth("truncate_and_pad", 0.1, misconception="ids-lose-precision")
def test_realistic_size(student: Student) -> None:
    """Texts of up to 600 tokens and ids up to 119,546 come out right at a maximum length of 512."""
    rng = np.random.default_rng(0)
    sequences = [rng.integers(1, 119_547, length).tolist() for length in (600, 3, 512, 511, 40)]
    sequences[1][1] = 119_546
    for strategy in STRATEGIES:
        ids, mask = padded(student, sequences, 512, strategy, 0)
        right = oracle.truncate_and_pad(sequences, 512, strategy, 0)
        expect.close(ids, right[0], student.last, what="input_ids", dtype=False)
        expect.close(mask.long(), right[1], student.last, what="attention_mask", dtype=False)


def works(student: Student) -> None:
    """Fails unless good arguments give the right result."""
    sequences = [[2, 5, 6, 7, 9, 3], [2, 8, 3]]
    ids, _ = padded(student, sequences, 4, "dynamic", 0)
    expect.close(ids, torch.tensor([[2, 5, 6, 3], [2, 8, 3, 0]]), student.last, what="input_ids", dtype=False)


@pytest.mark.worth("truncate_and_pad", 0.1, misconception="bad-input-accepted")
def test_refuses_unknown_strategies(student: Student) -> None:
    """A strategy that is neither "global" nor "dynamic" is refused."""
    works(student)
    for bad in ("longest", "max_length", "", "Global"):
        expect.refuses(
            student.truncate_and_pad,
            [[2, 5, 3], [2, 3]],
            4,
            bad,
            0,
            names=("strategy",),
            because=f'strategy is {bad!r}, neither "global" nor "dynamic"',
        )


@pytest.mark.worth("truncate_and_pad", 0.1, misconception="bad-input-accepted")
def test_refuses_too_short_a_maximum(student: Student) -> None:
    """A maximum length below 2 is refused, whether or not a text is that long."""
    works(student)
    for bad in (1, 0, -3):
        for sequences in ([[2, 5, 3], [2, 3]], [[2]]):
            expect.refuses(
                student.truncate_and_pad,
                sequences,
                bad,
                "dynamic" if bad else "global",
                0,
                names=("max_length",),
                values=(bad,),
                because=f"max_length is {bad}, and [CLS] and [SEP] need 2",
            )


@pytest.mark.worth("truncate_and_pad", 0.05, misconception="bad-input-accepted")
def test_refuses_no_sequences(student: Student) -> None:
    """A batch without texts is refused."""
    works(student)
    for strategy in STRATEGIES:
        expect.refuses(
            student.truncate_and_pad, [], 4, strategy, 0, names=("sequences",), because="there are no sequences"
        )


@pytest.mark.worth("truncate_and_pad", 0.1, misconception="bad-input-accepted")
def test_refuses_an_empty_sequence(student: Student) -> None:
    """A batch with an empty text is refused, wherever that stands."""
    works(student)
    batches: list[list[list[int]]] = [[[], [2, 5, 3]], [[2, 3], []], [[2, 3], [], [2, 5, 3]], [[]]]
    for bad in batches:
        for strategy in STRATEGIES:
            expect.refuses(
                student.truncate_and_pad,
                bad,
                4,
                strategy,
                0,
                names=("sequences", "sequence"),
                because=f"sequences[{bad.index([])}] is empty",
            )


@pytest.mark.worth("truncate_and_pad", 0.05, misconception="input-mutated")
def test_sequences_stay_as_they_are(student: Student) -> None:
    """The lists of ids are not changed, and no global random generator is used."""
    for strategy in STRATEGIES:
        for number, lengths in enumerate(([9, 3, 5], [4, 4], [1, 12])):
            sequences = make_sequences(number, lengths, 7)
            ids, _ = padded(student, sequences, 6, strategy, 7)
            right, _ = oracle.truncate_and_pad(sequences, 6, strategy, 7)
            # The valid values matter less here than in other checks: the first id of every text is enough.
            if ids.shape[1] == 0 or ids[:, 0].tolist() != right[:, 0].tolist():
                expect.wrong(f"{student.last.text}\nreturned {show(ids)} as input_ids.", "wrong-padding")
    expect.unchanged(student, "truncate_and_pad")

"""Hidden checks of exercise 5: what holds in every result of mask_tokens, where its chance comes from, what it refuses.

The shares, and independence, are in test_ex05_dynamic_masking_chance.py; collate_mlm in ..._collate.py.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest
import torch
from hypothesis import example
from hypothesis import strategies as st

from autograder.examples import settings
from autograder.hidden import expect
from autograder.hidden import statistics as chance
from autograder.hidden.cases_ex05 import (
    ASPECTS,
    CPU,
    Case,
    allowed,
    aspect_case,
    first,
    fully_masked,
    make_case,
    must_be,
    outcome,
    plain_case,
    read,
    some_target,
    source,
    sparse_case,
)
from autograder.hidden.properties import given
from autograder.hidden.samples_ex05 import sample
from autograder.hidden.strategies import generator, seeds, sizes
from autograder.wire.proxy import Student
from autograder.wire.show import show

SHAPES = sizes(2, (1, 2, 3, 5, 7, 11, 13))
TENSORS = ("input_ids", "attention_mask", "special_tokens_mask")
#: Numbers cannot change; the witness compares them all the same, and NaN is never equal to itself.
MUTABLE = (*TENSORS, "ordinary_ids")


# -- Which tokens are selected -----------------------------------------------------------------------------------------
@given(shape=SHAPES, number=seeds)
@example(shape=(5, 13), number=1)
@example(shape=(1, 1), number=0)
@example(shape=(2, 1031), number=6)
@settings(max_examples=20)
@pytest.mark.worth("mask_tokens", 0.2, misconception="candidates-left-out")
def test_probability_one_selects_every_candidate(
    student: Student, device: torch.device, seed: int, shape: tuple[int, int], number: int
) -> None:
    """With mlm_probability 1 every candidate is selected, whatever its id and its place."""
    case = make_case(number, shape, device)
    got = case.masked_by(student, source(seed, number, device), mlm_probability=1.0)
    call = student.last
    selected, new = read(got, call, case.shape, "selected", "input_ids")
    free, special = case.candidates, case.special_tokens_mask.cpu() == 1
    if selected.numel() > 60 and bool(selected.all()) and not bool(free.all()):
        expect.wrong(f"{call.text}\nselected every position.", "special-or-padding-selected")
    missed = free & ~selected
    if not bool(missed.any()):
        return
    row, place = first(missed)
    few = int(free.sum()) > 12 and int((selected & free).sum()) < 0.4 * int(free.sum())
    if selected.equal(case.attention_mask.cpu().bool() & special):
        named = "special-mask-polarity"
    elif not few and (selected.equal(new != case.ids) or selected.equal(new == case.mask_token_id)):
        named = "targets-by-change"
    else:
        named = "wrong-share" if few else "candidates-left-out"
    expect.wrong(
        f"{call.text}\nselected {int((selected & free).sum())} of {int(free.sum())} candidates, not the one at "
        f"[{row}, {place}] (id {case.ids[row, place]}) for instance.\ncandidates of sequence {row}: {show(free[row])}\n"
        f"selected: {show(selected[row])}",
        named,
    )


@given(shape=SHAPES, number=seeds)
@pytest.mark.worth("mask_tokens", 0.4, misconception="special-or-padding-selected")
def test_only_candidates_are_selected(
    student: Student, device: torch.device, seed: int, shape: tuple[int, int], number: int
) -> None:
    """Only positions with attention_mask 1 and special_tokens_mask 0 are selected."""
    case = make_case(number, shape, device)
    got = case.masked_by(student, source(seed, number, device), mlm_probability=0.5)
    call = student.last
    (selected,) = read(got, call, case.shape, "selected")
    some_target(selected, call)
    bad = selected & ~case.candidates & case.candidates.any(dim=1, keepdim=True)
    if bool(bad.any()):
        row, place = first(bad)
        why = "attention_mask is 0" if not bool(case.attention_mask[row, place]) else "special_tokens_mask is 1"
        expect.wrong(
            f"{call.text}\nselected position [{row}, {place}], where {why}.\n"
            f"attention_mask: {show(case.attention_mask[row])}\nspecial_tokens_mask: "
            f"{show(case.special_tokens_mask[row])}\nselected: {show(selected[row])}",
            "mask-dtype" if dtype_matters(student, case, seed) else "special-or-padding-selected",
        )


def dtype_matters(student: Student, case: Case, seed: int) -> bool:
    """Whether special tokens and padding are always selected, but spared as soon as both masks are bool."""
    masks = (case.attention_mask.bool(), case.special_tokens_mask.bool())
    right = []
    for same in (case, case.with_tensors([case.input_ids, *masks])):
        got = same.masked_by(student, source(seed, 0, case.input_ids.device), mlm_probability=1.0)
        right.append(read(got, student.last, case.shape, "selected")[0].equal(case.candidates))
    return right == [False, True]


@pytest.mark.worth("mask_tokens", 0.35, misconception="sequence-without-target")
def test_every_sequence_has_a_target(student: Student, device: torch.device, seed: int) -> None:
    """A sequence with at least one candidate gets at least one target, however small mlm_probability is."""
    alone = sparse_case(9, 1, device)
    alone = alone.with_tensors(tensor[alone.candidates.any(dim=1)][:1] for tensor in alone[:3])
    cases = [(sparse_case(number, most, device), 0.02) for number, most in enumerate((6, 6, 40, 1))]
    for number, (case, probability) in enumerate([*cases, (alone, 1e-4)]):
        got = case.masked_by(student, source(seed, number, device), mlm_probability=probability)
        call = student.last
        (selected,) = read(got, call, case.shape, "selected")
        some_target(selected, call)
        missing = case.candidates.any(dim=1) & ~selected.any(dim=1)
        if bool(missing.any()):
            row = int(missing.nonzero()[0])
            expect.wrong(
                f"{call.text}\nselected nothing in sequence {row}, which has {int(case.candidates[row].sum())} "
                f"candidates ({int(missing.sum())} of {case.shape[0]} sequences came out so)."
            )


# -- What comes back ---------------------------------------------------------------------------------------------------
@given(shape=SHAPES, number=seeds)
@example(shape=(1, 1), number=0)
@example(shape=(3, 7), number=1)
@example(shape=(3, 7), number=2)
@example(shape=(3, 7), number=3)
@settings(max_examples=15)
@pytest.mark.worth("mask_tokens", 0.4, misconception="wrong-kind-of-batch")
def test_form_of_the_batch(
    student: Student, device: torch.device, seed: int, shape: tuple[int, int], number: int
) -> None:
    """The result is a MaskedBatch of (m, T) tensors: int64 ids and labels, a boolean selection, the attention mask as
    it came."""
    case = make_case(number, shape, device)
    one = source(seed, number, device)
    got = allowed(student.mask_tokens, **case._asdict(), generator=one) if number % 2 else case.masked_by(student, one)
    call = student.last
    selected, *_ = read(got, call, case.shape, "selected", "input_ids", "labels", "attention_mask")
    must_be("input_ids", got.input_ids, [torch.int64], device, call)
    must_be("labels", got.labels, [torch.int64], device, call)
    must_be("selected", got.selected, [torch.bool], device, call)
    written = any(argument == "attention_mask" for _, argument in student.witness("mask_tokens").mutated)
    expect.close(
        got.attention_mask,
        case.attention_mask,
        call,
        what="attention_mask",
        misconception="input-mutated" if written else "attention-mask-changed",
    )
    some_target(selected, call)


@given(shape=SHAPES, number=seeds, probability=st.sampled_from([0.15, 0.5, 1.0]))
@pytest.mark.worth("mask_tokens", 0.5, misconception="wrong-labels")
def test_labels(
    student: Student, device: torch.device, seed: int, shape: tuple[int, int], number: int, probability: float
) -> None:
    """The label of a selected token is its id before corruption, every other label is ignore_index."""
    case = make_case(number, shape, device)
    got = case.masked_by(student, source(seed, number, device), mlm_probability=probability)
    call = student.last
    new, labels, selected = read(got, call, case.shape, "input_ids", "labels", "selected")
    some_target(selected, call)
    likely = [
        ("labels-after-corruption", torch.where(selected, new, -100)),
        ("targets-by-change", torch.where(new != case.ids, case.ids, -100)),
        ("targets-by-change", torch.where(selected & (new == case.mask_token_id), case.ids, -100)),
        ("labels-everywhere", case.ids),
    ]
    right = torch.where(selected, case.ids, -100)
    expect.close(labels, right, call, what="labels", likely=[pair for pair in likely if not pair[1].equal(right)])


@given(shape=SHAPES, number=seeds, ignored=st.sampled_from([-1, -7, 0, 31]))
@example(shape=(13, 11), number=10, ignored=0)
@settings(max_examples=15)
@pytest.mark.worth("mask_tokens", 0.2, misconception="ignore-index-fixed")
def test_ignore_index_is_the_argument(
    student: Student, device: torch.device, seed: int, shape: tuple[int, int], number: int, ignored: int
) -> None:
    """Labels off the selection are the ignore_index that was given, whatever it is."""
    case = make_case(number, shape, device)
    got = case.masked_by(student, source(seed, number, device), mlm_probability=1.0, ignore_index=ignored)
    call = student.last
    labels, selected = read(got, call, case.shape, "labels", "selected")
    some_target(selected, call)
    expect.close(labels, torch.where(selected, case.ids, ignored), call, what="labels")
    # An original id may equal ignore_index: the label says nothing then, but the token is a target like any other.
    alike = case.candidates & (case.ids == ignored)
    others = case.candidates & ~alike
    if bool(alike.any()) and int(others.sum()) > 12 and selected.equal(others):
        row, place = first(alike)
        expect.wrong(
            f"{call.text}\nselected every candidate but those whose id is {ignored}, as ignore_index is, at "
            f"[{row}, {place}] for instance; with mlm_probability 1 they are targets, too.",
            "targets-by-change",
        )


@pytest.mark.worth("mask_tokens", 0.15, misconception="empty-sequence-touched")
def test_sequence_without_candidates(student: Student, device: torch.device, seed: int) -> None:
    """A sequence without candidates comes back untouched: no target, the same ids, only ignore_index as labels."""
    for number, probability in enumerate((0.02, 0.15, 1.0)):
        case = sparse_case(number + 7, 6, device)
        got = case.masked_by(student, source(seed, number, device), mlm_probability=probability, mask_rate=0.9)
        call = student.last
        new, labels, selected = read(got, call, case.shape, "input_ids", "labels", "selected")
        some_target(selected, call)
        for row in (~case.candidates.any(dim=1)).nonzero()[:, 0].tolist():
            if bool(selected[row].any()) or not new[row].equal(case.ids[row]) or bool((labels[row] != -100).any()):
                expect.wrong(
                    f"{call.text}\nSequence {row} has no candidate, but came back with\n"
                    f"input_ids {show(new[row])} (were {show(case.ids[row])})\nlabels {show(labels[row])}\n"
                    f"selected {show(selected[row])}"
                )


@given(shape=SHAPES, number=seeds, rates=st.sampled_from([(0.8, 0.1), (0.1, 0.8), (0.5, 0.5)]))
@pytest.mark.worth("mask_tokens", 0.25, misconception="unselected-changed")
def test_other_tokens_stay(
    student: Student,
    device: torch.device,
    seed: int,
    shape: tuple[int, int],
    number: int,
    rates: tuple[float, float],
) -> None:
    """A token that is not selected keeps its id."""
    case = make_case(number, shape, device, text="other")
    got = case.masked_by(
        student, source(seed, number, device), mlm_probability=0.4, mask_rate=rates[0], random_rate=rates[1]
    )
    call = student.last
    new, selected = read(got, call, case.shape, "input_ids", "selected")
    some_target(selected, call)
    bad = ~selected & (new != case.ids)
    if bool(bad.any()):
        row, place = first(bad)
        expect.wrong(
            f"{call.text}\nchanged the id at [{row}, {place}] from {case.ids[row, place]} to {new[row, place]}, "
            f"but selected[{row}, {place}] is False.",
            "targets-by-change" if bool(selected.any()) and not bool((new != case.ids)[selected].any()) else None,
        )


@pytest.mark.worth("mask_tokens", 0.3, misconception="random-id-not-ordinary")
def test_random_tokens_are_ordinary(student: Student, device: torch.device, seed: int) -> None:
    """A random token is one of ordinary_ids, whichever these are: a single one, unsorted ones, with gaps, beyond 2^24,
    every second of a tensor."""
    case = make_case(5, (7, 41), device, text="other")
    large = 2**24 + 1
    pools = [
        case.ordinary_ids.cpu(),
        torch.tensor([0]),
        torch.tensor([large]),
        torch.tensor([large, 7, large + 2, 0, 40_003]),
        torch.arange(0, 40, 2)[::3],
        torch.arange(100, 160).view(20, 3)[:, 1],
    ]
    for number, (pool, mask_rate) in enumerate([(pools[0], 0.3), *((pool, 0.0) for pool in pools)]):
        got = case._replace(ordinary_ids=pool.to(device)).masked_by(
            student,
            source(seed, number, device),
            mlm_probability=1.0,
            mask_rate=mask_rate,
            random_rate=1 - mask_rate,
        )
        call = student.last
        new, selected = read(got, call, case.shape, "input_ids", "selected")
        some_target(selected, call)
        bad = selected & ~torch.isin(new, pool)
        if mask_rate > 0:
            bad &= (new != case.mask_token_id) & (new != case.ids)
        if bool(bad.any()):
            row, place = first(bad)
            value, other_fates = int(new[row, place]), {case.mask_token_id, int(case.ids[row, place])}
            rounded = {*pool.float().long().tolist(), *pool.to(torch.int16).long().tolist()}
            expect.wrong(
                f"{call.text}\nput {value} at [{row}, {place}], where {case.ids[row, place]} was; with "
                f"mask_rate {mask_rate:g} and random_rate {1 - mask_rate:g}, expected an id of {show(pool)}"
                f"{f' or {case.mask_token_id}' if mask_rate else ''}.",
                "wrong-split"
                if value in other_fates
                else "ids-lose-precision"
                if value in rounded
                else "random-id-not-ordinary",
            )


# -- Where its random numbers come from --------------------------------------------------------------------------------
@pytest.mark.worth("mask_tokens", 0.2, misconception="global-generator")
def test_global_generators_are_left_alone(student: Student, device: torch.device, seed: int) -> None:
    """With a generator given, no global generator is used: neither torch's, nor NumPy's, nor Python's."""
    for number, (aspect, _, changes) in enumerate(ASPECTS):
        case = aspect_case(aspect, device)
        outcome(case.masked_by(student, source(seed, number, device), **changes), student.last, case)
    unmoved(student, "mask_tokens")


def unmoved(student: Student, name: str) -> None:
    """Fail if a call with a generator moved a global one, or if any call moved NumPy's or Python's."""
    for call, moved in student.witness(name).moved:
        if moved != "torch" or "generator=Generator(" in call:
            expect.wrong(f"{call}\nmoved the global random generator of {moved}.", "global-generator")


@pytest.mark.worth("mask_tokens", 0.25, misconception="same-mask-every-call")
def test_second_call_is_new(student: Student, device: torch.device, seed: int) -> None:
    """A second call with the same generator gives a new mask, new decisions and new random tokens.

    A right solution fails with probability below 2e-12.
    Detected with probability above 0.999: a generator seeded again; a stock of 500 masks; the same mask in two calls.
    """
    case = aspect_case("selection", device)
    one = source(seed, 9, device)
    masks = set()
    for number in range(chance.REPETITIONS):
        got = case.masked_by(student, one, mlm_probability=0.3)
        (selected,) = read(got, student.last, case.shape, "selected")
        some_target(selected, student.last)
        masks.add(selected.numpy().tobytes())
        if len(masks) <= number:
            free = case.candidates
            earliest = free & (free.cumsum(dim=1) <= selected.sum(dim=1, keepdim=True))
            expect.wrong(
                f"{student.last.text}\nselected, in call {number + 1} of many with one generator, just the same "
                f"targets as in an earlier one.",
                "position-bias" if selected.equal(earliest) else None,
            )
    for number, (aspect, field, changes) in enumerate(ASPECTS):
        case = aspect_case(aspect, device)
        one = source(seed, 10 + number, device)
        results = []
        for _ in range(3):
            got = case.masked_by(student, one, **changes)
            value, selected = read(got, student.last, case.shape, field, "selected")
            some_target(selected, student.last)
            results.append(value if field == "selected" or several(value, selected & (value != case.ids)) else None)
        if any(a is not None and b is not None and a.equal(b) for a, b in pairwise(results)):
            expect.wrong(f"{student.last.text}\nrepeated `{field}` of the call before with the same generator.")
    drawn = sample(student, seed, chance.SELECTION)
    both, expected = 0, []
    for before, after in zip(drawn.selected[::2], drawn.selected[1::2], strict=True):
        both += int((before & after).sum())
        n = before.shape[1]
        expected += [chance.overlap(n, int(a.sum()), int(b.sum())) for a, b in zip(before, after, strict=True)]
    bounds = chance.total(expected).bounds()
    if both > bounds[1]:
        drawn.fail(
            f"Masks of the same sequence in two calls have {both / len(expected):.1f} places in common on average; "
            f"{bounds[0] / len(expected):.1f} … {bounds[1] / len(expected):.1f} are likely.",
            "same-mask-every-call",
        )


def several(new: torch.Tensor, selected: torch.Tensor) -> bool:
    """Whether those targets of some sequence became different ids: else one draw for many is the fault."""
    return any(len(row[chosen].unique()) > 1 for row, chosen in zip(new, selected, strict=True))


@pytest.mark.worth("mask_tokens", 0.25, misconception="other-random-source")
def test_same_state_same_result(student: Student, device: torch.device, seed: int) -> None:
    """Two generators in the same state give the same result."""
    for number, (aspect, _, changes) in enumerate(ASPECTS):
        case = aspect_case(aspect, device)
        one = source(seed, number, device)
        torch.rand(number, generator=one, device=device)  # not the state right after seeding
        two = torch.Generator(device)
        two.set_state(one.get_state())
        results = [outcome(case.masked_by(student, g, **changes), student.last, case) for g in (one, two)]
        if not results[0].equal(results[1]):
            expect.wrong(
                f"{student.last.text}\ngave another result than the same call before, with a generator in the same "
                f"state ({int((results[0] != results[1]).any(dim=0).sum())} of {case.ids.numel()} positions differ)."
            )


@pytest.mark.worth("mask_tokens", 0.15, misconception="other-random-source")
def test_without_generator(student: Student, seed: int) -> None:
    """Without a generator, torch's default generator is drawn from, and a second call gives a new mask."""
    case = make_case(24, (5, 83), CPU, "ordinary")
    witness = student.witness("mask_tokens")
    before = len(witness.moved)
    results = [outcome(case.masked_by(student, None, mlm_probability=0.3), student.last, case) for _ in range(3)]
    call = student.last
    got = student.mask_tokens(*case[:3], mask_token_id=case.mask_token_id, ordinary_ids=case.ordinary_ids)
    outcome(got, student.last, case)
    moved = {name for _, name in witness.moved[before:]}
    if results[0].equal(results[1]) or results[1].equal(results[2]):
        expect.wrong(f"{call.text}\ngave the same result twice.", "same-mask-every-call")
    if moved - {"torch"}:
        expect.wrong(
            f"{call.text}\nmoved the global generator of {min(moved - {'torch'})}; only torch's may.",
            "global-generator",
        )
    if "torch" not in moved:
        expect.wrong(f"{call.text}\ndrew nothing from torch's default generator, so torch.manual_seed has no effect.")


# -- Arguments, devices and memory -------------------------------------------------------------------------------------
@pytest.mark.worth("mask_tokens", 0.2, misconception="input-mutated")
def test_arguments_are_left_alone(student: Student, device: torch.device, seed: int) -> None:
    """No argument is changed."""
    case = make_case(8, (5, 31), device)  # masks of int64 and int32
    fully_masked(student, case, device, seed)
    for number, (aspect, _, changes) in enumerate(ASPECTS):
        aspect_case(aspect, device).masked_by(student, source(seed, number, device), **changes)
    mutated = [(call, argument) for call, argument in student.witness("mask_tokens").mutated if argument in MUTABLE]
    if mutated:
        call, argument = mutated[0]
        expect.wrong(f"{call}\nchanged its argument `{argument}`; inputs belong to the caller.", "input-mutated")


@pytest.mark.worth("mask_tokens", 0.1, misconception="wrong-device")
def test_device_of_the_inputs(student: Student, device: torch.device, seed: int) -> None:
    """The result is on the device of the inputs, wherever new tensors are made by default."""
    case = make_case(12, (3, 7), device)
    with student.device_trap() as faults:
        fully_masked(student, case, device, seed)
        case.masked_by(student, source(seed, 1, device))
        case.masked_by(student, None, mlm_probability=0.02)
    if faults:
        expect.wrong(f"{student.last.text}\n{faults[0]}", "wrong-device")


@pytest.mark.worth("mask_tokens", 0.05, misconception="strides-ignored")
def test_any_memory_order(student: Student, device: torch.device, seed: int) -> None:
    """Transposed, sliced and expanded tensors are as good as contiguous ones."""
    plain = make_case(16, (5, 8), device, "other")  # int64, bool
    plain = plain._replace(input_ids=plain.input_ids + 1000)  # no draw, wrong ones included, gives an original back
    transposed = [tensor.t().contiguous().t() for tensor in plain[:3]]
    sliced = [tensor.repeat_interleave(2, dim=1)[:, ::2] for tensor in plain[:3]]
    one = plain.input_ids[:1].expand(5, 8)
    ones, third = torch.ones_like(one[:1]), (torch.arange(8, device=device) == 2)[None]
    expanded = [one, ones.expand(5, 8), third.expand(5, 8)]
    layouts = {"transposed": transposed, "sliced": sliced, "expanded": expanded}
    for number, (layout, tensors) in enumerate(layouts.items()):
        case = plain.with_tensors(tensors)
        for rates in ((1.0, 0.0), (0.0, 1.0)):
            try:
                got = case.masked_by(
                    student, source(seed, number, device), mlm_probability=1.0, mask_rate=rates[0], random_rate=rates[1]
                )
            except expect.Wrong as fault:
                expect.wrong(fault.message, "strides-ignored" if fault.misconception == "valid-input-fails" else None)
            call, free = student.last, case.candidates
            new, labels, selected = read(got, call, case.shape, "input_ids", "labels", "selected")
            some_target(selected, call)
            what = f"{{}} (at the candidates, {layout} tensors)"
            originals = torch.where(free, labels, case.ids)
            expect.close(originals, case.ids, call, what=what.format("labels"))
            if not bool((new != case.ids)[free].all()):
                expect.wrong(f"{call.text}\nleft some targets as they were, with {layout} tensors.")


# -- Bad input ---------------------------------------------------------------------------------------------------------
def refuses(
    student: Student,
    case: Case,
    *,
    names: Sequence[str],
    because: str,
    values: Sequence[float] = (),
    misconception: str | None = None,
    **changes: Any,
) -> None:
    """Fail unless mask_tokens raises the contract's ValueError for this case."""
    given = {"mask_token_id": case.mask_token_id, "ordinary_ids": case.ordinary_ids, **changes}
    expect.refuses(
        student.mask_tokens,
        *case[:3],
        names=names,
        values=values,
        because=because,
        misconception=misconception,
        **given,
        generator=generator(0, case.input_ids.device),
    )


@pytest.mark.worth("mask_tokens", 0.05, misconception="bad-input-accepted")
def test_refuses_tensors_that_are_not_2d(student: Student, device: torch.device, seed: int) -> None:
    """Tensors that are not 2-D are refused with a ValueError that names one of them."""
    case = plain_case(device)
    fully_masked(student, case, device, seed)
    for reshape in (lambda t: t[0], lambda t: t[None], lambda t: t[..., None], lambda t: t[0, 1]):
        bad = case.with_tensors(map(reshape, case[:3]))
        refuses(student, bad, names=TENSORS, because=f"the tensors are {bad.input_ids.ndim}-D, not 2-D")
    for name in TENSORS:
        bad = case.with_tensors(t[None] if t is getattr(case, name) else t for t in case[:3])
        refuses(student, bad, names=TENSORS, because=f"{name} is 3-D, not 2-D")


@pytest.mark.worth("mask_tokens", 0.05, misconception="bad-input-accepted")
def test_refuses_unequal_shapes(student: Student, device: torch.device, seed: int) -> None:
    """Tensors of unequal shapes are refused, even where broadcasting would make them fit."""
    case = plain_case(device)
    fully_masked(student, case, device, seed)
    for name in TENSORS:
        tensor = getattr(case, name)
        for part in (tensor[:1], tensor[:, 1:2], tensor[:, :-1], tensor[:-1], tensor.t(), torch.cat([tensor, tensor])):
            refuses(
                student,
                case.with_tensors(part if t is tensor else t for t in case[:3]),
                names=TENSORS,
                because=f"{name} has shape {tuple(part.shape)}, the others {case.shape}",
            )


@pytest.mark.worth("mask_tokens", 0.1, misconception="bad-input-accepted")
def test_refuses_probability_outside(student: Student, device: torch.device, seed: int) -> None:
    """An mlm_probability outside (0, 1] is refused, 0 and NaN included."""
    case = plain_case(device)
    fully_masked(student, case, device, seed)
    for bad in (0.0, -0.15, 1.01, 15.0, math.nan, math.inf):
        refuses(
            student,
            case,
            misconception="nan-accepted" if math.isnan(bad) else None,
            names=("mlm_probability",),
            values=(bad,),
            because=f"mlm_probability {bad} is outside (0, 1]",
            mlm_probability=bad,
        )


@pytest.mark.worth("mask_tokens", 0.05, misconception="bad-input-accepted")
def test_refuses_negative_rates(student: Student, device: torch.device, seed: int) -> None:
    """A rate that is negative or NaN is refused."""
    case = plain_case(device)
    fully_masked(student, case, device, seed)
    for mask_rate, random_rate in ((-0.2, 0.5), (0.5, -0.2), (-0.5, 1.5), (1.5, -0.5), (-0.01, 0.0), (0.0, -0.01)):
        negative = "mask_rate" if mask_rate < 0 else "random_rate"
        over = [(name, rate) for name, rate in (("mask_rate", mask_rate), ("random_rate", random_rate)) if rate > 1]
        refuses(
            student,
            case,
            names=(negative, *(name for name, _ in over)),
            values=(min(mask_rate, random_rate), *(rate for _, rate in over)),
            because=f"{negative} is {min(mask_rate, random_rate)}",
            mask_rate=mask_rate,
            random_rate=random_rate,
        )
    for name, other in (("mask_rate", "random_rate"), ("random_rate", "mask_rate")):
        because = f"{name} is NaN"
        refuses(
            student,
            case,
            misconception="nan-accepted",
            names=(name,),
            values=(math.nan,),
            because=because,
            **{name: math.nan, other: 0.1},
        )


@pytest.mark.worth("mask_tokens", 0.05, misconception="bad-input-accepted")
def test_refuses_rates_over_one(student: Student, device: torch.device, seed: int) -> None:
    """Rates that sum to more than 1 are refused; up to 1e-9 over is rounding."""
    case = plain_case(device)
    fully_masked(student, case, device, seed, mask_rate=1.0, random_rate=5e-10)
    for mask_rate, random_rate in ((0.8, 0.3), (1.0, 0.01), (0.0, 1.01), (0.9, 0.1001), (0.9, 0.1 + 1e-7)):
        refuses(
            student,
            case,
            names=("mask_rate", "random_rate"),
            values=(mask_rate, random_rate, mask_rate + random_rate),
            because=f"mask_rate + random_rate is {mask_rate + random_rate:.9g}, over 1",
            mask_rate=mask_rate,
            random_rate=random_rate,
        )


@pytest.mark.worth("mask_tokens", 0.05, misconception="bad-input-accepted")
def test_refuses_no_ordinary_ids(student: Student, device: torch.device, seed: int) -> None:
    """Empty ordinary_ids are refused while random_rate is over 0, however rarely one would be needed; else they are
    fine."""
    case = plain_case(device)._replace(ordinary_ids=torch.empty(0, dtype=torch.int64, device=device))
    fully_masked(student, case, device, seed)
    for rate in (0.1, 1e-6):
        refuses(
            student,
            case,
            names=("ordinary_ids", "random_rate"),
            because=f"ordinary_ids is empty and random_rate is {rate}",
            mask_rate=0.5,
            random_rate=rate,
        )


@pytest.mark.worth("mask_tokens", 0.05, misconception="bad-input-accepted")
def test_refuses_no_candidate(student: Student, device: torch.device, seed: int) -> None:
    """A batch without any candidate is refused, whether all is padding, all is special, or both together."""
    case = plain_case(device)
    fully_masked(student, case, device, seed)
    ones, zeros = torch.ones_like(case.input_ids), torch.zeros_like(case.input_ids)
    left = (torch.arange(case.shape[1], device=device) < 3).long().expand(case.shape)
    for attention, special, why in (
        (zeros, zeros, "everything is padding"),
        (ones, ones, "everything is special"),
        (left, left, "what is no padding is special"),
        (left.bool(), left.bool(), "what is no padding is special"),
    ):
        bad = case._replace(attention_mask=attention, special_tokens_mask=special)
        refuses(student, bad, names=TENSORS, because=f"no position is a candidate: {why}")

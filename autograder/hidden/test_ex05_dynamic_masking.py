"""Hidden checks of exercise 5: dynamic masking.

Random results are judged by what must hold in every one of them, and by bounds from `statistics.py`.  The statistical
checks share their samples, drawn once a submission, on the CPU: chance does not depend on the device.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from autograder.hidden import expect
from autograder.hidden import statistics as chance
from autograder.hidden.oracles import ex05 as oracle
from autograder.hidden.strategies import generator, seeds, sizes
from autograder.syllabus import EXERCISES
from autograder.wire.errors import Interrupted, RemoteError
from autograder.wire.proxy import Call, Student
from autograder.wire.show import show
from exercises.kit import MaskedBatch, Vocabulary

MASKED, CHANGED, KEPT = 0, 1, 2
FATES = ("replaced by [MASK]", "replaced by another id", "left as they were")
DTYPES = (torch.int64, torch.bool, torch.int32, torch.uint8)
SHAPES = sizes(2, (1, 2, 3, 5, 7, 11, 13))
CPU = torch.device("cpu")


# -- Results -----------------------------------------------------------------------------------------------------------
def read(got: Any, call: Call, shape: tuple[int, ...], *names: str) -> list[torch.Tensor]:
    """Those fields of a result, on the CPU, ids as int64 and masks as bool; fails if one is no (m, T) tensor.

    Dtype and device are the business of the checks of the result's form: here they are forgiven.
    """
    fields = []
    for name in names:
        value = None if isinstance(got, torch.Tensor) else getattr(got, name, None)
        if value is None:
            expect.wrong(
                f"{call.text}\nreturned {show(got)}\nexpected a MaskedBatch; this has no field `{name}`.",
                "wrong-kind-of-batch",
            )
        if not isinstance(value, torch.Tensor) or tuple(value.shape) != shape:
            expect.wrong(
                f"{name} of {call.text}\nis {show(value)}\nexpected a torch.Tensor of shape {shape}.",
                "wrong-kind-of-batch",
            )
        value = value.detach().cpu()
        fields.append(value.bool() if name in {"selected", "attention_mask"} else value.long())
    return fields


def must_be(name: str, value: torch.Tensor, dtypes: Sequence[torch.dtype], device: torch.device, call: Call) -> None:
    """Fail unless that field has one of the dtypes and is on the device."""
    if value.dtype not in dtypes:
        wanted = " or ".join(str(dtype).removeprefix("torch.") for dtype in dtypes)
        expect.wrong(f"{name} of {call.text}\nis {show(value)}\nexpected dtype {wanted}.", "wrong-kind-of-batch")
    if value.device.type != device.type:
        expect.wrong(f"{name} of {call.text}\nis on {value.device}, not on {device}.", "wrong-device")


def some_target(selected: torch.Tensor, call: Call) -> None:
    """Fail if nothing at all is selected, so that no check passes for a function that masks nothing."""
    if not bool(selected.any()):
        expect.wrong(f"{call.text}\nselected no token at all.", "sequence-without-target")


def first(bad: torch.Tensor) -> list[int]:
    """Where the first True is."""
    return bad.nonzero()[0].tolist()


# -- Inputs of mask_tokens ---------------------------------------------------------------------------------------------
class Case(NamedTuple):
    """A batch and its vocabulary."""

    input_ids: torch.Tensor
    attention_mask: torch.Tensor
    special_tokens_mask: torch.Tensor
    mask_token_id: int
    ordinary_ids: torch.Tensor

    @property
    def ids(self) -> torch.Tensor:
        return self.input_ids.cpu()

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.input_ids.shape)

    @property
    def candidates(self) -> torch.Tensor:
        return (self.attention_mask.cpu() == 1) & (self.special_tokens_mask.cpu() == 0)

    def with_tensors(self, tensors: Iterable[torch.Tensor]) -> Case:
        """The same vocabulary, other ids and masks."""
        input_ids, attention_mask, special_tokens_mask = tensors
        return Case(input_ids, attention_mask, special_tokens_mask, self.mask_token_id, self.ordinary_ids)

    def masked_by(self, student: Student, source: torch.Generator | None, **changes: Any) -> Any:
        """What the submission makes of it."""
        vocabulary = {"mask_token_id": self.mask_token_id, "ordinary_ids": self.ordinary_ids}
        return student.mask_tokens(*self[:3], **{**vocabulary, **changes}, generator=source)


def make_case(seed: int, shape: tuple[int, int], device: torch.device, text: str = "any") -> Case:
    """Ids 0 … 59, of which some are ordinary, in any order and with gaps; masks of any legal dtype; some candidates.

    text: "any": every id occurs, those of [MASK] and of special tokens too, because only special_tokens_mask counts;
        "ordinary": only ordinary ids; "other": neither ordinary ids nor [MASK].
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(60)
    ordinary = order[1 : 1 + int(rng.integers(2, 20))]
    pool = {"any": order, "ordinary": ordinary, "other": order[30:]}[text]
    attention, special = rng.random(shape) < 0.8, rng.random(shape) < 0.25
    if shape[0] > 2:
        special[int(rng.integers(shape[0]))] = True  # a sequence without candidates
    row, place = int(rng.integers(shape[0])), int(rng.integers(shape[1]))
    attention[row, place], special[row, place] = True, False
    return Case(
        torch.as_tensor(rng.choice(pool, shape)).long().to(device),
        torch.as_tensor(attention).to(DTYPES[seed % 4]).to(device),
        torch.as_tensor(special).to(DTYPES[seed // 4 % 4]).to(device),
        int(order[0]),
        torch.as_tensor(ordinary).long().to(device),
    )


def sparse_case(seed: int, most: int, device: torch.device) -> Case:
    """Sequences of 0, 1, 2 … `most` candidates at scattered places, in mixed order, twice each."""
    rng = np.random.default_rng(seed)
    counts = rng.permutation(np.repeat(np.arange(most + 1), 2))
    attention = torch.zeros((len(counts), most + 5), dtype=torch.int64)
    special = torch.ones_like(attention)
    for row, count in enumerate(counts.tolist()):
        attention[row, : count + 3] = 1
        special[row, rng.permutation(count + 3)[:count]] = 0
    ids = torch.as_tensor(rng.integers(0, 41, tuple(attention.shape))) * 3
    return Case(ids.to(device), attention.to(device), special.to(device), 4, spread_ids(41).to(device))


def spread_ids(count: int) -> torch.Tensor:
    """0, 3, 6 … in mixed order; special ids lie in the gaps."""
    return torch.as_tensor(np.random.default_rng(count).permutation(count)) * 3


def source(seed: int, number: int, device: torch.device = CPU) -> torch.Generator:
    """The generator for one example of one check; the grader's seed makes it another one."""
    return generator(1_000_003 * seed + number, device)


# -- mask_tokens: what holds in every result ---------------------------------------------------------------------------
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
    got = student.mask_tokens(**case._asdict(), generator=one) if number % 2 else case.masked_by(student, one)
    call = student.last
    selected, *_ = read(got, call, case.shape, "selected", "input_ids", "labels", "attention_mask")
    must_be("input_ids", got.input_ids, [torch.int64], device, call)
    must_be("labels", got.labels, [torch.int64], device, call)
    must_be("selected", got.selected, [torch.bool], device, call)
    expect.close(got.attention_mask, case.attention_mask, call, what="attention_mask")
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
    if ignored < 0 or not bool((case.ids == ignored).any()):
        off = ~case.candidates
        fixed = [("ignore-index-fixed", torch.where(off, -100, case.ids))]
        expect.close(labels, torch.where(off, ignored, case.ids), call, what="labels", likely=fixed)
        return
    # An original id may equal ignore_index: the label says nothing then, but the token is a target like any other.
    expect.close(labels, torch.where(case.candidates, case.ids, ignored), call, what="labels")
    expect.close(selected, case.candidates, call, what="selected", misconception="targets-by-change")


@given(shape=SHAPES, number=seeds, probability=st.sampled_from([0.15, 0.5]))
@pytest.mark.worth("mask_tokens", 0.4, misconception="special-or-padding-selected")
def test_only_candidates_are_selected(
    student: Student, device: torch.device, seed: int, shape: tuple[int, int], number: int, probability: float
) -> None:
    """Only positions with attention_mask 1 and special_tokens_mask 0 are selected."""
    case = make_case(number, shape, device)
    got = case.masked_by(student, source(seed, number, device), mlm_probability=probability)
    call = student.last
    (selected,) = read(got, call, case.shape, "selected")
    some_target(selected, call)
    bad = selected & ~case.candidates
    if bool(bad.any()):
        row, place = first(bad)
        why = "attention_mask is 0" if not bool(case.attention_mask[row, place]) else "special_tokens_mask is 1"
        expect.wrong(
            f"{call.text}\nselected position [{row}, {place}], where {why}.\n"
            f"attention_mask: {show(case.attention_mask[row])}\nspecial_tokens_mask: "
            f"{show(case.special_tokens_mask[row])}\nselected: {show(selected[row])}",
            "special-or-padding-selected",
        )


@given(shape=SHAPES, number=seeds)
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
    selected, new = read(got, student.last, case.shape, "selected", "input_ids")
    others = [
        ("special-or-padding-selected", case.attention_mask.cpu() == 1),
        ("special-or-padding-selected", case.special_tokens_mask.cpu() == 0),
        ("targets-by-change", new != case.ids),
    ]
    likely = [pair for pair in others if not pair[1].equal(case.candidates)]
    expect.close(selected, case.candidates, student.last, what="selected", likely=likely)


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


@given(number=seeds, rates=st.sampled_from([(0.3, 0.6), (0.0, 0.9), (0.8, 0.1)]))
@pytest.mark.worth("mask_tokens", 0.2, misconception="random-id-not-ordinary")
def test_corrupted_tokens(
    student: Student, device: torch.device, seed: int, number: int, rates: tuple[float, float]
) -> None:
    """A selected token becomes mask_token_id or one of ordinary_ids, or stays."""
    case = make_case(number, (7, 13), device)
    got = case.masked_by(
        student, source(seed, number, device), mlm_probability=1.0, mask_rate=rates[0], random_rate=rates[1]
    )
    call = student.last
    new, selected = read(got, call, case.shape, "input_ids", "selected")
    some_target(selected, call)
    allowed = (new == case.ids) | torch.isin(new, case.ordinary_ids.cpu())
    if rates[0] > 0:
        allowed |= new == case.mask_token_id
    if bool((selected & ~allowed).any()):
        row, place = first(selected & ~allowed)
        expect.wrong(
            f"{call.text}\nreplaced {case.ids[row, place]} by {new[row, place]} at [{row}, {place}]\nexpected "
            f"{case.mask_token_id} (with mask_rate {rates[0]:g}), an id of {show(case.ordinary_ids)}, or the original.",
        )
    if not bool((new != case.ids).any()):
        expect.wrong(f"{call.text}\nchanged no token.", "wrong-split")


@pytest.mark.worth("mask_tokens", 0.25, misconception="wrong-split")
def test_pure_rates(student: Student, device: torch.device, seed: int) -> None:
    """A rate of 1 corrupts every selected token in that way; with both rates 0 all of them stay.

    With rates that sum to 1, none stays; without random_rate, none becomes another id; without mask_rate, none [MASK].
    """
    case = make_case(11 + seed % 7, (5, 61), device, text="other")
    mask, ordinary = case.mask_token_id, case.ordinary_ids.cpu()
    for number, (mask_rate, random_rate) in enumerate(
        [(1.0, 0.0), (0.0, 1.0), (0.0, 0.0), (0.6, 0.4), (0.5, 0.0), (0.0, 0.5), (0.9, 0.1)]
    ):
        got = case.masked_by(
            student,
            source(seed, number, device),
            mlm_probability=0.5,
            mask_rate=mask_rate,
            random_rate=random_rate,
        )
        call = student.last
        new, selected = read(got, call, case.shape, "input_ids", "selected")
        some_target(selected, call)
        fates = [new == mask, torch.isin(new, ordinary), new == case.ids]
        for fate, rate, name in zip(fates, (mask_rate, random_rate, 1 - mask_rate - random_rate), FATES, strict=True):
            if rate == 0 and bool((selected & fate).any()):
                row, place = first(selected & fate)
                expect.wrong(
                    f"{call.text}\nSome selected tokens were {name}, at [{row}, {place}] for instance "
                    f"({case.ids[row, place]} → {new[row, place]}); with these rates none may be.",
                )
            if rate == 1 and not bool(fate[selected].all()):
                row, place = first(selected & ~fate)
                expect.wrong(
                    f"{call.text}\nAll selected tokens must be {name}; at [{row}, {place}] there is "
                    f"{case.ids[row, place]} → {new[row, place]}.",
                )


@pytest.mark.worth("mask_tokens", 0.1, misconception="random-id-not-ordinary")
def test_any_ordinary_ids(student: Student, device: torch.device, seed: int) -> None:
    """ordinary_ids may hold any ids: a single one, unsorted ones, with gaps, beyond 2^24, every second of a tensor."""
    case = make_case(5, (3, 41), device, text="other")
    large = 2**24 + 1
    for number, pool in enumerate(
        [
            torch.tensor([0]),
            torch.tensor([large]),
            torch.tensor([large, 7, large + 2, 0, 40_003]),
            torch.arange(0, 40, 2)[::3],
            torch.arange(100, 160).view(20, 3)[:, 1],
        ]
    ):
        got = case._replace(ordinary_ids=pool.to(device)).masked_by(
            student, source(seed, number, device), mlm_probability=1.0, mask_rate=0.0, random_rate=1.0
        )
        call = student.last
        new, selected = read(got, call, case.shape, "input_ids", "selected")
        some_target(selected, call)
        bad = selected & ~torch.isin(new, pool)
        if bool(bad.any()):
            row, place = first(bad)
            expect.wrong(
                f"{call.text}\nput {new[row, place]} at [{row}, {place}], but random_rate is 1 and "
                f"ordinary_ids holds {pool.tolist()}."
            )


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
        missing = case.candidates.any(dim=1) & ~(selected & case.candidates).any(dim=1)
        if bool(missing.any()):
            row = int(missing.nonzero()[0])
            expect.wrong(
                f"{call.text}\nselected nothing in sequence {row}, which has {int(case.candidates[row].sum())} "
                f"candidates ({int(missing.sum())} of {case.shape[0]} sequences came out so)."
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


# -- mask_tokens: where its random numbers come from -------------------------------------------------------------------
#: Settings under which selection, fate, random ids and forced targets show, each by itself; the field that shows it.
ASPECTS: tuple[tuple[str, str, dict[str, float]], ...] = (
    ("selection", "selected", {"mlm_probability": 0.3}),
    ("fate", "input_ids", {"mlm_probability": 1.0, "mask_rate": 0.5, "random_rate": 0.2}),
    ("random ids", "input_ids", {"mlm_probability": 1.0, "mask_rate": 0.0, "random_rate": 1.0}),
    ("forced targets", "selected", {"mlm_probability": 0.02}),
)


def aspect_case(aspect: str, device: torch.device) -> Case:
    """40 short sequences where targets are to be forced, else three long ones."""
    return sparse_case(3, 20, device) if aspect == "forced targets" else make_case(24, (5, 83), device, "ordinary")


def outcome(got: Any, call: Call, case: Case) -> torch.Tensor:
    """Selection, labels and ids in one tensor."""
    new, labels, selected = read(got, call, case.shape, "input_ids", "labels", "selected")
    some_target(selected, call)
    return torch.stack([new, labels, selected.long()])


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


@pytest.mark.worth("mask_tokens", 0.25, misconception="same-mask-every-call")
def test_second_call_is_new(student: Student, device: torch.device, seed: int) -> None:
    """A second call with the same generator gives a new mask, new decisions and new random tokens.

    A right solution fails with probability below 1e-12.
    Detected with probability above 0.999: a generator seeded again; a stock of 500 masks.
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
            expect.wrong(
                f"{student.last.text}\nselected, in call {number + 1} of many with one generator, just the same "
                f"targets as in an earlier one."
            )
    for number, (aspect, field, changes) in enumerate(ASPECTS):
        case = aspect_case(aspect, device)
        one = source(seed, 10 + number, device)
        results = []
        for _ in range(3):
            got = case.masked_by(student, one, **changes)
            results.append(read(got, student.last, case.shape, field, "selected"))
            some_target(results[-1][1], student.last)
        if results[0][0].equal(results[1][0]) or results[1][0].equal(results[2][0]):
            expect.wrong(f"{student.last.text}\nrepeated `{field}` of the call before with the same generator.")


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


# -- mask_tokens: devices and memory -----------------------------------------------------------------------------------
def fully_masked(student: Student, case: Case, device: torch.device, seed: int, **changes: Any) -> None:
    """Make the one call whose result is known beforehand: every candidate becomes [MASK].  Fails if it is wrong."""
    changes = {"mlm_probability": 1.0, "mask_rate": 1.0, "random_rate": 0.0, **changes}
    got = case.masked_by(student, source(seed, 0, device), **changes)
    new, selected = read(got, student.last, case.shape, "input_ids", "selected")
    call = student.last
    expect.close(selected, case.candidates, call, what="selected")
    expect.close(new, torch.where(case.candidates, case.mask_token_id, case.ids), call, what="input_ids")


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
    transposed = [tensor.t().contiguous().t() for tensor in plain[:3]]
    sliced = [tensor.repeat_interleave(2, dim=1)[:, ::2] for tensor in plain[:3]]
    one = plain.input_ids[:1].expand(5, 8)
    ones, third = torch.ones_like(one[:1]), (torch.arange(8, device=device) == 2)[None]
    expanded = [one, ones.expand(5, 8), third.expand(5, 8)]
    for number, tensors in enumerate((transposed, sliced, expanded)):
        case = plain.with_tensors(tensors)
        fully_masked(student, case, device, seed)
        got = case.masked_by(student, source(seed, number, device), mlm_probability=0.5, mask_rate=0.3, random_rate=0.7)
        call = student.last
        new, labels, selected = read(got, call, case.shape, "input_ids", "labels", "selected")
        some_target(selected, call)
        expect.close(labels, torch.where(selected, case.ids, -100), call, what="labels")
        if not bool(((new != case.ids) == selected).all()):
            expect.wrong(f"{call.text}\nchanged other tokens than the selected ones, on a view of a larger tensor.")


# -- mask_tokens: chance -----------------------------------------------------------------------------------------------
@dataclass
class Sample:
    """What became of the candidates of many calls with one generator.

    Each list has an entry a call (and a number of candidates, if sequences differ in it), an array (sequences,
    candidates): originals; new ids; whether selected; the fate of each candidate (MASKED, CHANGED or KEPT).
    text: the last call, for messages.
    """

    design: chance.Design
    text: str
    ids: list[np.ndarray]
    new: list[np.ndarray]
    selected: list[np.ndarray]
    fate: list[np.ndarray]

    def fail(self, what: str, misconception: str) -> None:
        expect.wrong(f"{self.text}\n({self.design.calls} calls like this with one generator)\n{what}", misconception)

    @property
    def counts(self) -> list[int]:
        """Targets of each sequence."""
        return [int(k) for selected in self.selected for k in selected.sum(axis=1)]

    @property
    def sizes(self) -> list[int]:
        """Candidates of each sequence."""
        return [selected.shape[1] for selected in self.selected for _ in selected]


SPECIAL_IDS = (1, 2, 4, 5, 7)  # none is a multiple of 3; 4 is [MASK]
_samples: WeakKeyDictionary[Student, dict[Any, Any]] = WeakKeyDictionary()


def texts(design: chance.Design, call: int) -> Case:
    """Input of one call.  Two calls in a row have the same; in every second pair all sequences are the same, too.

    [CLS], [SEP] and four other special tokens stand in each sequence.  In half of the pairs each id comes twice.
    """
    pair = call // 2
    rng = np.random.default_rng(1000 * design.length + pair)
    count = design.candidates[pair % len(design.candidates)]
    rows = 1 if pair % 2 == 0 and len(design.candidates) < 6 else design.rows
    sizes_ = rng.permutation(np.resize(design.candidates, rows)) if len(design.candidates) == 6 else [count] * rows
    ids, attention, special = (np.zeros((rows, design.length), dtype=np.int64) for _ in range(3))
    ids += SPECIAL_IDS[0]
    for row, n in enumerate(sizes_):
        used = min(design.length, int(n) + 6)
        free = np.sort(rng.permutation(np.arange(1, used - 1))[: int(n)])
        ids[row, :used] = rng.choice(SPECIAL_IDS, used)
        drawn = rng.integers(0, design.ordinary, int(n)) * 3
        ids[row, free] = np.repeat(drawn, 2)[: int(n)] if pair % 4 >= 2 else drawn
        attention[row, :used], special[row, :used] = 1, 1
        special[row, free] = 0
    ids, attention, special = (np.repeat(array, design.rows // rows, axis=0) for array in (ids, attention, special))
    tensors = [torch.as_tensor(array) for array in (ids, attention, special)]
    return Case(tensors[0], tensors[1], tensors[2], 4, spread_ids(design.ordinary))


def sample(student: Student, seed: int, design: chance.Design, rates: tuple[float, float] | None = None) -> Sample:
    """The sample of that design, drawn when it is first asked for.  rates: of [MASK] and random ids."""
    kept = _samples.setdefault(student, {})
    key = (design, rates)
    if key not in kept:
        try:
            kept[key] = _draw(student, seed, design, rates)
        except Interrupted as interruption:  # it would be so again, after as long a time
            kept[key] = interruption
    if isinstance(kept[key], Interrupted):
        raise kept[key]
    return kept[key]


def _draw(student: Student, seed: int, design: chance.Design, rates: tuple[float, float] | None) -> Sample:
    one = source(seed, design.length * 1000 + design.calls)
    changes: dict[str, Any] = {} if design.probability == 0.15 else {"mlm_probability": design.probability}
    if rates is not None:
        changes |= {"mask_rate": rates[0], "random_rate": rates[1]}
    made = Sample(design, "", [], [], [], [])
    for call in range(design.calls):
        case = texts(design, call)
        got = case.masked_by(student, one, **changes)
        new, selected = (t.numpy() for t in read(got, student.last, case.shape, "input_ids", "selected"))
        ids, free = case.ids.numpy(), case.candidates.numpy()
        for count in sorted(set(design.candidates) & set(free.sum(axis=1).tolist())):
            rows = free.sum(axis=1) == count
            before, after, chosen = (array[rows][free[rows]].reshape(-1, count) for array in (ids, new, selected))
            made.ids.append(before)
            made.new.append(after)
            made.selected.append(chosen)
            made.fate.append(np.where(after == 4, MASKED, np.where(after == before, KEPT, CHANGED)))
    made.text = student.last.text
    return made


def halves(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Even and odd columns: disjoint pairs of neighbours."""
    even = array.shape[1] // 2 * 2
    return array[:, :even:2], array[:, 1:even:2]


def mirrored(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first sequence and the last, the second and the last but one …"""
    half = len(array) // 2
    return array[:half], array[::-1][:half]


def outside(value: float, bounds: tuple[int, int]) -> bool:
    return not bounds[0] <= value <= bounds[1]


def spell(bounds: tuple[int, int]) -> str:
    return f"{bounds[0]} … {bounds[1]}"


@pytest.mark.worth("mask_tokens", 0.4, misconception="wrong-share")
def test_share_of_candidates(student: Student, seed: int) -> None:
    """Of the candidates, the share mlm_probability is selected: by independent draws, or by a count for each sequence
    that is rounded, not cut off.

    A right solution fails with probability below 6e-12.
    Detected with probability above 0.999: 17% instead of 15%; counts cut off; counts rounded up; one quota for the
    whole batch.
    """
    drawn = sample(student, seed, chance.SELECTION)
    counts, candidates, p = drawn.counts, drawn.sizes, chance.SELECTION.probability
    fault = chance.share_fault(counts, candidates, p)
    if fault in {"cut off", "rounded up"}:
        drawn.fail(
            f"Of {candidates[0]} candidates always {counts[0]} were selected, of {candidates[-1]} always {counts[-1]}; "
            f"{p} · n is {p * candidates[0]:.4g} and {p * candidates[-1]:.4g}. These were {fault}.",
            "count-cut-off",
        )
    if fault:
        bounds = chance.drawn_bounds(tuple(candidates), p)
        drawn.fail(
            f"{sum(counts)} of {sum(candidates)} candidates were selected, or {sum(counts) / sum(candidates):.4f}; "
            f"with mlm_probability {p} it is {spell(bounds)} but for a chance of {chance.ALPHA:g}.",
            "wrong-share",
        )
    if chance.rounds(counts, candidates, p):
        return
    near = sum(chance.is_near(k, n, p, 2) for k, n in zip(counts, candidates, strict=True))
    bounds = chance.poisson_binomial(chance.near(n, p, 2) for n in candidates).bounds()
    if outside(near, bounds):
        drawn.fail(
            f"In {near} of {len(counts)} sequences the number of targets lies within 2 of its mean; for independent "
            f"draws this is {spell(bounds)}, and for a rounded count it would be all.",
            "wrong-share",
        )
    near, chances = 0, []
    for selected in drawn.selected:
        near += chance.is_near(int(selected.sum()), selected.size, p)
        chances.append(chance.near(selected.size, p))
    bounds = chance.poisson_binomial(chances).bounds()
    if outside(near, bounds):
        drawn.fail(
            f"In {near} of {len(chances)} calls the number of targets in the whole batch lies within 1 of its mean, "
            f"while single sequences vary; for independent draws it is {spell(bounds)} calls.",
            "quota-for-the-batch",
        )


@pytest.mark.worth("mask_tokens", 0.15, misconception="wrong-share")
def test_share_when_small(student: Student, seed: int) -> None:
    """When mlm_probability is small, the guaranteed target does not come on top of the others.

    A right solution fails with probability below 1e-12.
    Detected with probability above 0.999: a target always added.
    """
    design = chance.FEW
    drawn = sample(student, seed, design)
    fault = chance.share_fault(drawn.counts, drawn.sizes, design.probability)
    if fault:
        drawn.fail(
            f"Of {design.candidates[0]} candidates, {sum(drawn.counts) / len(drawn.counts):.3f} were selected on "
            f"average, with mlm_probability {design.probability} ({fault}).",
            "wrong-share",
        )
    if min(drawn.counts) == 0:
        drawn.fail("Some sequences came out without a target.", "sequence-without-target")


@pytest.mark.worth("mask_tokens", 0.15, misconception="position-bias")
def test_positions_uniform(student: Student, seed: int) -> None:
    """The selected positions are uniform among the candidates of the sequence: no place is preferred, none avoided, and
    neighbours are no likelier together.

    A right solution fails with probability below 6e-12.
    Detected with probability above 0.999: a position never selected; neighbours selected together; only the first half.
    """
    drawn = sample(student, seed, chance.SELECTION)
    least = min(chance.SELECTION.candidates)
    places = np.concatenate([np.concatenate([s[:, : least // 2], s[:, -least // 2 :]], axis=1) for s in drawn.selected])
    shares = [k / n for k, n in zip(drawn.counts, drawn.sizes, strict=True)]
    bounds = chance.poisson_binomial(shares).bounds(chance.ALPHA / least)
    for place, count in enumerate(places.sum(axis=0).tolist()):
        if outside(count, bounds):
            where = f"{place + 1}." if place < least // 2 else f"{least - place}. to last"
            drawn.fail(
                f"The {where} candidate is selected in {count} of {len(places)} sequences; likely are {spell(bounds)}.",
                "position-bias",
            )
    middle = 3 * (drawn.design.ordinary // 2)
    for what, picks in (
        ("of the lower half", [ids < middle for ids in drawn.ids]),
        ("of every second id", [ids % 2 == 0 for ids in drawn.ids]),
    ):
        count, expected = 0, []
        for selected, pick in zip(drawn.selected, picks, strict=True):
            count += int((selected & pick).sum())
            n = selected.shape[1]
            expected += [
                chance.overlap(n, int(here.sum()), int(row.sum())) for here, row in zip(pick, selected, strict=True)
            ]
        bounds = chance.total(expected).bounds()
        if outside(count, bounds):
            drawn.fail(
                f"{count} of {sum(drawn.counts)} targets have an id {what}; {spell(bounds)} are likely.",
                "position-bias",
            )
    early = together = 0
    early_counts, pair_counts = [], []
    for selected in drawn.selected:
        n = selected.shape[1]
        one, other = halves(selected)
        early += int(selected[:, : n // 2].sum())
        together += int((one & other).sum())
        early_counts += [chance.overlap(n, n // 2, int(k)) for k in selected.sum(axis=1)]
        pair_counts += [chance.both_of_pairs(n // 2, int(k)) for k in selected.sum(axis=1)]
    bounds = chance.total(early_counts).bounds()
    if outside(early, bounds):
        drawn.fail(
            f"{early} of {sum(drawn.counts)} targets lie in the first half of a sequence; likely are {spell(bounds)}.",
            "position-bias",
        )
    bounds = chance.total(pair_counts).bounds()
    if outside(together, bounds):
        drawn.fail(
            f"Of neighbouring candidates, both were selected {together} times; {spell(bounds)} times are likely.",
            "position-bias",
        )


@pytest.mark.worth("mask_tokens", 0.2, misconception="same-mask-in-all-sequences")
def test_sequences_independent(student: Student, seed: int) -> None:
    """Sequences are masked independently of each other, even if they are equal.

    A right solution fails with probability below 5e-12.
    Detected with probability above 0.999: the same mask in every sequence; the same mask in every call; one
    number of targets for all sequences.
    """
    drawn = sample(student, seed, chance.SELECTION)
    both, expected = 0, []
    for selected in drawn.selected:
        n = selected.shape[1]
        for one, other in zip(selected[::2], selected[1::2], strict=True):
            both += int((one & other).sum())
            expected.append(chance.overlap(n, int(one.sum()), int(other.sum())))
    bounds = chance.total(expected).bounds()
    if outside(both, bounds):
        drawn.fail(
            f"Two sequences of a batch have {both / len(expected):.1f} selected places in common on average; "
            f"{bounds[0] / len(expected):.1f} … {bounds[1] / len(expected):.1f} are likely.",
            "same-mask-in-all-sequences",
        )
    both, expected = 0, []
    for before, after in zip(drawn.selected[::2], drawn.selected[1::2], strict=True):
        both += int((before & after).sum())
        n = before.shape[1]
        expected += [chance.overlap(n, int(a.sum()), int(b.sum())) for a, b in zip(before, after, strict=True)]
    bounds = chance.total(expected).bounds()
    if outside(both, bounds):
        drawn.fail(
            f"Masks of the same sequence in two calls have {both / len(expected):.1f} places in common on average; "
            f"{bounds[0] / len(expected):.1f} … {bounds[1] / len(expected):.1f} are likely.",
            "same-mask-every-call",
        )
    pairs = list(zip(drawn.counts[::2], drawn.counts[1::2], drawn.sizes[::2], strict=True))
    if not chance.rounds(drawn.counts, drawn.sizes, drawn.design.probability):
        p = drawn.design.probability
        equal = sum(one == other for one, other, _ in pairs)
        bounds = chance.poisson_binomial(chance.equal_counts(n, p) for _, _, n in pairs).bounds()
        if outside(equal, bounds):
            drawn.fail(
                f"Of {len(pairs)} pairs of sequences in a batch, {equal} have the same number of targets, although it "
                f"varies; {spell(bounds)} are likely.",
                "same-mask-in-all-sequences",
            )
        near = sum(chance.is_near(one + other, 2 * n, p) for one, other, n in pairs)
        bounds = chance.poisson_binomial(chance.near(2 * n, p) for _, _, n in pairs).bounds()
        if outside(near, bounds):
            drawn.fail(
                f"In {near} of {len(pairs)} pairs of sequences in a batch, one has as many more targets than its mean "
                f"as the other has fewer; {spell(bounds)} are likely.",
                "quota-for-the-batch",
            )
    masks = [mask.tobytes() for selected in drawn.selected for mask in selected]
    if len(set(masks)) < len(masks):
        drawn.fail(
            f"Only {len(set(masks))} of the {len(masks)} selections differ; by chance no two are equal.",
            "same-mask-every-call",
        )
    rows, n = chance.MANY_ROWS
    ids = torch.full((rows, n), 3)
    case = Case(ids, torch.ones_like(ids), torch.zeros_like(ids), 4, spread_ids(41))
    got = case.masked_by(student, source(seed, rows), mlm_probability=0.5)
    (chosen,) = read(got, student.last, case.shape, "selected")
    some_target(chosen, student.last)
    different = len({row.tobytes() for row in chosen.numpy()})
    if different < rows:
        expect.wrong(
            f"{student.last.text}\nOf {rows} equal sequences only {different} have different masks; by chance all do.",
            "same-mask-in-all-sequences",
        )


def split_fault(drawn: Sample, rates: tuple[float, float]) -> None:
    """Fail if masked, changed and kept tokens do not have their shares among the targets."""
    fates = np.concatenate([fate[selected] for fate, selected in zip(drawn.fate, drawn.selected, strict=True)])
    n = len(fates)
    counts = [int((fates == fate).sum()) for fate in (MASKED, CHANGED, KEPT)]
    right = chance.seen(*rates, drawn.design.ordinary)
    for count, share, name in zip(counts, right, FATES, strict=True):
        bounds = chance.binomial_bounds(n, share)
        if not outside(count, bounds):
            continue
        shares = [count / n for count in counts]
        rest = (1 - rates[0]) * rates[1]
        if shares[0] > rates[0] + 0.9 * (1 - rates[0]):
            misconception = "everything-masked"
        elif abs(shares[1] - rest) < abs(shares[1] - rates[1]) and abs(shares[0] - rates[0]) < 0.02:
            misconception = "random-share-of-the-rest"
        else:
            misconception = "wrong-split"
        drawn.fail(
            f"Of {n} targets, {count} were {name}: {count / n:.4f}. With mask_rate {rates[0]:g} and random_rate "
            f"{rates[1]:g} it is {share:.4f}, or {spell(bounds)}. (Masked, changed, kept: "
            f"{shares[0]:.3f}, {shares[1]:.3f}, {shares[2]:.3f}.)",
            misconception,
        )


@pytest.mark.worth("mask_tokens", 0.4, misconception="wrong-split")
def test_split(student: Student, seed: int) -> None:
    """Of the selected tokens 80% become [MASK], 10% a random token and 10% stay, by default.

    A right solution fails with probability below 1e-11.
    Detected with probability above 0.999: 80/2/18; 80/8/12; 85/15/0; 80/2/18 at the default share; 85/15/0 at the
    default share.
    """
    split_fault(sample(student, seed, chance.SELECTION), chance.DEFAULT_RATES)
    split_fault(sample(student, seed, chance.ACTIONS), chance.DEFAULT_RATES)


@pytest.mark.worth("mask_tokens", 0.15, misconception="wrong-split")
def test_split_other_rates(student: Student, seed: int) -> None:
    """mask_rate and random_rate are the shares of [MASK] and of random tokens, whatever they are.

    A right solution fails with probability below 3e-12.
    Detected with probability above 0.999: 30/35/35; 30/42/28; 80/10/10.
    """
    split_fault(sample(student, seed, chance.OTHER_ACTIONS, chance.OTHER_RATES), chance.OTHER_RATES)


@pytest.mark.worth("mask_tokens", 0.25, misconception="quota-instead-of-chance")
def test_each_token_on_its_own(student: Student, seed: int) -> None:
    """Each selected token decides on its own what becomes of it: neither one decision for a whole sequence, nor a fixed
    number of each kind dealt out like cards.

    A right solution fails with probability below 2e-11.
    Detected with probability above 0.999: one fate a sequence; one fate a column; quota in each sequence; quota in
    each call; quota in each sequence at the default share; masks first, then the rest.
    """
    drawn = sample(student, seed, chance.ACTIONS)
    same = chance.agreement(chance.DEFAULT_RATES, drawn.design.ordinary)
    fates = [np.where(selected, fate, -1) for fate, selected in zip(drawn.fate, drawn.selected, strict=True)]
    alike("neighbouring targets", drawn, [halves(fate) for fate in fates], same)
    alike("targets in the same place of two sequences", drawn, [(fate[::2], fate[1::2]) for fate in fates], same)
    alike("targets in the same place of two sequences", drawn, [mirrored(fate) for fate in fates], same)
    alike("targets in the same place of two calls", drawn, list(zip(fates[::2], fates[1::2], strict=True)), same)
    mask_share = chance.DEFAULT_RATES[0]
    for what, part in (
        ("in the first halves of the sequences", [fate[:, : fate.shape[1] // 2] for fate in fates]),
        ("with every second id", [fate[ids % 2 == 0] for fate, ids in zip(fates, drawn.ids, strict=True)]),
    ):
        some = np.concatenate([array.ravel() for array in part])
        bounds = chance.binomial_bounds(int((some >= 0).sum()), mask_share)
        if outside(int((some == MASKED).sum()), bounds):
            drawn.fail(
                f"Of {int((some >= 0).sum())} targets {what}, {int((some == MASKED).sum())} became [MASK]; "
                f"{spell(bounds)} are likely.",
                "one-decision-for-many",
            )
    varied("sequence", drawn, [row for fate in fates for row in fate])
    varied("call", drawn, fates)

    drawn = sample(student, seed, chance.SELECTION)
    same = chance.agreement(chance.DEFAULT_RATES, drawn.design.ordinary)
    rows = [
        row[chosen] for f, s in zip(drawn.fate, drawn.selected, strict=True) for row, chosen in zip(f, s, strict=True)
    ]
    alike("successive targets", drawn, [halves(row[None]) for row in rows], same)
    varied("sequence", drawn, rows, rest=False)
    varied(
        "call",
        drawn,
        [fate[selected] for fate, selected in zip(drawn.fate, drawn.selected, strict=True)],
        rest=False,
    )


def alike(what: str, drawn: Sample, pairs: Sequence[tuple[np.ndarray, np.ndarray]], probability: float) -> None:
    """Fail if two targets meet the same fate too often or too rarely; entries below 0 are no targets."""
    one, other = (np.concatenate([np.ravel(pair[side]) for pair in pairs]) for side in (0, 1))
    valid = (one >= 0) & (other >= 0)
    count, n = int((one == other)[valid].sum()), int(valid.sum())
    bounds = chance.binomial_bounds(n, probability)
    if outside(count, bounds):
        drawn.fail(
            f"Of {n} pairs of {what}, {count} met the same fate; {spell(bounds)} are likely if each decides alone.",
            "one-decision-for-many" if count > bounds[1] else "quota-instead-of-chance",
        )


def varied(what: str, drawn: Sample, groups: Sequence[np.ndarray], rest: bool = True) -> None:
    """Fail if the number of masked targets in a group lies at its mean too often or too rarely.

    rest: look also at the number of changed ones among those that are not masked.
    """
    mask, changed, kept = chance.seen(*chance.DEFAULT_RATES, drawn.design.ordinary)
    kinds: list[tuple[int, tuple[int, ...], float]] = [(MASKED, (MASKED, CHANGED, KEPT), mask)]
    if rest:
        kinds.append((CHANGED, (CHANGED, KEPT), changed / (changed + kept)))
    for fate, among, share in kinds:
        near, chances = 0, []
        for group in groups:
            n = int(np.isin(group, among).sum())
            near += chance.is_near(int((group == fate).sum()), n, share)
            chances.append(chance.near(n, share))
        bounds = chance.poisson_binomial(chances).bounds()
        if outside(near, bounds):
            drawn.fail(
                f"The number of targets {FATES[fate]} in a {what} lies within 1 of its mean in {near} of "
                f"{len(groups)} cases; {spell(bounds)} are likely if each token decides on its own.",
                "quota-instead-of-chance" if near > bounds[1] else "one-decision-for-many",
            )


@pytest.mark.worth("mask_tokens", 0.25, misconception="random-range")
def test_random_ids_uniform(student: Student, seed: int) -> None:
    """A random token is a uniform draw from all of ordinary_ids: the first, the last and the original included.

    A right solution fails with probability below 4e-12.
    Detected with probability above 0.999: one id of V missing; the original excluded.
    """
    drawn = sample(student, seed, chance.REPLACEMENTS, (0.0, 1.0))
    size = drawn.design.ordinary
    new, old = (np.concatenate([np.ravel(array) for array in arrays]) for arrays in (drawn.new, drawn.ids))
    chosen = np.concatenate([np.ravel(selected) for selected in drawn.selected])
    new, old = new[chosen], old[chosen]
    bounds = chance.binomial_bounds(len(new), 1 / size)
    if outside(int((new == old).sum()), bounds):
        drawn.fail(
            f"{int((new == old).sum())} of {len(new)} random tokens are the original; of {size} ordinary ids it is "
            f"1 in {size}, or {spell(bounds)}.",
            "original-excluded",
        )
    bounds = chance.binomial_bounds(len(new), 1 / size, chance.ALPHA / size)
    for id_ in range(0, 3 * size, 3):
        if outside(int((new == id_).sum()), bounds):
            drawn.fail(
                f"Of {len(new)} random tokens, {int((new == id_).sum())} are {id_}; for each of {size} ordinary ids "
                f"{spell(bounds)} are likely.",
                "random-range",
            )
    # In the default mix, too: there the same draw may have decided the fate.
    drawn = sample(student, seed, chance.SELECTION)
    new, old = changed_tokens(drawn)
    size = drawn.design.ordinary
    for id_ in range(0, 3 * size, 3):
        n = int((old != id_).sum())
        bounds = chance.binomial_bounds(n, 1 / (size - 1), chance.ALPHA / size)
        if outside(int((new == id_).sum()), bounds):
            drawn.fail(
                f"Of {n} tokens that changed into another one, {int((new == id_).sum())} became {id_}; "
                f"{spell(bounds)} are likely.",
                "random-range",
            )


def changed_tokens(drawn: Sample) -> tuple[np.ndarray, np.ndarray]:
    """(new, old) ids of the targets that became another token."""
    chosen = [s & (f == CHANGED) for s, f in zip(drawn.selected, drawn.fate, strict=True)]
    pick = [np.concatenate([a[c] for a, c in zip(arrays, chosen, strict=True)]) for arrays in (drawn.new, drawn.ids)]
    return pick[0], pick[1]


@pytest.mark.worth("mask_tokens", 0.1, misconception="one-decision-for-many")
def test_random_ids_independent(student: Student, seed: int) -> None:
    """Each random token is drawn by itself: neither one id for many positions, nor ids dealt out like cards.

    A right solution fails with probability below 8e-12.
    Detected with probability above 0.999: one id a sequence; ids dealt like cards.
    """
    drawn = sample(student, seed, chance.REPLACEMENTS, (0.0, 1.0))
    size = drawn.design.ordinary
    new = [np.where(selected, array, -1) for array, selected in zip(drawn.new, drawn.selected, strict=True)]
    alike_ids = "one id for many positions" if any(len(np.unique(array)) < size // 2 for array in new) else ""
    alike("neighbouring targets", drawn, [halves(array) for array in new], 1 / size)
    alike("targets in the same place of two sequences", drawn, [(a[::2], a[1::2]) for a in new], 1 / size)
    alike("targets in the same place of two sequences", drawn, [mirrored(array) for array in new], 1 / size)
    alike("targets in the same place of two calls", drawn, list(zip(new[::2], new[1::2], strict=True)), 1 / size)
    for id_ in (0, 3 * (size // 2), 3 * (size - 1)):
        near, chances = 0, []
        for array in new:
            n = int((array >= 0).sum())
            near += chance.is_near(int((array == id_).sum()), n, 1 / size)
            chances.append(chance.near(n, 1 / size))
        bounds = chance.poisson_binomial(chances).bounds()
        if outside(near, bounds):
            drawn.fail(
                f"The number of tokens that became {id_} lies within 1 of its mean in {near} of {len(new)} calls; "
                f"{spell(bounds)} are likely. {alike_ids}",
                "quota-instead-of-chance" if near > bounds[1] else "one-decision-for-many",
            )


@pytest.mark.worth("mask_tokens", 0.1, misconception="random-range")
def test_large_vocabulary(student: Student, device: torch.device, seed: int) -> None:
    """All this holds for T = 512 and 30,000 ordinary ids as well.

    A right solution fails with probability below 2e-12.
    Detected with probability above 0.999: one group of ids missing.
    """
    design = chance.LARGE
    pool = torch.arange(0, 70_000)
    pool = pool[(pool % 7 < 3) & (pool != 2)][: design.ordinary]  # 0, 1, 7, 8, 9, 14 … 69,998
    rng = np.random.default_rng(5)
    ids = pool[torch.as_tensor(rng.integers(0, design.ordinary, (design.rows, design.length)))]
    attention, special = torch.ones_like(ids), torch.zeros_like(ids)
    special[:, 0], attention[:, design.candidates[0] + 1 :] = 1, 0
    case = Case(ids.to(device), attention.to(device), special.to(device), 2, pool.to(device))
    one = source(seed, 30_000, device)
    got = case.masked_by(student, one)
    call = student.last
    new, labels, selected = read(got, call, case.shape, "input_ids", "labels", "selected")
    some_target(selected, call)
    expect.close(selected & ~case.candidates, torch.zeros_like(selected), call, what="selection off the candidates")
    expect.close(labels, torch.where(selected, ids, -100), call, what="labels")
    expect.close(torch.where(selected, ids, new), ids, call, what="ids that are not selected")
    got = case.masked_by(student, one, mlm_probability=1.0, mask_rate=0.0, random_rate=1.0)
    call = student.last
    new, selected = read(got, call, case.shape, "input_ids", "selected")
    some_target(selected, call)
    drawn = new[selected & case.candidates]
    if not bool(torch.isin(drawn, pool).all()):
        bad = drawn[~torch.isin(drawn, pool)]
        expect.wrong(f"{call.text}\nput {int(bad[0])}, which is no ordinary id.", "random-id-not-ordinary")
    groups = (torch.searchsorted(pool, drawn) * chance.LARGE_GROUPS) // design.ordinary
    bounds = chance.binomial_bounds(len(drawn), 1 / chance.LARGE_GROUPS, chance.ALPHA / chance.LARGE_GROUPS)
    for group, count in enumerate(torch.bincount(groups, minlength=chance.LARGE_GROUPS).tolist()):
        if outside(count, bounds):
            expect.wrong(
                f"{call.text}\nOf {len(drawn)} random tokens, {count} are from part {group + 1} of "
                f"{chance.LARGE_GROUPS} equal parts of ordinary_ids; {spell(bounds)} are likely.",
                "random-range",
            )


@pytest.mark.worth("mask_tokens", 0.15, misconception="position-bias")
def test_guaranteed_target_uniform(student: Student, seed: int) -> None:
    """The target that a sequence gets in any case is uniform among its candidates, and independent of other sequences'.

    A right solution fails with probability below 3e-12.
    Detected with probability above 0.999: always the first candidate; never the last candidate; the same place in every
    sequence.
    """
    drawn = sample(student, seed, chance.GUARANTEE)
    both, overlaps = 0, []
    for count in drawn.design.candidates[1:]:
        here = [selected for selected in drawn.selected if selected.shape[1] == count]
        every = np.concatenate(here)
        bounds = chance.poisson_binomial(k / count for k in every.sum(axis=1).tolist()).bounds(chance.ALPHA / 20)
        for place, times in enumerate(every.sum(axis=0).tolist()):
            if outside(times, bounds):
                drawn.fail(
                    f"In {len(every)} sequences of {count} candidates, number {place + 1} was selected {times} times; "
                    f"{spell(bounds)} are likely.",
                    "position-bias",
                )
        for selected in here:
            for one, other in zip(selected[::2], selected[1::2], strict=True):
                both += int((one & other).sum())
                overlaps.append(chance.overlap(count, int(one.sum()), int(other.sum())))
    bounds = chance.total(overlaps).bounds()
    if outside(both, bounds):
        drawn.fail(
            f"In {len(overlaps)} pairs of sequences the targets stand in the same place {both} times; "
            f"{spell(bounds)} are likely.",
            "same-mask-in-all-sequences",
        )


@pytest.mark.worth("mask_tokens", 0.1, misconception="wrong-split")
def test_guaranteed_target_corrupted(student: Student, seed: int) -> None:
    """The target that a sequence gets in any case is corrupted like any other.

    A right solution fails with probability below 3e-12.
    Detected with probability above 0.999: always masked; never corrupted.
    """
    split_fault(sample(student, seed, chance.GUARANTEE), chance.DEFAULT_RATES)


# -- mask_tokens: bad input --------------------------------------------------------------------------------------------
TENSORS = ("input_ids", "attention_mask", "special_tokens_mask")
#: Numbers cannot change; the witness compares them all the same, and NaN is never equal to itself.
MUTABLE = (*TENSORS, "ordinary_ids")


def plain_case(device: torch.device, m: int = 3, length: int = 7) -> Case:
    """Ordinary ids throughout, one special token, one padded position."""
    ids = torch.arange(m * length).view(m, length) % 9 + 20
    attention, special = torch.ones_like(ids), torch.zeros_like(ids)
    special[:, 0], attention[0, -1] = 1, 0
    return Case(ids.to(device), attention.to(device), special.to(device), 4, torch.arange(20, 29, device=device))


def refuses(
    student: Student, case: Case, *, names: Sequence[str], because: str, values: Sequence[float] = (), **changes: Any
) -> None:
    """Fail unless mask_tokens raises the contract's ValueError for this case."""
    given = {"mask_token_id": case.mask_token_id, "ordinary_ids": case.ordinary_ids, **changes}
    one = generator(0, case.input_ids.device)
    expect.refuses(student.mask_tokens, *case[:3], names=names, values=values, because=because, **given, generator=one)


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
            names=("mlm_probability",),
            values=(bad,),
            because=f"mlm_probability {bad} is outside (0, 1]",
            mlm_probability=bad,
        )


@pytest.mark.worth("mask_tokens", 0.05, misconception="bad-input-accepted")
def test_refuses_negative_rates(student: Student, device: torch.device, seed: int) -> None:
    """A negative rate is refused."""
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


# -- collate_mlm -------------------------------------------------------------------------------------------------------
_spare = torch.Generator().manual_seed(5)
#: Which of collate_mlm's witnessed moves of a global generator may be the fault of the submission's mask_tokens.
_excused: WeakKeyDictionary[Student, set[int]] = WeakKeyDictionary()


def right_mask_tokens(*args: Any, **kwargs: Any) -> MaskedBatch:
    """A right mask_tokens that collate_mlm may call instead of the submission's, with arguments in any form."""
    names = EXERCISES[5].by_name["mask_tokens"].parameters
    given = dict(zip(names, args, strict=False)) | kwargs
    given = {name: value for name, value in given.items() if name in names}
    for name in (*TENSORS, "ordinary_ids"):
        if name in given:
            given[name] = torch.as_tensor(given[name])
    if given.get("generator") is None:  # the grader's own default generator stays as it is
        given["generator"] = _spare
    return oracle.mask_tokens(**given)


def forgiving(student: Student, check: Callable[[], None]) -> None:
    """Make a check of collate_mlm with a right mask_tokens in the place of the submission's.

    A collate_mlm that does its own masking, or that depends on more than the contract says of its mask_tokens, may pass
    with what was handed in instead.
    """
    try:
        with student.replacing(mask_tokens=right_mask_tokens):
            check()
        return
    except (expect.Wrong, RemoteError) as error:
        if isinstance(error, RemoteError) and error.raised.base == "NotImplementedError":
            raise
        fault = error
    moved = student.witness("collate_mlm").moved
    before = len(moved)
    try:
        check()
    except (expect.Wrong, RemoteError):
        raise fault from None
    finally:
        _excused.setdefault(student, set()).update(range(before, len(moved)))


class Texts(NamedTuple):
    """Examples for collate_mlm and what is known of their batch beforehand."""

    examples: list[list[int]]
    vocabulary: Vocabulary

    @property
    def ids(self) -> torch.Tensor:
        return oracle.padded(self.examples, self.vocabulary)[0]

    @property
    def attention(self) -> torch.Tensor:
        return oracle.padded(self.examples, self.vocabulary)[1].bool()

    @property
    def candidates(self) -> torch.Tensor:
        return self.attention & (oracle.special(self.ids, self.vocabulary) == 0)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.ids.shape)

    def collated_by(self, student: Student, one: torch.Generator | None, **changes: Any) -> Any:
        return student.collate_mlm(
            [list(example) for example in self.examples], self.vocabulary, **changes, generator=one
        )


def make_texts(number: int, lengths: Sequence[int]) -> Texts:
    """Texts of these lengths, [CLS] first and [SEP] last; all special ids, [PAD] too, stand inside and at ends.

    Some end in [PAD], which is a token there all the same.  Special ids lie anywhere in the vocabulary.
    """
    rng = np.random.default_rng(number)
    size = 70_000 if number % 5 == 4 else int(rng.integers(11, 40))
    pad, cls, sep, mask, unk = (
        int(i) for i in rng.choice(np.arange(number % 2, size - number // 2 % 2), 5, replace=False)
    )
    vocabulary = Vocabulary(size, pad, cls, sep, mask, unk)
    examples = []
    for length in lengths:
        inside = rng.integers(0, size, length)
        odd = rng.random(length) < 0.2
        inside[odd] = rng.choice([pad, pad, sep, mask, unk, cls], int(odd.sum()))
        example = [int(i) for i in inside]
        example[0] = cls
        if length > 1:
            example[-1] = sep
        if length > 3 and number % 3 == 0:
            example[-2] = pad
        if length > 3 and number % 3 == 1:
            example[-2:] = sep, pad
        examples.append(example)
    longest = examples[int(np.argmax(lengths))]
    longest[1] = int(vocabulary.ordinary_ids[number % (size - 5)])
    return Texts(examples, vocabulary)


LENGTHS = st.lists(st.sampled_from([1, 2, 3, 5, 7, 11, 13]), min_size=1, max_size=7).filter(lambda each: max(each) > 2)


@given(lengths=LENGTHS, number=seeds)
@settings(max_examples=15)
@pytest.mark.worth("collate_mlm", 0.2, misconception="wrong-kind-of-batch")
def test_collate_form(student: Student, seed: int, lengths: list[int], number: int) -> None:
    """The result is a MaskedBatch of (m, T) tensors, T the longest length: int64 ids and labels, a 0/1 attention mask,
    a boolean selection."""
    made = make_texts(number, lengths)

    def check() -> None:
        got = student.collate_mlm(examples=made.examples, vocabulary=made.vocabulary, generator=source(seed, number))
        call = student.last
        read(got, call, made.shape, "input_ids", "labels", "attention_mask", "selected")
        must_be("input_ids", got.input_ids, [torch.int64], CPU, call)
        must_be("labels", got.labels, [torch.int64], CPU, call)
        must_be("selected", got.selected, [torch.bool], CPU, call)
        integers = [torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64]
        must_be("attention_mask", got.attention_mask, integers, CPU, call)
        some_target(got.selected, call)

    forgiving(student, check)


@given(lengths=LENGTHS, number=seeds)
@example(lengths=[7, 1031], number=5)
@pytest.mark.worth("collate_mlm", 0.45, misconception="wrong-padding")
def test_collate_pads_right_to_the_longest(student: Student, seed: int, lengths: list[int], number: int) -> None:
    """Texts are filled up with pad_id on the right, to the longest of the batch."""
    made = make_texts(number, lengths)

    def check() -> None:
        got = made.collated_by(student, source(seed, number), mlm_probability=0.5)
        call = student.last
        new, selected = read(got, call, made.shape, "input_ids", "selected")
        some_target(selected, call)
        fixed = ~made.candidates | ~selected
        left = [[made.vocabulary.pad_id] * (made.shape[1] - len(e)) + e for e in made.examples]
        zeros = [e + [0] * (made.shape[1] - len(e)) for e in made.examples]
        expect.close(
            torch.where(fixed, new, made.ids),
            made.ids,
            call,
            what="input_ids (off the targets)",
            likely=[
                (name, lambda ids=ids: torch.where(fixed, torch.tensor(ids), made.ids))
                for name, ids in (("padding-on-the-left", left), ("padding-with-zero", zeros))
                if torch.where(fixed, torch.tensor(ids), made.ids).ne(made.ids).any()
            ],
            misconception="wrong-padding",
        )

    forgiving(student, check)


@given(lengths=LENGTHS, number=seeds)
@example(lengths=[5, 7], number=3)
@pytest.mark.worth("collate_mlm", 0.45, misconception="attention-mask-from-ids")
def test_collate_attention_mask(student: Student, seed: int, lengths: list[int], number: int) -> None:
    """The attention mask is 1 at the tokens of each text and 0 at the padding: a pad_id inside a text is a token."""
    made = make_texts(number, lengths)

    def check() -> None:
        got = made.collated_by(student, source(seed, number))
        call = student.last
        attention, selected = read(got, call, made.shape, "attention_mask", "selected")
        if not got.attention_mask.eq(attention.to(got.attention_mask.dtype)).all():
            expect.wrong(f"attention_mask of {call.text}\nholds other values than 0 and 1: {show(got.attention_mask)}")
        some_target(selected, call)
        likely = [
            ("attention-mask-from-ids", made.ids != made.vocabulary.pad_id),
            ("attention-mask-from-ids", lambda: got.input_ids != made.vocabulary.pad_id),
            ("mask-polarity", ~made.attention),
            ("attention-mask-from-ids", made.candidates),
        ]
        expect.close(attention, made.attention, call, what="attention_mask", likely=likely)

    forgiving(student, check)


@given(lengths=LENGTHS, number=seeds)
@pytest.mark.worth("collate_mlm", 0.45, misconception="special-or-padding-selected")
def test_collate_spares_special_tokens(student: Student, seed: int, lengths: list[int], number: int) -> None:
    """Special tokens and padding are never targets, wherever they stand, and every other token may be one.

    With mlm_probability 1 it is.
    """
    made = make_texts(number, lengths)

    def check() -> None:
        got = made.collated_by(student, source(seed, number), mlm_probability=1.0)
        call = student.last
        labels, selected = read(got, call, made.shape, "labels", "selected")
        bad = selected & ~made.candidates
        if bool(bad.any()):
            row, place = first(bad)
            names = dict(zip(made.vocabulary[1:], ("[PAD]", "[CLS]", "[SEP]", "[MASK]", "[UNK]"), strict=True))
            kind = names[int(made.ids[row, place])] if bool(made.attention[row, place]) else "padding"
            expect.wrong(
                f"{call.text}\nselected {kind} at [{row}, {place}]; special tokens and padding are no targets."
            )
        expect.close(selected, made.candidates, call, what="selected", misconception="candidates-left-out")
        expect.close(
            labels, torch.where(made.candidates, made.ids, -100), call, what="labels", misconception="wrong-labels"
        )

    forgiving(student, check)


@given(lengths=LENGTHS, number=seeds, ignored=st.sampled_from([-1, -7, 1000]))
@settings(max_examples=10)
@pytest.mark.worth("collate_mlm", 0.2, misconception="ignore-index-fixed")
def test_collate_ignore_index(student: Student, seed: int, lengths: list[int], number: int, ignored: int) -> None:
    """ignore_index is handed on: every label off the selection is the value given."""
    made = make_texts(number, lengths)

    def check() -> None:
        got = made.collated_by(student, source(seed, number), mlm_probability=0.5, ignore_index=ignored)
        call = student.last
        labels, selected = read(got, call, made.shape, "labels", "selected")
        some_target(selected, call)
        likely = [("ignore-index-fixed", torch.where(selected, made.ids, -100))]
        expect.close(labels, torch.where(selected, made.ids, ignored), call, what="labels", likely=likely)

    forgiving(student, check)


#: Specials in the middle of the vocabulary, the first and the last id ordinary.
SCATTERED = Vocabulary(size=31, pad_id=7, cls_id=12, sep_id=3, mask_id=19, unk_id=25)


def long_texts(design: chance.Design, call: int) -> Texts:
    """Texts with so many candidates each, and 2 … 6 special tokens."""
    rng = np.random.default_rng(call)
    count = design.candidates[call // 2 % len(design.candidates)]
    examples = []
    for row in range(design.rows):
        text = rng.choice(SCATTERED.ordinary_ids.numpy(), count).tolist()
        for _ in range(row % 5):
            text.insert(int(rng.integers(len(text) + 1)), int(rng.choice(SCATTERED.special_ids.numpy())))
        examples.append([SCATTERED.cls_id, *text, SCATTERED.sep_id])
    return Texts(examples, SCATTERED)


def collated(student: Student, seed: int, design: chance.Design) -> list[tuple[Texts, torch.Tensor, torch.Tensor]]:
    """(texts, input_ids, selected) of the calls of that design."""
    one = source(seed, design.length)
    changes = {} if design.probability == 0.15 else {"mlm_probability": design.probability}
    results = []
    for call in range(design.calls):
        made = long_texts(design, call)
        got = made.collated_by(student, one, **changes)
        new, selected = read(got, student.last, made.shape, "input_ids", "selected")
        results.append((made, new, selected & made.candidates))
    return results


@pytest.mark.worth("collate_mlm", 0.2, misconception="wrong-share")
def test_collate_share(student: Student, seed: int) -> None:
    """mlm_probability is handed on; it is 0.15 unless another value is given.

    A right solution fails with probability below 2e-12.
    Detected with probability above 0.999: 20% instead of 15%; 15% instead of 2%.
    """

    def check() -> None:
        for design in (chance.COLLATED, chance.COLLATED_FEW):
            counts = [int(k) for _, _, selected in collated(student, seed, design) for k in selected.sum(dim=1)]
            if not chance.share_fault(counts, design.per_sequence(), design.probability):
                continue
            expect.wrong(
                f"{student.last.text}\nselected {sum(counts)} of {design.total} candidates in {design.calls} calls as "
                f"this, a share of {sum(counts) / design.total:.3f} instead of {design.probability}."
            )

    forgiving(student, check)


@pytest.mark.worth("collate_mlm", 0.25, misconception="wrong-split")
def test_collate_split(student: Student, seed: int) -> None:
    """Targets become [MASK], any of vocabulary.ordinary_ids, or stay, as 80/10/10.

    A right solution fails with probability below 5e-12.
    Detected with probability above 0.999: 80/2/18; one ordinary id missing.
    """
    design = chance.COLLATED_ALL

    def check() -> None:
        results = collated(student, seed, design)
        call = student.last
        new = torch.cat([new[selected] for _, new, selected in results])
        old = torch.cat([made.ids[selected] for made, _, selected in results])
        if len(new) == 0:
            expect.wrong(f"{call.text}\nselected no token at all.", "sequence-without-target")
        ordinary = SCATTERED.ordinary_ids
        bad = (new != SCATTERED.mask_id) & ~torch.isin(new, ordinary)
        if bool(bad.any()):
            expect.wrong(
                f"{call.text}\nput the special id {int(new[bad][0])} in the place of a token; random tokens are drawn "
                f"from vocabulary.ordinary_ids.",
                "random-id-not-ordinary",
            )
        fates = (new == SCATTERED.mask_id, (new != old) & (new != SCATTERED.mask_id), new == old)
        for fate, share, name in zip(fates, chance.seen(*chance.DEFAULT_RATES, design.ordinary), FATES, strict=True):
            bounds = chance.binomial_bounds(len(new), share)
            if outside(int(fate.sum()), bounds):
                expect.wrong(
                    f"{call.text}\nOf {len(new)} targets in {design.calls} such calls, {int(fate.sum())} were {name}; "
                    f"{spell(bounds)} are likely."
                )
        changed = fates[CHANGED]
        for id_ in ordinary.tolist():
            n = int((changed & (old != id_)).sum())
            bounds = chance.binomial_bounds(n, 1 / (design.ordinary - 1), chance.ALPHA / design.ordinary)
            if outside(int((changed & (new == id_)).sum()), bounds):
                expect.wrong(
                    f"{call.text}\nOf {n} tokens that changed into another one, {int((changed & (new == id_)).sum())} "
                    f"became {id_}, an ordinary id; {spell(bounds)} are likely.",
                    "random-range",
                )

    forgiving(student, check)


@pytest.mark.worth("collate_mlm", 0.2, misconception="other-random-source")
def test_collate_hands_on_the_generator(student: Student, seed: int) -> None:
    """All chance comes from the generator given: the same state gives the same batch, a second call a new one.

    A right solution fails with probability below 1e-14.
    Detected with probability above 0.999: a generator seeded again.
    """
    made = make_texts(4, [60, 50, 70])

    def result(one: torch.Generator | None, probability: float = 0.4) -> torch.Tensor:
        got = made.collated_by(student, one, mlm_probability=probability)
        fields = read(got, student.last, made.shape, "input_ids", "labels", "selected")
        some_target(fields[2], student.last)
        return torch.stack([field.long() for field in fields])

    def check() -> None:
        one, two = source(seed, 1), source(seed, 1)
        torch.rand(3, generator=one)
        two.set_state(one.get_state())
        batch, again, other = result(one), result(two), result(one)
        if not batch.equal(again):
            expect.wrong(f"{student.last.text}\ngave another batch than a call with a generator in the same state.")
        if batch[2].equal(other[2]):
            expect.wrong(f"{student.last.text}\nselected the same targets as the call before.", "same-mask-every-call")
        if result(None)[2].equal(result(None)[2]):
            expect.wrong(f"{student.last.text}\nselected the same targets as the call before.", "same-mask-every-call")
        if result(one, 1.0)[0].equal(result(one, 1.0)[0]):
            expect.wrong(f"{student.last.text}\ncorrupted all as in the call before.", "same-mask-every-call")

    forgiving(student, check)


def collates(student: Student, made: Texts, seed: int) -> None:
    """Make a valid call.  Fails if its labels are not the ids of the selected tokens."""
    got = made.collated_by(student, source(seed, 0), mlm_probability=0.9)
    call = student.last
    labels, selected = read(got, call, made.shape, "labels", "selected")
    some_target(selected, call)
    expect.close(labels[selected], made.ids[selected], call, what="labels[selected]", misconception="wrong-labels")


@pytest.mark.worth("collate_mlm", 0.05, misconception="bad-input-accepted")
def test_collate_refuses_no_examples(student: Student, seed: int) -> None:
    """A batch of no examples is refused with a ValueError that names `examples`."""

    def check() -> None:
        collates(student, make_texts(0, [7]), seed)
        expect.refuses(
            student.collate_mlm,
            [],
            SCATTERED,
            names=("examples", "example"),
            because="there are no examples",
            generator=source(seed, 0),
        )

    forgiving(student, check)


@pytest.mark.worth("collate_mlm", 0.1, misconception="bad-input-accepted")
def test_collate_refuses_an_empty_example(student: Student, seed: int) -> None:
    """A batch with an empty example is refused, wherever it stands."""
    good = make_texts(2, [7, 4, 9])

    def check() -> None:
        collates(student, good, seed)
        texts_ = good.examples
        batches: list[list[list[int]]] = [[[], *texts_], [*texts_, []], [texts_[0], [], texts_[1]], [[]], [[], []]]
        for bad in batches:
            expect.refuses(
                student.collate_mlm,
                bad,
                good.vocabulary,
                names=("examples", "example"),
                because=f"examples[{bad.index([])}] is empty",
                generator=source(seed, 0),
            )

    forgiving(student, check)


@pytest.mark.worth("collate_mlm", 0.25, misconception="bad-input-accepted")
def test_collate_refuses_ids_outside_the_vocabulary(student: Student, seed: int) -> None:
    """An id outside [0, vocabulary.size) is refused, and the message shows it; the first and the last id are fine."""
    good = Texts([[12, 0, 30, 8, 3], [12, 30, 3], [12, 0, 5, 6, 7, 8, 3]], SCATTERED)

    def check() -> None:
        collates(student, good, seed)
        for row, place, id_ in ((0, 2, 31), (1, 1, -1), (2, 6, 31), (2, 0, 1234), (1, 2, -100), (0, 1, -31)):
            bad = [list(example) for example in good.examples]
            bad[row][place] = id_
            expect.refuses(
                student.collate_mlm,
                bad,
                SCATTERED,
                names=("examples", "example", "vocabulary"),
                values=(id_,),
                because=f"examples[{row}] holds {id_}, outside [0, 31)",
                generator=source(seed, 0),
            )

    forgiving(student, check)


@pytest.mark.worth("collate_mlm", 0.2, misconception="input-mutated")
def test_collate_leaves_examples_alone(student: Student, seed: int) -> None:
    """Neither the lists of examples nor a global random generator is touched."""
    witness = student.witness("collate_mlm")

    def check() -> None:
        for number, lengths in enumerate(([7, 3, 5], [4, 4], [1, 9])):
            collates(student, make_texts(number, lengths), seed)
            make_texts(number, lengths).collated_by(student, source(seed, number))
        mutated = [(call, argument) for call, argument in witness.mutated if argument in {"examples", "vocabulary"}]
        if mutated:
            call, argument = mutated[0]
            expect.wrong(f"{call}\nchanged its argument `{argument}`; inputs belong to the caller.", "input-mutated")
        # Earlier calls count, too: seeding a global generator with a constant moves it only once.
        for number, (call, name) in enumerate(witness.moved):
            if number not in _excused.get(student, ()) and "generator=Generator(" in call:
                expect.wrong(f"{call}\nmoved the global random generator of {name}.", "global-generator")

    forgiving(student, check)

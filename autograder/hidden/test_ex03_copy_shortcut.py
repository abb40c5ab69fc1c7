"""Hidden checks of exercise 3: the copy rule, its loss, how often it is right, and how good it can get."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.hidden import expect
from autograder.hidden.oracles import ex03 as oracle
from autograder.hidden.strategies import integers, seeds, sizes
from autograder.wire.errors import RemoteError
from autograder.wire.proxy import Student

LAYOUTS = ("transposed", "every second of", "first of three", "expanded")


def ids(seed: int, shape: tuple[int, int], vocab_size: int, device: torch.device) -> torch.Tensor:
    """Ids in [0, vocab_size), the last one at the front and 0 at the end."""
    out = integers(seed, shape, 0, vocab_size, device)
    out[-1, -1] = 0
    out[0, 0] = vocab_size - 1
    return out


def laid_out(values: torch.Tensor, layout: str) -> torch.Tensor:
    """The values in another memory layout; "expanded" repeats the first row without copying it."""
    if layout == "transposed":
        return values.T.contiguous().T
    if layout == "every second of":
        wide = values.repeat_interleave(2, dim=1)
        wide[:, 1::2] = 1
        return wide[:, ::2]
    if layout == "first of three":
        deep = torch.stack([values, torch.ones_like(values), torch.ones_like(values)], dim=-1)
        return deep[..., 0]
    return values[:1].expand(values.shape)


# -- copy_logits ------------------------------------------------------------------------------------------------------
def check_logits(student: Student, input_ids: torch.Tensor, vocab_size: int, scale: float) -> None:
    expected = oracle.copy_logits(input_ids, vocab_size, scale)
    got = student.copy_logits(input_ids, vocab_size, scale)
    expect.close(
        got,
        expected,
        student.last,
        likely=[
            ("dtype-changed", expected),
            ("scale-left-out", (expected != 0).float() if scale else None),
            ("scale-left-out", torch.where(expected == 0, -scale, 0.0)),
            ("probabilities-for-scores", lambda: torch.softmax(expected, dim=-1)),
            ("probabilities-for-scores", lambda: torch.log_softmax(expected, dim=-1)),
            ("uses-context", lambda: expected.roll(1, dims=1)),
            ("uses-context", lambda: expected.roll(-1, dims=1)),
        ],
    )


@pytest.mark.worth("copy_logits", 0.5)
@given(draw=seeds, size=sizes(3), scale=st.sampled_from((0.5, 1.0, 3.0, 7.25)))
def test_logits_put_scale_on_the_token_seen(
    student: Student, device: torch.device, draw: int, size: tuple[int, ...], scale: float
) -> None:
    """The score at a position is `scale` for the token that stands there, and 0 for the other V - 1."""
    m, length, vocab_size = size
    check_logits(student, ids(draw, (m, length), vocab_size, device), vocab_size, scale)
    check_logits(student, ids(draw + 1, (m, length), vocab_size, device), vocab_size, scale)


@pytest.mark.worth("copy_logits", 0.3)
def test_logits_at_any_scale(student: Student, device: torch.device, seed: int) -> None:
    """The result is float32 whatever the scale: 0, large, negative, an int, or a fraction that double holds better."""
    input_ids = ids(seed, (3, 5), 7, device)
    for scale in (2.5, 0.0, 1e4, 0.1, 1e-3, -2.5, -1e4, math.pi, 100.0, 1e6, 5, 0):
        check_logits(student, input_ids, 7, scale)


@pytest.mark.worth("copy_logits", 0.15)
def test_logits_of_small_batches(student: Student, device: torch.device, seed: int) -> None:
    """One sequence, one token, two ids in the vocabulary, the first and the last id: each works like any other size."""
    for m, length, vocab_size in itertools.product((1, 3), (1, 5), (2, 7)):
        input_ids = ids(seed, (m, length), vocab_size, device)
        check_logits(student, input_ids, vocab_size, 2.5)
        check_logits(student, torch.zeros_like(input_ids), vocab_size, 2.5)
        check_logits(student, torch.full_like(input_ids, vocab_size - 1), vocab_size, 2.5)


@pytest.mark.worth("copy_logits", 0.2)
def test_logits_at_realistic_size(student: Student, device: torch.device, seed: int) -> None:
    """Thousands of ids and sequences of 512 tokens give every token its own score."""
    check_logits(student, ids(seed, (2, 512), 13, device), 13, 2.5)
    vocab_size = 4003
    check_logits(student, ids(seed, (2, 5), vocab_size, device), vocab_size, 2.5)
    neighbours = torch.tensor([[2047, 2048, 2049, 2050, 2051], [255, 256, 257, 258, 4001]], device=device)
    check_logits(student, neighbours, vocab_size, 9.5)


@pytest.mark.worth("copy_logits", 0.15, misconception="strides-ignored")
def test_logits_in_any_memory_layout(student: Student, device: torch.device, seed: int) -> None:
    """Transposed, sliced and expanded ids are read like any others."""
    for layout in LAYOUTS:
        check_logits(student, laid_out(ids(seed, (3, 5), 7, device), layout), 7, 2.5)


def check_refused_ids(student: Student, device: torch.device, seed: int, bad_ids: Sequence[int]) -> None:
    """Each of these ids is refused, wherever it stands."""
    good = ids(seed, (3, 5), 11, device)
    check_logits(student, good, 11, 2.5)
    for bad, place in itertools.product(bad_ids, ((0, 0), (2, 4), (0, 4), (1, 2))):
        changed = good.clone()
        changed[place] = bad
        expect.refuses(
            student.copy_logits,
            changed,
            11,
            2.5,
            names=("input_ids", "vocab_size"),
            values=(bad,),
            because=f"the id {bad} is outside [0, 11)",
            misconception="negative-id-wraps" if bad < 0 else "bad-input-accepted",
        )
    single = torch.tensor([[bad_ids[0]]], device=device)
    expect.refuses(
        student.copy_logits,
        single,
        11,
        2.5,
        names=("input_ids", "vocab_size"),
        values=(bad_ids[0],),
        because=f"the id {bad_ids[0]} is outside [0, 11)",
    )


@pytest.mark.worth("copy_logits", 0.2, misconception="bad-input-accepted")
def test_logits_refuse_ids_past_the_vocabulary(student: Student, device: torch.device, seed: int) -> None:
    """An id that is not below vocab_size is refused with a ValueError."""
    check_refused_ids(student, device, seed, (11, 12, 29, 2**16 + 3, 2**32 + 3))


@pytest.mark.worth("copy_logits", 0.2, misconception="negative-id-wraps")
def test_logits_refuse_negative_ids(student: Student, device: torch.device, seed: int) -> None:
    """A negative id is refused with a ValueError; it does not count from the end of the vocabulary."""
    check_refused_ids(student, device, seed, (-1, -2, -11, -12, -100))


@pytest.mark.worth("copy_logits", 0.2, misconception="input-mutated")
def test_logits_leave_the_ids_alone(student: Student, device: torch.device, seed: int) -> None:
    """The ids are the same after the call as before, and no random generator has moved."""
    for shape, scale in itertools.product(((1, 1), (1, 5), (3, 5)), (0.0, 2.5, 1e4)):
        check_logits(student, ids(seed, shape, 7, device), 7, scale)
    expect.unchanged(student, "copy_logits")


@pytest.mark.worth("copy_logits", 0.1, misconception="wrong-device")
def test_logits_on_device_of_ids(student: Student, device: torch.device, seed: int) -> None:
    """The scores are on the device of the ids."""
    with student.device_trap() as faults:
        check_logits(student, ids(seed, (3, 5), 7, device), 7, 2.5)
    if faults:
        expect.wrong(f"{student.last.text}\n{faults[0]}", "wrong-device")


# -- copy_loss --------------------------------------------------------------------------------------------------------
class RightLogits:
    """A right copy_logits.  calls: how often it was called."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, input_ids: torch.Tensor, vocab_size: int, scale: float) -> torch.Tensor:
        self.calls += 1
        return oracle.copy_logits(input_ids, vocab_size, scale)


def judged_alone(student: Student, check: Callable[[], None]) -> None:
    """Run the check; if it fails, once more with a right copy_logits: a fault there costs only its own checks."""
    try:
        check()
    except (expect.Wrong, RemoteError):
        if not _passes_with_right_logits(student, check):
            raise


def _passes_with_right_logits(student: Student, check: Callable[[], None]) -> bool:
    with student.replacing(copy_logits=RightLogits()):
        try:
            check()
        except (expect.Wrong, RemoteError):
            return False
    return True


def check_loss(
    student: Student,
    input_ids: torch.Tensor,
    targets: torch.Tensor,
    selected: torch.Tensor,
    vocab_size: int,
    scale: float,
) -> None:
    args = input_ids, targets, selected, vocab_size, scale
    expected = oracle.copy_loss(*args)

    def check() -> None:
        got = student.copy_loss(*args)
        expect.close(got, expected, student.last, likely=likely_losses(*args))

    judged_alone(student, check)


def likely_losses(
    input_ids: torch.Tensor, targets: torch.Tensor, selected: torch.Tensor, vocab_size: int, scale: float
) -> list[tuple[str, Any]]:
    """What the usual mistakes give, each computed by the same loops on other arguments."""
    n, m = int(selected.sum()), len(selected)
    valid = (targets >= 0) & (targets < vocab_size)
    right = oracle.copy_loss(input_ids, targets, selected, vocab_size, scale)
    rows = [
        oracle.copy_loss(input_ids[i : i + 1], targets[i : i + 1], selected[i : i + 1], vocab_size, scale)
        if selected[i].any()
        else None
        for i in range(m)
    ]
    kept = [row for row in rows if row is not None]

    def loss(
        seen: torch.Tensor = input_ids,
        chosen: torch.Tensor = selected,
        v: int = vocab_size,
        s: float = scale,
    ) -> float | None:
        return oracle.copy_loss(seen, targets, chosen, v, s) if chosen.any() and v > 0 else None

    return [
        ("losses-summed", right * n),
        ("selection-ignored", right * n / selected.numel()),
        ("selection-ignored", lambda: loss(chosen=valid)),
        ("selection-ignored", lambda: loss(chosen=torch.ones_like(selected))),
        ("selection-inverted", lambda: loss(chosen=~selected)),
        ("sequence-means-averaged", math.fsum(kept) / len(kept)),
        ("sequence-means-averaged", math.fsum(kept) / m),
        ("sequence-means-averaged", right * n / m),
        ("log-base", right / math.log(2)),
        ("copies-the-target", lambda: loss(seen=targets)),
        ("others-miscounted", lambda: loss(v=vocab_size + 1)),
        ("others-miscounted", lambda: loss(v=vocab_size - 1)),
        ("uses-context", lambda: loss(seen=input_ids.roll(1, dims=1))),
        ("uses-context", lambda: loss(seen=input_ids.roll(-1, dims=1))),
        ("scale-left-out", lambda: loss(s=1.0)),
        ("scale-left-out", lambda: loss(s=0.0)),
    ]


Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def batch(seed: int, shape: tuple[int, int], vocab_size: int, device: torch.device, share: float = 0.5) -> Batch:
    """Ids, targets of which about half are what is seen, and a selection with at least one position."""
    input_ids = ids(seed, shape, vocab_size, device)
    other = ids(seed + 1, shape, vocab_size, device)
    same = integers(seed + 2, shape, 0, 2, device).bool()
    selected = integers(seed + 3, shape, 0, 1000, device) < 1000 * share
    if not selected.any():
        selected[shape[0] // 2, shape[1] // 2] = True
    return input_ids, torch.where(same, input_ids, other), selected


@pytest.mark.worth("copy_loss", 0.5)
@given(draw=seeds, size=sizes(3), scale=st.sampled_from((0.3, 1.0, 2.5, 6.0)))
def test_loss_is_mean_nll_of_the_rule(
    student: Student, device: torch.device, draw: int, size: tuple[int, ...], scale: float
) -> None:
    """The loss is the mean, in nats, of ln(e^scale + V - 1), less scale where the target is the token that is seen."""
    m, length, vocab_size = size
    one = torch.tensor([[0]], device=device)
    check_loss(student, one, one.clone(), one == 0, 5, math.log(4.0))
    check_loss(student, one, one + 1, one == 0, 5, math.log(4.0))
    check_loss(student, *batch(draw, (m, length), vocab_size, device), vocab_size, scale)
    check_loss(student, *batch(draw + 7, (m, length), vocab_size, device), vocab_size, scale)


@pytest.mark.worth("copy_loss", 0.4, misconception="selection-ignored")
def test_loss_averages_over_selected_positions_of_the_batch(student: Student, device: torch.device, seed: int) -> None:
    """The mean is over the selected positions of the whole batch, however unequally they lie in its sequences."""
    input_ids, targets, _ = batch(seed, (3, 7), 11, device)
    targets[0] = input_ids[0]
    targets[1] = (input_ids[1] + 1) % 11
    selected = torch.zeros_like(input_ids, dtype=torch.bool)
    selected[0, 0] = selected[1, :5] = True
    check_loss(student, input_ids, targets, selected, 11, 2.5)
    check_loss(student, input_ids, targets, selected.flip(0, 1), 11, 2.5)
    check_loss(student, input_ids, targets, torch.ones_like(selected), 11, 2.5)
    for i, j in itertools.product(range(3), (0, 3, 6)):
        only = torch.zeros_like(selected)
        only[i, j] = True
        check_loss(student, input_ids, targets, only, 11, 2.5)
    for m, length in ((1, 7), (7, 1), (1, 1)):
        for draw in range(seed, seed + 3):
            check_loss(student, *batch(draw, (m, length), 11, device), 11, 2.5)


@pytest.mark.worth("copy_loss", 0.35, misconception="reads-unselected-targets")
@given(draw=seeds, filler=st.sampled_from((-100, -1, -2, 0, 7, 11, 12, 10**9, -(2**62))))
def test_loss_ignores_targets_at_unselected_positions(
    student: Student, device: torch.device, draw: int, filler: int
) -> None:
    """What stands in targets at unselected positions does not matter, -100 or ids outside the vocabulary included."""
    input_ids, targets, selected = batch(draw, (3, 5), 11, device)
    check_loss(student, input_ids, targets.masked_fill(~selected, filler), selected, 11, 2.5)
    check_loss(student, input_ids, torch.where(selected, targets, input_ids), selected, 11, 2.5)


@pytest.mark.worth("copy_loss", 0.25, misconception="uses-context")
@given(draw=seeds)
def test_loss_looks_at_no_other_position(student: Student, device: torch.device, draw: int) -> None:
    """Tokens at unselected positions, and the order of the positions, do not change the loss."""
    input_ids, targets, selected = batch(draw, (3, 5), 7, device)
    check_loss(student, input_ids, targets, selected, 7, 2.5)
    others = integers(draw + 9, (3, 5), 0, 7, device)
    check_loss(student, torch.where(selected, input_ids, others), targets, selected, 7, 2.5)
    for shift in (1, 2):
        rolled = [t.roll(shift, dims=1) for t in (input_ids, targets, selected)]
        check_loss(student, rolled[0], rolled[1], rolled[2], 7, 2.5)
    hidden = torch.full_like(input_ids, 3)
    check_loss(student, hidden, targets, selected, 7, 2.5)


@pytest.mark.worth("copy_loss", 0.15)
def test_loss_without_scale_is_log_of_vocabulary(student: Student, device: torch.device, seed: int) -> None:
    """At scale 0 every token has the same probability, so the loss is ln V; the last target and target 0 count too."""
    for vocab_size in (2, 3, 11):
        check_loss(student, *batch(seed, (3, 5), vocab_size, device), vocab_size, 0.0)
        for target in (0, vocab_size - 1):
            input_ids, targets, selected = batch(seed, (3, 5), vocab_size, device)
            check_loss(student, input_ids, torch.full_like(targets, target), selected, vocab_size, 0)
            check_loss(student, input_ids, torch.full_like(targets, target), selected, vocab_size, 1.5)
            check_loss(student, torch.full_like(targets, target), targets, selected, vocab_size, 1.5)


@pytest.mark.worth("copy_loss", 0.4, misconception="exp-overflow")
def test_loss_at_large_scale(student: Student, device: torch.device, seed: int) -> None:
    """The loss is right for every scale up to 1e4, where e^scale is no number that a computer holds."""
    input_ids, targets, selected = batch(seed, (3, 5), 7, device)
    wrong = (input_ids + 1) % 7
    representable = (1e-3, 12.0, 20.0, 37.0, 88.0, 89.0, 104.0, 709.0, 710.0, 745.5, 746.0, 1000.0, 1e4, 10_000, 100)
    for scale in (*representable, 12.3, 20.1, 90.7, 710.1, 1234.567, 9999.9):  # float32 rounds the latter
        for wanted in (targets, input_ids, wrong):
            check_loss(student, input_ids, wanted, selected, 7, scale)
        check_loss(student, input_ids, targets, torch.ones_like(selected), 7, scale)


@pytest.mark.worth("copy_loss", 0.15)
def test_loss_at_realistic_size(student: Student, device: torch.device, seed: int) -> None:
    """Sequences of 512 tokens, and a vocabulary of thousands of tokens, give the loss that the definition gives."""
    check_loss(student, *batch(seed, (3, 512), 13, device, share=0.15), 13, 2.5)
    for scale in (1.0, 8.0, 30.0):
        check_loss(student, *batch(seed, (2, 7), 4003, device), 4003, scale)
    shown = torch.tensor([[2048, 2049, 2050, 256, 257]], device=device)
    check_loss(student, shown, shown.roll(1, dims=1), shown > 0, 4003, 8.0)


@pytest.mark.worth("copy_loss", 0.1, misconception="strides-ignored")
def test_loss_in_any_memory_layout(student: Student, device: torch.device, seed: int) -> None:
    """Transposed, sliced and expanded arguments are read like any others."""
    for shift in range(len(LAYOUTS)):
        parts = batch(seed + shift, (3, 5), 7, device)
        mixed = [laid_out(part, LAYOUTS[(i + shift) % 4]) for i, part in enumerate(parts)]
        if mixed[2].any():
            check_loss(student, mixed[0], mixed[1], mixed[2], 7, 2.5)
        alike = [laid_out(part, LAYOUTS[shift]) for part in parts]
        if alike[2].any():
            check_loss(student, alike[0], alike[1], alike[2], 7, 2.5)


@pytest.mark.worth("copy_loss", 0.2, misconception="bad-input-accepted")
def test_loss_refuses_empty_selection(student: Student, device: torch.device, seed: int) -> None:
    """A selection without any position is refused with a ValueError: there is nothing to average."""
    for shape, scale in itertools.product(((3, 5), (1, 1), (1, 7)), (0.0, 2.5, 1e4)):
        input_ids, targets, selected = batch(seed, shape, 7, device)
        check_loss(student, input_ids, targets, selected, 7, scale)
        for wanted in (targets, torch.full_like(targets, -100)):
            expect.refuses(
                student.copy_loss,
                input_ids,
                wanted,
                torch.zeros_like(selected),
                7,
                scale,
                names=("selected",),
                because="no position is selected",
            )


@pytest.mark.worth("copy_loss", 0.25, misconception="shapes-stretched")
def test_loss_refuses_unequal_shapes(student: Student, device: torch.device, seed: int) -> None:
    """Ids, targets and selection of unequal shapes are refused with a ValueError, also where one would be stretched."""
    right = batch(seed, (2, 5), 7, device)
    check_loss(student, *right, 7, 2.5)
    names = ("input_ids", "targets", "selected")
    for other in ((1, 5), (5,), (2, 1), (1, 1), (1,), (), (2, 4), (2, 6), (3, 5), (5, 2), (10,), (1, 2, 5), (2, 5, 1)):
        count = math.prod(other)
        for odd in range(3):
            for swapped in (False, True):
                parts = []
                for i, part in enumerate(right):
                    stand_in = torch.ones(count, dtype=part.dtype, device=device).reshape(other)
                    parts.append(stand_in if (i == odd) != swapped else part)
                one, rest = (other, (2, 5)) if not swapped else ((2, 5), other)
                expect.refuses(
                    student.copy_loss,
                    *parts,
                    7,
                    2.5,
                    names=names,
                    because=f"{names[odd]} has the shape {one}, the other two have {rest}",
                    misconception="shapes-stretched",
                )


@pytest.mark.worth("copy_loss", 0.15, misconception="input-mutated")
def test_loss_leaves_its_arguments_alone(student: Student, device: torch.device, seed: int) -> None:
    """Ids, targets and selection are the same after the call as before, and no random generator has moved."""

    def calls() -> None:
        for shape, scale in itertools.product(((1, 1), (1, 5), (3, 5)), (0.0, 2.5, 1e4)):
            input_ids, targets, selected = batch(seed, shape, 7, device)
            check_loss(student, input_ids, targets, selected, 7, scale)
            check_loss(student, input_ids, targets, torch.ones_like(selected), 7, scale)
            check_loss(student, input_ids, targets.masked_fill(~selected, -100), selected, 7, scale)

    calls()
    try:
        expect.unchanged(student, "copy_loss")
    except expect.Wrong:  # unless it was copy_logits, called from here, that did it
        witness, right = student.witness("copy_loss"), RightLogits()
        before = len(witness.mutated), len(witness.moved)
        with student.replacing(copy_logits=right):
            calls()
        if not right.calls or (len(witness.mutated), len(witness.moved)) != before:
            raise


@pytest.mark.worth("copy_loss", 0.1, misconception="wrong-device")
def test_loss_on_device_of_ids(student: Student, device: torch.device, seed: int) -> None:
    """The loss is computed on the device of its arguments, or on none, but never on two at once."""
    args = batch(seed, (3, 5), 7, device)

    def check() -> None:
        with student.device_trap() as faults:
            check_loss(student, *args, 7, 2.5)
        if faults:
            expect.wrong(f"{student.last.text}\n{faults[0]}", "wrong-device")

    judged_alone(student, check)


# -- match_probability ------------------------------------------------------------------------------------------------
RATES = ("mask_rate", "random_rate", "keep_rate")


#: What BERT does with a selected token.
BERT = (0.8, 0.1, 0.1)


def check_match(student: Student, split: Sequence[float], n: int) -> None:
    mask_rate, random_rate, keep_rate = split
    expected = oracle.match_probability(mask_rate, random_rate, keep_rate, n)
    expect.close(
        student.match_probability(mask_rate, random_rate, keep_rate, n),
        expected,
        student.last,
        likely=[
            ("random-share-forgotten", keep_rate),
            ("kept-share-forgotten", random_rate / n),
            ("every-unmasked-token-matches", 1 - mask_rate),
            ("random-draw-miscounted", keep_rate + random_rate / (n + 1)),
            ("random-draw-miscounted", keep_rate + random_rate / (n - 1) if n > 1 else None),
            ("random-draw-miscounted", keep_rate + random_rate * (n - 1) / n),
            ("masks-counted-as-matches", mask_rate + random_rate / n),
            ("masks-counted-as-matches", keep_rate + mask_rate / n),
            ("masks-counted-as-matches", keep_rate + (mask_rate + random_rate) / n),
        ],
    )


rates = st.tuples(st.integers(0, 1000), st.integers(0, 1000)).map(
    lambda cut: (min(cut) / 1000, (max(cut) - min(cut)) / 1000, (1000 - max(cut)) / 1000)
)


@pytest.mark.worth("match_probability", 0.5)
@given(split=rates, n=st.sampled_from((2, 3, 5, 7, 11, 30_517)))
@settings(max_examples=50)
def test_match_is_kept_or_drawn_again(student: Student, split: tuple[float, float, float], n: int) -> None:
    """A token matches if it was kept, or if the random draw from all ordinary tokens happens to give it back."""
    check_match(student, BERT, 4)
    check_match(student, split, n)


@pytest.mark.worth("match_probability", 0.3)
def test_match_at_the_ends(student: Student) -> None:
    """Rates of 0 and 1, and a single ordinary token, are as good as any."""
    for n in (1, 2, 7, 30_517):
        for split in (
            (1.0, 0.0, 0.0),
            (0.0, 1.0, 0.0),
            (0.0, 0.0, 1.0),
            (0.5, 0.5, 0.0),
            (0.5, 0.0, 0.5),
            (0.0, 0.5, 0.5),
            (0.8, 0.1, 0.1),
        ):
            check_match(student, split, n)


@pytest.mark.worth("match_probability", 0.2, misconception="rates-compared-exactly")
def test_match_accepts_rounding_in_the_sum(student: Student) -> None:
    """Rates that sum to 1 within 1e-9 are accepted: 0.7 + 0.2 + 0.1 is not exactly 1 in a computer."""
    for order in itertools.permutations((0.7, 0.2, 0.1)):
        check_match(student, order, 4)
    for k in range(1, 20):
        check_match(student, (1 - 0.05 * k, 0.05 * k - 0.01 * k, 0.01 * k), 4)
        check_match(student, (1 / 3, 1 / 3, 1 / 3), k)
    for off, which in itertools.product((9e-10, -9e-10, 1e-12, -1e-12), range(3)):
        split = list(BERT)
        split[which] += off
        check_match(student, split, 4)


def check_refused_rates(student: Student, split: Sequence[float], n: int, names: Sequence[str], because: str) -> None:
    """Those rates are refused.  The value is asked for where one rate is at fault, not where it is their sum."""
    at_fault = [rate for name, rate in zip(RATES, split, strict=True) if name in names]
    expect.refuses(
        student.match_probability,
        *split,
        n,
        names=names,
        values=at_fault if len(names) == 1 else (),
        because=because,
    )


@pytest.mark.worth("match_probability", 0.25, misconception="bad-input-accepted")
def test_match_refuses_rates_outside_the_unit_interval(student: Student) -> None:
    """A rate below 0 or above 1 is refused with a ValueError, even if the rates sum to 1."""
    for which, (bad, rest) in itertools.product(
        range(3),
        ((-0.1, (0.6, 0.5)), (-0.25, (0.25, 1.0)), (-1e-3, (0.001, 1.0)), (-0.5, (0.5, 1.0)), (-5e-10, (0.5, 0.5))),
    ):
        check_match(student, BERT, 7)
        for others in (rest, rest[::-1]):
            split = [*others[:which], bad, *others[which:]]
            check_refused_rates(student, split, 7, (RATES[which],), f"{RATES[which]} is {bad}, outside [0, 1]")
    for which, bad in itertools.product(range(3), (1.2, 2.0, 100.0, 1 + 5e-10)):  # the last sums to 1 within 1e-9
        split = [0.0, 0.0, 0.0]
        split[which] = bad
        check_refused_rates(student, split, 7, (RATES[which],), f"{RATES[which]} is {bad}, outside [0, 1]")
    for which in range(3):
        split = [-0.25, -0.25, -0.25]
        split[which] = 1.5
        expect.refuses(
            student.match_probability,
            *split,
            7,
            names=RATES,
            values=(1.5, -0.25),
            because="every rate must lie in [0, 1]",
        )


@pytest.mark.worth("match_probability", 0.15, misconception="nan-accepted")
def test_match_refuses_nan(student: Student) -> None:
    """A rate that is NaN lies in no interval and is refused with a ValueError."""
    check_match(student, BERT, 7)
    for which, rest in itertools.product(range(3), ((0.8, 0.2), (0.0, 0.0), (0.0, 1.0))):
        split = [*rest[:which], math.nan, *rest[which:]]
        expect.refuses(
            student.match_probability,
            *split,
            7,
            names=(RATES[which],),
            values=(math.nan,),
            because=f"{RATES[which]} is NaN",
            misconception="nan-accepted",
        )


@pytest.mark.worth("match_probability", 0.25, misconception="bad-input-accepted")
def test_match_refuses_rates_that_do_not_sum_to_one(student: Student) -> None:
    """Rates whose sum is farther than 1e-9 from 1, in either direction, are refused with a ValueError."""
    check_match(student, BERT, 7)
    for off, which in itertools.product((0.05, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 3e-9, 1.5e-9), range(3)):
        for sign in (1, -1):
            split = list(BERT)
            split[which] += sign * off
            check_refused_rates(student, split, 7, RATES, f"the rates sum to 1 {'-+'[sign > 0]} {off:g}")
    for split in ([0.0, 0.0, 0.0], [0.8, 0.1, 0.0], [0.8, 0.0, 0.1], [0.0, 0.1, 0.1], [1.0, 1.0, 1.0], [0.8, 0.5, 0.1]):
        check_refused_rates(student, split, 7, RATES, f"the rates sum to {math.fsum(split):g}")


@pytest.mark.worth("match_probability", 0.2, misconception="bad-input-accepted")
def test_match_refuses_empty_vocabulary(student: Student) -> None:
    """Fewer than one ordinary token is refused with a ValueError, even if nothing is drawn at random."""
    for split in ((0.8, 0.1, 0.1), (0.9, 0.0, 0.1), (0.0, 0.0, 1.0), (0.0, 1.0, 0.0)):
        check_match(student, split, 1)
        for n in (0, -1, -7):
            expect.refuses(
                student.match_probability,
                *split,
                n,
                names=("n_ordinary",),
                values=(n,),
                because=f"n_ordinary is {n}, less than 1",
            )


def unmoved(student: Student, name: str) -> None:
    """Fail if any call so far moved a global random generator; numbers cannot be changed in place."""
    for call, generator in student.witness(name).moved[:1]:
        expect.wrong(f"{call}\nused the global random generator of {generator}.", "global-generator")


@pytest.mark.worth("match_probability", 0.15, misconception="global-generator")
def test_match_draws_nothing(student: Student) -> None:
    """The chance is computed, not simulated: no random generator moves."""
    for n in (1, 7, 30_517):
        check_match(student, BERT, n)
        check_match(student, (0.1, 0.6, 0.3), n)
    unmoved(student, "match_probability")


# -- context_free_floor -----------------------------------------------------------------------------------------------
def check_floor(student: Student, q: float, vocab_size: int) -> None:
    expected = oracle.context_free_floor(q, vocab_size)
    entropy = oracle.context_free_floor(q, 2)
    others = (1 - q) * math.log(vocab_size - 1)
    match = -q * math.log(q) if q > 0 else 0.0
    expect.close(
        student.context_free_floor(q, vocab_size),
        expected,
        student.last,
        likely=[
            ("log-base", expected / math.log(2)),
            ("log-base", entropy / math.log(2) + others),
            ("others-miscounted", entropy + (1 - q) * math.log(vocab_size)),
            ("others-miscounted", entropy + (1 - q) * math.log(vocab_size - 2) if vocab_size > 2 else None),
            (
                "only-scales-from-zero",
                min(math.log(vocab_size), expected) if q >= 1 / vocab_size else math.log(vocab_size),
            ),
            ("entropy-left-out", others),
            ("entropy-left-out", entropy),
            ("entropy-left-out", match + others),
            ("entropy-left-out", expected - match),
            ("entropy-left-out", match),
            ("entropy-left-out", others - entropy),
            ("entropy-left-out", entropy + q * math.log(vocab_size - 1)),
            ("entropy-left-out", entropy + math.log(vocab_size - 1)),
        ],
    )


@pytest.mark.worth("context_free_floor", 0.7)
@given(thousandths=st.integers(1, 999), vocab_size=st.sampled_from((3, 4, 5, 7, 11, 101, 997)))
@settings(max_examples=50)
def test_floor_is_entropy_plus_the_spread_of_misses(student: Student, thousandths: int, vocab_size: int) -> None:
    """The floor is H(q) + (1 - q) ln(V - 1), in nats."""
    check_floor(student, 0.5, 5)
    check_floor(student, thousandths / 1000, vocab_size)


@pytest.mark.worth("context_free_floor", 0.5, misconception="nan-at-the-ends")
def test_floor_at_certainty(student: Student) -> None:
    """At q = 0 the floor is ln(V - 1), at q = 1 it is 0: the term 0 ln 0 counts as 0."""
    for vocab_size in (2, 3, 7, 30_522):
        check_floor(student, 0.5, vocab_size)
        check_floor(student, 0.0, vocab_size)
        check_floor(student, 1.0, vocab_size)


@pytest.mark.worth("context_free_floor", 0.25, misconception="others-miscounted")
@given(hundredths=st.integers(0, 100))
def test_floor_with_two_tokens(student: Student, hundredths: int) -> None:
    """With two tokens a miss leaves only one other, so the floor is H(q)."""
    check_floor(student, hundredths / 100, 2)


@pytest.mark.worth("context_free_floor", 0.4, misconception="only-scales-from-zero")
def test_floor_below_chance(student: Student) -> None:
    """The infimum is over all real scales, and for a match probability below 1/V the best scale is negative."""
    for vocab_size in (2, 3, 5, 7, 11, 997):
        chance = 1 / vocab_size
        for q in (chance, 0.5 * chance, 0.1 * chance, 0.9 * chance, 0.01 * chance, 1.1 * chance, 1.5 * chance):
            check_floor(student, q, vocab_size)


@pytest.mark.worth("context_free_floor", 0.25)
def test_floor_at_realistic_size(student: Student) -> None:
    """BERT's vocabulary, and chances very close to 0 or 1, give finite and right floors."""
    for vocab_size in (1_000, 21_128, 30_522, 119_547):
        for q in (0.1, 0.1 + 0.1 / 30_517, 0.9, 1e-3, 1e-6, 1 - 1e-6, 1e-12, 1 - 1e-12, 1e-30, 1 - 2**-53):
            check_floor(student, q, vocab_size)


def check_refused_q(student: Student, q: float, vocab_size: int, misconception: str | None = None) -> None:
    expect.refuses(
        student.context_free_floor,
        q,
        vocab_size,
        names=("match_probability",),
        values=(q,),
        because=f"match_probability is {q}, outside [0, 1]",
        misconception=misconception,
    )


@pytest.mark.worth("context_free_floor", 0.3, misconception="bad-input-accepted")
def test_floor_refuses_chances_outside_the_unit_interval(student: Student) -> None:
    """A match probability below 0 or above 1 is refused with a ValueError."""
    for vocab_size in (2, 7, 30_522):
        check_floor(student, 0.0, vocab_size)
        check_floor(student, 0.3, vocab_size)
        check_floor(student, 1.0, vocab_size)
        for q in (-0.1, -1.0, -1e-3, -1e-6, -1e-9, 1.001, 1 + 1e-6, 1 + 1e-9, 1.5, 2.0, 10.0, -math.inf, math.inf):
            check_refused_q(student, q, vocab_size)


@pytest.mark.worth("context_free_floor", 0.15, misconception="nan-accepted")
def test_floor_refuses_nan(student: Student) -> None:
    """A match probability that is NaN lies in no interval and is refused with a ValueError."""
    for vocab_size in (2, 7):
        check_floor(student, 0.3, vocab_size)
        check_refused_q(student, math.nan, vocab_size, "nan-accepted")


@pytest.mark.worth("context_free_floor", 0.3, misconception="bad-input-accepted")
def test_floor_refuses_vocabularies_of_less_than_two(student: Student) -> None:
    """A vocabulary of fewer than two tokens is refused with a ValueError, whatever the match probability."""
    for q in (0.0, 0.3, 1.0):
        check_floor(student, q, 2)
        for vocab_size in (1, 0, -1, -7):
            expect.refuses(
                student.context_free_floor,
                q,
                vocab_size,
                names=("vocab_size",),
                values=(vocab_size,),
                because=f"vocab_size is {vocab_size}, less than 2",
            )


@pytest.mark.worth("context_free_floor", 0.15, misconception="global-generator")
def test_floor_draws_nothing(student: Student) -> None:
    """The floor is computed, not searched for at random: no random generator moves."""
    for q, vocab_size in itertools.product((0.0, 0.1, 1.0), (2, 7, 30_522)):
        check_floor(student, q, vocab_size)
    unmoved(student, "context_free_floor")

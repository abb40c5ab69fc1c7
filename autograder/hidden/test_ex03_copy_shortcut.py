"""Hidden checks of exercise 3: the copy rule, its loss, how often it is right, and how good it can get."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch
from hypothesis import strategies as st

from autograder.examples import settings
from autograder.hidden import expect
from autograder.hidden.oracles import ex03 as oracle
from autograder.hidden.properties import given
from autograder.hidden.strategies import integers, seeds
from autograder.wire.errors import RemoteError
from autograder.wire.proxy import Function, Student

LAYOUTS = ("transposed", "every second of", "first of three", "expanded")
#: m, T, V: no two equal, small ones first, so that the first example that fails is small.
SIZES = ((2, 3, 5), (3, 2, 7), (2, 5, 3), (5, 3, 2), (3, 7, 11), (7, 2, 13), (11, 5, 7), (5, 13, 11), (13, 7, 5))


def answer(function: Function, *args: Any, otherwise: str, refused: str = "valid-input-refused") -> Any:
    """What a valid call returns.  If it raises instead: `refused` names a refusal, `otherwise` any other exception."""
    try:
        return function(*args)
    except RemoteError as error:
        raised = error.raised
        if raised.base in ("NotImplementedError", "MemoryError"):
            raise
        refusal = raised.explicit and raised.base == "ValueError"
        expect.wrong(
            f"{function.last.text}\nraised {raised.text}\nexpected a result: this input is a good one",
            refused if refusal else otherwise,
        )


def refuses(function: Function, *args: Any, accepted: str | Callable[[Any], str] | None = None, **kwargs: Any) -> None:
    """expect.refuses.  accepted: what it is a sign of if a result comes back, or a function of the result."""
    try:
        expect.refuses(function, *args, **kwargs)
    except expect.Wrong as wrong:
        if wrong.misconception != "bad-input-accepted" or accepted is None:
            raise
        named = accepted(function.last.returned) if callable(accepted) else accepted
        raise expect.Wrong(wrong.message, named) from None


def check_number(got: Any, expected: float, call: Any, likely: Sequence[tuple[str, Any]], otherwise: str) -> None:
    """Fail unless `got` is that number.  otherwise: the misconception where `likely` has none."""
    named = otherwise
    if hasattr(got, "dtype") and not expect.is_number(got):
        named = "not-a-number"
    elif expect.is_number(got) and abs(got - expected) <= 5e-3 * max(1.0, abs(expected)):
        named = "approximated"
    expect.close(got, expected, call, likely=likely, misconception=named)


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
def check_logits(
    student: Student,
    input_ids: torch.Tensor,
    vocab_size: int,
    scale: float,
    likely: Sequence[tuple[str, Any]] = (),
    otherwise: str = "another-formula",
) -> None:
    expected = oracle.copy_logits(input_ids, vocab_size, scale)
    got = answer(student.copy_logits, input_ids, vocab_size, scale, otherwise=otherwise)
    seen = oracle.copy_logits(input_ids, vocab_size, 1.0)
    if isinstance(got, torch.Tensor) and got.shape != expected.shape:
        otherwise = named_shape(tuple(got.shape), tuple(expected.shape))
    elif (
        isinstance(got, torch.Tensor)
        and got.dtype == expected.dtype
        and torch.equal(got.to(seen.device)[seen > 0], expected[seen > 0])
    ):
        others = got[seen == 0]
        in_the_sequence = seen.amax(dim=1, keepdim=True).expand_as(seen) > 0
        if others.numel() and (others == others[0]).all() and others[0] != 0:
            otherwise = "scores-misplaced"
        elif (others != 0).any() and in_the_sequence[(got != 0) & (seen == 0)].all():
            otherwise = "uses-context"
    expect.close(
        got,
        expected,
        student.last,
        likely=[
            ("dtype-changed", expected),
            *(("dtype-changed", (seen.to(half) * scale).float()) for half in (torch.float16, torch.bfloat16)),
            *likely,
            *(("scale-left-out", seen * s) for s in (1.0, math.trunc(scale), min(scale, 88.0), max(scale, 0.0))),
            ("scores-misplaced", (1 - seen) * scale),
            ("scores-misplaced", (2 * seen - 1) * scale),
            ("scores-misplaced", (seen - 1) * scale),
            ("scores-misplaced", lambda: expected.roll(1, dims=2)),
            ("scores-misplaced", lambda: expected.roll(-1, dims=2)),
            ("probabilities-for-scores", lambda: torch.softmax(expected, dim=-1)),
            ("probabilities-for-scores", lambda: torch.log_softmax(expected, dim=-1)),
            ("one-sequence-only", lambda: expected[:1].expand_as(expected)),
            ("uses-context", lambda: expected.roll(1, dims=1)),
            ("uses-context", lambda: expected.roll(-1, dims=1)),
            ("edge-id-skipped", lambda: expected * (input_ids != 0).unsqueeze(-1)),
            ("edge-id-skipped", lambda: expected * (input_ids != vocab_size - 1).unsqueeze(-1)),
        ],
        misconception=otherwise,
    )


def named_shape(got: tuple[int, ...], expected: tuple[int, ...]) -> str:
    """What a wrong shape of the scores is a sign of."""
    if got == tuple(size for size in expected if size != 1):
        return "squeezed-away"
    if got[:-1] == expected[:-1] and got[-1] < expected[-1]:
        return "vocabulary-from-ids"
    return "shape-of-scores"


@pytest.mark.worth("copy_logits", 0.5, misconception="another-formula")
def test_logits_put_scale_on_the_token_seen(student: Student, device: torch.device, seed: int) -> None:
    """The score at a position is `scale` for the token that stands there, and 0 for the other V - 1."""
    for i, (m, length, vocab_size) in enumerate(SIZES):
        scale = (3.0, 0.5, 7.25, 1.0)[i % 4]
        first, second = (ids(seed + i + k, (m, length), vocab_size, device) for k in (0, 100))
        check_logits(student, first, vocab_size, scale)
        before = oracle.copy_logits(first, vocab_size, scale)
        check_logits(student, second, vocab_size, scale, likely=[("stale-result", before)])


@pytest.mark.worth("copy_logits", 0.3, misconception="scale-left-out")
def test_logits_at_any_scale(student: Student, device: torch.device, seed: int) -> None:
    """The result is float32 whatever the scale: 0, large, negative, an int, or a fraction that double holds better."""
    input_ids = ids(seed, (3, 5), 7, device)
    check_logits(student, input_ids, 7, 2.5)
    for scale in (0.0, 1e4, 0.1, 1e-3, -2.5, -1e4, math.pi, 100.0, 1e6, 5, 0):
        check_logits(student, input_ids, 7, scale, otherwise="scale-left-out")


@pytest.mark.worth("copy_logits", 0.15, misconception="another-formula")
def test_logits_of_small_batches(student: Student, device: torch.device, seed: int) -> None:
    """One sequence, one token, two ids in the vocabulary, the first and the last id: each works like any other size."""
    for m, length, vocab_size in itertools.product((1, 3), (1, 5), (2, 7)):
        check_logits(student, ids(seed, (m, length), vocab_size, device), vocab_size, 2.5)
    check_logits(student, torch.tensor([[2, 0]], device=device), 3, 5.0)
    for vocab_size in (2, 7):
        check_logits(student, torch.zeros((1, 2), dtype=torch.int64, device=device), vocab_size, 2.5)
        check_logits(student, torch.full((2, 1), vocab_size - 1, device=device), vocab_size, 2.5)


@pytest.mark.worth("copy_logits", 0.2, misconception="ids-lose-precision")
def test_logits_at_realistic_size(student: Student, device: torch.device, seed: int) -> None:
    """Thousands of ids and sequences of 512 tokens give every token its own score."""
    check_logits(student, ids(seed, (2, 512), 13, device), 13, 2.5)
    vocab_size = 4003
    neighbours = torch.tensor([[4002, 2048, 2049, 2050, 2051], [255, 256, 257, 258, 4001]], device=device)
    check_logits(student, neighbours, vocab_size, 9.5, otherwise="ids-lose-precision")
    check_logits(student, ids(seed, (2, 5), vocab_size, device), vocab_size, 2.5, otherwise="ids-lose-precision")


@pytest.mark.worth("copy_logits", 0.15, misconception="strides-ignored")
def test_logits_in_any_memory_layout(student: Student, device: torch.device, seed: int) -> None:
    """Transposed, sliced and expanded ids are read like any others."""
    check_logits(student, ids(seed, (3, 5), 7, device), 7, 2.5)
    for layout in LAYOUTS:
        m = 4 if layout == "expanded" else 3
        laid = laid_out(ids(seed, (m, 5), 7, device), layout)
        check_logits(student, laid, 7, 2.5, otherwise="strides-ignored")


def check_refused_ids(student: Student, device: torch.device, seed: int, bad_ids: Sequence[int]) -> None:
    """Each of these ids is refused, wherever it stands."""
    good = ids(seed, (3, 5), 11, device)
    check_logits(student, good, 11, 2.5)
    batches = []
    for bad, place in itertools.product(bad_ids, ((0, 0), (2, 4), (0, 4), (1, 2))):
        changed = good.clone()
        changed[place] = bad
        batches.append((bad, place, changed))
    batches.append((bad_ids[0], (0, 0), torch.tensor([[bad_ids[0]]], device=device)))
    for bad, place, changed in batches:

        def accepted(result: Any, place: tuple[int, ...] = (*place, 11 + bad), m: int = len(changed)) -> str:
            shaped = isinstance(result, torch.Tensor) and result.ndim == 3 and len(result) == m
            wraps = 0 <= place[-1] < 11 and shaped and result.shape[-1] == 11 and float(result[place]) == 2.5
            return "negative-id-wraps" if wraps else "bad-input-accepted"

        refuses(
            student.copy_logits,
            changed,
            11,
            2.5,
            names=("input_ids", "vocab_size"),
            values=(bad,),
            because=f"the id {bad} is outside [0, 11)",
            accepted=accepted,
        )


@pytest.mark.worth("copy_logits", 0.2)
def test_logits_refuse_ids_past_the_vocabulary(student: Student, device: torch.device, seed: int) -> None:
    """An id that is not below vocab_size is refused with a ValueError."""
    check_refused_ids(student, device, seed, (11, 12, 29, 2**16 + 3, 2**32 + 3))


@pytest.mark.worth("copy_logits", 0.2)
def test_logits_refuse_negative_ids(student: Student, device: torch.device, seed: int) -> None:
    """A negative id is refused with a ValueError; it does not count from the end of the vocabulary."""
    check_refused_ids(student, device, seed, (-1, -2, -11, -12, -100))


@pytest.mark.worth("copy_logits", 0.2)
def test_logits_leave_the_ids_alone(student: Student, device: torch.device, seed: int) -> None:
    """The ids are the same after the call as before, and no random generator has moved."""
    for shape, scale in itertools.product(((2, 3), (3, 5)), (2.5, 0.5)):
        check_logits(student, ids(seed, shape, 7, device), 7, scale)
    expect.unchanged(student, "copy_logits")


@pytest.mark.worth("copy_logits", 0.1)
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
    otherwise: str = "another-formula",
    refused: str = "valid-input-refused",
) -> None:
    args = input_ids, targets, selected, vocab_size, scale
    expected = oracle.copy_loss(*args)

    def check() -> None:
        got = answer(student.copy_loss, *args, otherwise=otherwise, refused=refused)
        likely = likely_losses(*args)
        if expect.is_number(got) and math.isinf(got):  # e^s ends at 88.7 and 709.8, e^-s at 103.3 and 745.1
            overflow = 88.7 < scale < 103.3 or 709.8 < scale < 744
            likely = [("exp-overflow" if overflow else "log-of-underflow", got)]
        check_number(got, expected, student.last, likely, otherwise)

    judged_alone(student, check)


def likely_losses(
    input_ids: torch.Tensor, targets: torch.Tensor, selected: torch.Tensor, vocab_size: int, scale: float
) -> list[tuple[str, Any]]:
    """What the usual mistakes give, each computed by the same loops on other arguments."""
    n, m = int(selected.sum()), len(selected)
    valid = (targets >= 0) & (targets < vocab_size)
    right = oracle.copy_loss(input_ids, targets, selected, vocab_size, scale)
    hits = input_ids == targets
    rate = float(hits[selected].double().mean())

    def loss(
        seen: torch.Tensor = input_ids,
        chosen: torch.Tensor = selected,
        v: int = vocab_size,
        s: float = scale,
    ) -> float | None:
        return oracle.copy_loss(seen, targets, chosen, v, s) if chosen.any() and v > 0 else None

    def of_rows(denominator: int | None = None) -> float:
        rows = [
            oracle.copy_loss(input_ids[i : i + 1], targets[i : i + 1], selected[i : i + 1], vocab_size, scale)
            for i in range(m)
            if selected[i].any()
        ]
        return math.fsum(rows) / (denominator or len(rows))

    def with_hits(chance: float) -> float:
        """The loss if that share of the selected positions were hits."""
        return right + (rate - chance) * scale

    def first_row() -> float | None:
        row = int(selected.any(dim=1).long().argmax())
        only = torch.zeros_like(selected)
        only[row] = selected[row]
        return loss(chosen=only)

    anywhere = (targets.unsqueeze(-1) == input_ids.unsqueeze(-2)).any(dim=-1)
    picked = hits.flatten()[selected.flatten().long() % selected.numel()]
    return [
        ("losses-summed", right * n),
        ("selection-ignored", right * n / selected.numel()),
        ("selection-ignored", lambda: loss(chosen=valid)),
        ("selection-ignored", lambda: loss(chosen=torch.ones_like(selected))),
        ("selection-inverted", lambda: loss(chosen=~selected)),
        ("sequence-means-averaged", lambda: of_rows()),
        ("empty-sequence-counted", lambda: of_rows(m)),
        ("empty-sequence-counted", right * n / (n + 1)),
        ("divided-by-sequences", right * n / m),
        ("one-sequence-only", first_row),
        ("log-base", right / math.log(2)),
        ("perplexity-returned", lambda: math.exp(right) if right < 700 else None),
        ("not-normalised", scale * (1 - rate)),
        ("errors-counted", 1 - rate),
        ("errors-counted", rate),
        ("errors-counted", float(hits.double().mean())),
        ("copies-the-target", lambda: loss(seen=targets)),
        ("scores-misplaced", with_hits(1 - rate)),
        ("vocabulary-from-ids", lambda: loss(v=int(input_ids.max()) + 1)),
        ("others-miscounted", lambda: loss(v=vocab_size + 1)),
        ("others-miscounted", lambda: loss(v=vocab_size - 1)),
        ("edge-id-skipped", lambda: loss(chosen=selected & (targets != 0))),
        ("edge-id-skipped", with_hits(float((hits & (targets != 0))[selected].double().mean()))),
        ("edge-id-skipped", with_hits(float((hits & (targets != vocab_size - 1))[selected].double().mean()))),
        ("uses-context", with_hits(float(anywhere[selected].double().mean()))),
        ("uses-context", lambda: loss(seen=input_ids.roll(1, dims=1))),
        ("uses-context", lambda: loss(seen=input_ids.roll(-1, dims=1))),
        ("integer-mask-as-index", with_hits(float(picked.double().mean()))),
        ("scale-left-out", lambda: loss(s=1.0)),
        ("scale-left-out", lambda: loss(s=0.0)),
        *(("scale-left-out", lambda s=s: loss(s=min(scale, s))) for s in (80.0, 88.0, 100.0, 500.0, 700.0, 709.0)),
        *(("log-of-underflow", min_loss(right, rate, scale, e)) for e in (1e-6, 1e-8, 1e-9, 1e-10, 1e-12, 1e-15)),
    ]


def min_loss(right: float, rate: float, scale: float, least: float) -> float:
    """The loss if no probability were taken for less than `least`: of hits and of misses, each at most -ln least."""
    hit = right - (1 - rate) * scale
    return rate * min(hit, -math.log(least)) + (1 - rate) * min(hit + scale, -math.log(least))


Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def batch(seed: int, shape: tuple[int, int], vocab_size: int, device: torch.device, share: float = 0.5) -> Batch:
    """Ids, targets of which about half are what is seen, and a selection of equally many positions in each sequence."""
    input_ids = ids(seed, shape, vocab_size, device)
    other = ids(seed + 1, shape, vocab_size, device)
    same = integers(seed + 2, shape, 0, 2, device).bool()
    order = integers(seed + 3, shape, 0, 2**40, device).argsort(dim=1, stable=True).argsort(dim=1, stable=True)
    selected = order < max(1, round(share * shape[1]))
    return input_ids, torch.where(same, input_ids, other), selected


#: Mistakes that other checks bring out: on equally many positions a sequence, or at small scales, they change nothing.
HARMLESS_HERE = {
    "sequence-means-averaged",
    "empty-sequence-counted",
    "vocabulary-from-ids",
    "scale-left-out",
    "log-of-underflow",
}


def telling_batch(seed: int, shape: tuple[int, int], vocab_size: int, scale: float, device: torch.device) -> Batch:
    """A batch on which usual mistakes of different kinds give different losses, and other ones than the right one."""
    parts = batch(seed, shape, vocab_size, device, 0.7)
    for draw in range(seed, seed + 1000):
        parts = batch(draw, shape, vocab_size, device, 0.7)
        losses = [("right", oracle.copy_loss(*parts, vocab_size, scale))]
        for name, value in likely_losses(*parts, vocab_size, scale):
            loss = value() if callable(value) else value
            near = {other for other, known in losses if loss is not None and abs(known - loss) < 1e-4} - {name}
            if near - {"right"} or (near and name not in HARMLESS_HERE):
                break
            if loss is not None and not near:
                losses.append((name, loss))
        else:
            break
    return parts


@pytest.mark.worth("copy_loss", 0.75, misconception="another-formula")
def test_loss_is_mean_nll_of_the_rule(student: Student, device: torch.device, seed: int) -> None:
    """The loss is the mean, in nats, of ln(e^scale + V - 1), less scale where the target is the token that is seen."""
    check_loss(student, *telling_batch(seed, (2, 10), 7, 2.5, device), 7, 2.5)
    one = torch.tensor([[1]], device=device)
    check_loss(student, one, one.clone(), one == 1, 5, math.log(4.0))
    check_loss(student, one, one + 1, one == 1, 5, math.log(4.0))
    for i, (m, length, vocab_size) in enumerate(SIZES):
        scale = (2.5, 0.3, 6.0, 1.0)[i % 4]
        for draw in (seed + i, seed + i + 100, seed + i + 200):
            input_ids, targets, selected = batch(draw, (m, length), vocab_size, device)
            check_loss(student, input_ids, targets, selected, vocab_size, scale)
            others = integers(draw + 9, (m, length), 0, vocab_size, device)
            check_loss(student, torch.where(selected, input_ids, others), targets, selected, vocab_size, scale)
            for token in (0, vocab_size - 1):
                check_loss(student, torch.full_like(input_ids, token), targets, selected, vocab_size, scale)


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
    for shape in ((1, 7), (7, 1), (1, 1), (5, 3)):
        for draw in range(seed, seed + 3):
            input_ids, targets, _ = batch(draw, shape, 11, device)
            some = integers(draw + 4, shape, 0, 2, device).bool()
            some[-1, 0] = True
            check_loss(student, input_ids, targets, some, 11, 2.5)


@pytest.mark.worth("copy_loss", 0.35, misconception="reads-unselected-targets")
@given(draw=seeds, filler=st.sampled_from((-100, -1, -2, 0, 7, 11, 12, 10**9, -(2**62))))
def test_loss_ignores_targets_at_unselected_positions(
    student: Student, device: torch.device, draw: int, filler: int
) -> None:
    """What stands in targets at unselected positions does not matter, -100 or ids outside the vocabulary included."""
    input_ids, targets, selected = batch(draw, (3, 5), 11, device)
    named = "reads-unselected-targets"
    check_loss(student, input_ids, targets, selected, 11, 2.5)
    check_loss(student, input_ids, torch.where(selected, targets, input_ids), selected, 11, 2.5, named, named)
    check_loss(student, input_ids, targets.masked_fill(~selected, filler), selected, 11, 2.5, named, named)


@pytest.mark.worth("copy_loss", 0.4, misconception="exp-overflow")
def test_loss_at_large_scale(student: Student, device: torch.device, seed: int) -> None:
    """The loss is right for every scale up to 1e4, where e^scale is no number that a computer holds."""
    input_ids, targets, selected = batch(seed, (3, 5), 7, device)
    wrong = (input_ids + 1) % 7
    representable = (1e-3, 12.0, 20.0, 37.0, 88.0, 89.0, 104.0, 709.0, 710.0, 745.5, 746.0, 1000.0, 1e4, 10_000, 100)
    for scale in (*representable, 12.3, 20.1, 90.7, 710.1, 1234.567, 9999.9):  # float32 rounds the latter
        named = "exp-overflow" if scale > 50 else "another-formula"
        for wanted in (targets, input_ids, wrong):
            check_loss(student, input_ids, wanted, selected, 7, scale, named)
        check_loss(student, input_ids, targets, torch.ones_like(selected), 7, scale, named)


@pytest.mark.worth("copy_loss", 0.15, misconception="scale-left-out")
def test_loss_without_scale_is_log_of_vocabulary(student: Student, device: torch.device, seed: int) -> None:
    """At scale 0 every token has the same probability, so the loss is ln V, whatever the targets are."""
    for vocab_size in (2, 3, 11):
        input_ids, targets, selected = batch(seed, (3, 5), vocab_size, device)
        check_loss(student, input_ids, targets, selected, vocab_size, 0.0)
        for target in (0, vocab_size - 1):
            check_loss(student, input_ids, torch.full_like(targets, target), selected, vocab_size, 0)


@pytest.mark.worth("copy_loss", 0.15, misconception="approximated")
def test_loss_at_realistic_size(student: Student, device: torch.device, seed: int) -> None:
    """Sequences of 512 tokens, and a vocabulary of thousands of tokens, give the loss that the definition gives."""
    check_loss(student, *batch(seed, (3, 512), 13, device, share=0.15), 13, 2.5)
    for scale in (1.0, 8.0, 30.0):
        check_loss(student, *batch(seed, (2, 7), 4003, device), 4003, scale)
    shown = torch.tensor([[2048, 2049, 2050, 256, 257, 4002]], device=device)
    check_loss(student, shown, shown.roll(1, dims=1), shown > 0, 4003, 8.0)


@pytest.mark.worth("copy_loss", 0.15)
def test_loss_leaves_its_arguments_alone(student: Student, device: torch.device, seed: int) -> None:
    """Ids, targets and selection are the same after the call as before, and no random generator has moved."""

    def calls() -> None:
        for shape, scale in itertools.product(((1, 1), (1, 5), (3, 5)), (2.5, 0.5)):
            input_ids, targets, selected = batch(seed, shape, 7, device)
            check_loss(student, input_ids.clone(), targets.clone(), selected.clone(), 7, scale)
            check_loss(student, input_ids, targets, torch.ones_like(selected), 7, scale)

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


@pytest.mark.worth("copy_loss", 0.1, misconception="strides-ignored")
def test_loss_in_any_memory_layout(student: Student, device: torch.device, seed: int) -> None:
    """Transposed, sliced and expanded arguments are read like any others."""
    for shift in range(len(LAYOUTS)):
        parts = batch(seed + shift, (3, 5), 7, device)
        check_loss(student, *parts, 7, 2.5)
        alike = [laid_out(part, LAYOUTS[shift]) for part in parts]
        check_loss(student, alike[0], alike[1], alike[2], 7, 2.5, "strides-ignored")
        mixed = [laid_out(part, LAYOUTS[(i + shift) % 4]) for i, part in enumerate(parts)]
        check_loss(student, mixed[0], mixed[1], mixed[2], 7, 2.5, "strides-ignored")


@pytest.mark.worth("copy_loss", 0.2)
def test_loss_refuses_empty_selection(student: Student, device: torch.device, seed: int) -> None:
    """A selection without any position is refused with a ValueError: there is nothing to average."""
    for shape in ((3, 5), (1, 1), (1, 7)):
        input_ids, targets, selected = batch(seed, shape, 7, device)
        check_loss(student, input_ids, targets, selected, 7, 2.5)
        for wanted, scale in itertools.product((targets, torch.full_like(targets, -100)), (2.5, 0.0, 1e4)):
            refuses(
                student.copy_loss,
                input_ids,
                wanted,
                torch.zeros_like(selected),
                7,
                scale,
                names=("selected",),
                because="no position is selected",
                accepted="no-target-accepted",
            )


@pytest.mark.worth("copy_loss", 0.25)
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
                refuses(
                    student.copy_loss,
                    *parts,
                    7,
                    2.5,
                    names=names,
                    because=f"{names[odd]} has the shape {one}, the other two have {rest}",
                    accepted="shapes-stretched",
                )


@pytest.mark.worth("copy_loss", 0.1)
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


def check_match(student: Student, split: Sequence[float], n: int, otherwise: str = "another-formula") -> None:
    mask_rate, random_rate, keep_rate = split
    expected = oracle.match_probability(mask_rate, random_rate, keep_rate, n)
    got = answer(student.match_probability, mask_rate, random_rate, keep_rate, n, otherwise=otherwise)
    rest = 1 - mask_rate
    likely = [
        ("random-share-forgotten", keep_rate),
        ("kept-share-forgotten", random_rate / n),
        ("kept-share-forgotten", (keep_rate + random_rate) / n),
        ("every-unmasked-token-matches", rest),
        ("random-draw-miscounted", keep_rate + random_rate / (n + 1)),
        ("random-draw-miscounted", keep_rate + random_rate / (n + 5)),
        ("random-draw-miscounted", keep_rate + random_rate / (n - 1) if n > 1 else None),
        ("random-draw-miscounted", keep_rate + random_rate * (n - 1) / n),
        ("random-share-of-the-rest", keep_rate + rest * random_rate / n),
        ("random-share-of-the-rest", rest * keep_rate + rest * random_rate / n),
        ("masks-counted-as-matches", mask_rate + random_rate / n),
        ("masks-counted-as-matches", keep_rate + mask_rate / n),
        ("masks-counted-as-matches", keep_rate + (mask_rate + random_rate) / n),
        ("rates-fixed", 0.1 + 0.1 / n),
        ("rates-fixed", rest / 2 + rest / 2 / n),
    ]
    check_number(got, expected, student.last, likely, otherwise)


#: Rates that sum to 1 exactly, none of them 0 or 1.
rates = st.tuples(st.integers(1, 1022), st.integers(1, 1022)).map(
    lambda cut: (min(cut) / 1024, (max(cut) + 1 - min(cut)) / 1024, (1023 - max(cut)) / 1024)
)


@pytest.mark.worth("match_probability", 0.5, misconception="another-formula")
@given(split=rates, n=st.sampled_from((2, 3, 5, 7, 11, 30_517)))
@settings(max_examples=50)
def test_match_is_kept_or_drawn_again(student: Student, split: tuple[float, float, float], n: int) -> None:
    """A token matches if it was kept, or if the random draw from all ordinary tokens happens to give it back."""
    check_match(student, BERT, 4)
    check_match(student, (0.5, 0.3, 0.2), 3)
    check_match(student, split, n)


@pytest.mark.worth("match_probability", 0.3, misconception="another-formula")
def test_match_at_the_ends(student: Student) -> None:
    """Rates of 0 and 1, and a single ordinary token, are as good as any."""
    for n in (1, 2):
        for split in (
            BERT,
            (0.5, 0.5, 0.0),
            (0.5, 0.0, 0.5),
            (0.0, 0.5, 0.5),
            (1.0, 0.0, 0.0),
            (0.0, 1.0, 0.0),
            (0.0, 0.0, 1.0),
        ):
            check_match(student, split, n)


@pytest.mark.worth("match_probability", 0.2, misconception="rates-compared-exactly")
def test_match_accepts_rounding_in_the_sum(student: Student) -> None:
    """Rates that sum to 1 within 1e-9 are accepted: 0.7 + 0.2 + 0.1 is not exactly 1 in a computer."""
    splits = list(itertools.permutations((0.7, 0.2, 0.1)))
    splits += [(1 - 0.05 * k, 0.05 * k - 0.01 * k, 0.01 * k) for k in range(1, 20)]
    for off, which in itertools.product((9e-10, -9e-10, 1e-12, -1e-12), range(3)):
        split = list(BERT)
        split[which] += off
        splits.append((split[0], split[1], split[2]))
    check_match(student, BERT, 4)
    for mask_rate, random_rate, keep_rate in splits:
        answer(
            student.match_probability,
            mask_rate,
            random_rate,
            keep_rate,
            4,
            otherwise="rates-compared-exactly",
            refused="rates-compared-exactly",
        )
        check_match(student, (mask_rate, random_rate, keep_rate), 4)


def check_refused_rates(
    student: Student, split: Sequence[float], n: int, names: Sequence[str], because: str, accepted: str | None = None
) -> None:
    """Those rates are refused.  The value is asked for where one rate is at fault, not where it is their sum."""
    at_fault = [rate for name, rate in zip(RATES, split, strict=True) if name in names]
    refuses(
        student.match_probability,
        *split,
        n,
        names=names,
        values=at_fault if len(names) == 1 else (),
        because=because,
        accepted=accepted,
    )


@pytest.mark.worth("match_probability", 0.25)
def test_match_refuses_rates_outside_the_unit_interval(student: Student) -> None:
    """A rate below 0 or above 1 is refused with a ValueError, even if the rates sum to 1."""
    check_match(student, BERT, 4)
    for which, (bad, rest) in itertools.product(
        range(3),
        ((-0.1, (0.6, 0.5)), (-0.25, (0.75, 0.5)), (-1e-3, (0.5, 0.501)), (-0.5, (0.75, 0.75)), (-5e-10, (0.5, 0.5))),
    ):
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
        refuses(
            student.match_probability,
            *split,
            7,
            names=RATES,
            values=(1.5, -0.25),
            because="every rate must lie in [0, 1]",
        )


@pytest.mark.worth("match_probability", 0.15)
def test_match_refuses_nan(student: Student) -> None:
    """A rate that is NaN lies in no interval and is refused with a ValueError."""
    check_match(student, BERT, 4)
    for which, rest in itertools.product(range(3), ((0.8, 0.2), (0.5, 0.5), (0.3, 0.1))):
        split = [*rest[:which], math.nan, *rest[which:]]
        check_refused_rates(student, split, 7, (RATES[which],), f"{RATES[which]} is NaN", "nan-accepted")


@pytest.mark.worth("match_probability", 0.25)
def test_match_refuses_rates_that_do_not_sum_to_one(student: Student) -> None:
    """Rates whose sum is farther than 1e-9 from 1, in either direction, are refused with a ValueError."""
    check_match(student, BERT, 4)
    for split in ([0.8, 0.1, 0.05], [0.8, 0.5, 0.1], [0.0, 0.0, 0.0], [0.8, 0.0, 0.1], [0.0, 0.1, 0.1], [1.0] * 3):
        check_refused_rates(student, split, 7, RATES, f"the rates sum to {math.fsum(split):g}")
    for off, which in itertools.product((0.05, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 3e-9, 1.5e-9), range(3)):
        for sign in (1, -1):
            split = list(BERT)
            split[which] += sign * off
            check_refused_rates(
                student, split, 7, RATES, f"the rates sum to 1 {'-+'[sign > 0]} {off:g}", "sum-loosely-compared"
            )


@pytest.mark.worth("match_probability", 0.2)
def test_match_refuses_empty_vocabulary(student: Student) -> None:
    """Fewer than one ordinary token is refused with a ValueError, even if nothing is drawn at random."""
    check_match(student, BERT, 1)
    for split, n in itertools.product((BERT, (0.5, 0.3, 0.2), (0.9, 0.0, 0.1)), (0, -1, -7)):
        refuses(
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


@pytest.mark.worth("match_probability", 0.15)
def test_match_draws_nothing(student: Student) -> None:
    """The chance is computed, not simulated: no random generator moves."""
    for split in (BERT, (0.1, 0.6, 0.3)):
        check_match(student, split, 4)
    unmoved(student, "match_probability")


# -- context_free_floor -----------------------------------------------------------------------------------------------
def check_floor(student: Student, q: float, vocab_size: int, otherwise: str = "another-formula") -> None:
    expected = oracle.context_free_floor(q, vocab_size)
    entropy = oracle.context_free_floor(q, 2)
    others = (1 - q) * math.log(vocab_size - 1)
    match = -q * math.log(q) if q > 0 else 0.0
    chance = math.log(vocab_size)

    def at_scale(scale: float) -> float:
        return math.log1p((vocab_size - 1) * math.exp(-scale)) + (1 - q) * scale

    likely = [
        ("only-scales-from-zero", chance if q < 1 / vocab_size else None),
        ("log-base", expected / math.log(2)),
        ("log-base", entropy / math.log(2) + others),
        ("others-miscounted", entropy + (1 - q) * chance),
        ("others-miscounted", entropy + (1 - q) * math.log(vocab_size - 2) if vocab_size > 2 else None),
        ("perplexity-returned", math.exp(expected)),
        ("entropy-left-out", others if 0 < q < 1 else None),
        ("entropy-left-out", match + others if 0 < q < 1 else None),
        ("entropy-left-out", expected - match if 0 < q < 1 else None),
        ("entropy-left-out", match if 0 < q < 1 else None),
        ("entropy-left-out", others - entropy if 0 < q < 1 else None),
        ("others-left-out", entropy if 0 < q < 1 else None),
        ("others-left-out", entropy + q * math.log(vocab_size - 1) if 0 < q < 1 else None),
        ("others-left-out", entropy + math.log(vocab_size - 1) if 0 < q < 1 else None),
        *(("infimum-missed", at_scale(scale)) for scale in (0.0, 1.0, 2.0, 5.0, 8.0, 10.0, 12.0, 15.0, 20.0)),
    ]
    got = answer(student.context_free_floor, q, vocab_size, otherwise=otherwise)
    check_number(got, expected, student.last, likely, otherwise)


@pytest.mark.worth("context_free_floor", 0.95, misconception="another-formula")
@given(thousandths=st.integers(1, 999), vocab_size=st.sampled_from((3, 4, 5, 7, 11, 101, 997, 21_128, 30_522)))
@settings(max_examples=50)
def test_floor_is_entropy_plus_the_spread_of_misses(student: Student, thousandths: int, vocab_size: int) -> None:
    """The floor is H(q) + (1 - q) ln(V - 1), in nats."""
    check_floor(student, 0.25, 5)
    check_floor(student, 0.9, 30_522)
    chance = 1 / vocab_size
    check_floor(student, chance + (1 - chance) * thousandths / 1000, vocab_size)
    for q in (0.1 + 0.1 / 30_517, 1 - 1e-6, 1 - 1e-12, 1 - 2**-53):
        check_floor(student, q, 30_522)


@pytest.mark.worth("context_free_floor", 0.5, misconception="nan-at-the-ends")
def test_floor_at_certainty(student: Student) -> None:
    """At q = 0 the floor is ln(V - 1), at q = 1 it is 0: the term 0 ln 0 counts as 0."""
    for vocab_size in (7, 3, 30_522):
        check_floor(student, 0.0, vocab_size, "nan-at-the-ends")
        check_floor(student, 1.0, vocab_size, "nan-at-the-ends")


@pytest.mark.worth("context_free_floor", 0.4, misconception="only-scales-from-zero")
def test_floor_below_chance(student: Student) -> None:
    """The infimum is over all real scales, and for a match probability below 1/V the best scale is negative."""
    for vocab_size in (3, 5, 7, 11, 997, 30_522):
        chance = 1 / vocab_size
        for q in (chance, 0.5 * chance, 0.1 * chance, 0.9 * chance, 0.01 * chance, 1e-6 * chance, 1e-12, 1e-30):
            check_floor(student, q, vocab_size)


@pytest.mark.worth("context_free_floor", 0.25, misconception="others-miscounted")
@given(hundredths=st.integers(50, 99))
def test_floor_with_two_tokens(student: Student, hundredths: int) -> None:
    """With two tokens a miss leaves only one other, so the floor is H(q)."""
    check_floor(student, 0.5, 2, "others-miscounted")
    check_floor(student, hundredths / 100, 2, "others-miscounted")


def check_refused_q(student: Student, q: float, vocab_size: int, accepted: str | None = None) -> None:
    refuses(
        student.context_free_floor,
        q,
        vocab_size,
        names=("match_probability",),
        values=(q,),
        because=f"match_probability is {q}, outside [0, 1]",
        accepted=accepted,
    )


@pytest.mark.worth("context_free_floor", 0.3)
def test_floor_refuses_chances_outside_the_unit_interval(student: Student) -> None:
    """A match probability below 0 or above 1 is refused with a ValueError."""
    for vocab_size in (3, 7):
        check_floor(student, 0.5, vocab_size)
        for q in (-0.1, -1.0, -1e-3, -1e-6, -1e-9, 1.001, 1 + 1e-6, 1 + 1e-9, 1.5, 2.0, 10.0, -math.inf, math.inf):
            check_refused_q(student, q, vocab_size)


@pytest.mark.worth("context_free_floor", 0.15)
def test_floor_refuses_nan(student: Student) -> None:
    """A match probability that is NaN lies in no interval and is refused with a ValueError."""
    for vocab_size in (3, 7):
        check_floor(student, 0.5, vocab_size)
        check_refused_q(student, math.nan, vocab_size, "nan-accepted")


@pytest.mark.worth("context_free_floor", 0.3)
def test_floor_refuses_vocabularies_of_less_than_two(student: Student) -> None:
    """A vocabulary of fewer than two tokens is refused with a ValueError, whatever the match probability."""
    check_floor(student, 0.5, 3)
    for q, vocab_size in itertools.product((0.3, 0.0, 1.0), (1, 0, -1, -7)):
        refuses(
            student.context_free_floor,
            q,
            vocab_size,
            names=("vocab_size",),
            values=(vocab_size,),
            because=f"vocab_size is {vocab_size}, less than 2",
        )


@pytest.mark.worth("context_free_floor", 0.15)
def test_floor_draws_nothing(student: Student) -> None:
    """The floor is computed, not searched for at random: no random generator moves."""
    for q, vocab_size in itertools.product((0.4, 0.5), (3, 7)):
        check_floor(student, q, vocab_size)
    unmoved(student, "context_free_floor")

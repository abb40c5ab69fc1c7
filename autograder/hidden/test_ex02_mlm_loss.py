"""Hidden checks of exercise 2: mean_nll, stable_log_softmax and mlm_loss."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from autograder.hidden import expect
from autograder.hidden.oracles import ex02 as oracle
from autograder.hidden.strategies import integers, normal, seeds, sizes
from autograder.wire.proxy import Student

NAN, INF = math.nan, math.inf
HALF = (torch.float16, torch.bfloat16)

# mean_nll: its tensors stay on the CPU, since the contract asks for a number, not for a device.
KINDS: tuple[Callable[[list[float]], Any], ...] = (
    list,
    tuple,
    np.array,
    lambda p: torch.tensor(p, dtype=torch.float64),
)
PROBABILITIES = ("probabilities", "probability")


def likely_means(values: list[float]) -> list[tuple[str, Any]]:
    """What usual misreadings make of these probabilities."""
    nll, n = oracle.mean_nll(values), len(values)
    return [
        ("log-base", nll / math.log(2)),
        ("log-base", nll / math.log(10)),
        ("losses-summed", nll * n),
        ("log-of-the-mean", -math.log(math.fsum(values) / n)),
        ("sign-flipped", -nll),
        ("not-a-number", lambda: torch.tensor(nll)),
        ("not-a-number", lambda: torch.tensor(nll, dtype=torch.float64)),
    ]


def worked_mean(student: Student) -> None:
    """The valid call beside the refused ones."""
    got = student.mean_nll([0.5, 0.25])
    expect.close(got, 1.5 * math.log(2), student.last, likely=likely_means([0.5, 0.25]))


def refuses_probability(student: Student, bad: float, because: str) -> None:
    worked_mean(student)
    good = [0.5, 1.0, 0.25]
    for place, kind in enumerate(KINDS):
        values = list(good)
        values.insert(place, bad)
        expect.close(student.mean_nll(kind(good)), math.log(8) / 3, student.last, likely=likely_means(good))
        expect.refuses(student.mean_nll, kind(values), names=PROBABILITIES, values=(bad,), because=because)
    expect.refuses(student.mean_nll, [bad], names=PROBABILITIES, values=(bad,), because=because)


@pytest.mark.worth("mean_nll", 0.3)
def test_mean_nll_worked_value(student: Student) -> None:
    """The probabilities (0.5, 0.25) have the mean negative log-likelihood 1.5 ln 2 = 1.0397, as a Python number."""
    for values in ([0.5, 0.25], (0.5, 0.25)):
        expect.close(student.mean_nll(values), 1.5 * math.log(2), student.last, likely=likely_means([0.5, 0.25]))


@pytest.mark.worth("mean_nll", 0.35)
@given(values=st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=20), kind=st.sampled_from((list, tuple)))
def test_mean_nll_lists(student: Student, values: list[float], kind: type) -> None:
    """The mean is taken over the natural logarithms, for lists and tuples of any length."""
    expect.close(student.mean_nll(kind(values)), oracle.mean_nll(values), student.last, likely=likely_means(values))


@pytest.mark.worth("mean_nll", 0.35, misconception="not-in-double")
def test_mean_nll_arrays_and_tensors(student: Student, seed: int) -> None:
    """Arrays and tensors of any floating dtype and stride are taken as they are, in double precision."""
    values = np.random.default_rng(seed).uniform(0.02, 0.98, size=22)
    arrays = [values.astype(dtype) for dtype in (np.float64, np.float32, np.float16)]
    tensors = [torch.tensor(values).to(dtype) for dtype in (torch.float64, torch.float32, *HALF)]
    strided = [*(x[::2] for x in arrays), *(x[1::3] for x in tensors)]
    everything: list[Any] = [*arrays, *tensors, *strided]
    for probabilities in everything:
        stored = [float(p) for p in probabilities.tolist()]
        got = student.mean_nll(probabilities)
        expect.close(got, oracle.mean_nll(stored), student.last, likely=likely_means(stored))


@pytest.mark.worth("mean_nll", 0.3, misconception="not-in-double")
def test_mean_nll_double(student: Student) -> None:
    """Very small probabilities, certain tokens and long lists come out right: no clipping, no products."""
    for values in ([1e-300, 0.5], [1e-50], [0.25, 1e-100, 1.0], [1.0], [1.0, 1.0, 0.5], [0.5] * 3000):
        for kind in KINDS:
            got = student.mean_nll(kind(values))
            expect.close(got, oracle.mean_nll(values), student.last, likely=likely_means(values))


@pytest.mark.worth("mean_nll", 0.15)
def test_mean_nll_refuses_empty(student: Student) -> None:
    """An empty collection of probabilities is refused: it has no mean."""
    worked_mean(student)
    for kind in KINDS:
        expect.refuses(student.mean_nll, kind([]), names=PROBABILITIES, because="there are no probabilities")


@pytest.mark.worth("mean_nll", 0.1)
def test_mean_nll_refuses_zero(student: Student) -> None:
    """A probability of 0 is refused: its logarithm is not finite."""
    refuses_probability(student, 0.0, "the probability 0 is outside (0, 1]")


@pytest.mark.worth("mean_nll", 0.1)
def test_mean_nll_refuses_negative(student: Student) -> None:
    """A negative probability is refused."""
    refuses_probability(student, -0.25, "the probability -0.25 is outside (0, 1]")


@pytest.mark.worth("mean_nll", 0.15)
def test_mean_nll_refuses_above_one(student: Student) -> None:
    """A probability above 1 is refused, however little above; 1 itself is accepted."""
    for bad in (1.5, 1.0000001, 1 + 2**-40, INF):
        refuses_probability(student, bad, f"the probability {bad!r} is outside (0, 1]")


@pytest.mark.worth("mean_nll", 0.1)
def test_mean_nll_refuses_nan(student: Student) -> None:
    """NaN is no probability: it lies outside every interval."""
    refuses_probability(student, NAN, "NaN is outside (0, 1]")


@pytest.mark.worth("mean_nll", 0.1)
def test_mean_nll_leaves_its_argument(student: Student) -> None:
    """The probabilities are left as they were, and no random generator is touched."""
    values = [0.5, 0.125, 1.0, 0.25]
    for kind in KINDS:
        expect.close(student.mean_nll(kind(values)), math.log(2) * 1.5, student.last, likely=likely_means(values))
    expect.unchanged(student, "mean_nll")


# -- stable_log_softmax ------------------------------------------------------------------------------------------------


def likely_log_softmax(x: torch.Tensor) -> list[tuple[str, Any]]:
    """What usual misreadings make of these logits."""
    wide = x.double()

    def right(axis: int = -1) -> torch.Tensor:
        return torch.log_softmax(wide, axis)

    def without_shift() -> torch.Tensor:
        return x - x.exp().sum(-1, keepdim=True).log()

    def one_maximum() -> torch.Tensor:
        shifted = x - x.max()
        return shifted - shifted.exp().sum(-1, keepdim=True).log()

    axes = [("softmax-wrong-axis", lambda axis=axis: right(axis)) for axis in range(x.ndim - 1)]
    candidates: list[tuple[str, Callable[[], torch.Tensor]]] = [
        ("probabilities-not-logs", lambda: right().exp()),
        ("log-base", lambda: right() / math.log(2)),
        ("log-base", lambda: right() / math.log(10)),
        ("sign-flipped", lambda: -right()),
        ("not-normalised", lambda: wide - wide.amax(-1, keepdim=True)),
        *axes,
        ("softmax-wrong-axis", lambda: torch.log_softmax(wide.reshape(-1), 0).reshape(x.shape)),
        ("log-of-underflow", lambda: torch.softmax(x, -1).log()),
        ("log-of-underflow", lambda: (torch.softmax(x, -1) + 1e-9).log()),
        ("log-of-underflow", lambda: (torch.softmax(x, -1) + 1e-12).log()),
        *([("shared-maximum", one_maximum)] if x.ndim > 1 else []),
        ("logsumexp-rounding", lambda: x - torch.logsumexp(x, -1, keepdim=True)),
        ("exp-overflow", without_shift),
    ]
    return [(name, lambda make=make: make().to(x.dtype)) for name, make in candidates]


def check_log_softmax(student: Student, x: torch.Tensor) -> None:
    expected = oracle.log_softmax(x)
    expect.close(student.stable_log_softmax(x), expected, student.last, likely=likely_log_softmax(x))


@pytest.mark.worth("stable_log_softmax", 0.6)
@given(
    seed=seeds,
    shape=st.integers(1, 5).flatmap(lambda n: sizes(n, (1, 2, 3, 5, 7))),
    dtype=st.sampled_from((torch.float32, torch.float64)),
)
def test_log_softmax_values(
    student: Student, device: torch.device, seed: int, shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    """The result is the logarithm of the softmax over the last axis, in the dtype of logits, for any number of axes."""
    check_log_softmax(student, normal(seed, shape, dtype, device, scale=2.0))


@pytest.mark.worth("stable_log_softmax", 0.4, misconception="exp-overflow")
def test_log_softmax_large_logits(student: Student, device: torch.device, seed: int) -> None:
    """Adding one large number (up to 1e4 in size) to all logits of a row changes no digit of the result."""
    for dtype in (torch.float32, torch.float64):
        for offset in (100.0, -110.0, 9990.0, -9990.0):
            check_log_softmax(student, normal(seed, (3, 7), dtype, device, scale=2.0) + offset)
            check_log_softmax(student, normal(seed + 1, (5,), dtype, device, scale=2.0) + offset)


@pytest.mark.worth("stable_log_softmax", 0.35, misconception="log-of-underflow")
def test_log_softmax_small_probabilities(student: Student, device: torch.device) -> None:
    """A token far below the best one keeps its finite log-probability, although its probability underflows to 0."""
    for dtype in (torch.float32, torch.float64):
        for row in ([0.0, 200.0], [3.0, -150.0, 0.0, 2.0], [0.0, 1000.0, -1000.0], [1e4, -1e4, 0.0], [-1e4, 1e4, 1e4]):
            x = torch.tensor([row, [1.0] * len(row)], dtype=dtype, device=device)
            check_log_softmax(student, x)
            check_log_softmax(student, x[0])


@pytest.mark.worth("stable_log_softmax", 0.35, misconception="shared-maximum")
def test_log_softmax_rows_far_apart(student: Student, device: torch.device, seed: int) -> None:
    """Each row has a maximum of its own: a row far below another one comes out right."""
    high = torch.tensor([60.0, -60.0], device=device)
    for dtype, gap in ((torch.float32, high), (torch.float64, high * 166.0)):
        for shape in ((2, 5), (3, 2, 5), (7, 3, 2, 5)):
            x = normal(seed, shape, dtype, device) + gap.to(dtype)[:, None]
            check_log_softmax(student, x)
        check_log_softmax(student, (normal(seed, (5, 2), dtype, device) + gap.to(dtype)).T)


@pytest.mark.worth("stable_log_softmax", 0.35, misconception="dtype-changed")
def test_log_softmax_half_precision(student: Student, device: torch.device, seed: int) -> None:
    """float16 and bfloat16 logits, large ones too, give results of that dtype, right to its precision."""
    for dtype in HALF:
        check_log_softmax(student, normal(seed, (3, 2, 5), dtype, device, scale=2.0))
        for offset in (30.0, -30.0, 9900.0, -9900.0):
            x = (normal(seed + 1, (3, 5), torch.float64, device, scale=30.0) + offset).to(dtype)
            check_log_softmax(student, x)
        check_log_softmax(student, torch.tensor([[1e4, -1e4, 0.0], [-9e3, -1e4, -9e3]], dtype=dtype, device=device))


@pytest.mark.worth("stable_log_softmax", 0.4, misconception="wrong-gradient")
def test_log_softmax_gradient(student: Student, device: torch.device, seed: int) -> None:
    """The result can be differentiated in logits, with the right gradient, for large logits too."""
    cases = [
        (normal(seed, (5, 7), torch.float64, device), normal(seed + 1, (5, 7), torch.float64, device)),
        (normal(seed, (2, 3, 5), torch.float32, device), normal(seed + 1, (2, 3, 5), torch.float32, device)),
        (normal(seed, (7,), torch.float32, device), normal(seed + 1, (7,), torch.float32, device)),
    ]
    for dtype in (torch.float32, torch.float64):
        x = normal(seed, (4, 5), dtype, device) + torch.tensor([[9990.0], [-9990.0], [0.0], [120.0]], device=device)
        x[2, 1] = 9000.0
        cases.append((x.to(dtype), normal(seed + 2, (4, 5), dtype, device)))
    for dtype in HALF:  # one entry of each row, so that rounding stays small
        cases.append((normal(seed, (3, 5), dtype, device), torch.eye(5, device=device)[1:4].to(dtype)))
    for x, weights in cases:
        x.requires_grad_()
        result = student.stable_log_softmax(x)
        (gradient,) = expect.gradients(result, [x], student.last, weights)
        expect.close(gradient, oracle.log_softmax_gradient(x, weights), student.last, what="The gradient")


@pytest.mark.worth("stable_log_softmax", 0.2, misconception="strides-ignored")
def test_log_softmax_strides(student: Student, device: torch.device, seed: int) -> None:
    """Transposed, sliced and expanded logits are read as they are, whatever their memory order."""
    base = normal(seed, (2, 7, 5), torch.float32, device)
    check_log_softmax(student, base.transpose(1, 2))
    check_log_softmax(student, base.permute(2, 0, 1))
    check_log_softmax(student, base[:, ::2, 1::2])
    check_log_softmax(student, base[:, :1].expand(2, 3, 5))
    check_log_softmax(student, base[0, :, :1].expand(7, 5))
    check_log_softmax(student, base[0, :, 2])


@pytest.mark.worth("stable_log_softmax", 0.15, misconception="exp-overflow")
def test_log_softmax_vocabulary(student: Student, device: torch.device, seed: int) -> None:
    """Vocabularies of BERT's size, 30,522 tokens, and of 70,001 tokens in float16 work like small ones."""
    check_log_softmax(student, normal(seed, (2, 30_522), torch.float32, device, scale=5.0))
    # float16 ends at 65,504: there the sum of the exponentials of this row has no place
    x = normal(seed, (70_001,), torch.float16, device, scale=0.01)
    got = student.stable_log_softmax(x)
    expect.close(got, oracle.log_softmax(x), student.last, misconception="dtype-changed")


@pytest.mark.worth("stable_log_softmax", 0.1)
def test_log_softmax_device(student: Student, device: torch.device, seed: int) -> None:
    """The result is on the device of logits, and nothing is made on another one."""
    x = normal(seed, (3, 5), torch.float32, device)
    with student.device_trap() as faults:
        got = student.stable_log_softmax(x)
    expect.close(got, oracle.log_softmax(x), student.last, likely=likely_log_softmax(x))
    if faults:
        expect.wrong(f"{student.last.text}\n{faults[0]}", "wrong-device")


@pytest.mark.worth("stable_log_softmax", 0.1)
def test_log_softmax_leaves_its_argument(student: Student, device: torch.device, seed: int) -> None:
    """The logits are left as they were, and no random generator is touched."""
    for dtype in (torch.float32, torch.float64, *HALF):
        check_log_softmax(student, normal(seed, (3, 5), dtype, device))
    check_log_softmax(student, normal(seed, (5, 3), torch.float32, device).T)
    expect.unchanged(student, "stable_log_softmax")


# -- mlm_loss ----------------------------------------------------------------------------------------------------------


def make_labels(
    seed: int, shape: tuple[int, int], vocab_size: int, device: torch.device, ignore_index: int = -100
) -> torch.Tensor:
    """Labels with targets at about half the positions, at least one; targets are never ignore_index."""
    rng = np.random.default_rng(seed)
    selected = rng.random(shape) < 0.5
    selected[rng.integers(shape[0]), rng.integers(shape[1])] = True
    targets = rng.integers(0, vocab_size, size=shape)
    targets = np.where(targets == ignore_index, (targets + 1) % vocab_size, targets)
    return torch.as_tensor(np.where(selected, targets, ignore_index)).to(device)


def make_batch(
    seed: int,
    m: int,
    t: int,
    v: int,
    device: torch.device,
    dtype: torch.dtype = torch.float32,
    ignore_index: int = -100,
) -> tuple[torch.Tensor, torch.Tensor]:
    return normal(seed, (m, t, v), dtype, device, scale=2.0), make_labels(seed + 1, (m, t), v, device, ignore_index)


def likely_losses(logits: torch.Tensor, labels: torch.Tensor, ignore_index: int = -100) -> list[tuple[str, Any]]:
    """What usual misreadings make of this batch."""
    by_sequence = oracle.sequence_losses(logits, labels, ignore_index)
    m, t = labels.shape
    total = math.fsum(map(math.fsum, by_sequence))
    n = sum(map(len, by_sequence))
    means = [math.fsum(losses) / len(losses) for losses in by_sequence if losses]
    selected = labels != ignore_index
    safe = torch.where(selected, labels, 0)

    def over_targets(values: torch.Tensor, chosen: torch.Tensor = selected) -> float | None:
        picked = values.double().gather(-1, safe[..., None])[..., 0][chosen]
        return -float(picked.mean()) if picked.numel() else None

    def same_kind(value: float | None) -> torch.Tensor | None:
        return None if value is None else oracle.scalar(value, logits)

    x = logits.detach().double()
    candidates: list[tuple[str, Callable[[], float | None]]] = [
        ("mean-over-all-positions", lambda: total / (m * t)),
        ("sequence-means-averaged", lambda: math.fsum(means) / len(means)),
        ("sequence-means-averaged", lambda: math.fsum(means) / m),
        ("losses-summed", lambda: total),
        ("divided-by-sequences", lambda: total / m),
        ("divided-by-sequences", lambda: total / len(means)),
        ("empty-sequence-counted", lambda: total / sum(max(1, len(losses)) for losses in by_sequence)),
        ("empty-sequence-counted", lambda: total / (n + 1)),
        ("log-base", lambda: total / n / math.log(2)),
        ("log-base", lambda: total / n / math.log(10)),
        ("sign-flipped", lambda: -total / n),
        ("label-zero-ignored", lambda: over_targets(torch.log_softmax(x, -1), selected & (labels != 0))),
        ("label-zero-ignored", lambda: over_targets(torch.log_softmax(x, -1) * (labels > 0)[..., None])),
        ("probabilities-not-logs", lambda: over_targets(torch.softmax(x, -1))),
        ("not-normalised", lambda: over_targets(x)),
        ("softmax-twice", lambda: over_targets(torch.log_softmax(torch.softmax(x, -1), -1))),
        ("softmax-wrong-axis", lambda: over_targets(torch.log_softmax(x, 1))),
        ("softmax-wrong-axis", lambda: over_targets(torch.log_softmax(x, 0))),
        ("ignored-positions-counted", lambda: -float(torch.log_softmax(x, -1).gather(-1, safe[..., None]).mean())),
    ]
    return [(name, lambda value=value: same_kind(value())) for name, value in candidates]


def check_loss(
    student: Student,
    logits: torch.Tensor,
    labels: torch.Tensor,
    ignore_index: int | None = None,
    keyword: bool = True,
    likely: list[tuple[str, Any]] | None = None,
) -> None:
    wanted = -100 if ignore_index is None else ignore_index
    if ignore_index is None:
        got = student.mlm_loss(logits, labels)
    elif keyword:
        got = student.mlm_loss(logits, labels, ignore_index=ignore_index)
    else:
        got = student.mlm_loss(logits, labels, ignore_index)
    named = [*(likely or []), *likely_losses(logits, labels, wanted)]
    expect.close(got, oracle.mlm_loss(logits, labels, wanted), student.last, likely=named)


def worked_batch(device: torch.device) -> tuple[torch.Tensor, torch.Tensor]:
    """Two targets, of probability 0.5 and 0.25, in one sequence; none in the other."""
    p = [[[0.2, 0.3, 0.5], [0.25, 0.6, 0.15], [0.3, 0.3, 0.4]], [[0.1, 0.1, 0.8], [0.6, 0.3, 0.1], [0.2, 0.7, 0.1]]]
    labels = [[2, 0, -100], [-100, -100, -100]]
    return torch.tensor(p, device=device).log() + 1.0, torch.tensor(labels, device=device)


@pytest.mark.worth("mlm_loss", 0.3)
def test_mlm_worked_case(student: Student, device: torch.device) -> None:
    """Targets of probability 0.5 and 0.25 in one sequence, none in the other, give 1.5 ln 2: the denominator is 2."""
    logits, labels = worked_batch(device)
    got = student.mlm_loss(logits, labels)
    expected = torch.tensor(1.5 * math.log(2), device=device)
    expect.close(got, expected, student.last, likely=likely_losses(logits, labels))


@pytest.mark.worth("mlm_loss", 0.6)
@given(seed=seeds, shape=sizes(3), dtype=st.sampled_from((torch.float32, torch.float64)))
def test_mlm_mean_over_batch(
    student: Student, device: torch.device, seed: int, shape: tuple[int, int, int], dtype: torch.dtype
) -> None:
    """The loss is the mean over the selected positions of the whole batch: a scalar tensor in the dtype of logits."""
    check_loss(student, *make_batch(seed, *shape, device, dtype))


@pytest.mark.worth("mlm_loss", 0.3, misconception="sequence-means-averaged")
@given(seed=seeds, kept=st.sets(st.integers(0, 4), min_size=1, max_size=3))
def test_mlm_sequences_without_target(student: Student, device: torch.device, seed: int, kept: set[int]) -> None:
    """Sequences without any target add nothing to the sum and nothing to the count, wherever they stand."""
    logits, labels = make_batch(seed, 5, 7, 11, device)
    labels[:, 3] = 2
    for row in range(5):
        if row not in kept:
            labels[row] = -100
    labels[min(kept), ::2] = 10
    check_loss(student, logits, labels)


@pytest.mark.worth("mlm_loss", 0.25, misconception="label-zero-ignored")
def test_mlm_first_and_last_id(student: Student, device: torch.device, seed: int) -> None:
    """The first id, 0, and the last, V - 1, are targets like any other."""
    for vocab_size in (2, 7, 131):
        logits = normal(seed, (3, 5, vocab_size), torch.float32, device, scale=2.0)
        for few in ([0], [vocab_size - 1], [0, vocab_size - 1]):
            labels = torch.full((3, 5), -100, device=device)
            for place in range(4):
                labels[place % 3, place] = few[place % len(few)]
            check_loss(student, logits, labels)


@pytest.mark.worth("mlm_loss", 0.25, misconception="ignore-index-fixed")
@given(seed=seeds, ignore_index=st.sampled_from((-1, -100, -7, 11, 12, 30_522)), keyword=st.booleans())
def test_mlm_ignore_index_outside(
    student: Student, device: torch.device, seed: int, ignore_index: int, keyword: bool
) -> None:
    """Positions are ignored where the label is ignore_index, whichever number outside the vocabulary that is."""
    check_loss(student, *make_batch(seed, 3, 5, 11, device, ignore_index=ignore_index), ignore_index, keyword)


@pytest.mark.worth("mlm_loss", 0.25, misconception="ignore-index-fixed")
@given(seed=seeds, ignore_index=st.sampled_from((0, 1, 4, 10)), keyword=st.booleans())
def test_mlm_ignore_index_inside(
    student: Student, device: torch.device, seed: int, ignore_index: int, keyword: bool
) -> None:
    """ignore_index may be an id of the vocabulary, 0 too: then that id is ignored, and only that one."""
    logits, labels = make_batch(seed, 3, 5, 11, device, ignore_index=ignore_index)
    labels[1, 2], labels[2, :2] = (0 if ignore_index else 7), ignore_index
    everywhere = [("ignore-index-fixed", lambda: oracle.mlm_loss(logits, labels))]
    check_loss(student, logits, labels, ignore_index, keyword, likely=everywhere)


@pytest.mark.worth("mlm_loss", 0.3, misconception="half-precision-loss")
def test_mlm_half_precision(student: Student, device: torch.device, seed: int) -> None:
    """float16 and bfloat16 logits are computed in, and the loss is returned as, float32."""
    for dtype in HALF:
        for shift in range(4):
            check_loss(student, *make_batch(seed + shift, 3, 5, 11, device, dtype))
        top = torch.finfo(torch.float16).max
        logits = torch.tensor([[[top, -top, 0.0], [0.5, 1.5, -1.0]]], dtype=dtype, device=device)
        for label in (0, 1, 2):
            check_loss(student, logits, torch.tensor([[label, 1]], device=device))
        # 2051 targets: a count that neither dtype can hold
        check_loss(student, normal(seed, (7, 293, 2), dtype, device), integers(seed, (7, 293), 0, 2, device))


def with_junk(logits: torch.Tensor, labels: torch.Tensor, ignore_index: int, kind: str) -> torch.Tensor:
    """The logits with something that is not to be looked at at the ignored positions."""
    top = torch.finfo(logits.dtype).max
    row = torch.zeros(logits.shape[-1], dtype=logits.dtype, device=logits.device)
    if kind == "NaN":
        row[:] = NAN
    elif kind == "inf":
        row[:] = INF
    elif kind == "-inf":
        row[:] = -INF
    elif kind == "one inf":
        row[0] = INF
    elif kind == "one -inf":
        row[-1] = -INF
    elif kind == "one NaN":
        row[1] = NAN
    else:
        row[0], row[1] = top, -top
    return torch.where((labels == ignore_index)[..., None], row, logits)


JUNK = ("NaN", "inf", "-inf", "one inf", "one -inf", "one NaN", "largest")


@pytest.mark.worth("mlm_loss", 0.35, misconception="ignored-logits-leak")
@given(
    seed=seeds,
    kind=st.sampled_from(JUNK),
    dtype=st.sampled_from((torch.float32, torch.float64, torch.float16, torch.bfloat16)),
    ignore_index=st.sampled_from((-100, -1, 0)),
)
def test_mlm_ignored_logits(
    student: Student, device: torch.device, seed: int, kind: str, dtype: torch.dtype, ignore_index: int
) -> None:
    """Whatever the logits hold at ignored positions, NaN and inf too, the loss stays the same."""
    logits, labels = make_batch(seed, 3, 7, 5, device, dtype, ignore_index)
    labels[1] = ignore_index
    labels[0, :3] = torch.tensor([ignore_index, 4, 1], device=device)
    logits = with_junk(logits, labels, ignore_index, kind)
    check_loss(student, logits, labels, ignore_index, keyword=False)


def loss_gradient(
    student: Student, logits: torch.Tensor, labels: torch.Tensor, ignore_index: int, factor: float
) -> torch.Tensor:
    logits.requires_grad_()
    result = student.mlm_loss(logits, labels, ignore_index)
    likely = likely_losses(logits, labels, ignore_index)
    expect.close(result, oracle.mlm_loss(logits, labels, ignore_index), student.last, likely=likely)
    weights = oracle.scalar(factor, logits)
    (gradient,) = expect.gradients(result, [logits], student.last, weights)
    return gradient


@pytest.mark.worth("mlm_loss", 0.35, misconception="wrong-gradient")
@given(
    seed=seeds,
    dtype=st.sampled_from((torch.float32, torch.float64, torch.float16, torch.bfloat16)),
    ignore_index=st.sampled_from((-100, -1, 0)),
    factor=st.sampled_from((1.0, -3.0, 0.5)),
)
def test_mlm_gradient(
    student: Student, device: torch.device, seed: int, dtype: torch.dtype, ignore_index: int, factor: float
) -> None:
    """The gradient at the n targets is (softmax - one-hot) / n, and it passes on the gradient that comes from above."""
    logits, labels = make_batch(seed, 2, 3, 5, device, dtype, ignore_index)
    gradient = loss_gradient(student, logits, labels, ignore_index, factor)
    expected = oracle.mlm_gradient(logits, labels, ignore_index, factor)
    positions = int((labels != ignore_index).sum()) / labels.numel()
    likely = [("mean-over-all-positions", expected * positions), ("sign-flipped", -expected)]
    expect.close(gradient, expected, student.last, likely=likely, what="The gradient in logits")


@pytest.mark.worth("mlm_loss", 0.35, misconception="gradient-at-ignored")
@given(
    seed=seeds,
    kind=st.sampled_from(("nothing odd", *JUNK)),
    dtype=st.sampled_from((torch.float32, torch.float64, torch.float16, torch.bfloat16)),
    ignore_index=st.sampled_from((-100, -1, 0)),
)
def test_mlm_gradient_at_ignored(
    student: Student, device: torch.device, seed: int, kind: str, dtype: torch.dtype, ignore_index: int
) -> None:
    """The gradient at ignored positions is exactly 0, whatever the logits hold there, and right at the others."""
    logits, labels = make_batch(seed, 3, 4, 5, device, dtype, ignore_index)
    labels[2] = ignore_index
    labels[0, :3] = torch.tensor([ignore_index, 4, 1], device=device)
    if kind in JUNK:
        logits = with_junk(logits, labels, ignore_index, kind)
    gradient = loss_gradient(student, logits, labels, ignore_index, 2.0)
    ignored = gradient[labels == ignore_index]
    if not bool((ignored == 0).all()):
        worst = ignored[ignored != 0][0].item()
        expect.wrong(
            f"{student.last.text}\nThe gradient in logits holds {worst:.7g} at an ignored position (there the logits "
            f"hold: {kind}).\nexpected exactly 0 at every ignored position",
            "gradient-at-ignored",
        )
    expected = oracle.mlm_gradient(logits, labels, ignore_index, 2.0)
    expect.close(gradient, expected, student.last, what="The gradient in logits")


@pytest.mark.worth("mlm_loss", 0.3, misconception="log-of-underflow")
def test_mlm_large_logits(student: Student, device: torch.device, seed: int) -> None:
    """Large logits, and targets whose probability underflows to 0, give a finite and right loss."""
    for dtype in (torch.float32, torch.float64):
        for row, label in (
            ([0.0, 200.0, -3.0], 0),
            ([1e4, -1e4, 0.0], 1),
            ([1e4, -1e4, 0.0], 0),
            ([-1e4, -1e4, -3e3], 1),
        ):
            logits = torch.tensor([[row, [0.5, 1.0, -1.0]]], dtype=dtype, device=device)
            check_loss(student, logits, torch.tensor([[label, -100]], device=device))
            check_loss(student, logits, torch.tensor([[label, 2]], device=device))
        for offset in (120.0, -120.0) if dtype == torch.float32 else (2000.0, -9990.0):
            logits, labels = make_batch(seed, 3, 5, 7, device, dtype)
            check_loss(student, logits + offset, labels)
        # one position far above all others, where the loss is 0: its maximum is not theirs
        logits, labels = make_batch(seed + 1, 3, 5, 7, device, dtype)
        logits[1, 2] = torch.tensor([0.0, 0.0, 9000.0, 0.0, -5.0, 0.0, 0.0], dtype=dtype, device=device)
        labels[1, 2] = 2
        check_loss(student, logits, labels)


@pytest.mark.worth("mlm_loss", 0.15)
def test_mlm_small_batches(student: Student, device: torch.device, seed: int) -> None:
    """One sequence, one position, one target, and targets everywhere are batches like any other."""
    for m, t in ((1, 7), (5, 1), (1, 1), (2, 3)):
        logits = normal(seed, (m, t, 5), torch.float32, device, scale=2.0)
        everywhere = (torch.arange(m * t, device=device) % 5).reshape(m, t)
        check_loss(student, logits, everywhere)
        for place in (0, m * t - 1):
            one = torch.full((m, t), -100, device=device)
            one.view(-1)[place] = 3
            check_loss(student, logits, one)


@pytest.mark.worth("mlm_loss", 0.15)
def test_mlm_vocabulary(student: Student, device: torch.device, seed: int) -> None:
    """A vocabulary of BERT's size, 30,522 tokens, works like a small one."""
    logits = normal(seed, (2, 3, 30_522), torch.float32, device, scale=3.0)
    labels = torch.tensor([[30_521, -100, 0], [-100, 103, -100]], device=device)
    check_loss(student, logits, labels)


@pytest.mark.worth("mlm_loss", 0.2, misconception="strides-ignored")
def test_mlm_strides(student: Student, device: torch.device, seed: int) -> None:
    """Transposed, sliced and expanded logits and labels are read as they are, whatever their memory order."""
    logits, labels = make_batch(seed, 3, 5, 7, device)
    check_loss(student, normal(seed, (3, 7, 5), torch.float32, device).transpose(1, 2), labels)
    check_loss(student, normal(seed, (5, 3, 7), torch.float32, device).transpose(0, 1), labels)
    check_loss(student, normal(seed, (3, 5, 14), torch.float32, device)[..., ::2], labels)
    check_loss(student, logits[:1].expand(3, 5, 7), labels)
    check_loss(student, logits, make_labels(seed, (5, 3), 7, device).T)
    check_loss(student, logits[:, ::2], make_labels(seed, (3, 6), 7, device)[:, ::2])
    check_loss(student, logits, torch.tensor([[1, -100, 0, 6, -100]], device=device).expand(3, 5))


@pytest.mark.worth("mlm_loss", 0.15, misconception="no-target-accepted")
def test_mlm_refuses_no_target(student: Student, device: torch.device, seed: int) -> None:
    """A batch without any target is refused: 0 / 0 is no loss."""
    names = ("labels", "label", "ignore_index")
    for m, t, ignore_index in ((3, 5, -100), (1, 1, -100), (2, 3, 0), (3, 2, -1), (2, 3, 4)):
        logits, labels = make_batch(seed, m, t, 5, device, ignore_index=ignore_index)
        check_loss(student, logits, labels, ignore_index)
        empty = torch.full((m, t), ignore_index, device=device)
        because = f"every label is ignore_index, {ignore_index}: there is no target"
        expect.refuses(student.mlm_loss, logits, empty, ignore_index, names=names, because=because)
    logits, labels = worked_batch(device)
    check_loss(student, logits, labels)
    because = "every label is -100: there is no target"
    expect.refuses(student.mlm_loss, logits, torch.full_like(labels, -100), names=names, because=because)


def refuses_label(
    student: Student, device: torch.device, seed: int, vocab_size: int, bad: int, ignore_index: int
) -> None:
    logits, labels = make_batch(seed, 3, 5, vocab_size, device, ignore_index=ignore_index)
    check_loss(student, logits, labels, ignore_index)
    because = f"the label {bad} is outside [0, {vocab_size}) and not ignore_index, {ignore_index}"
    for place in ((0, 0), (1, 3), (2, 4)):
        broken = labels.clone()
        broken[place] = bad
        expect.refuses(
            student.mlm_loss, logits, broken, ignore_index, names=("labels", "label"), values=(bad,), because=because
        )
    alone = torch.full_like(labels, ignore_index)
    alone[1, 1] = bad
    expect.refuses(
        student.mlm_loss, logits, alone, ignore_index, names=("labels", "label"), values=(bad,), because=because
    )


@pytest.mark.worth("mlm_loss", 0.2, misconception="bad-input-accepted")
def test_mlm_refuses_label_above(student: Student, device: torch.device, seed: int) -> None:
    """A label of V or more that is not ignore_index is refused."""
    for bad, ignore_index in ((11, -100), (12, -100), (30_522, -100), (11, 12), (12, 11), (11, 0)):
        refuses_label(student, device, seed, 11, bad, ignore_index)


@pytest.mark.worth("mlm_loss", 0.2, misconception="bad-input-accepted")
def test_mlm_refuses_label_below(student: Student, device: torch.device, seed: int) -> None:
    """A negative label that is not ignore_index is refused, -100 too where ignore_index is another number."""
    for vocab_size, bad, ignore_index in (
        (11, -1, -100),
        (11, -11, -100),
        (11, -100, -1),
        (131, -100, -1),
        (131, -1, -100),
        (131, -100, 0),
        (131, -101, -100),
    ):
        refuses_label(student, device, seed, vocab_size, bad, ignore_index)


@pytest.mark.worth("mlm_loss", 0.15, misconception="bad-input-accepted")
def test_mlm_refuses_shapes(student: Student, device: torch.device, seed: int) -> None:
    """Logits that are not (m, T, V), and labels that are not (m, T), are refused."""
    logits, labels = make_batch(seed, 3, 5, 7, device)
    check_loss(student, logits, labels)
    for logits_shape, labels_shape in (
        ((3, 5, 7), (3, 6)),
        ((3, 5, 7), (2, 5)),
        ((3, 5, 7), (5, 3)),
        ((3, 5, 7), (15,)),
        ((3, 5, 7), (3, 1)),
        ((3, 5, 7), (1, 5)),
        ((3, 5, 7), (5,)),
        ((3, 5, 7), (3, 5, 1)),
        ((3, 5), (3, 5)),
        ((15, 7), (3, 5)),
        ((3, 5, 7, 2), (3, 5)),
        ((3, 7, 5), (3, 5)),
        ((1, 5, 7), (3, 5)),
        ((3, 1, 7), (3, 5)),
    ):
        wrong_logits = normal(seed, logits_shape, torch.float32, device)
        wrong_labels = torch.ones(labels_shape, dtype=torch.int64, device=device)
        because = f"logits of shape {logits_shape} and labels of shape {labels_shape} do not fit"
        names = ("logits", "labels", "label")
        expect.refuses(student.mlm_loss, wrong_logits, wrong_labels, names=names, because=because)


@pytest.mark.worth("mlm_loss", 0.1)
def test_mlm_device(student: Student, device: torch.device, seed: int) -> None:
    """The loss is on the device of logits, and nothing is made on another one."""
    logits, labels = make_batch(seed, 3, 5, 7, device)
    with student.device_trap() as faults:
        got = student.mlm_loss(logits, labels)
    expect.close(got, oracle.mlm_loss(logits, labels), student.last, likely=likely_losses(logits, labels))
    if faults:
        expect.wrong(f"{student.last.text}\n{faults[0]}", "wrong-device")


@pytest.mark.worth("mlm_loss", 0.1)
def test_mlm_leaves_its_arguments(student: Student, device: torch.device, seed: int) -> None:
    """Logits and labels are left as they were, and no random generator is touched."""
    for dtype in (torch.float32, torch.float64, *HALF):
        check_loss(student, *make_batch(seed, 3, 5, 7, device, dtype))
        check_loss(student, *make_batch(seed, 3, 5, 7, device, dtype, ignore_index=-1), -1)
    logits, labels = make_batch(seed, 3, 5, 7, device)
    check_loss(student, with_junk(logits, labels, -100, "NaN"), labels)
    expect.unchanged(student, "mlm_loss")

"""Hidden checks of exercise 2: mean_nll, stable_log_softmax and mlm_loss."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import example
from hypothesis import strategies as st

from autograder.hidden import expect
from autograder.hidden.oracles import ex02 as oracle
from autograder.hidden.properties import given
from autograder.hidden.strategies import normal, seeds, sizes
from autograder.wire.errors import Raised, RemoteError
from autograder.wire.proxy import Function, Student

NAN, INF = math.nan, math.inf
HALF = (torch.float16, torch.bfloat16)


def answer(
    function: Function, *args: Any, otherwise: str | Callable[[Raised], str | None] | None = None, **kwargs: Any
) -> Any:
    """What a valid call returns.

    otherwise: the misconception to name if it raises instead: an id (a refusal is named as such), or a function of
    what was raised.
    """
    try:
        return function(*args, **kwargs)
    except RemoteError as error:
        raised = error.raised
        if callable(otherwise):
            named = otherwise(raised)
        else:
            named = "valid-input-refused" if is_refusal(raised) else otherwise
        if (
            named is None
            or raised.base in ("NotImplementedError", "MemoryError")
            or raised.type_name == "OffLimitsError"
        ):
            raise
        expect.wrong(f"{function.last.text}\nraised {raised.text}\nexpected a result: this input is a good one", named)


def is_refusal(raised: Raised) -> bool:
    return raised.explicit and raised.base == "ValueError"


def refuses(function: Function, *args: Any, accepted: str | Callable[[Any], str | None] | None, **kwargs: Any) -> None:
    """expect.refuses.  accepted: what it is a sign of if a result comes back, or a function of the result."""
    try:
        expect.refuses(function, *args, **kwargs)
    except expect.Wrong as wrong:
        if wrong.misconception != "bad-input-accepted":
            raise
        named = accepted(function.last.returned) if callable(accepted) else accepted
        raise expect.Wrong(wrong.message, named or wrong.misconception) from None


# mean_nll: its tensors stay on the CPU, since the contract asks for a number, not for a device.
KINDS: tuple[Callable[[list[float]], Any], ...] = (
    list,
    tuple,
    np.array,
    lambda p: torch.tensor(p, dtype=torch.float64),
)
PROBABILITIES = ("probabilities", "probability")
#: What people add inside a logarithm.
GUARDS = (1e-6, 1e-7, 1e-8, 1e-9, 1e-10, 1e-12)


def likely_means(values: list[float]) -> list[tuple[str, Any]]:
    """What usual misreadings make of these probabilities."""
    nll, n = oracle.mean_nll(values), len(values)
    return [
        ("log-base", nll / math.log(2)),
        ("log-base", nll / math.log(10)),
        ("losses-summed", nll * n),
        ("log-of-the-mean", -math.log(math.fsum(values) / n)),
        ("sign-flipped", -nll),
        ("perplexity-returned", lambda: math.exp(nll) if nll < 50 else None),
        *(("not-in-double", lambda e=e: oracle.mean_nll([p + e for p in values])) for e in GUARDS),
    ]


def check_mean(student: Student, probabilities: Any, values: list[float], otherwise: str | None = None) -> None:
    """The mean NLL of `probabilities`, which hold `values`.  otherwise: what to name if the call raises."""
    got, expected = answer(student.mean_nll, probabilities, otherwise=otherwise), oracle.mean_nll(values)
    if expect.mismatch(got, expected) is None:
        return
    if not expect.is_number(got):
        odd = isinstance(got, torch.Tensor | np.ndarray | np.generic)
        expect.close(got, expected, student.last, misconception="not-a-number" if odd else None)
    rounded = abs(got - expected) <= 1e-3 * max(1.0, expected)
    named = "not-in-double" if rounded else None
    expect.close(got, expected, student.last, likely=likely_means(values), misconception=named)


@pytest.mark.worth("mean_nll", 0.5, misconception="another-formula")
@given(values=st.lists(st.floats(1e-6, 1.0), min_size=1, max_size=20), kind=st.sampled_from((list, tuple)))
@example(values=[0.5, 0.25], kind=tuple)
@example(values=[0.5, 0.25], kind=list)
@example(values=[0.125], kind=list)
def test_mean_nll_values(student: Student, values: list[float], kind: type) -> None:
    """The mean is taken over natural logarithms, for lists and tuples of any length: (0.5, 0.25) gives 1.5 ln 2."""
    check_mean(student, kind(values), values, "squeezed-away" if len(values) == 1 else "one-kind-of-input")


@pytest.mark.worth("mean_nll", 0.4, misconception="not-in-double")
def test_mean_nll_arrays_and_tensors(student: Student, seed: int) -> None:
    """Arrays and tensors of any floating dtype and stride are taken as they are, in double precision."""
    values = np.random.default_rng(seed).uniform(0.02, 0.98, size=22)
    arrays = [values.astype(dtype) for dtype in (np.float64, np.float32, np.float16)]
    tensors = [torch.tensor(values).to(dtype) for dtype in (torch.float64, torch.float32, *HALF)]
    strided = [*(x[::2] for x in arrays), *(x[1::3] for x in tensors)]
    everything: list[Any] = [*arrays, *tensors, *strided]
    for probabilities in everything:
        check_mean(student, probabilities, [float(p) for p in probabilities.tolist()], "one-kind-of-input")


@pytest.mark.worth("mean_nll", 0.35, misconception="not-in-double")
def test_mean_nll_double(student: Student) -> None:
    """Very small probabilities, certain tokens and long lists come out right: no clipping, no products."""
    for values in ([1e-300, 0.5], [1e-50, 1.0], [0.25, 1e-100, 1.0], [1.0, 1.0, 0.5], [0.5] * 3000):
        for kind in KINDS:
            check_mean(student, kind(values), values)


@pytest.mark.worth("mean_nll", 0.15)
def test_mean_nll_refuses_empty(student: Student) -> None:
    """An empty collection of probabilities is refused: it has no mean."""
    for kind in KINDS:
        check_mean(student, kind([0.5, 1.0, 0.25]), [0.5, 1.0, 0.25])
        expect.refuses(student.mean_nll, kind([]), names=PROBABILITIES, because="there are no probabilities")


def refuses_probability(student: Student, bad: float, because: str, misconception: str | None = None) -> None:
    good = [0.5, 1.0, 0.25]
    for place, kind in enumerate(KINDS):
        values = list(good)
        values.insert(place, bad)
        check_mean(student, kind(good), good)
        refuses(
            student.mean_nll,
            kind(values),
            names=PROBABILITIES,
            values=(bad,),
            because=because,
            accepted=misconception,
        )


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
    refuses_probability(student, NAN, "NaN is outside (0, 1]", "nan-accepted")


@pytest.mark.worth("mean_nll", 0.15)
def test_mean_nll_leaves_its_argument(student: Student) -> None:
    """The probabilities are left as they were, and no random generator is touched."""
    values = [0.5, 0.125, 1.0, 0.75]
    for kind in KINDS:
        check_mean(student, kind(values), values)
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
        *(
            ("softmax-wrong-axis", lambda axis=axis: torch.log_softmax(wide - wide.amax(axis, keepdim=True), -1))
            for axis in range(x.ndim - 1)
        ),
        ("softmax-wrong-axis", lambda: torch.log_softmax(wide.reshape(-1), 0).reshape(x.shape)),
        ("log-of-underflow", lambda: torch.softmax(x, -1).log()),
        ("log-of-underflow", lambda: (torch.softmax(x, -1) + 1e-9).log()),
        ("log-of-underflow", lambda: (torch.softmax(x, -1) + 1e-12).log()),
        *([("shared-maximum", one_maximum)] if x.ndim > 1 else []),
        ("logsumexp-rounding", lambda: x - torch.logsumexp(x, -1, keepdim=True)),
        ("exp-overflow", without_shift),
        ("squeezed-away", lambda: right().squeeze()),
    ]
    return [(name, lambda make=make: make().to(x.dtype)) for name, make in candidates]


def check_log_softmax(
    student: Student,
    x: torch.Tensor,
    dtype: bool = True,
    diagnose: bool = True,
    otherwise: str | None = None,
    tolerance: float | None = None,
) -> None:
    """dtype: whether it counts.  diagnose: whether the result may be named after a usual misreading.

    otherwise: the misconception to name if the call raises.
    """

    def why_raised(raised: Raised) -> str | None:
        if is_refusal(raised):
            return "valid-input-refused"
        return "keepdim-forgotten" if "must match the size" in raised.message else otherwise

    got, expected = answer(student.stable_log_softmax, x, otherwise=why_raised), oracle.log_softmax(x)
    if expect.mismatch(got, expected, dtype=dtype, tolerance=tolerance) is not None:
        named = unusual(got, expected) if diagnose else None
        likely = likely_log_softmax(x) if diagnose and named != "dtype-changed" else []
        expect.close(got, expected, student.last, likely=likely, dtype=dtype, misconception=named, tolerance=tolerance)


def unusual(got: Any, expected: torch.Tensor) -> str | None:
    """What a result is a sign of, whatever the formula."""
    if not isinstance(got, torch.Tensor) or not got.is_floating_point():
        return None
    if got.shape != expected.shape:
        return "keepdim-forgotten" if got.numel() > expected.numel() else None
    if got.dtype != expected.dtype and expect.mismatch(got, expected, tolerance=1e-2, dtype=False) is None:
        return "dtype-changed"
    sums = got.double().exp().sum(-1)
    return "not-normalised" if bool(sums.isfinite().all()) and bool(((sums - 1).abs() > 1e-2).any()) else None


@pytest.mark.worth("stable_log_softmax", 0.6, misconception="another-formula")
@given(
    seed=seeds,
    shape=st.integers(1, 5).flatmap(lambda n: sizes(n, (1, 2, 3, 5, 7))),
    dtype=st.sampled_from((torch.float32, torch.float64)),
    whole=st.booleans(),
)
def test_log_softmax_values(
    student: Student, device: torch.device, seed: int, shape: tuple[int, ...], dtype: torch.dtype, whole: bool
) -> None:
    """The result is the logarithm of the softmax over the last axis, in the dtype of logits, for any number of axes."""
    x = normal(seed, shape, dtype, device, scale=2.0)
    alone = "one-rank-only" if x.ndim != 2 else None
    check_log_softmax(
        student, x.round() if whole else x, otherwise=alone
    )  # whole numbers: a row may have its maximum twice


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
        for row in (
            [0.0, 200.0],
            [3.0, -150.0, 0.0, 2.0],
            [0.0, 1000.0, -1000.0],
            [1e4, -1e4, 0.0],
            [-200.0, 0.0, 0.0],
        ):
            x = torch.tensor([row, row[::-1]], dtype=dtype, device=device)
            check_log_softmax(student, x[0])
            check_log_softmax(student, x)


@pytest.mark.worth("stable_log_softmax", 0.35, misconception="shared-maximum")
def test_log_softmax_rows_far_apart(student: Student, device: torch.device, seed: int) -> None:
    """Each row has a maximum of its own: a row far below another one comes out right."""
    high = torch.tensor([60.0, -60.0], device=device)
    for dtype, gap in ((torch.float32, high), (torch.float64, high * 166.0)):
        for shape in ((2, 5), (3, 2, 5), (7, 3, 2, 5)):
            check_log_softmax(student, normal(seed, shape, dtype, device) + gap.to(dtype)[:, None])


@pytest.mark.worth("stable_log_softmax", 0.35, misconception="dtype-changed")
def test_log_softmax_half_precision(student: Student, device: torch.device, seed: int) -> None:
    """float16 and bfloat16 logits, large ones too, give results of that dtype, right to its precision."""
    for dtype in HALF:
        check_log_softmax(student, normal(seed, (3, 2, 5), dtype, device, scale=2.0))
        for offset in (30.0, -30.0, 9900.0, -9900.0):
            x = (normal(seed + 1, (3, 5), torch.float64, device, scale=10.0).clamp(-30, 30) + offset).to(dtype)
            check_log_softmax(student, x)
        check_log_softmax(student, torch.tensor([30.0, -30.0, 0.0, -10.0], dtype=dtype, device=device))


@pytest.mark.worth("stable_log_softmax", 0.4, misconception="wrong-gradient")
def test_log_softmax_gradient(student: Student, device: torch.device, seed: int) -> None:
    """The result can be differentiated in logits, with the right gradient, for large logits too."""
    cases = []
    for dtype, offset in ((torch.float64, 0.0), (torch.float32, 0.0), (torch.float64, 9990.0), (torch.float32, 120.0)):
        for shape in ((5, 7), (2, 3, 5), (7,)):
            x = normal(seed, shape, torch.float64, device) + offset
            cases.append((x.to(dtype), normal(seed + 1, shape, dtype, device)))
    for dtype in HALF:  # one entry of each row, so that rounding stays small
        cases.append((normal(seed, (3, 5), dtype, device), torch.eye(5, device=device)[1:4].to(dtype)))
    for x, weights in cases:
        x.requires_grad_()
        result = answer(student.stable_log_softmax, x)
        if not isinstance(result, torch.Tensor) or result.shape != x.shape:
            expect.close(result, oracle.log_softmax(x), student.last, likely=likely_log_softmax(x))
        (gradient,) = expect.gradients(result, [x], student.last, weights.to(result.dtype))
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


@pytest.mark.worth("stable_log_softmax", 0.15, misconception="dtype-changed")
def test_log_softmax_vocabulary(student: Student, device: torch.device, seed: int) -> None:
    """Vocabularies of BERT's size, 30,522 tokens, and of 70,001 tokens in float16 work like small ones."""
    # 1e-4: adding up so many float32 numbers one by one is not wrong, and already off by 2e-5
    check_log_softmax(student, normal(seed, (2, 30_522), torch.float32, device), diagnose=False, tolerance=1e-4)
    # float16 ends at 65,504: there the sum of the exponentials of this row has no place
    check_log_softmax(student, normal(seed, (70_001,), torch.float16, device, scale=0.01), dtype=False, diagnose=False)


@pytest.mark.worth("stable_log_softmax", 0.1)
def test_log_softmax_device(student: Student, device: torch.device, seed: int) -> None:
    """The result is on the device of logits, and nothing is made on another one."""
    x = normal(seed, (3, 5), torch.float32, device)
    with student.device_trap() as faults:
        check_log_softmax(student, x)
    if faults:
        expect.wrong(f"{student.last.text}\n{faults[0]}", "wrong-device")


@pytest.mark.worth("stable_log_softmax", 0.1)
def test_log_softmax_leaves_its_argument(student: Student, device: torch.device, seed: int) -> None:
    """The logits are left as they were, and no random generator is touched."""
    for dtype in (torch.float32, torch.float64, *HALF):
        check_log_softmax(student, normal(seed, (3, 5), dtype, device), dtype=False)
    expect.unchanged(student, "stable_log_softmax")


# -- mlm_loss ----------------------------------------------------------------------------------------------------------
#
# Each property has a check of its own.  Elsewhere it plays no part, so that a fault costs what it is worth and no more:
# every sequence has the same number of targets, targets are neither the first id nor the last, ignore_index is outside
# the vocabulary, logits are float32 or float64.


def make_labels(
    seed: int,
    shape: tuple[int, int],
    vocab_size: int,
    device: torch.device,
    ignore_index: int = -100,
    uneven: bool = False,
) -> torch.Tensor:
    """Labels with at least one target in every sequence.

    uneven: unequal numbers of targets, 1 to T.  Otherwise the same number in each, 1 to T - 1 (1 for T = 1).
    """
    m, t = shape
    rng = np.random.default_rng(seed)
    count = int(rng.integers(1, max(t, 2)))
    ids = [i for i in range(1, max(vocab_size - 1, 2)) if i != ignore_index]
    labels = np.full(shape, ignore_index)
    for row in range(m):
        places = rng.permutation(t)[: 1 + (row + count) % t if uneven else count]
        labels[row, places] = rng.choice(ids, size=len(places))
    return torch.as_tensor(labels).to(device)


def make_batch(
    seed: int,
    m: int,
    t: int,
    v: int,
    device: torch.device,
    dtype: torch.dtype = torch.float32,
    ignore_index: int = -100,
    uneven: bool = False,
) -> tuple[torch.Tensor, torch.Tensor]:
    labels = make_labels(seed + 1, (m, t), v, device, ignore_index, uneven)
    return normal(seed, (m, t, v), dtype, device, scale=2.0), labels


def likely_losses(logits: torch.Tensor, labels: torch.Tensor, ignore_index: int = -100) -> list[tuple[str, Any]]:
    """What usual misreadings make of this batch."""
    by_sequence = oracle.sequence_losses(logits, labels, ignore_index)
    counts = [len(losses) for losses in by_sequence]
    m, t, v = logits.shape
    total = math.fsum(map(math.fsum, by_sequence))
    n = sum(counts)
    means = [math.fsum(losses) / len(losses) for losses in by_sequence if losses]
    selected = labels != ignore_index
    safe = torch.where(selected, labels, 0)

    def over_targets(values: torch.Tensor, chosen: torch.Tensor = selected, ids: torch.Tensor = safe) -> float | None:
        picked = values.double().gather(-1, ids[..., None])[..., 0][chosen]
        return -float(picked.mean()) if picked.numel() else None

    def same_kind(value: float | None) -> torch.Tensor | None:
        return None if value is None or not math.isfinite(value) else oracle.scalar(value, logits)

    x = logits.detach().double()

    def nll() -> torch.Tensor:  # at ignored positions that of token 0
        return -torch.log_softmax(x, -1).gather(-1, safe[..., None])[..., 0]

    def mixed() -> float:  # logits position by position, labels sequence by sequence
        other = labels.T.reshape(m, t)
        return -float(
            torch.log_softmax(x, -1)
            .gather(-1, torch.where(other != ignore_index, other, 0)[..., None])[other != ignore_index]
            .mean()
        )

    candidates: list[tuple[str, Callable[[], float | None]]] = [
        ("mean-over-all-positions", lambda: total / (m * t)),
        ("sequence-means-averaged", lambda: math.fsum(means) / len(means)),
        ("sequence-means-averaged", lambda: math.fsum(means) / m),
        ("losses-summed", lambda: total),
        ("divided-by-sequences", lambda: total / m),
        ("divided-by-sequences", lambda: total / len(means)),
        ("empty-sequence-counted", lambda: total / sum(max(1, len(losses)) for losses in by_sequence)),
        ("empty-sequence-counted", lambda: total / (n + 1)),
        ("empty-sequence-counted", lambda: total / (n + 1e-5)),
        ("equal-counts-assumed", lambda: total / (m * max(1, n // m))),
        ("equal-counts-assumed", lambda: total / (m * next(filter(None, counts)))),
        ("equal-counts-assumed", lambda: total / (m * max(counts))),
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
        ("softmax-wrong-axis", lambda: over_targets(torch.log_softmax(torch.where(selected[..., None], x, 0), 1))),
        ("perplexity-returned", lambda: math.exp(total / n) if total < 50 * n else None),
        ("broadcast-to-square", lambda: float(nll().sum())),
        ("broadcast-to-square", lambda: total + (m * t - n) * math.log(v)),
        ("causal-shift", lambda: over_targets(torch.log_softmax(x.roll(1, 1), -1))),
        ("causal-shift", lambda: over_targets(torch.log_softmax(x, -1)[:, :-1], selected[:, 1:], safe[:, 1:])),
        ("integer-mask-as-index", lambda: float(nll().reshape(-1)[selected.long().reshape(-1)].mean())),
        ("axes-mixed", lambda: over_targets(torch.log_softmax(x.mT.reshape(x.shape), -1))),
        ("axes-mixed", lambda: mixed()),
        ("ignored-positions-counted", lambda: float(nll().mean())),
    ]
    return [(name, lambda value=value: same_kind(value())) for name, value in candidates]


def check_loss(
    student: Student,
    logits: torch.Tensor,
    labels: torch.Tensor,
    ignore_index: int | None = None,
    keyword: bool = True,
    likely: list[tuple[str, Any]] | None = None,
    otherwise: str | None = None,
    diagnose: bool = True,
) -> torch.Tensor:
    """The loss of a batch.

    otherwise: the misconception to name where no likely one fits.  diagnose: whether to try the usual likely ones.
    """
    wanted = -100 if ignore_index is None else ignore_index
    args = (logits, labels) if ignore_index is None or keyword else (logits, labels, ignore_index)
    kwargs = {"ignore_index": ignore_index} if ignore_index is not None and keyword else {}
    got = answer(student.mlm_loss, *args, otherwise=lambda raised: why_raised(raised, labels, wanted), **kwargs)
    expected = oracle.mlm_loss(logits, labels, wanted)
    if expect.mismatch(got, expected) is None:
        return got
    named = [*(likely or []), *(likely_losses(logits, labels, wanted) if diagnose else [])]
    if isinstance(got, float):
        otherwise = "gradient-cut"
    elif isinstance(got, torch.Tensor) and got.ndim > 0:
        otherwise = "not-a-scalar"
    elif expect.mismatch(got, expected, tolerance=1e-5, dtype=False) is None:
        otherwise, named = otherwise or "dtype-changed", named if got.dtype == expected.dtype else []
    expect.close(got, expected, student.last, likely=named, misconception=otherwise)
    return got


def why_raised(raised: Raised, labels: torch.Tensor, ignore_index: int) -> str | None:
    """Which misconception an exception on a good batch is a sign of: the ignored label taken for a target, mostly."""

    def blames(label: int) -> bool:
        return re.search(rf"(?<![-\d]){label}(?!\d)", raised.message) is not None

    if is_refusal(raised):
        others = any(map(blames, set(labels.flatten().tolist()) - {ignore_index}))
        return (
            "ignore-index-fixed" if blames(ignore_index) and not others and ignore_index < 0 else "valid-input-refused"
        )
    return "ignored-label-as-class" if blames(ignore_index) and "out of bounds" in raised.message else None


def worked_batch(device: torch.device, dtype: torch.dtype = torch.float32) -> tuple[torch.Tensor, torch.Tensor]:
    """Targets of probability 1/2 and 1/4 in one sequence, 1/8, 1/2 and 1/8 in the other: 10 ln 2 over 5 targets."""
    p = [
        [[0.2, 0.5, 0.3], [0.35, 0.25, 0.4], [0.3, 0.1, 0.6]],
        [[0.5, 0.125, 0.375], [0.3, 0.5, 0.2], [0.7, 0.125, 0.175]],
    ]
    labels = [[1, 1, -100], [1, 1, 1]]
    return torch.tensor(p, device=device, dtype=dtype).log() + 1.0, torch.tensor(labels, device=device)


@pytest.mark.worth("mlm_loss", 0.7, misconception="another-formula")
@given(seed=seeds, shape=sizes(3, (3, 5, 7, 11, 13)), dtype=st.sampled_from((torch.float32, torch.float64)))
def test_mlm_mean_over_batch(
    student: Student, device: torch.device, seed: int, shape: tuple[int, int, int], dtype: torch.dtype
) -> None:
    """The loss is the mean over the selected positions of the whole batch: a scalar tensor in the dtype of logits."""
    for small in (torch.float32, torch.float64):
        check_loss(student, *worked_batch(device, small))
    check_loss(student, *make_batch(seed, *shape, device, dtype, uneven=True))


@pytest.mark.worth("mlm_loss", 0.4, misconception="empty-sequence-counted")
@given(seed=seeds, kept=st.sets(st.integers(0, 4), min_size=1, max_size=3))
def test_mlm_sequences_without_target(student: Student, device: torch.device, seed: int, kept: set[int]) -> None:
    """Sequences without any target add nothing to the sum and nothing to the count: two and none make two."""
    logits, labels = worked_batch(device)
    labels[1] = -100
    check_loss(student, logits, labels)
    logits, labels = make_batch(seed, 5, 7, 11, device)
    for row in range(5):
        if row not in kept:
            labels[row] = -100
    check_loss(student, logits, labels)


@pytest.mark.worth("mlm_loss", 0.3, misconception="label-zero-ignored")
def test_mlm_first_and_last_id(student: Student, device: torch.device, seed: int) -> None:
    """The first id, 0, and the last, V - 1, are targets like any other."""
    for vocab_size in (2, 7, 131):
        logits = normal(seed, (3, 5, vocab_size), torch.float32, device, scale=2.0)
        for few in ([0, vocab_size - 1], [0], [vocab_size - 1]):
            labels = torch.full((3, 5), -100, device=device)
            for place in range(6):
                labels[place % 3, place // 3 + place % 3] = few[place % len(few)]
            check_loss(student, logits, labels)


@pytest.mark.worth("mlm_loss", 0.25, misconception="ignore-index-fixed")
@given(seed=seeds, ignore_index=st.sampled_from((0, 1, 4, 10)), keyword=st.booleans())
def test_mlm_ignore_index_inside(
    student: Student, device: torch.device, seed: int, ignore_index: int, keyword: bool
) -> None:
    """ignore_index may be an id of the vocabulary, 0 too: then that id is ignored, and only that one."""
    logits, labels = make_batch(seed, 3, 5, 11, device, ignore_index=ignore_index)
    everywhere = [("ignore-index-fixed", lambda: oracle.mlm_loss(logits, labels))]
    check_loss(student, logits, labels, ignore_index, keyword, likely=everywhere)


@pytest.mark.worth("mlm_loss", 0.25, misconception="ignore-index-fixed")
@given(seed=seeds, ignore_index=st.sampled_from((-1, -100, -7, 11, 12, 30_522)), keyword=st.booleans())
def test_mlm_ignore_index_outside(
    student: Student, device: torch.device, seed: int, ignore_index: int, keyword: bool
) -> None:
    """Positions are ignored where the label is ignore_index, whichever number outside the vocabulary that is."""
    check_loss(student, *make_batch(seed, 3, 5, 11, device, ignore_index=ignore_index), ignore_index, keyword)


@pytest.mark.worth("mlm_loss", 0.3, misconception="half-precision-loss")
def test_mlm_half_precision(student: Student, device: torch.device, seed: int) -> None:
    """float16 and bfloat16 logits are computed in, and the loss is returned as, float32; gradients are theirs."""
    for dtype in HALF:
        for shift in range(3):
            logits, labels = make_batch(seed + shift, 3, 5, 11, device, dtype)
            logits.requires_grad_()
            result = check_loss(student, logits, labels, otherwise="half-precision-loss", diagnose=False)
            (gradient,) = expect.gradients(result, [logits], student.last)
            right = oracle.mlm_gradient(logits, labels)
            expect.close(gradient, right, student.last, what="The gradient in logits", misconception="wrong-gradient")
        # 2051 targets: a count that neither dtype can hold
        logits = normal(seed, (7, 293, 3), dtype, device)
        check_loss(student, logits, torch.ones(7, 293, dtype=torch.int64, device=device), diagnose=False)


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
        row[0], row[1] = -top, top
    return torch.where((labels == ignore_index)[..., None], row, logits)


JUNK = ("NaN", "inf", "-inf", "one inf", "one -inf", "one NaN", "largest")


@pytest.mark.worth("mlm_loss", 0.35, misconception="ignored-logits-leak")
@given(seed=seeds, kind=st.sampled_from(JUNK), dtype=st.sampled_from((torch.float32, torch.float64)))
def test_mlm_ignored_logits(student: Student, device: torch.device, seed: int, kind: str, dtype: torch.dtype) -> None:
    """Whatever the logits hold at ignored positions, NaN and inf too, the loss stays the same."""
    logits, labels = make_batch(seed, 3, 7, 5, device, dtype)
    check_loss(student, with_junk(logits, labels, -100, kind), labels, diagnose=False)


@pytest.mark.worth("mlm_loss", 0.4, misconception="wrong-gradient")
@given(
    seed=seeds,
    dtype=st.sampled_from((torch.float32, torch.float64)),
    factor=st.sampled_from((1.0, -3.0, 0.5)),
)
def test_mlm_gradient(student: Student, device: torch.device, seed: int, dtype: torch.dtype, factor: float) -> None:
    """The gradient at the n targets is (softmax - one-hot) / n, and it passes on the gradient that comes from above."""
    logits, labels = make_batch(seed, 2, 3, 5, device, dtype)
    logits.requires_grad_()
    result = check_loss(student, logits, labels)
    (gradient,) = expect.gradients(result, [logits], student.last, oracle.scalar(factor, logits))
    expected = oracle.mlm_gradient(logits, labels, factor=factor)
    positions = int((labels != -100).sum()) / labels.numel()
    likely = [("mean-over-all-positions", expected * positions), ("sign-flipped", -expected)]
    what = (
        "The gradient in logits" if factor == 1 else f"The gradient in logits of {factor:g} · loss, the loss being that"
    )
    expect.close(gradient, expected, student.last, likely=likely, what=what)


@pytest.mark.worth("mlm_loss", 0.35, misconception="gradient-at-ignored")
@given(
    seed=seeds,
    kind=st.sampled_from(("nothing odd", *JUNK)),
    dtype=st.sampled_from((torch.float32, torch.float64)),
)
def test_mlm_gradient_at_ignored(
    student: Student, device: torch.device, seed: int, kind: str, dtype: torch.dtype
) -> None:
    """The gradient at ignored positions is exactly 0, whatever the logits hold there, and right at the others."""
    logits, labels = make_batch(seed, 3, 4, 5, device, dtype)
    if kind in JUNK:
        logits = with_junk(logits, labels, -100, kind)
    logits.requires_grad_()
    result = answer(student.mlm_loss, logits, labels)
    (gradient,) = expect.gradients(result, [logits], student.last)
    ignored = gradient[labels == -100]
    if not bool((ignored == 0).all()):
        worst = ignored[ignored != 0][0].item()
        expect.wrong(
            f"{student.last.text}\nThe gradient in logits holds {worst:.7g} at an ignored position (there the logits "
            f"hold: {kind}).\nexpected exactly 0 at every ignored position",
            "gradient-at-ignored",
        )
    expected = oracle.mlm_gradient(logits, labels)
    expect.close(gradient, expected, student.last, what="The gradient in logits")


@pytest.mark.worth("mlm_loss", 0.3, misconception="log-of-underflow")
def test_mlm_large_logits(student: Student, device: torch.device, seed: int) -> None:
    """Large logits, and targets whose probability underflows to 0, give a finite and right loss."""
    for dtype in (torch.float32, torch.float64):
        for offset in (120.0, -120.0) if dtype == torch.float32 else (2000.0, -9990.0):
            logits, labels = make_batch(seed, 3, 5, 7, device, dtype)
            check_loss(student, logits + offset, labels, otherwise="exp-overflow")
    for dtype in (torch.float32, torch.float64):
        for row, label in (
            ([0.0, 0.0, 200.0, -3.0], 1),
            ([0.0, 1e4, -1e4, 0.0], 2),
            ([0.0, 1e4, -1e4, 0.0], 1),
            ([-1e4, -1e4, -1e4, -3e3], 1),
        ):
            logits = torch.tensor([[row, [0.5, 1.0, -1.0, 0.0]]] * 2, dtype=dtype, device=device)
            for other in (-100, 2):
                named = None if other < 0 else "shared-maximum"
                check_loss(student, logits, torch.tensor([[label, other]] * 2, device=device), otherwise=named)
    for dtype in (torch.float32, torch.float64):
        # one position far above all others, where the loss is 0: its maximum is not theirs
        logits, labels = make_batch(seed + 1, 3, 5, 7, device, dtype)
        labels[1] = labels[1].roll(2 - int((labels[1] != -100).nonzero()[0, 0]))
        logits[1, 2] = torch.tensor([0.0, 0.0, 9000.0, 0.0, -5.0, 0.0, 0.0], dtype=dtype, device=device)
        labels[1, 2] = 2
        check_loss(student, logits, labels, otherwise="shared-maximum")


@pytest.mark.worth("mlm_loss", 0.15, misconception="squeezed-away")
def test_mlm_small_batches(student: Student, device: torch.device, seed: int) -> None:
    """One sequence, one position, one target, and targets everywhere are batches like any other."""
    for m, t in ((1, 7), (5, 1), (1, 1), (2, 3)):
        logits = normal(seed, (m, t, 5), torch.float64, device, scale=2.0)
        everywhere = (torch.arange(m * t, device=device) % 3).reshape(m, t) + 1
        check_loss(student, logits, everywhere)
        for place in (0, t - 1):
            one = torch.full((m, t), -100, device=device)
            one[:, place] = 3
            check_loss(student, logits, one)


@pytest.mark.worth("mlm_loss", 0.15, misconception="ids-lose-precision")
def test_mlm_vocabulary(student: Student, device: torch.device, seed: int) -> None:
    """A vocabulary of BERT's size, 30,522 tokens, works like a small one."""
    logits = normal(seed, (2, 3, 30_522), torch.float32, device, scale=3.0)
    labels = torch.tensor([[30_519, -100, 2051], [-100, 103, 20_001]], device=device)
    check_loss(student, logits, labels)


@pytest.mark.worth("mlm_loss", 0.2, misconception="strides-ignored")
def test_mlm_strides(student: Student, device: torch.device, seed: int) -> None:
    """Transposed, sliced and expanded logits and labels are read as they are, whatever their memory order."""
    logits, labels = make_batch(seed, 3, 5, 7, device)
    spaced = torch.full((3, 10), 4, device=device)
    spaced[:, ::2] = labels
    for strange in (
        normal(seed, (3, 7, 5), torch.float32, device).transpose(1, 2),
        normal(seed, (5, 3, 7), torch.float32, device).transpose(0, 1),
        normal(seed, (3, 5, 14), torch.float32, device)[..., ::2],
        logits[:1].expand(3, 5, 7),
    ):
        check_loss(student, strange, labels, diagnose=False)
    for odd in (
        labels.T.contiguous().T,
        spaced[:, ::2],
        torch.tensor([[1, -100, 2, 5, -100]], device=device).expand(3, 5),
    ):
        check_loss(student, logits, odd, diagnose=False)


@pytest.mark.worth("mlm_loss", 0.15, misconception="no-target-accepted")
def test_mlm_refuses_no_target(student: Student, device: torch.device, seed: int) -> None:
    """A batch without any target is refused: 0 / 0 is no loss."""
    names = ("labels", "label", "ignore_index")
    for m, t, ignore_index in ((3, 5, -100), (3, 2, -1)):
        logits, labels = make_batch(seed, m, t, 5, device, ignore_index=ignore_index)
        check_loss(student, logits, labels, ignore_index)
        refuses(
            student.mlm_loss,
            logits,
            torch.full((m, t), ignore_index, device=device),
            ignore_index,
            names=names,
            because=f"every label is ignore_index, {ignore_index}: there is no target",
            accepted="no-target-accepted",
        )


def refuses_label(
    student: Student, device: torch.device, seed: int, vocab_size: int, bad: int, ignore_index: int
) -> None:
    logits, labels = make_batch(seed, 3, 5, vocab_size, device, ignore_index=ignore_index)
    check_loss(student, logits, labels, ignore_index)
    because = f"the label {bad} is outside [0, {vocab_size}) and not ignore_index, {ignore_index}"
    for places in ([(0, 0)], [(1, 3)], [(2, 4)], None):
        broken = labels.clone() if places else torch.full_like(labels, ignore_index)
        for place in places or [(1, 1)]:
            broken[place] = bad

        def accepted(got: Any, broken: torch.Tensor = broken) -> str | None:
            ignoring = torch.where(broken == bad, ignore_index, broken)
            if bad < 0 and bool((ignoring == ignore_index).all()):
                return "ignore-index-fixed"
            if bad < 0 and expect.mismatch(got, oracle.mlm_loss(logits, ignoring, ignore_index)) is None:
                return "ignore-index-fixed"
            wrapped = oracle.mlm_loss(logits, torch.where(broken == bad, bad % vocab_size, broken), ignore_index)
            return "negative-id-wraps" if bad < 0 and expect.mismatch(got, wrapped) is None else None

        refuses(
            student.mlm_loss,
            logits,
            broken,
            ignore_index,
            names=("labels", "label"),
            values=(bad,),
            because=because,
            accepted=accepted,
        )


@pytest.mark.worth("mlm_loss", 0.2, misconception="bad-input-accepted")
def test_mlm_refuses_label_above(student: Student, device: torch.device, seed: int) -> None:
    """A label of V or more that is not ignore_index is refused."""
    for bad in (11, 12, 30_522):
        refuses_label(student, device, seed, 11, bad, -100)


@pytest.mark.worth("mlm_loss", 0.2, misconception="bad-input-accepted")
def test_mlm_refuses_label_below(student: Student, device: torch.device, seed: int) -> None:
    """A negative label that is not ignore_index is refused, -100 too where ignore_index is another number."""
    for vocab_size, bad, ignore_index in (
        (11, -1, -100),
        (11, -11, -100),
        (131, -1, -100),
        (131, -101, -100),
        (11, -100, -1),
        (131, -100, -1),
    ):
        refuses_label(student, device, seed, vocab_size, bad, ignore_index)


@pytest.mark.worth("mlm_loss", 0.15, misconception="bad-input-accepted")
def test_mlm_refuses_shapes(student: Student, device: torch.device, seed: int) -> None:
    """Logits that are not (m, T, V), and labels that are not (m, T), are refused."""
    logits, labels = make_batch(seed, 3, 5, 7, device)
    check_loss(student, logits, labels)
    for logits_shape, labels_shape, accepted in (
        ((3, 5, 7), (3, 6), None),
        ((3, 5, 7), (2, 5), None),
        ((3, 5, 7), (5, 3), None),
        ((3, 5, 7), (15,), None),
        ((3, 5, 7), (3, 1), "shapes-stretched"),
        ((3, 5, 7), (1, 5), "shapes-stretched"),
        ((3, 5, 7), (5,), "shapes-stretched"),
        ((3, 5, 7), (3, 5, 1), None),
        ((3, 5), (3, 5), None),
        ((15, 7), (3, 5), None),
        ((3, 5, 7, 2), (3, 5), None),
        ((3, 7, 5), (3, 5), None),
        ((1, 5, 7), (3, 5), "shapes-stretched"),
        ((3, 1, 7), (3, 5), "shapes-stretched"),
    ):
        refuses(
            student.mlm_loss,
            normal(seed, logits_shape, torch.float32, device),
            torch.ones(labels_shape, dtype=torch.int64, device=device),
            names=("logits", "labels", "label"),
            because=f"logits of shape {logits_shape} and labels of shape {labels_shape} do not fit",
            accepted=accepted,
        )


@pytest.mark.worth("mlm_loss", 0.1)
def test_mlm_device(student: Student, device: torch.device, seed: int) -> None:
    """The loss is on the device of logits, and nothing is made on another one."""
    with student.device_trap() as faults:
        check_loss(student, *make_batch(seed, 3, 5, 7, device))
    if faults:
        expect.wrong(f"{student.last.text}\n{faults[0]}", "wrong-device")


@pytest.mark.worth("mlm_loss", 0.1)
def test_mlm_leaves_its_arguments(student: Student, device: torch.device, seed: int) -> None:
    """Logits and labels are left as they were, and no random generator is touched."""
    check_loss(student, *make_batch(seed, 3, 5, 7, device))
    check_loss(student, *make_batch(seed, 3, 5, 7, device, ignore_index=-1), -1)
    expect.unchanged(student, "mlm_loss")

"""Hidden checks of exercise 4: bert_shapes, attention_scores and masked_softmax."""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import strategies as st

from autograder.hidden import expect
from autograder.hidden.oracles import ex04 as oracle
from autograder.hidden.properties import given
from autograder.hidden.strategies import normal, seeds, sizes
from autograder.wire.errors import RemoteError
from autograder.wire.proxy import Student
from autograder.wire.show import show

NAN, INF = math.nan, math.inf
HALF = (torch.float16, torch.bfloat16)
WHOLE = (torch.float32, torch.float64)
FLOATING = (*WHOLE, *HALF)


def legal(function: Any, *args: Any, **kwargs: Any) -> Any:
    """The result of a call that must not be refused."""
    try:
        return function(*args, **kwargs)
    except ValueError as error:
        if not isinstance(error, RemoteError) or not error.raised.explicit:
            raise
        expect.wrong(
            f"{function.last.text}\nraised {error.raised.text}\nexpected a result: these arguments are all good",
            "valid-input-refused",
        )


def quietly(function: Any, *args: Any) -> None:
    """A call of which only the traces count: whether it works is another check's business."""
    with contextlib.suppress(RemoteError):
        function(*args)


def squeezed(got: torch.Tensor, expected: torch.Tensor) -> bool:
    """True if only axes of length 1 are missing."""
    return got.ndim < expected.ndim and [n for n in got.shape if n != 1] == [n for n in expected.shape if n != 1]


# -- bert_shapes -------------------------------------------------------------------------------------------------------

SIZES = ("batch_size", "sequence_length", "hidden_size", "num_heads", "num_labels", "bytes_per_element")
WORKED = (16, 128, 768, 12, 2)
SHAPES = ("input_ids", "attention_mask", "encoder_output", "query_per_head", "attention_scores", "logits")
COUNTS = ("score_elements", "score_bytes", "classifier_parameters")
MISSING = object()

dimensions = st.tuples(
    sizes(4, (1, 2, 3, 5, 7, 11, 13)),  # m, T, H, C
    st.integers(1, 64),  # d / H
    st.sampled_from((1, 2, 4, 8)),
)


def likely_fields(m: int, t: int, d: int, h: int, c: int, size: int) -> dict[str, list[tuple[str, Any]]]:
    """For each field what usual misreadings put there."""
    w, n = d // h, m * h * t * t
    return {
        "input_ids": [("axes-swapped", (m, t, d)), ("axes-swapped", (t, m))],
        "attention_mask": [("axes-swapped", (m, 1, 1, t)), ("axes-swapped", (m, t, t)), ("axes-swapped", (t, m))],
        "encoder_output": [
            ("axes-swapped", (t, m, d)),
            ("axes-swapped", (m, d)),
            ("head-width", (m, t, w)),
            ("head-width", (m, h, t, w)),
            ("sizes-fixed", (m, t, 768)),
        ],
        "query_per_head": [
            ("head-width", (m, t, d)),
            ("head-width", (m, t, h)),
            ("head-width", (m, h, t, w)),
            ("head-width", (m, t, h, w)),
            ("batch-forgotten", (t, w)),
            ("sizes-fixed", (m, t, 64)),
        ],
        "attention_scores": [
            ("heads-forgotten", (m, t, t)),
            ("batch-forgotten", (h, t, t)),
            ("scores-as-features", (m, h, t, w)),
            ("scores-as-features", (m, h, t, d)),
            ("axes-swapped", (m, t, t, h)),
            ("axes-swapped", (m, t, h, t)),
            ("axes-swapped", (h, m, t, t)),
        ],
        "logits": [("token-logits", (m, t, c)), ("axes-swapped", (c, m))],
        "score_elements": [
            ("heads-forgotten", m * t * t),
            ("batch-forgotten", h * t * t),
            ("scores-as-features", m * h * t * w),
            ("scores-as-features", m * h * t * d),
            ("scores-as-features", m * h * t),
            ("more-than-one-layer", n * 12),
            ("more-than-one-layer", n * 24),
            ("bytes-are-not-elements", n * size),
            ("sizes-fixed", 3_145_728),
        ],
        "score_bytes": [
            ("bytes-are-not-elements", n),
            ("bytes-fixed", n * 4),
            ("heads-forgotten", m * t * t * size),
            ("batch-forgotten", h * t * t * size),
            *(("bytes-are-not-elements", n * size * factor) for factor in (2, 8, 1 / 8, 2**-10, 2**-20, 1e-6)),
        ],
        "classifier_parameters": [
            ("bias-forgotten", d * c),
            ("bias-forgotten", d * c + d),
            ("bias-forgotten", d * c + 1),
            ("head-width", w * c + c),
            ("token-logits", d * c * t + c),
            ("token-logits", (d * c + c) * t),
            ("more-than-one-layer", d * d + d + d * c + c),
            ("sizes-fixed", 768 * c + c),
            ("sizes-fixed", 1538),
        ],
    }


def field(student: Student, result: Any, name: str) -> Any:
    value = getattr(result, name, MISSING)
    if value is MISSING:
        expect.wrong(f"{student.last.text}\nreturned {show(result)}\nwhich has no field `{name}`", "fields-missing")
    return value


def numbers(value: Any) -> Any:
    """The field as plain numbers: its type is another check's business."""
    try:
        if isinstance(value, tuple | list):
            return tuple(item + 0 for item in value)
        return value + 0
    except TypeError:
        return value


def check_fields(student: Student, names: tuple[str, ...], args: tuple[int, ...], size: int | None = None) -> None:
    """One call, by position; the values of these fields."""
    given_ = args if size is None else (*args, size)
    result = legal(student.bert_shapes, *given_)
    compare_fields(student, result, names, args, size)


def compare_fields(
    student: Student, result: Any, names: tuple[str, ...], args: tuple[int, ...], size: int | None = None
) -> None:
    wanted = 4 if size is None else size
    everything = (*args, wanted)
    expected = oracle.bert_shapes(*everything)
    likely = likely_fields(*everything)
    for name in names:
        got = field(student, result, name)
        if not same(got, expected[name]):
            named = next((label for label, value in likely[name] if same(got, value)), None)
            expect.wrong(
                f"{student.last.text}\nreturned {name}={show(got)}\nexpected {name}={show(expected[name])}", named
            )


def same(got: Any, expected: Any) -> bool:
    got = numbers(got)
    if isinstance(expected, tuple):
        return isinstance(got, tuple) and len(got) == len(expected) and all(map(same, got, expected))
    return not isinstance(got, tuple) and bool(np.isscalar(got)) and got == expected


@pytest.mark.worth("bert_shapes", 0.5)
def test_shapes_worked_values(student: Student) -> None:
    """For m = 16, T = 128, d = 768, H = 12, C = 2, and 4 bytes by default, every field is as in the lesson."""
    elements = oracle.bert_shapes(*WORKED)["score_elements"]
    for result in (
        legal(student.bert_shapes, *WORKED),
        legal(student.bert_shapes, **dict(zip(SIZES, WORKED, strict=False))),
    ):
        bytes_ = field(student, result, "score_bytes")
        other = next((size for size in (2, 8) if same(bytes_, elements * size)), None)
        if other is not None:
            expect.wrong(
                f"{student.last.text}\nreturned score_bytes={show(bytes_)}, {other} bytes a number\n"
                f"expected 4 bytes a number where bytes_per_element is left out",
                "other-default",
            )
        compare_fields(student, result, (*SHAPES, *COUNTS), WORKED)


@pytest.mark.worth("bert_shapes", 0.3)
@given(drawn=dimensions)
def test_shapes_of_inputs_and_outputs(student: Student, drawn: tuple) -> None:
    """Ids and attention mask are (m, T), the encoder's output is (m, T, d), the classifier's logits are (m, C)."""
    (m, t, h, c), w, size = drawn
    names = ("input_ids", "attention_mask", "encoder_output", "logits")
    check_fields(student, names, (m, t, h * w, h, c), size)


@pytest.mark.worth("bert_shapes", 0.35)
@given(drawn=dimensions)
def test_shapes_inside_attention(student: Student, drawn: tuple) -> None:
    """The queries of one head are (m, T, d / H); the scores of all heads are (m, H, T, T)."""
    (m, t, h, c), w, size = drawn
    check_fields(student, ("query_per_head", "attention_scores"), (m, t, h * w, h, c), size)


@pytest.mark.worth("bert_shapes", 0.35)
@given(drawn=dimensions)
def test_shapes_score_memory(student: Student, drawn: tuple) -> None:
    """One layer's attention scores are m · H · T · T numbers; their bytes depend on the bytes of one number."""
    (m, t, h, c), w, size = drawn
    check_fields(student, ("score_elements", "score_bytes"), (m, t, h * w, h, c), size)


@pytest.mark.worth("bert_shapes", 0.3, misconception="bias-forgotten")
@given(drawn=dimensions)
def test_shapes_classifier_parameters(student: Student, drawn: tuple) -> None:
    """The linear classification layer has d · C weights and C biases."""
    (m, t, h, c), w, size = drawn
    check_fields(student, ("classifier_parameters",), (m, t, h * w, h, c), size)


@pytest.mark.worth("bert_shapes", 0.25, misconception="not-python-ints")
def test_shapes_hold_python_ints(student: Student) -> None:
    """All fields hold Python ints, the shapes as tuples, and large counts are exact."""
    for args in ((16, 128, 768, 12, 2), (1, 1, 1, 1, 1), (101, 20_000_003, 21, 7, 3), (10**6 + 3, 10**8 + 7, 21, 7, 3)):
        result = legal(student.bert_shapes, *args, 4)
        for name in SHAPES:
            value = field(student, result, name)
            if not isinstance(value, tuple) or not all(type(item) is int for item in value):
                kinds = sorted({type(item).__name__ for item in value}) if isinstance(value, tuple | list) else []
                holding = f" of {' and '.join(kinds)}" if kinds else ""
                expect.wrong(
                    f"{student.last.text}\nreturned {name}={show(value)}, {expect.kind(value)}{holding}\n"
                    f"expected a tuple of Python ints",
                    "not-python-ints",
                )
        for name in COUNTS:
            value = field(student, result, name)
            if type(value) is not int:
                expect.wrong(
                    f"{student.last.text}\nreturned {name}={show(value)}, {expect.kind(value)}\nexpected a Python int",
                    "not-python-ints",
                )
        compare_fields(student, result, ("score_elements", "score_bytes"), args, 4)


def refuses_each(
    student: Student, bad_values: Any, because: str, show_value: bool, misconception: str | None = None
) -> None:
    """Each argument in turn takes the bad values that belong to it; the valid call comes first."""
    valid = dict(zip(SIZES, (*WORKED, 4), strict=True))
    check_fields(student, ("input_ids",), WORKED, 4)
    for name, good in valid.items():
        for bad in bad_values(good):
            expect.refuses(
                student.bert_shapes,
                **{**valid, name: bad},
                names=(name,),
                values=(bad,) if show_value else (),
                because=f"{name} is {bad!r}, {because}",
                misconception=misconception,
            )


@pytest.mark.worth("bert_shapes", 0.15, misconception="bad-input-accepted")
def test_shapes_refuse_zero(student: Student) -> None:
    """No argument may be 0, bytes_per_element included."""
    refuses_each(student, lambda good: [0], "which is not positive", True)


@pytest.mark.worth("bert_shapes", 0.15, misconception="bad-input-accepted")
def test_shapes_refuse_negative(student: Student) -> None:
    """No argument may be negative, bytes_per_element included."""
    refuses_each(student, lambda good: [-good], "which is not positive", True)


@pytest.mark.worth("bert_shapes", 0.2, misconception="bad-input-accepted")
def test_shapes_refuse_non_ints(student: Student) -> None:
    """Every argument must be an int: 128.0, a string or None is refused."""
    refuses_each(student, lambda good: [float(good), good + 0.5, str(good), None], "which is not an int", False)


@pytest.mark.worth("bert_shapes", 0.15, misconception="bool-is-no-size")
def test_shapes_refuse_bools(student: Student) -> None:
    """True is no size, although Python counts bool as a kind of int."""
    refuses_each(student, lambda good: [True, False], "which is a bool, not a size", False, "bool-is-no-size")


@pytest.mark.worth("bert_shapes", 0.3, misconception="bad-input-accepted")
def test_shapes_refuse_indivisible(student: Student) -> None:
    """A hidden size that the number of heads does not divide is refused."""
    check_fields(student, ("input_ids",), WORKED, 4)
    for d, h in ((768, 10), (770, 12), (6, 12), (7, 2), (25, 10)):
        expect.refuses(
            student.bert_shapes,
            16,
            128,
            d,
            h,
            2,
            4,
            names=("hidden_size", "num_heads"),
            values=(d, h),
            because=f"hidden_size {d} is not divisible by num_heads {h}",
        )


# -- attention_scores --------------------------------------------------------------------------------------------------


def likely_scores(query: torch.Tensor, key: torch.Tensor) -> list[tuple[str, Any]]:
    """What usual misreadings make of this query and key."""
    d = query.shape[-1]

    def product() -> torch.Tensor:
        return query @ key.transpose(-1, -2)

    return [
        ("scale-missing", product),
        ("scale-wrong", lambda: product() / d),
        ("scale-wrong", lambda: product() * math.sqrt(d)),
        ("scale-wrong", lambda: product() / math.sqrt(key.shape[-2])),
        ("scale-wrong", lambda: product() / math.sqrt(query.shape[-2])),
        ("scale-wrong", lambda: product() / math.sqrt(d * (query.shape[-3] if query.ndim > 2 else 1))),
        ("scale-wrong", lambda: product() / 8),
        ("query-key-swapped", lambda: product().transpose(-1, -2) / math.sqrt(d)),
        ("softmax-in-scores", lambda: torch.softmax(product() / math.sqrt(d), -1)),
    ]


def scores_fault(got: Any, expected: torch.Tensor) -> str | None:
    """What a wrong result is a sign of, as far as the result alone shows it."""
    if not isinstance(got, torch.Tensor):
        return None
    if got.shape != expected.shape:
        return "squeezed-away" if squeezed(got, expected) else None
    if got.dtype != expected.dtype:
        return "dtype-changed"
    if expected.dtype == torch.float64 and expect.mismatch(got, expected, tolerance=1e-4) is None:
        return "not-in-double"
    large = expected.abs() > 1e-2
    ratio = got.detach()[large].double() / expected[large].double()
    if ratio.numel() > 3 and float(ratio.max() - ratio.min()) < 1e-3 * abs(float(ratio.mean())):
        return "scale-wrong"
    return None


def check_scores(student: Student, query: torch.Tensor, key: torch.Tensor, got: Any = MISSING) -> None:
    if got is MISSING:
        got = student.attention_scores(query, key)
    expected = oracle.attention_scores(query, key)
    fault = scores_fault(got, expected)
    likely = likely_scores(query, key) if fault in (None, "scale-wrong") else ()
    expect.close(got, expected, student.last, likely=likely, misconception=fault)


def make_pair(
    seed: int, lead: tuple[int, ...], t_q: int, t_k: int, d: int, device: torch.device, dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    return normal(seed, (*lead, t_q, d), dtype, device), normal(seed + 1, (*lead, t_k, d), dtype, device)


# Widths that are no squares of whole numbers occur in the first check only: a root cut to an integer fails only that.


@pytest.mark.worth("attention_scores", 0.45, misconception="not-the-dot-product")
@given(seed=seeds, shape=sizes(5, (2, 3, 4, 5, 7, 11)))
def test_scores_values(student: Student, device: torch.device, seed: int, shape: tuple[int, ...]) -> None:
    """Entry [..., i, j] is query i times key j over the root of the last dimension."""
    m, h, t_q, t_k, d = shape
    query, key = (x.round(decimals=1) for x in make_pair(seed, (m, h), t_q, t_k, d, device, torch.float32))
    check_scores(student, query, key, legal(student.attention_scores, query, key))


@pytest.mark.worth("attention_scores", 0.2, misconception="one-rank-only")
@given(seed=seeds, lead=st.sampled_from(((), (3,), (5,), (2, 3), (2, 4, 3), (3, 2, 5))), t=sizes(2, (2, 3, 5, 7)))
def test_scores_any_leading_dimensions(
    student: Student, device: torch.device, seed: int, lead: tuple[int, ...], t: tuple[int, ...]
) -> None:
    """Queries and keys may have any number of leading dimensions, none included."""
    check_scores(student, *make_pair(seed, lead, t[0], t[1], 4, device, torch.float32))


@pytest.mark.worth("attention_scores", 0.2)
def test_scores_small_and_real_sizes(student: Student, device: torch.device, seed: int) -> None:
    """One query, one key, one dimension, equal lengths, and BERT's sizes (T = 512, 64 a head) work like any other."""
    for lead, t_q, t_k, d in (
        ((2, 3), 1, 5, 9),
        ((3, 2), 4, 1, 4),
        ((3, 1), 3, 2, 1),
        ((1, 1), 1, 1, 1),
        ((4, 4), 4, 4, 4),
    ):
        check_scores(student, *make_pair(seed, lead, t_q, t_k, d, device, torch.float32))
    check_scores(student, *make_pair(seed, (2, 2), 3, 512, 64, device, torch.float32))


@pytest.mark.worth("attention_scores", 0.1, misconception="not-in-double")
def test_scores_double(student: Student, device: torch.device, seed: int) -> None:
    """float64 queries and keys are multiplied in float64."""
    query, key = make_pair(seed, (2, 3), 3, 5, 4, device, torch.float64)
    query[..., 2:], key[..., 2], key[..., 3] = 1000.0, 1000.0, -1000.0  # two large terms cancel
    check_scores(student, query, key)


@pytest.mark.worth("attention_scores", 0.15, misconception="dtype-changed")
def test_scores_half_precision(student: Student, device: torch.device, seed: int) -> None:
    """float16 and bfloat16 queries and keys give scores of that dtype and of the right shape."""
    for dtype in HALF:
        for lead in ((3, 2), (2, 3)):
            query, key = make_pair(seed, lead, 5, 7, 4, device, dtype)
            got = student.attention_scores(query, key)
            expected = torch.zeros((*lead, 5, 7), dtype=dtype, device=device)
            expect.close(got, expected, student.last, tolerance=INF)  # dtype and shape count, values do not
    check_scores(student, *make_pair(seed, (2, 3), 5, 7, 4, device, torch.float32))


@pytest.mark.worth("attention_scores", 0.1)
def test_scores_leave_their_arguments(student: Student, device: torch.device, seed: int) -> None:
    """Queries and keys are left as they were, and no random generator is touched."""
    check_scores(student, *make_pair(seed, (2, 3), 5, 7, 4, device, torch.float32))
    check_scores(student, *make_pair(seed, (2, 3), 4, 4, 4, device, torch.float32))
    for dtype in (torch.float64, *HALF):
        quietly(student.attention_scores, *make_pair(seed, (2, 3), 5, 7, 4, device, dtype))
    expect.unchanged(student, "attention_scores")


@pytest.mark.worth("attention_scores", 0.25, misconception="wrong-gradient")
def test_scores_gradients(student: Student, device: torch.device, seed: int) -> None:
    """The scores can be differentiated in queries and keys, with the right gradients."""
    for lead, d in (((2, 3), 4), ((3, 2), 9)):
        query, key = make_pair(seed, lead, 5, 7, d, device, torch.float32)
        weights = normal(seed + 2, (*lead, 5, 7), torch.float32, device)
        query.requires_grad_()
        key.requires_grad_()
        result = student.attention_scores(query, key)
        found = expect.gradients(result, [query, key], student.last, weights)
        for name, got, expected in zip(
            ("query", "key"), found, oracle.attention_gradients(query, key, weights), strict=True
        ):
            expect.close(got, expected, student.last, what=f"The gradient in {name}")


@pytest.mark.worth("attention_scores", 0.2, misconception="strides-ignored")
def test_scores_strides(student: Student, device: torch.device, seed: int) -> None:
    """Heads split off by a view and a transpose, slices and expanded keys are read as they are."""
    query = normal(seed, (2, 5, 27), torch.float32, device).view(2, 5, 3, 9).transpose(1, 2)  # (m, H, T_q, d / H)
    key = normal(seed + 1, (2, 7, 27), torch.float32, device).view(2, 7, 3, 9).transpose(1, 2)
    check_scores(student, query, key)
    check_scores(student, query, key.contiguous())
    check_scores(student, query[..., ::2, 5:], normal(seed, (2, 3, 4, 7), torch.float32, device).transpose(2, 3))
    check_scores(student, query, key[:1].expand(2, 3, 7, 9))
    check_scores(student, query[:1, :1, :1].expand(2, 3, 5, 9), key)


@pytest.mark.worth("attention_scores", 0.25, misconception="bad-input-accepted")
def test_scores_refuse_unequal_dimensions(student: Student, device: torch.device, seed: int) -> None:
    """Queries and keys of unequal last dimension are refused, 1 against d too."""
    check_scores(student, *make_pair(seed, (2, 3), 3, 5, 4, device, torch.float32))
    for query_shape, key_shape in (
        ((2, 1, 3, 4), (2, 1, 5, 6)),
        ((2, 3, 3, 4), (2, 3, 5, 1)),
        ((2, 3, 3, 1), (2, 3, 5, 4)),
        ((2, 1, 3, 4), (2, 1, 4, 5)),
        ((3, 4), (3, 8)),
        ((2, 3, 5, 4), (2, 3, 5, 3)),
    ):
        expect.refuses(
            student.attention_scores,
            normal(seed, query_shape, torch.float32, device),
            normal(seed, key_shape, torch.float32, device),
            names=("query", "key", "queries", "keys"),
            because=f"the last dimensions, {query_shape[-1]} and {key_shape[-1]}, differ",
        )


@pytest.mark.worth("attention_scores", 0.1)
def test_scores_device(student: Student, device: torch.device, seed: int) -> None:
    """The scores are on the device of the inputs, and nothing is made on another one."""
    query, key = make_pair(seed, (2, 3), 3, 5, 4, device, torch.float32)
    with student.device_trap() as faults:
        got = student.attention_scores(query, key)
    check_scores(student, query, key, got)
    if faults:
        expect.wrong(f"{student.last.text}\n{faults[0]}", "wrong-device")


# -- masked_softmax ----------------------------------------------------------------------------------------------------


def likely_softmax(scores: torch.Tensor, mask: torch.Tensor, basic: bool = False) -> list[tuple[str, Any]]:
    """What usual misreadings make of these scores and this mask.

    basic: only those that hold for any scores.  With scores of extreme size the others agree by accident.
    """
    x = scores.detach().double()
    see = torch.broadcast_to(mask, scores.shape) == 1

    def filled(value: float, attended: torch.Tensor = see) -> torch.Tensor:
        return x.masked_fill(~attended, value)

    def over(axis: int) -> torch.Tensor | None:
        return torch.softmax(filled(-1e300), axis).masked_fill(~see, 0.0) if x.ndim > 1 else None

    def over_everything() -> torch.Tensor | None:
        return torch.softmax(filled(-1e300).flatten(), 0).view(x.shape).masked_fill(~see, 0.0) if x.ndim > 1 else None

    def cast(make: Any) -> Any:
        def value() -> torch.Tensor | None:
            result = make()
            return None if result is None else result.to(scores.dtype)

        return value

    candidates = [
        ("mask-polarity", lambda: torch.softmax(filled(-1e300, ~see), -1)),
        ("mask-polarity", lambda: torch.softmax(filled(-1e300, ~see), -1).masked_fill(see, 0.0)),
        ("mask-forgotten", lambda: torch.softmax(x, -1)),
        ("softmax-wrong-axis", lambda: over(-2)),
        ("softmax-wrong-axis", lambda: over(0)),
        ("softmax-wrong-axis", lambda: over(1)),
    ]
    if not basic:
        candidates += [
            ("softmax-wrong-axis", over_everything),
            ("mask-multiplied-before", lambda: torch.softmax(x * see, -1)),
            ("mask-multiplied-before", lambda: torch.softmax(x * see, -1).masked_fill(~see, 0.0)),
            ("mask-multiplied-after", lambda: torch.softmax(x, -1) * see),
            ("mask-as-number", lambda: torch.softmax(x + see, -1)),
            ("fully-masked-row", lambda: torch.softmax(filled(-1e300), -1)),
            ("probabilities-not-logs", lambda: torch.log_softmax(filled(-1e300), -1)),
            ("probabilities-not-logs", lambda: torch.log_softmax(filled(-1e300), -1).masked_fill(~see, 0.0)),
        ]
    return [(name, cast(make)) for name, make in candidates]


def softmax_fault(got: Any, expected: torch.Tensor) -> str | None:
    """What a wrong result is a sign of, as far as the result alone shows it."""
    if not isinstance(got, torch.Tensor):
        return None
    if got.shape != expected.shape:
        return "squeezed-away" if squeezed(got, expected) else None
    if got.dtype != expected.dtype:
        return "dtype-changed"
    if expected.dtype == torch.float64 and expect.mismatch(got, expected, tolerance=1e-4) is None:
        return "not-in-double"
    return None


def check_softmax(
    student: Student,
    scores: torch.Tensor,
    mask: torch.Tensor,
    got: Any = MISSING,
    basic: bool = False,
    misconception: str | None = None,
) -> Any:
    if got is MISSING:
        got = student.masked_softmax(scores, mask)
    expected = oracle.masked_softmax(scores, mask)
    fault = softmax_fault(got, expected)
    likely = likely_softmax(scores, mask, basic) if fault is None else ()
    expect.close(got, expected, student.last, likely=likely, misconception=fault or misconception)
    return got


def is_right(student: Student, scores: torch.Tensor, mask: torch.Tensor) -> bool:
    try:
        got = student.masked_softmax(scores, mask)
    except RemoteError:
        return False
    return expect.mismatch(got, oracle.masked_softmax(scores, mask)) is None


def make_mask(seed: int, shape: tuple[int, ...], device: torch.device, share: float = 0.6) -> torch.Tensor:
    """A bool mask in which every row has something to attend to."""
    rng = np.random.default_rng(seed)
    see = rng.random(shape) < share
    if shape:
        np.put_along_axis(see, rng.integers(shape[-1], size=(*shape[:-1], 1)), True, -1)
    return torch.as_tensor(see).to(device)


def padding_mask(lengths: list[int], t: int, device: torch.device) -> torch.Tensor:
    """(m, 1, 1, T) from the lengths of the sequences."""
    return (torch.arange(t, device=device) < torch.tensor(lengths, device=device)[:, None])[:, None, None]


JUNK = ("NaN", "inf", "-inf", "NaN and ±inf", "largest", "smallest")


def with_junk(scores: torch.Tensor, mask: torch.Tensor, kind: str) -> torch.Tensor:
    """The scores with something that is not to be looked at at the masked entries."""
    top = torch.finfo(scores.dtype).max
    values = {
        "NaN": [NAN],
        "inf": [INF],
        "-inf": [-INF],
        "NaN and ±inf": [NAN, INF, -INF],
        "largest": [top],
        "smallest": [-top],
    }[kind]
    cycle = torch.tensor(values, dtype=scores.dtype, device=scores.device)
    junk = cycle[torch.arange(scores.numel(), device=scores.device) % len(values)].reshape(scores.shape)
    return torch.where(torch.broadcast_to(mask, scores.shape) == 1, scores, junk)


@pytest.mark.worth("masked_softmax", 0.4, misconception="not-the-softmax")
@given(
    seed=seeds, shape=st.just((2,) * 4) | sizes(4, (2, 3, 4, 5, 7)), dtype=st.sampled_from(WHOLE), shifted=st.booleans()
)
def test_softmax_values(
    student: Student, device: torch.device, seed: int, shape: tuple[int, ...], dtype: torch.dtype, shifted: bool
) -> None:
    """Attended entries (mask 1) get the softmax of the attended scores of their row; a score of 0 counts like any."""
    scores = normal(seed, shape, dtype, device, scale=2.0)
    mask = make_mask(seed + 1, shape, device)
    scores[..., :2, :] = (scores.round() + 0.5 * ~mask)[..., :2, :]  # some attended ones 0, some equal
    if shifted:  # not so far that an exponential overflows: that is another check's business
        scores = scores + (500.0 if dtype == torch.float64 else 60.0)
    try:
        check_softmax(student, scores, mask, legal(student.masked_softmax, scores, mask))
    except (expect.Wrong, RemoteError) as error:
        if isinstance(error, expect.Wrong) and error.misconception is not None:
            raise
        if isinstance(error, RemoteError) and error.raised.base == "NotImplementedError":
            raise
        said = error.message if isinstance(error, expect.Wrong) else f"{student.last.text}\nraised {error.raised.text}"
        for other in (torch.int64, torch.float32):
            if is_right(student, scores, mask.to(other)):
                name = str(other).removeprefix("torch.")
                expect.wrong(f"{said}\nWith the same mask as {name} the result is right.", "mask-dtype")
        raise


@pytest.mark.worth("masked_softmax", 0.15, misconception="one-rank-only")
@given(seed=seeds, shape=st.sampled_from((1, 2, 3, 5)).flatmap(lambda n: sizes(n, (2, 3, 4, 5, 7))))
def test_softmax_any_number_of_axes(student: Student, device: torch.device, seed: int, shape: tuple[int, ...]) -> None:
    """A single row, a matrix, and any number of leading dimensions are all treated alike."""
    check_softmax(student, normal(seed, shape, torch.float32, device, scale=2.0), make_mask(seed + 1, shape, device))


@pytest.mark.worth("masked_softmax", 0.35, misconception="mask-not-broadcast")
def test_softmax_broadcast(student: Student, device: torch.device, seed: int) -> None:
    """The mask broadcasts to the scores by the usual rules: (m, 1, 1, T) masks padding, (T, T) keys by query."""
    scores = normal(seed, (2, 3, 5, 7), torch.float32, device, scale=2.0)
    check_softmax(student, scores, padding_mask([7, 4], 7, device))
    for shape in ((5, 7), (7,), (2, 3, 5, 7), (2, 1, 5, 7), (1, 3, 1, 7), (3, 1, 7), (1, 1, 1, 7), (1, 7)):
        check_softmax(student, scores, make_mask(seed + len(shape), shape, device))
    causal = torch.ones(5, 5, dtype=torch.bool, device=device).tril()
    check_softmax(student, normal(seed, (2, 3, 5, 5), torch.float32, device), causal)
    # as many sequences as queries: the two axes of the mask are queries and keys all the same
    check_softmax(student, normal(seed, (5, 3, 5, 7), torch.float32, device), make_mask(seed, (5, 7), device))
    for everything in (torch.ones(5, 1, device=device) == 1, torch.tensor(True, device=device)):
        check_softmax(student, scores, everything)


@pytest.mark.worth("masked_softmax", 0.35, misconception="mask-dtype")
def test_softmax_mask_dtypes(student: Student, device: torch.device, seed: int) -> None:
    """The mask may be bool or hold 0 and 1 in any integer or floating dtype."""
    scores = normal(seed, (2, 3, 5, 7), torch.float32, device, scale=2.0)
    for mask_dtype in (
        torch.bool,
        torch.uint8,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.float16,
        torch.bfloat16,
        torch.float32,
        torch.float64,
    ):
        for mask in (padding_mask([3, 6], 7, device), make_mask(seed, (5, 7), device)):
            check_softmax(student, scores, mask.to(mask_dtype))
        check_softmax(student, scores.double(), make_mask(seed, (5, 7), device).to(mask_dtype))


@pytest.mark.worth("masked_softmax", 0.1)
def test_softmax_leaves_its_arguments(student: Student, device: torch.device, seed: int) -> None:
    """Scores and mask are left as they were, and no random generator is touched."""
    some, nothing = make_mask(seed, (2, 3, 5, 7), device), torch.zeros((5, 7), dtype=torch.bool, device=device)
    for dtype in FLOATING:
        for mask_dtype in (torch.bool, torch.int64, dtype):
            scores = normal(seed, (2, 3, 5, 7), dtype, device)
            if dtype in WHOLE and mask_dtype == torch.bool:
                check_softmax(student, scores, some)
            quietly(student.masked_softmax, scores, some.to(mask_dtype))
            quietly(student.masked_softmax, scores, nothing.to(mask_dtype))
            quietly(student.masked_softmax, with_junk(scores, some, "NaN"), some.to(mask_dtype))
    expect.unchanged(student, "masked_softmax")


@pytest.mark.worth("masked_softmax", 0.35, misconception="fully-masked-row")
def test_softmax_empty_rows(student: Student, device: torch.device, seed: int) -> None:
    """A row with nothing to attend to is all zeros; the other rows are not disturbed by it."""
    for dtype in WHOLE:
        scores = normal(seed, (3, 2, 5, 7), dtype, device, scale=2.0)
        check_softmax(student, scores, padding_mask([4, 0, 7], 7, device))
        mask = make_mask(seed, (3, 2, 5, 7), device)
        mask[0, 1, 2], mask[2, 0, :3], mask[1, 1] = False, False, False
        check_softmax(student, scores, mask)
        check_softmax(student, scores, torch.zeros(5, 7, dtype=torch.bool, device=device))
        check_softmax(student, scores, torch.zeros(1, dtype=torch.bool, device=device))
        check_softmax(student, scores[..., :2], mask[..., :2], basic=True)
    for rows in ([[1], [0], [1], [1], [0]], [[[1]], [[0]]], [[[[0]]], [[[1]]], [[[0]]]]):
        check_softmax(student, scores, torch.tensor(rows, device=device) == 1)


@pytest.mark.worth("masked_softmax", 0.15)
def test_softmax_small_and_real_sizes(student: Student, device: torch.device, seed: int) -> None:
    """One sequence, one query, one key, and rows of 512 keys, BERT's longest, work like any other size."""
    scores = normal(seed, (3, 2, 5, 7), torch.float32, device, scale=2.0)
    for part in (scores[:1], scores[:, :1], scores[..., :1, :], scores[:1, :1, :1]):
        check_softmax(student, part.clone(), make_mask(seed, part.shape, device))
    check_softmax(student, scores[..., :1].clone(), torch.ones(5, 1, device=device) == 1, basic=True)
    long = normal(seed, (2, 2, 4, 512), torch.float32, device, scale=2.0)
    got = check_softmax(student, long, padding_mask([512, 77], 512, device))
    sums = got.double().sum(-1)
    expect.close(sums, torch.ones_like(sums), student.last, tolerance=1e-5, what="The row sums")


@pytest.mark.worth("masked_softmax", 0.35, misconception="large-scores")
def test_softmax_large_scores(student: Student, device: torch.device, seed: int) -> None:
    """Attended scores may have any size that the dtype holds, and each row its own, forward and backward."""
    for dtype in WHOLE:
        top = torch.finfo(dtype).max
        rows = [
            [1e6, 999_999.0, -1e6, 999_998.0],
            [-1e6, -1e6, -999_999.0, -999_998.0],
            [-90.0, 90.0, 89.0, 88.0],
            [top, -top, 0.5, 1.0],
            [top, top, -top, -top],
            [-top, -top, -top, -top],
            [-top, 5.0, 6.0, 0.5],
        ]
        for row in rows:  # each beside a row of the usual size
            scores = torch.tensor([row, [0.5, 1.0, -1.0, 2.0]], dtype=dtype, device=device).expand(2, 2, 2, 4)
            check_softmax(student, scores.clone(), torch.ones_like(scores) == 1, basic=True)
        scores = torch.tensor(rows, dtype=dtype, device=device).expand(2, 2, 7, 4).clone()
        weights = torch.tensor([1.0, -2.0, 0.5, 3.0], dtype=dtype, device=device).expand(scores.shape)
        check_gradient(student, scores, torch.ones_like(scores) == 1, weights, "large-scores")


@pytest.mark.worth("masked_softmax", 0.35, misconception="masked-scores-leak")
@given(seed=seeds, kind=st.sampled_from(JUNK), dtype=st.sampled_from(FLOATING), empty=st.booleans())
def test_softmax_masked_scores(
    student: Student, device: torch.device, seed: int, kind: str, dtype: torch.dtype, empty: bool
) -> None:
    """Whatever is stored at masked entries, NaN and ±inf too, changes nothing."""
    scores = normal(seed, (2, 3, 5, 7), dtype, device, scale=2.0)
    mask = make_mask(seed + 1, (2, 1, 5, 7), device)
    if empty:
        mask[0, 0, 1], mask[1, 0, 3:] = False, False
    scores = with_junk(scores, mask, kind)
    got = within_range(student, scores, mask)
    expected = oracle.masked_softmax(scores, mask)
    if empty and isinstance(got, torch.Tensor) and got.shape == expected.shape and got.is_floating_point():
        nothing = ~mask.any(dim=-1, keepdim=True) & got.isfinite()  # zeros there are another check's business
        expected = torch.where(nothing, got.detach().to(dtype), expected)
    fault = softmax_fault(got, expected)
    likely = likely_softmax(scores, mask, basic=True) if fault is None else ()
    expect.close(got, expected, student.last, likely=likely, misconception=fault)


def within_range(student: Student, scores: torch.Tensor, mask: torch.Tensor) -> Any:
    """The result; a number that the dtype of the scores cannot hold names the failure."""
    try:
        return student.masked_softmax(scores, mask)
    except RemoteError as error:
        if "overflow" in error.raised.message:
            expect.wrong(f"{student.last.text}\nraised {error.raised.text}", "finite-fill")
        raise


@pytest.mark.worth("masked_softmax", 0.3, misconception="finite-fill")
def test_softmax_exact_zeros(student: Student, device: torch.device, seed: int) -> None:
    """Masked entries are exactly 0, and the others sum to 1, however the scores of the two compare."""
    for dtype in WHOLE:
        top = torch.finfo(dtype).max
        for low, high in ((0.0, 0.0), (-200.0, 50.0), (6e4, -6e4), (-2e4, 0.0), (-1e10, 0.0), (-1e35, 1e35)):
            mask = make_mask(seed + 1, (5, 7), device)
            scores = normal(seed, (2, 3, 5, 7), dtype, device) + torch.where(mask, low, high).to(dtype)
            exact_zeros(student, scores, mask)
        for row, see in (
            ([-top, 5.0, 0.5, top], [1, 0, 0, 0]),
            ([-top, -top, 0.5, 1.0], [1, 1, 0, 0]),
            ([-top, 0.5, -top, -top], [1, 0, 1, 0]),
            ([0.5, top, -1.5, 3.0], [1, 0, 1, 1]),
            ([-1.5, -2.5, 0.5, -top], [1, 1, 1, 0]),
        ):
            scores = torch.tensor(row, dtype=dtype, device=device).expand(2, 3, 2, 4).clone()
            exact_zeros(student, scores, torch.tensor(see, device=device) == 1)


def exact_zeros(student: Student, scores: torch.Tensor, mask: torch.Tensor) -> None:
    got = check_softmax(student, scores, mask, basic=True)
    masked = got[~torch.broadcast_to(mask, got.shape)]
    if not bool((masked == 0).all()):
        worst = masked[masked != 0][0].item()
        expect.wrong(
            f"{student.last.text}\nreturned {worst:.7g} at a masked entry\nexpected exactly 0 there", "finite-fill"
        )


@pytest.mark.worth("masked_softmax", 0.3, misconception="computed-in-half")
def test_softmax_half_precision(student: Student, device: torch.device, seed: int) -> None:
    """float16 and bfloat16 scores give weights of that dtype, right to its precision, in every case."""
    for dtype in HALF:
        top = torch.finfo(dtype).max
        for scale in (1.0, 20.0):
            scores = normal(seed, (2, 3, 5, 7), dtype, device, scale=scale)
            for mask in (padding_mask([4, 6], 7, device), make_mask(seed, (5, 7), device).to(dtype)):
                check_softmax(student, scores, mask, within_range(student, scores, mask))
        for row, see in (
            ([-6e4, -6e4, 0.5, 6e4], [1, 1, 0, 0]),
            ([-2e4, 0.0, 0.5, -2e4], [1, 0, 0, 1]),
            ([-top, 5.0, 0.5, top], [1, 0, 0, 0]),
        ):
            scores = torch.tensor(row, dtype=dtype, device=device).expand(2, 3, 2, 4).clone()
            mask = torch.tensor(see, device=device) == 1
            check_softmax(student, scores, mask, basic=True, misconception="finite-fill")
        long = normal(seed, (2, 2, 2, 512), dtype, device, scale=3.0)
        check_softmax(student, long, padding_mask([400, 512], 512, device))


def check_gradient(
    student: Student,
    scores: torch.Tensor,
    mask: torch.Tensor,
    weights: torch.Tensor,
    misconception: str,
    note: str = "",
) -> None:
    if scores.dtype in HALF:  # so that rounding on the way stays well inside the tolerance
        weights = weights / 4
    scores.requires_grad_()
    result = student.masked_softmax(scores, mask)
    if isinstance(result, torch.Tensor) and result.shape != scores.shape:
        expect.wrong(
            f"{student.last.text}\nreturned {show(result)}\nexpected the shape {tuple(scores.shape)}", misconception
        )
    if isinstance(result, torch.Tensor):
        weights = weights.to(result.dtype)
    (gradient,) = expect.gradients(result, [scores], student.last, weights)
    masked = gradient[~torch.broadcast_to(mask == 1, scores.shape)]
    if not bool((masked == 0).all()):
        worst = masked[~(masked == 0)][0].item()
        expect.wrong(
            f"{student.last.text}\nThe gradient in scores holds {worst:.7g} at a masked entry{note}.\n"
            f"expected exactly 0 at every masked entry",
            "masked-gradient",
        )
    expected = oracle.masked_softmax_gradient(scores, mask, weights)  # not of the value: other checks look at that
    named = "wrong-gradient" if bool(gradient.isfinite().all()) else misconception
    expect.close(gradient, expected, student.last, what="The gradient in scores", misconception=named)


@pytest.mark.worth("masked_softmax", 0.3, misconception="wrong-gradient")
@given(
    seed=seeds,
    shape=st.integers(1, 4).flatmap(lambda n: sizes(n, (2, 3, 5)) if n < 4 else st.just((2, 3, 4, 5))),
    dtype=st.sampled_from(FLOATING),
)
def test_softmax_gradient(
    student: Student, device: torch.device, seed: int, shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    """The result can be differentiated in the scores: p (w - Σ p w) at attended entries, exactly 0 at masked ones."""
    scores = normal(seed, shape, dtype, device)
    mask = make_mask(seed + 1, shape, device)
    weights = normal(seed + 2, shape, dtype, device)
    check_gradient(student, scores, mask, weights, "wrong-gradient")


@pytest.mark.worth("masked_softmax", 0.4, misconception="masked-gradient")
@given(seed=seeds, kind=st.sampled_from(JUNK), dtype=st.sampled_from(FLOATING), empty=st.booleans())
def test_softmax_gradient_with_masked_scores(
    student: Student, device: torch.device, seed: int, kind: str, dtype: torch.dtype, empty: bool
) -> None:
    """With NaN or ±inf at masked entries the gradient is exactly 0 there, and right, without NaN, at the others."""
    scores = normal(seed, (2, 3, 4, 5), dtype, device)
    mask = make_mask(seed + 1, (2, 1, 4, 5), device)
    if empty:
        mask[0, 0, 1], mask[1, 0, 2:] = False, False
    scores = with_junk(scores, mask, kind)
    weights = normal(seed + 2, scores.shape, dtype, device)
    check_gradient(student, scores, mask, weights, "masked-gradient", f" (there the scores hold: {kind})")


@pytest.mark.worth("masked_softmax", 0.3, misconception="masked-gradient")
def test_softmax_gradient_of_empty_rows(student: Student, device: torch.device, seed: int) -> None:
    """Rows with nothing to attend to have zero gradients, without NaN or error, even if all rows are such."""
    for dtype in FLOATING:
        shape = (3, 2, 4, 5)
        scores = normal(seed, shape, dtype, device)
        weights = normal(seed + 2, shape, dtype, device)
        check_gradient(student, scores, padding_mask([3, 0, 5], 5, device), weights, "masked-gradient")
        nothing = torch.zeros(4, 5, dtype=torch.bool, device=device)
        check_gradient(student, scores.detach(), nothing, weights, "masked-gradient")


@pytest.mark.worth("masked_softmax", 0.15, misconception="strides-ignored")
def test_softmax_strides(student: Student, device: torch.device, seed: int) -> None:
    """Transposed, sliced and expanded scores and masks are read as they are, whatever their memory order."""
    scores = normal(seed, (2, 7, 3, 5), torch.float32, device, scale=2.0).permute(0, 2, 3, 1)  # (2, 3, 5, 7)
    check_softmax(student, scores, make_mask(seed, (7, 5), device).T | make_mask(seed, (5, 7), device))
    check_softmax(student, scores, padding_mask([3, 6], 7, device).expand(2, 3, 5, 7))
    transposed = make_mask(seed, (5, 7), device).T.contiguous().T
    check_softmax(student, scores, transposed)
    check_softmax(student, scores[..., ::2], make_mask(seed, (5, 4), device))
    check_softmax(student, scores[:1, :1].expand(2, 3, 5, 7), make_mask(seed, (2, 3, 5, 14), device, 0.9)[..., ::2])
    check_softmax(student, scores[..., :1].expand(2, 3, 5, 7), transposed)


@pytest.mark.worth("masked_softmax", 0.1, misconception="mask-not-broadcast")
def test_softmax_refuses_wider_mask(student: Student, device: torch.device, seed: int) -> None:
    """A mask that would make the result wider than the scores is refused."""
    check_softmax(student, normal(seed, (2, 3, 5, 7), torch.float32, device), make_mask(seed, (5, 7), device))
    for scores_shape, mask_shape in (
        ((1, 3, 5, 7), (2, 3, 5, 7)),
        ((1, 3, 5, 7), (2, 1, 1, 7)),
        ((5, 7), (2, 5, 7)),
        ((2, 3, 1, 7), (5, 7)),
        ((2, 3, 5, 1), (7,)),
        ((7,), (3, 7)),
        ((5, 7), (1, 5, 7)),
    ):
        refuses_shape(student, normal(seed, scores_shape, torch.float32, device), make_mask(seed, mask_shape, device))


def refuses_shape(student: Student, scores: torch.Tensor, mask: torch.Tensor) -> None:
    for dtype in (torch.bool, torch.int64):
        try:
            expect.refuses(
                student.masked_softmax,
                scores,
                mask.to(dtype),
                names=("mask", "scores"),
                because=f"a mask of shape {tuple(mask.shape)} does not broadcast to the shape {tuple(scores.shape)}",
            )
        except expect.Wrong as wrong:
            accepted = wrong.misconception == "bad-input-accepted"
            raise expect.Wrong(wrong.message, "mask-not-broadcast" if accepted else wrong.misconception) from None


@pytest.mark.worth("masked_softmax", 0.15, misconception="mask-not-broadcast")
def test_softmax_refuses_mask_of_other_size(student: Student, device: torch.device, seed: int) -> None:
    """A mask that does not fit the scores is refused; (m, T) does not fit (m, H, T, T)."""
    scores = normal(seed, (2, 3, 5, 7), torch.float32, device)
    check_softmax(student, scores, padding_mask([7, 4], 7, device))
    for mask_shape in ((5,), (6,), (2, 1, 1, 5), (7, 7), (7, 5), (2, 7), (2, 5, 7), (3, 3, 5, 7), (2, 3, 5, 14), (2,)):
        refuses_shape(student, scores, make_mask(seed, mask_shape, device))


def refuses_mask_value(student: Student, device: torch.device, seed: int, bad: float, dtypes: Any) -> None:
    """The mask with this number in it is refused; without it, it is not."""
    scores = normal(seed, (2, 3, 5, 7), torch.float32, device)
    for dtype in dtypes:
        for shape, place in (((5, 7), (1, 2)), ((2, 1, 1, 7), (1, 0, 0, 6)), ((2, 3, 5, 7), (0, 0, 0, 0))):
            mask = make_mask(seed, shape, device).to(dtype)
            if dtype in (torch.int64, torch.float32):
                check_softmax(student, scores, mask)
            mask[place] = bad
            expect.refuses(
                student.masked_softmax,
                scores,
                mask,
                names=("mask",),
                values=(bad,),
                because=f"the mask holds {bad:g}, and only 0 and 1 have a meaning",
            )


@pytest.mark.worth("masked_softmax", 0.15, misconception="bad-input-accepted")
def test_softmax_refuses_other_integers_in_mask(student: Student, device: torch.device, seed: int) -> None:
    """A mask that holds 2, -1 or another number beside 0 and 1 is refused."""
    refuses_mask_value(student, device, seed, 2, (torch.int64, torch.uint8, torch.float32))
    refuses_mask_value(student, device, seed, 256, (torch.int64,))
    refuses_mask_value(student, device, seed, -1, (torch.int64, torch.float64))
    refuses_mask_value(student, device, seed, -10_000, (torch.float32,))


@pytest.mark.worth("masked_softmax", 0.1, misconception="bad-input-accepted")
def test_softmax_refuses_fractions_in_mask(student: Student, device: torch.device, seed: int) -> None:
    """A mask that holds a fraction, such as 0.5, is refused: it says neither attend nor ignore."""
    for bad in (0.5, 1.5, 0.25, 0.9995, 1e-4):
        refuses_mask_value(student, device, seed, bad, (torch.float32, torch.float16))
    refuses_mask_value(student, device, seed, 1 + 2**-20, (torch.float32, torch.float64))


@pytest.mark.worth("masked_softmax", 0.1, misconception="bad-input-accepted")
def test_softmax_refuses_nan_in_mask(student: Student, device: torch.device, seed: int) -> None:
    """A mask that holds NaN or an infinity is refused."""
    for bad in (NAN, INF, -INF):
        try:
            refuses_mask_value(student, device, seed, bad, (torch.float32, torch.float64))
        except expect.Wrong as wrong:
            slipped = math.isnan(bad) and wrong.misconception == "bad-input-accepted"
            raise expect.Wrong(wrong.message, "nan-accepted" if slipped else wrong.misconception) from None


@pytest.mark.worth("masked_softmax", 0.1)
def test_softmax_device(student: Student, device: torch.device, seed: int) -> None:
    """The result is on the device of the scores, and nothing is made on another one."""
    scores = normal(seed, (2, 3, 5, 7), torch.float32, device)
    mask = padding_mask([4, 6], 7, device)
    with student.device_trap() as faults:
        got = student.masked_softmax(scores, mask)
    check_softmax(student, scores, mask, got)
    if faults:
        expect.wrong(f"{student.last.text}\n{faults[0]}", "wrong-device")

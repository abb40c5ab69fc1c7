"""Hidden checks of exercise 1: the sum of three embeddings, the lookup, and why the sum cannot be undone."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import strategies as st

from autograder.hidden import expect
from autograder.hidden.oracles import ex01 as oracle
from autograder.hidden.properties import given
from autograder.hidden.strategies import seeds, sizes
from autograder.wire.errors import RemoteError
from autograder.wire.proxy import Student
from autograder.wire.show import show

NAMES = ("token", "segment", "position")
TABLES = ("token_table", "segment_table", "position_table")
#: The contract's tolerance for the sums of this exercise in double; None leaves narrower dtypes to theirs.
TIGHT = 1e-9
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
#: Mixed dtypes whose common dtype does not depend on which two are added first.
MIXED = (
    ("float32", "float64", "float32"),
    ("float64", "float32", "float32"),
    ("float32", "float32", "float64"),
    ("float16", "float16", "float32"),
    ("float16", "float32", "float16"),
    ("float16", "float16", "float64"),
    ("int64", "float64", "int64"),
    ("int64", "int64", "float64"),
    ("float64", "int32", "uint8"),
    ("int32", "float32", "float32"),
    ("float32", "int8", "int16"),
    ("int8", "int8", "float32"),
    ("float16", "int8", "int8"),
    ("int64", "int64", "float16"),
    ("int16", "int64", "int8"),
    ("uint8", "int8", "int8"),
    ("int64", "uint64", "int64"),
    ("int8", "int16", "int32"),
)
#: Shapes of one to four dimensions, hidden size 1 included.
shapes = st.lists(st.sampled_from((1, 2, 3, 5, 7)), min_size=1, max_size=4, unique=True).map(tuple)
FORMULA = "another-formula"
LAYOUTS = ("transposed", "every second entry of", "broadcast")


def array(seed: int, shape: tuple[int, ...], dtype: str = "float64", mixed: bool = True) -> np.ndarray:
    """Numbers of that shape and dtype.

    mixed: they will be added to numbers of another dtype.  Narrow floats are then multiples of 1/8, whose sums are
        exact in every dtype here; others would round differently in another order of adding.
    """
    rng = np.random.default_rng(seed)
    kind = np.dtype(dtype)
    if dtype == "float64" or (kind.kind == "f" and not mixed):
        return np.asarray(rng.normal(size=shape) * (0.2 if dtype == "float16" else 1.0)).astype(kind)
    if kind.kind == "f":
        return (rng.integers(-40, 41, size=shape) / 8).astype(kind)
    low = 0 if kind.kind == "u" else -40
    return rng.integers(low, 41, size=shape).astype(kind)


def three(seed: int, shape: tuple[int, ...], dtypes: Sequence[str] = ("float64",) * 3) -> tuple[np.ndarray, ...]:
    return tuple(array(3 * seed + i, shape, dtype, len(set(dtypes)) > 1) for i, dtype in enumerate(dtypes))


def ids(seed: int, shape: tuple[int, ...], count: int, dtype: str = "int64") -> np.ndarray:
    """Ids in [0, count), the last one at the front and 0 at the end."""
    out = np.asarray(np.random.default_rng(seed).integers(0, count, size=shape)).astype(dtype)
    out.flat[-1] = 0
    out.flat[0] = count - 1
    return out


def laid_out(values: np.ndarray, layout: str) -> np.ndarray:
    """The values in another memory layout; "broadcast" repeats the first row without copying it."""
    if layout == "transposed":
        return np.ascontiguousarray(values.T).T
    if layout == "every second entry of":
        wide = np.full((*values.shape[:-1], 2 * values.shape[-1]), 77, dtype=values.dtype)
        wide[..., ::2] = values
        return wide[..., ::2]
    return np.broadcast_to(values[:1], values.shape)


def tolerance(expected: np.ndarray) -> float | None:
    return TIGHT if expected.dtype == np.float64 else None


def legal(function: Any, *args: Any) -> Any:
    """The result of a call that must not be refused."""
    try:
        return function(*args)
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


def works(function: Any, *args: Any) -> bool:
    """True if the call returns something."""
    try:
        function(*args)
    except RemoteError:
        return False
    return True


def refuses(
    function: Any,
    *args: Any,
    names: Sequence[str],
    because: str,
    values: Sequence[float] = (),
    accepted: str = "bad-input-accepted",
) -> None:
    """Like expect.refuses.  accepted: the misconception to name if the call returns something."""
    try:
        expect.refuses(function, *args, names=names, values=values, because=because)
    except expect.Wrong as fault:
        named = accepted if fault.misconception == "bad-input-accepted" else fault.misconception
        raise expect.Wrong(fault.message, named) from None


def compare(
    got: Any, expected: np.ndarray, student: Student, likely: Callable[[], expect.Likely], otherwise: str | None
) -> None:
    """Fail unless `got` is `expected`; `likely` is made only for naming the failure, `otherwise` is its last name."""
    if expect.mismatch(got, expected, tolerance=tolerance(expected)) is None:
        return
    expect.close(
        got,
        expected,
        student.last,
        tolerance=tolerance(expected),
        likely=[("dtype-not-promoted", expected), *likely()],
        misconception=diagnosis(got, expected) or otherwise,
    )


def diagnosis(got: Any, expected: np.ndarray) -> str | None:
    """What a wrong result shows by its form, or by how near it is."""
    if isinstance(got, float | int | np.generic):
        return "wrong-shape"
    if not isinstance(got, np.ndarray):
        return "not-an-array"
    if got.shape != expected.shape:
        without = [[n for n in shape if n != 1] for shape in (got.shape, expected.shape)]
        return "squeezed-away" if got.ndim < expected.ndim and without[0] == without[1] else "wrong-shape"
    if got.dtype != expected.dtype:
        cut = got.dtype.kind in "biu" and expected.dtype.kind == "f"
        return "integers-truncated" if cut else "dtype-not-promoted"
    return "precision-lost" if expect.mismatch(got, expected, tolerance=1e-5) is None else None


def normalised(total: np.ndarray) -> list[tuple[str, np.ndarray]]:
    """What LayerNorm makes of the sum."""
    centred = total - total.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return [("layer-norm-included", centred / np.sqrt(variance + eps)) for eps in (1e-12, 1e-6, 1e-5)]


# -- a fault of embedding_sum costs only the checks of embedding_sum --------------------------------------------------
def judged_alone(student: Student, check: Callable[[], None]) -> None:
    """Run the check; if it fails, once more with a right embedding_sum under the function that is being judged."""
    try:
        check()
    except (expect.Wrong, RemoteError):
        if not _passes_with_right_sum(student, check):
            raise


def _passes_with_right_sum(student: Student, check: Callable[[], None]) -> bool:
    with student.replacing(embedding_sum=RightSum()):
        try:
            check()
        except (expect.Wrong, RemoteError):
            return False
    return True


class RightSum:
    """A right embedding_sum.  calls, refused: how often it was called, and how often it refused."""

    def __init__(self) -> None:
        self.calls = self.refused = 0

    def __call__(self, token: Any, segment: Any, position: Any) -> np.ndarray:
        self.calls += 1
        if not np.shape(token) == np.shape(segment) == np.shape(position):
            self.refused += 1
            raise ValueError("token, segment and position have unequal shapes")
        return np.add(np.add(token, segment), position)


def refused_here_or_in_sum(student: Student, function: Any, *args: Any, names: Sequence[str], because: str) -> None:
    """Like expect.refuses, for unequal shapes that a function may leave to its author's own embedding_sum."""
    try:
        refuses(function, *args, names=(*names, *NAMES), because=because, accepted="shapes-stretched")
    except (expect.Wrong, RemoteError):
        right = RightSum()
        with student.replacing(embedding_sum=right):
            try:
                function(*args)
            except ValueError:
                if right.refused:
                    return
            except RemoteError:
                pass
        raise


def left_alone(student: Student, name: str, calls: Callable[[], None]) -> None:
    """Like expect.unchanged after those calls, but what the author's embedding_sum does is not held against `name`."""
    judged_alone(student, calls)
    try:
        expect.unchanged(student, name)
    except expect.Wrong:
        witness, right = student.witness(name), RightSum()
        before = len(witness.mutated), len(witness.moved)
        with student.replacing(embedding_sum=right):
            calls()
        if not right.calls or (len(witness.mutated), len(witness.moved)) != before:
            raise


# -- embedding_sum ----------------------------------------------------------------------------------------------------
def check_sum(
    student: Student, token: np.ndarray, segment: np.ndarray, position: np.ndarray, *, otherwise: str | None = None
) -> None:
    expected = oracle.embedding_sum(token, segment, position)

    def likely() -> expect.Likely:
        parts = [part.astype(np.float64) for part in (token, segment, position)]
        total = parts[0] + parts[1] + parts[2]
        return [
            ("mean-instead-of-sum", total / 3),
            ("concatenated-instead-of-added", np.concatenate(parts, axis=-1)),
            ("concatenated-instead-of-added", np.stack(parts)),
            ("part-left-out", parts[0] + parts[1]),
            ("part-left-out", parts[0] + parts[2]),
            ("part-left-out", parts[1] + parts[2]),
            ("integers-truncated", sum(np.trunc(part) for part in parts)),
            *normalised(total),
        ]

    compare(legal(student.embedding_sum, token, segment, position), expected, student, likely, otherwise)


@pytest.mark.worth("embedding_sum", 0.7)
def test_sum_adds_entry_by_entry(student: Student, seed: int) -> None:
    """The result is token + segment + position, entry by entry, for arrays of any size and number of dimensions."""
    check_sum(student, np.array([1.0, 0.0]), np.array([0.5, 0.5]), np.array([-0.5, 1.0]), otherwise=FORMULA)

    @given(draw=seeds, shape=shapes)
    def small(draw: int, shape: tuple[int, ...]) -> None:
        check_sum(student, *three(draw, shape), otherwise=FORMULA)
        check_sum(student, *three(draw + 1, shape), otherwise=FORMULA)

    small()
    check_sum(student, *three(seed, (2, 512, 3)), otherwise=FORMULA)
    check_sum(student, *(1e6 * part for part in three(seed, (3, 7))), otherwise=FORMULA)
    ones = array(seed, (3, 5))
    check_sum(student, ones, ones, ones, otherwise=FORMULA)
    check_sum(student, np.zeros((3, 5)), ones, np.zeros((3, 5)), otherwise=FORMULA)


@pytest.mark.worth("embedding_sum", 0.4, misconception="dtype-not-promoted")
def test_sum_keeps_floating_dtype(student: Student, seed: int) -> None:
    """With a floating array among the three, the result has the dtype that np.result_type gives for them."""
    for shape in ((2, 3), (7,), (2, 3, 5)):
        for dtype in ("float64", "float32", "float16"):
            check_sum(student, *three(seed, shape, (dtype,) * 3))
        for dtypes in MIXED:
            if any(dtype.startswith("float") for dtype in dtypes):
                check_sum(student, *three(seed, shape, dtypes))


@pytest.mark.worth("embedding_sum", 0.5, misconception="dtype-not-promoted")
def test_sum_of_integers(student: Student, seed: int) -> None:
    """Integers add up exactly, in the dtype that np.result_type gives for the three arrays."""
    for shape in ((2, 3), (7,), (2, 3, 5)):
        for dtype in INTEGERS:
            check_sum(student, *three(seed, shape, (dtype,) * 3))
        for dtypes in MIXED:
            if not any(dtype.startswith("float") for dtype in dtypes):
                check_sum(student, *three(seed, shape, dtypes))
        large = [np.random.default_rng(seed + i).integers(-(10**12), 10**12, size=shape) for i in range(3)]
        check_sum(student, *large)
        check_sum(student, *(part % (10**8 + 7) for part in large))


@pytest.mark.worth("embedding_sum", 0.3)
def test_sum_leaves_its_arguments_alone(student: Student, seed: int) -> None:
    """The three arrays hold the same numbers after the call as before, and no random generator has moved."""
    for shape in ((5,), (3, 5), (2, 3, 5)):
        check_sum(student, *three(seed, shape))
        for dtypes in (("float32",) * 3, ("int64",) * 3, *MIXED[:3], *MIXED[6:9]):
            quietly(student.embedding_sum, *three(seed, shape, dtypes))
    expect.unchanged(student, "embedding_sum")


@pytest.mark.worth("embedding_sum", 0.3, misconception="strides-ignored")
def test_sum_in_any_memory_layout(student: Student, seed: int) -> None:
    """Transposed, sliced and broadcast views are added like any other arrays."""
    for shape in ((3, 5), (2, 3, 5)):
        for shift in range(len(LAYOUTS)):
            parts = [laid_out(part, LAYOUTS[(i + shift) % 3]) for i, part in enumerate(three(seed + shift, shape))]
            check_sum(student, *parts)
        for layout in LAYOUTS:
            check_sum(student, *(laid_out(part, layout) for part in three(seed, shape)))


def odd_ones_out(shape: tuple[int, ...], others: Sequence[tuple[int, ...]]) -> Iterator[tuple[str, list[np.ndarray]]]:
    """Three arrays of which one has another shape: each of the three in turn, and then the other two."""
    for other in others:
        for odd in range(3):
            for one, rest in ((other, shape), (shape, other)):
                arrays = [array(i, one if i == odd else rest) for i in range(3)]
                yield f"{NAMES[odd]} has the shape {one}, the other two have {rest}", arrays


@pytest.mark.worth("embedding_sum", 0.45)
def test_sum_refuses_shapes_that_would_broadcast(student: Student, seed: int) -> None:
    """Shapes that NumPy would stretch to fit, such as (1, d) and (m, d), are refused with a ValueError."""
    check_sum(student, *three(seed, (2, 3, 5)))
    stretched = [(1, 3, 5), (2, 1, 5), (2, 3, 1), (1, 1, 5), (3, 5), (1, 5), (5,), (1,), (), (1, 2, 3, 5)]
    for because, arrays in odd_ones_out((2, 3, 5), stretched):
        refuses(student.embedding_sum, *arrays, names=NAMES, because=because, accepted="shapes-stretched")
    for because, arrays in odd_ones_out((5,), [(1,), (), (1, 5), (5, 1)]):
        refuses(student.embedding_sum, *arrays, names=NAMES, because=because, accepted="shapes-stretched")


@pytest.mark.worth("embedding_sum", 0.35)
def test_sum_refuses_other_unequal_shapes(student: Student, seed: int) -> None:
    """Shapes that differ in any other way are refused by the function itself, with a ValueError of its own."""
    check_sum(student, *three(seed, (2, 3, 5)))
    unequal = [(2, 3, 7), (2, 7, 5), (7, 3, 5), (3, 2, 5), (5, 3, 2), (2, 5, 3), (6, 5), (30,), (2, 3, 5, 2)]
    for because, arrays in odd_ones_out((2, 3, 5), unequal):
        refuses(student.embedding_sum, *arrays, names=NAMES, because=because)
    for because, arrays in odd_ones_out((3,), [(5,), (2,)]):
        refuses(student.embedding_sum, *arrays, names=NAMES, because=because)
    arrays = [array(seed, (2, length, 5)) for length in (3, 7, 2)]
    refuses(student.embedding_sum, *arrays, names=NAMES, because="the three shapes all differ")


# -- input_embeddings -------------------------------------------------------------------------------------------------
def check_lookup(
    student: Student,
    input_ids: np.ndarray,
    token_type_ids: np.ndarray,
    token_table: np.ndarray,
    segment_table: np.ndarray,
    position_table: np.ndarray,
    *,
    otherwise: str | None = None,
) -> None:
    args = input_ids, token_type_ids, token_table, segment_table, position_table
    expected = oracle.input_embeddings(*args)

    def check() -> None:
        try:
            got = legal(student.input_embeddings, *args)
        except RemoteError as error:
            exact = *args[:4], position_table[: input_ids.shape[1]]
            if len(exact[4]) < len(position_table) and works(student.input_embeddings, *exact):
                call = error.call.text  # type: ignore[attr-defined]
                works_with = f"with a position_table of exactly {len(exact[4])} rows the same call returns something"
                expect.wrong(f"{call}\nraised {error.raised.text}\nexpected a result: {works_with}", "position-row")
            raise
        compare(got, expected, student, lambda: likely_lookups(*args), otherwise)

    judged_alone(student, check)


def likely_lookups(
    input_ids: np.ndarray,
    token_type_ids: np.ndarray,
    token_table: np.ndarray,
    segment_table: np.ndarray,
    position_table: np.ndarray,
) -> expect.Likely:
    """What the usual mistakes make of these arguments, in double."""
    m, length = input_ids.shape
    words, kinds = input_ids.astype(np.int64), token_type_ids.astype(np.int64)
    tables = [table.astype(np.float64) for table in (token_table, segment_table, position_table)]
    token, segment = tables[0][words], tables[1][kinds]
    columns = np.arange(length)
    position = np.broadcast_to(tables[2][:length], token.shape)
    total = token + segment + position
    count = len(position_table)
    zero = (words == 0)[..., None]

    def with_rows(rows: np.ndarray) -> np.ndarray | None:
        if rows.min() < 0 or rows.max() >= count:
            return None
        return token + segment + np.broadcast_to(tables[2][rows], token.shape)

    def with_kinds(rows: np.ndarray) -> np.ndarray:
        rows = np.clip(rows, -len(segment_table), len(segment_table) - 1)
        return token + position + np.broadcast_to(tables[1][rows], token.shape)

    def with_words(rows: np.ndarray) -> np.ndarray:
        return tables[0][rows % len(token_table)] + segment + position

    starts = np.where(np.diff(kinds, axis=1, prepend=kinds[:, :1]) != 0, columns, 0)
    return [
        ("mean-instead-of-sum", total / 3),
        ("concatenated-instead-of-added", np.concatenate([token, segment, position], axis=-1)),
        ("segment-ignored", token + position),
        ("segment-ignored", with_kinds(np.zeros_like(kinds))),
        ("segment-ignored", with_kinds(kinds - 1)),
        ("segment-ignored", with_kinds(np.minimum(kinds, 1))),
        ("segment-ignored", with_kinds(kinds[:1])),
        ("segment-ignored", with_kinds((columns >= length // 2).astype(np.int64))),
        ("segment-ignored", with_kinds((columns >= (length + 1) // 2).astype(np.int64))),
        ("segment-ignored", token + position + kinds[..., None]),
        ("part-left-out", segment + position),
        ("position-row", token + segment),
        ("position-row", with_rows(columns + 1)),
        ("position-row", with_rows((columns + 1) % count)),
        ("position-row", with_rows(columns[::-1].copy())),
        ("position-row", with_rows(np.zeros(length, dtype=np.int64))),
        ("position-row", with_rows(count - length + columns)),
        ("position-row", with_rows(np.linspace(0, count - 1, length).astype(np.int64))),
        ("position-row", with_rows(np.linspace(0, count - 1, length).round().astype(np.int64))),
        ("position-row", with_rows(columns - np.maximum.accumulate(starts, axis=1))),
        ("position-runs-on-over-the-batch", with_rows(np.arange(m * length).reshape(m, length))),
        ("position-runs-on-over-the-batch", with_rows(np.arange(m * length).reshape(m, length) % count)),
        ("position-runs-on-over-the-batch", with_rows(np.repeat(np.arange(m), length).reshape(m, length))),
        ("position-from-token-id", with_rows(words)),
        ("position-from-token-id", with_rows(words % count)),
        ("position-from-token-id", with_rows(kinds)),
        ("id-zero-as-padding", np.where(zero, segment + position, total)),
        ("id-zero-as-padding", np.where(zero, 0.0, total)),
        ("id-zero-as-padding", with_rows(np.maximum(np.cumsum(words != 0, axis=1) - 1, 0))),
        ("id-zero-as-padding", with_rows(np.cumsum(words != 0, axis=1))),
        ("id-dtype", with_words(words.astype(np.uint8).astype(np.int64))),
        ("id-dtype", with_words(words.astype(np.int8).astype(np.int64))),
        ("layer-norm-included", total + (np.sqrt(token.shape[-1]) - 1) * token),
        *normalised(total),
    ]


Batch = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, np.ndarray]


def batch(
    seed: int,
    m: int = 2,
    length: int = 5,
    d: int = 3,
    vocabulary: int = 11,
    segments: int = 2,
    positions: int = 13,
    dtypes: Sequence[str] = ("float64",) * 3,
    id_dtypes: tuple[str, str] = ("int64", "int64"),
) -> Batch:
    """Ids, types and three tables."""
    mixed = len(set(dtypes)) > 1
    return (
        ids(seed, (m, length), vocabulary, id_dtypes[0]),
        ids(seed + 1, (m, length), segments, id_dtypes[1]),
        array(3 * seed, (vocabulary, d), dtypes[0], mixed),
        array(3 * seed + 1, (segments, d), dtypes[1], mixed),
        array(3 * seed + 2, (positions, d), dtypes[2], mixed),
    )


@pytest.mark.worth("input_embeddings", 0.7)
def test_lookup_adds_three_rows(student: Student, seed: int) -> None:
    """Each token gets its row of the token table, plus its segment's row, plus the row of its place in the sequence."""

    @given(draw=seeds, size=sizes(4))
    def small(draw: int, size: tuple[int, ...]) -> None:
        m, length, d, vocabulary = size
        for again in range(2):
            args = batch(draw + again, m=m, length=length, d=d, vocabulary=vocabulary, positions=m * length + 17)
            check_lookup(student, *args, otherwise=FORMULA)

    small()
    check_lookup(student, *batch(seed, m=2, length=512, d=3, vocabulary=2503, positions=521), otherwise=FORMULA)
    args = batch(seed, m=17, length=3)
    check_lookup(student, *args[:2], *(1e6 * table for table in args[2:]), otherwise=FORMULA)


@pytest.mark.worth("input_embeddings", 0.4, misconception="position-row")
@given(draw=seeds, m=st.sampled_from((1, 2, 5, 11)), length=st.sampled_from((1, 3, 7)), spare=st.integers(0, 2))
def test_lookup_counts_positions_from_zero(student: Student, draw: int, m: int, length: int, spare: int) -> None:
    """Positions count 0, 1, 2, … in every sequence, whether the position table is just long enough or longer."""
    check_lookup(student, *batch(draw, m=m, length=length, positions=length + spare))


@pytest.mark.worth("input_embeddings", 0.3, misconception="segment-ignored")
@given(draw=seeds, segments=st.sampled_from((1, 2, 3, 7)), vocabulary=st.sampled_from((1, 2, 13)), d=st.integers(1, 3))
def test_lookup_uses_first_and_last_rows(student: Student, draw: int, segments: int, vocabulary: int, d: int) -> None:
    """Every id from 0 to the last row of its table is looked up, with any number of segments and any width."""
    args = batch(draw, m=3, length=5, d=d, vocabulary=vocabulary, segments=segments)
    check_lookup(student, *args)
    check_lookup(student, np.zeros_like(args[0]), np.zeros_like(args[1]), *args[2:])
    check_lookup(student, np.full_like(args[0], vocabulary - 1), np.full_like(args[1], segments - 1), *args[2:])
    for dtype in ("int8", "uint8"):
        check_lookup(student, *batch(draw, d=d, segments=int(np.iinfo(dtype).max) + 1, id_dtypes=("int32", dtype)))


@pytest.mark.worth("input_embeddings", 0.25, misconception="id-dtype")
def test_lookup_with_ids_of_any_integer_dtype(student: Student, seed: int) -> None:
    """Ids and segment ids may have any integer dtype, also two different ones, up to the largest id it can hold."""
    for i, dtype in enumerate(INTEGERS):
        for other in (dtype, "int64", INTEGERS[i - 1]):
            vocabulary = min(int(np.iinfo(dtype).max) + 1, 256)
            check_lookup(student, *batch(seed + i, m=3, d=5, vocabulary=vocabulary, id_dtypes=(dtype, other)))


@pytest.mark.worth("input_embeddings", 0.35, misconception="dtype-not-promoted")
def test_lookup_keeps_dtype_of_tables(student: Student, seed: int) -> None:
    """The dtype of the result is the one that np.result_type gives for the three tables, whatever that of the ids."""
    for dtype in ("float64", "float32", "float16", "int64", "int16"):
        check_lookup(student, *batch(seed, m=3, dtypes=(dtype,) * 3))
        check_lookup(student, *batch(seed, m=3, dtypes=(dtype,) * 3, id_dtypes=("int32", "uint8")))
    for dtypes in MIXED:
        check_lookup(student, *batch(seed, m=3, dtypes=dtypes))


@pytest.mark.worth("input_embeddings", 0.25)
def test_lookup_leaves_its_arguments_alone(student: Student, seed: int) -> None:
    """Ids and tables hold the same numbers after the call as before, and no random generator has moved."""

    def calls() -> None:
        for m, length, positions in ((1, 1, 2), (1, 5, 7), (3, 5, 7), (2, 5, 13)):
            check_lookup(student, *batch(seed, m=m, length=length, positions=positions))
            for dtype in ("float32", "int64"):
                other = batch(seed, m=m, length=length, positions=positions, dtypes=(dtype,) * 3)
                quietly(student.input_embeddings, *other)

    left_alone(student, "input_embeddings", calls)


@pytest.mark.worth("input_embeddings", 0.25, misconception="strides-ignored")
def test_lookup_in_any_memory_layout(student: Student, seed: int) -> None:
    """Transposed, sliced and broadcast ids and tables are read like any other arrays."""
    for shift in range(len(LAYOUTS)):
        args = batch(seed + shift, m=3)
        check_lookup(student, *(laid_out(a, LAYOUTS[(i + shift) % 3]) for i, a in enumerate(args)))
    for layout in LAYOUTS:
        args = batch(seed, m=3)
        views = [laid_out(a, layout) for a in args]
        check_lookup(student, *[*views[:2], *args[2:]])
        check_lookup(student, *[*args[:2], *views[2:]])
    input_ids, _, *tables = batch(seed, m=3)
    check_lookup(student, input_ids, np.broadcast_to(np.int64(1), input_ids.shape), *tables)


@pytest.mark.worth("input_embeddings", 0.25)
def test_lookup_refuses_too_long_sequences(student: Student, seed: int) -> None:
    """A sequence longer than the position table is refused with a ValueError."""
    for m, positions, length in ((2, 5, 6), (1, 5, 6), (7, 5, 11), (2, 2, 3), (3, 3, 13)):
        check_lookup(student, *batch(seed, m=m, length=positions - 1, positions=positions))
        refuses(
            student.input_embeddings,
            *batch(seed, m=m, length=length, positions=positions),
            names=("position_table", "input_ids", "token_type_ids"),
            because=f"{length} tokens need {length} positions, and position_table has {positions} rows",
        )


def check_refused_id(student: Student, args: Batch, which: int, bad: int, place: tuple[int, int]) -> None:
    """The id `bad` at that place of input_ids (which 0) or token_type_ids (1) is refused, and the message shows it."""
    name, table = (("input_ids", "token_table"), ("token_type_ids", "segment_table"))[which]
    changed = [a.copy() for a in args]
    changed[which][place] = bad
    refuses(
        student.input_embeddings,
        *changed,
        names=(name, table),
        values=(bad,),
        because=f"{name} holds {bad}, and {table} has the rows 0 … {len(args[2 + which]) - 1}",
        accepted="negative-id-wraps" if bad < 0 else "bad-input-accepted",
    )


@pytest.mark.worth("input_embeddings", 0.25)
def test_lookup_refuses_token_ids_past_the_table(student: Student, seed: int) -> None:
    """A token id that is not below the number of rows of the token table is refused with a ValueError."""
    args = batch(seed, vocabulary=11)
    check_lookup(student, *args)
    for place in ((0, 0), (1, 4), (1, 0), (0, 2)):
        for bad in (11, 12, 29, 2**16 + 3, 2**32 + 3):
            check_refused_id(student, args, 0, bad, place)
    for dtype, bad in (("uint8", 11), ("uint8", 250), ("int16", 11), ("uint64", 11), ("int32", 1000)):
        narrow = batch(seed, m=1, vocabulary=11, id_dtypes=(dtype, "int64"))
        check_lookup(student, *narrow)
        check_refused_id(student, narrow, 0, bad, (0, 3))
    for bad in (2**63 + 5, 2**64 - 1, 2**64 - 11):  # cast to int64, these are negative
        check_refused_id(student, batch(seed, id_dtypes=("uint64", "int64")), 0, bad, (0, 3))


@pytest.mark.worth("input_embeddings", 0.25)
def test_lookup_refuses_negative_token_ids(student: Student, seed: int) -> None:
    """A negative token id is refused with a ValueError; it does not count from the end of the table."""
    args = batch(seed, vocabulary=11)
    check_lookup(student, *args)
    for place in ((0, 0), (1, 4), (1, 0), (0, 2)):
        for bad in (-1, -2, -11, -12, -100):
            check_refused_id(student, args, 0, bad, place)
    narrow = batch(seed, m=1, vocabulary=11, id_dtypes=("int8", "int64"))
    check_refused_id(student, narrow, 0, -1, (0, 3))


@pytest.mark.worth("input_embeddings", 0.25)
def test_lookup_refuses_segment_ids_outside_the_table(student: Student, seed: int) -> None:
    """A segment id that is negative, or not below the number of rows of the segment table, is refused."""
    for segments in (1, 2):
        args = batch(seed, segments=segments)
        check_lookup(student, *args)
        for place in ((0, 0), (1, 4), (1, 0), (0, 2)):
            for bad in (segments, segments + 1, 10, 29, 2**32 + 1, -1, -2, -segments, -100):
                check_refused_id(student, args, 1, bad, place)
        for bad in (2**63 + 1, 2**64 - 1):
            unsigned = batch(seed, segments=segments, id_dtypes=("int64", "uint64"))
            check_refused_id(student, unsigned, 1, bad, (0, 3))


@pytest.mark.worth("input_embeddings", 0.2)
def test_lookup_refuses_tables_of_unequal_width(student: Student, seed: int) -> None:
    """Tables that do not share one hidden size d are refused with a ValueError, width 1 included."""
    args = batch(seed, d=5)
    check_lookup(student, *args)
    for width, odd in itertools.product((1, 3, 4, 6, 10), range(3)):
        for one, rest in ((width, 5), (5, width)):
            widths = [one if i == odd else rest for i in range(3)]
            tables = [array(seed + i, (len(args[2 + i]), d)) for i, d in enumerate(widths)]
            refused_here_or_in_sum(
                student,
                student.input_embeddings,
                *args[:2],
                *tables,
                names=TABLES,
                because=f"the three tables are {widths[0]}, {widths[1]} and {widths[2]} wide",
            )


@pytest.mark.worth("input_embeddings", 0.15)
def test_lookup_refuses_ids_and_types_of_unequal_shape(student: Student, seed: int) -> None:
    """Ids and segment ids of unequal shapes are refused with a ValueError, also where NumPy would stretch one."""
    args = batch(seed, m=2, length=5)
    check_lookup(student, *args)
    for other in ((1, 5), (5,), (2, 1), (1, 1), (1,), (), (2, 4), (2, 6), (3, 5), (5, 2), (10,), (1, 2, 5), (2, 5, 1)):
        odd = ids(seed, other, 2)
        for which, pair in enumerate(((args[0], odd), (odd, args[1]))):
            refused_here_or_in_sum(
                student,
                student.input_embeddings,
                *pair,
                *args[2:],
                names=("input_ids", "token_type_ids"),
                because=f"{('token_type_ids', 'input_ids')[which]} has the shape {other}, the other (2, 5)",
            )


@pytest.mark.worth("input_embeddings", 0.15)
def test_lookup_refuses_ids_that_are_not_two_dimensional(student: Student, seed: int) -> None:
    """Ids that are not of shape (m, T) are refused with a ValueError, even if ids and segment ids agree."""
    args = batch(seed)
    check_lookup(student, *args)
    for shape in ((5,), (1,), (2, 3, 5), (1, 1, 5), (2, 5, 1), (2, 1, 3, 5)):
        refuses(
            student.input_embeddings,
            ids(seed, shape, 11),
            ids(seed, shape, 2),
            *args[2:],
            names=("input_ids", "token_type_ids"),
            because=f"input_ids has {len(shape)} dimension(s), not 2",
        )


# -- another_decomposition --------------------------------------------------------------------------------------------
def why_too_near(parts: Sequence[np.ndarray], originals: Sequence[np.ndarray], apart: Sequence[np.ndarray]) -> str:
    """The misconception to name where fewer than two parts differ everywhere from their originals."""
    if all(np.array_equal(originals[0], other) for other in originals[1:]):
        return "parts-equal-somewhere"
    for order in itertools.permutations(originals):
        if all(np.array_equal(part, original) for part, original in zip(parts, order, strict=True)):
            whole = any(original.dtype.kind in "iu" for original in originals)
            return "integers-truncated" if whole else "same-parts-returned"
    near = all(bool((difference <= 1.01e-3).all()) for difference in apart)
    return "change-too-small" if near else "parts-equal-somewhere"


def check_decomposition(student: Student, token: np.ndarray, segment: np.ndarray, position: np.ndarray) -> None:
    """The parts that come back have the kind asked for, the same sum, and at least two of them differ everywhere."""
    given_parts = token, segment, position

    def check() -> None:
        parts = legal(student.another_decomposition, *given_parts)
        said = f"{student.last.text}\nreturned {show(parts)}\n"
        if not isinstance(parts, tuple | list) or len(parts) != 3:
            expect.wrong(f"{said}expected three arrays (token', segment', position')", "another-decomposition-form")
        for name, part in zip(NAMES, parts, strict=True):
            problem = None
            if not isinstance(part, np.ndarray):
                problem = f"a NumPy array, not {expect.kind(part)}"
            elif part.dtype != np.float64:
                problem = f"a float64 array, not {part.dtype}"
            elif part.shape != token.shape:
                problem = f"an array of shape {token.shape}, not {part.shape}"
            if problem is not None:
                expect.wrong(f"{said}{name}' must be {problem}.", "another-decomposition-form")
        apart = [oracle.distance(part, original) for part, original in zip(parts, given_parts, strict=True)]
        error = oracle.sum_error(tuple(parts), *given_parts)
        bad = ~(error <= 1)
        if bad.any():
            at = tuple(int(i) for i in np.argwhere(bad)[0])
            new, old = (" + ".join(f"{float(a[at]):.12g}" for a in arrays) for arrays in (parts, given_parts))
            expect.wrong(
                f"{said}The sums differ at {list(at)}: {new} is not {old}, within 1e-9·max(1, |t|+|s|+|p|).",
                "sum-not-preserved",
            )
        everywhere = [bool((difference > 1e-3).all()) for difference in apart]
        if sum(everywhere) < 2:
            lines = []
            for name, difference in zip(NAMES, apart, strict=True):
                near = ~(difference > 1e-3)
                if near.any():
                    at = tuple(int(i) for i in np.argwhere(near)[0])
                    lines.append(f"{name}' is within 1e-3 of {name} at {list(at)} ({int(near.sum())} of {near.size})")
            expect.wrong(
                f"{said}At least two of the three must differ from their originals by more than 1e-3 in every entry, "
                f"but {'; '.join(lines)}.",
                why_too_near(parts, given_parts, apart),
            )

    judged_alone(student, check)


def away_from_zero(rng: np.random.Generator, least: float, shape: tuple[int, ...]) -> np.ndarray:
    """Numbers between `least` and 1.2 times it, all of its sign."""
    return np.asarray(least * rng.uniform(1, 1.2, size=shape))


@pytest.mark.worth("another_decomposition", 0.9)
def test_decomposition_has_the_same_sum_and_other_parts(student: Student) -> None:
    """Three float64 arrays of any shape come back with the same sum; at least two differ everywhere from before."""

    @given(draw=seeds, shape=shapes)
    def small(draw: int, shape: tuple[int, ...]) -> None:
        check_decomposition(student, *three(draw, shape))
        check_decomposition(student, *(3 * part for part in three(draw + 1, shape)))

    check_decomposition(student, *three(0, (2, 3)))
    small()
    for shape in ((1,), (5,), (1, 1), (7, 1), (1, 7), (3, 5), (1, 1, 1), (2, 3, 1), (2, 3, 5), (2, 3, 5, 7)):
        check_decomposition(student, *three(1, shape))


@pytest.mark.worth("another_decomposition", 0.6, misconception="parts-equal-somewhere")
def test_decomposition_of_special_parts(student: Student) -> None:
    """Parts that are zero, equal, opposite or round numbers are decomposed in another way too."""
    for value in (0.0, 1.0, -1.0, 0.5, 1e-3, 1e-4, 1e6):
        same = np.full((2, 3), value)
        check_decomposition(student, same, same, same)
        check_decomposition(student, same.copy(), -same, np.zeros_like(same))
        check_decomposition(student, np.zeros_like(same), same.copy(), -same)
        check_decomposition(student, -same, np.zeros_like(same), same.copy())
    worked = np.array([1.0, 0.0]), np.array([0.5, 0.5]), np.array([-0.5, 1.0])
    check_decomposition(student, *worked)
    values = (-10, -3, -2, -1, -0.5, -1e-3, 0, 1e-3, 0.5, 1, 2, 3, 10)
    grid = np.array(list(itertools.product(values, repeat=3)))
    check_decomposition(student, *(np.ascontiguousarray(column.reshape(169, 13)) for column in grid.T))


@pytest.mark.worth("another_decomposition", 0.45, misconception="integers-truncated")
def test_decomposition_of_integers(student: Student, seed: int) -> None:
    """Integer arguments of every dtype come back as float64 arrays with the right sum, at the ends of the range too."""
    for dtype in INTEGERS:
        rng = np.random.default_rng(seed)
        parts = [rng.integers(low, low + 10, size=(2, 3)).astype(dtype) for low in (1, 11, 21)]
        check_decomposition(student, *parts)
        info = np.iinfo(dtype)
        least, most = max(int(info.min), -(2**15)), min(int(info.max), 2**16)
        for ends in itertools.permutations((least, least + 1, most - 1, most), 3):
            check_decomposition(student, *(np.full((1, 2), end, dtype=dtype) for end in ends))
    mixed = ("int64", "float64", "uint8"), ("float64", "int8", "int8"), ("int64", "uint64", "int64")
    for dtypes in mixed:
        check_decomposition(student, *(3 * np.arange(6).astype(dtype) + i for i, dtype in enumerate(dtypes, 1)))


@pytest.mark.worth("another_decomposition", 0.3, misconception="sum-not-preserved")
def test_decomposition_of_narrow_floats(student: Student, seed: int) -> None:
    """Arguments in float32 or float16 come back as float64 arrays whose sum is right in double."""
    rng = np.random.default_rng(seed)
    for dtype in ("float32", "float16"):
        for size in (0.1, 1.0, 100.0, 6e4):
            parts = [away_from_zero(rng, low * size, (3, 5)).astype(dtype) for low in (0.1, -0.4, 0.8)]
            check_decomposition(student, *parts)
        check_decomposition(student, parts[0], parts[1].astype(np.float64), parts[2])
        check_decomposition(student, parts[0].astype(np.float64), parts[1], parts[2])
    check_decomposition(student, *three(0, (2, 3), ("float16", "float32", "float16")))


@pytest.mark.worth("another_decomposition", 0.2)
def test_decomposition_leaves_its_arguments_alone(student: Student) -> None:
    """The three arrays hold the same numbers after the call as before, and no random generator has moved."""

    def calls() -> None:
        for shape in ((5,), (3, 5), (2, 3, 5)):
            check_decomposition(student, *three(0, shape))
            for dtypes in (("float32",) * 3, ("int64",) * 3, *MIXED[:3], *MIXED[6:9]):
                quietly(student.another_decomposition, *three(0, shape, dtypes))

    left_alone(student, "another_decomposition", calls)


@pytest.mark.worth("another_decomposition", 0.2, misconception="sum-not-preserved")
def test_decomposition_of_large_parts(student: Student, seed: int) -> None:
    """Parts of magnitude up to 1e6, also beside tiny ones, keep their sum and still differ everywhere."""
    rng = np.random.default_rng(seed)
    for size in itertools.permutations((1e6, 1.0, 1e-6)):
        check_decomposition(student, *(away_from_zero(rng, 0.8 * s, (2, 3)) for s in size))
    check_decomposition(student, *(away_from_zero(rng, s, (5, 512, 3)) for s in (8e5, -4e5, 1e5)))


@pytest.mark.worth("another_decomposition", 0.1, misconception="strides-ignored")
def test_decomposition_in_any_memory_layout(student: Student) -> None:
    """Transposed, sliced and broadcast views are decomposed like any other arrays."""
    for shift in range(len(LAYOUTS)):
        parts = [laid_out(part, LAYOUTS[(i + shift) % 3]) for i, part in enumerate(three(shift, (3, 5)))]
        check_decomposition(student, *parts)
        check_decomposition(student, *(laid_out(part, LAYOUTS[shift]) for part in three(0, (2, 3, 5))))


@pytest.mark.worth("another_decomposition", 0.25)
def test_decomposition_refuses_unequal_shapes(student: Student) -> None:
    """Arrays of unequal shapes are refused with a ValueError, also where NumPy would stretch one of them."""
    check_decomposition(student, *three(0, (2, 3, 5)))
    others = [(1, 3, 5), (2, 1, 5), (2, 3, 1), (3, 5), (5,), (1,), (), (2, 3, 7), (2, 7, 5), (7, 3, 5)]
    others += [(3, 2, 5), (6, 5), (30,)]
    for because, arrays in odd_ones_out((2, 3, 5), others):
        refused_here_or_in_sum(student, student.another_decomposition, *arrays, names=NAMES, because=because)
    for because, arrays in odd_ones_out((5,), [(1,), (1, 5), (3,)]):
        refused_here_or_in_sum(student, student.another_decomposition, *arrays, names=NAMES, because=because)

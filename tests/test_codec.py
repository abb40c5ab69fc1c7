"""Values cross unchanged, and no bytes do anything but decode or raise WireError."""

from __future__ import annotations

import contextlib
import math
import random
import resource
import time
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgpack
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from autograder.wire import codec
from autograder.wire.codec import DTYPES, Decoder, Encoder, Remote, WireError, raw_bytes
from exercises.kit import MaskedBatch, Vocabulary


def crossed(value: Any, keep_strides: bool = False) -> Any:
    decoder = Decoder(memoryview(b"")) if keep_strides else Decoder()
    return decoder.unpack(Encoder(keep_strides=keep_strides).pack([value]))[0]


def same(a: Any, b: Any) -> bool:
    if isinstance(a, float):
        return isinstance(b, float) and (a == b or (math.isnan(a) and math.isnan(b))) and type(a) is type(b)
    if isinstance(a, torch.Tensor):
        if not isinstance(b, torch.Tensor) or a.dtype != b.dtype or a.shape != b.shape:
            return False
        return raw_bytes(a).tobytes() == raw_bytes(b).tobytes()
    if isinstance(a, np.ndarray):
        return isinstance(b, np.ndarray) and a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    if isinstance(a, list | tuple):
        return type(a) is type(b) and len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, dict):
        return isinstance(b, dict) and list(a) == list(b) and all(map(same, a.values(), b.values()))
    return type(a) is type(b) and a == b


plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**1000), 2**1000)
    | st.floats()
    | st.text(st.characters(), max_size=20)
    | st.binary(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=12,
)


@given(plain)
def test_plain_data_cross_unchanged(value: Any) -> None:
    assert same(value, crossed(value))


@st.composite
def tensors(draw: st.DrawFn) -> torch.Tensor:
    dtype = DTYPES[draw(st.sampled_from(sorted(DTYPES)))]
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4))
    count = math.prod(shape)
    if dtype == torch.bool:
        return torch.tensor(draw(st.lists(st.booleans(), min_size=count, max_size=count)), dtype=dtype).reshape(shape)
    raw = draw(st.binary(min_size=count * dtype.itemsize, max_size=count * dtype.itemsize))
    flat = torch.frombuffer(bytearray(raw), dtype=dtype) if count else torch.empty(0, dtype=dtype)
    return flat.reshape(shape)


@given(tensors())
def test_tensors_cross_bit_for_bit(tensor: torch.Tensor) -> None:
    """Every dtype, size 0, 0 dimensions, any NaN or infinity: random bits are drawn."""
    assert same(tensor, crossed(tensor))


@given(tensors(), st.data())
def test_strided_tensors_are_rebuilt_with_their_strides(tensor: torch.Tensor, data: st.DataObject) -> None:
    if tensor.ndim:
        order = data.draw(st.permutations(range(tensor.ndim)))
        tensor = tensor.permute(*order)[..., :: data.draw(st.integers(1, 3))]
        if data.draw(st.booleans()):
            tensor = tensor.unsqueeze(0).expand(3, *tensor.shape)
    back = crossed(tensor, keep_strides=True)
    assert same(tensor, back)
    if tensor.numel() and not tensor.is_contiguous():
        assert back.stride() == tensor.stride()


@given(
    hnp.arrays(
        st.sampled_from([np.dtype(n) for n in codec._NUMPY_DTYPES]),
        hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4),
    ),
    st.data(),
)
def test_arrays_cross_with_any_stride_negative_ones_too(array: np.ndarray, data: st.DataObject) -> None:
    if array.ndim:
        array = array.transpose(data.draw(st.permutations(range(array.ndim))))
        step = data.draw(st.sampled_from([1, 2, -1, -2]))
        array = array[::step]
    assert same(np.asarray(array, order="K"), crossed(array, keep_strides=True))
    assert same(array.copy(), crossed(array))
    if array.size and not array.flags.c_contiguous:
        back = crossed(array, keep_strides=True)
        assert back.strides == array.strides or 1 in array.shape


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64], ids=str)
def test_infinities_and_nan_cross(dtype: torch.dtype) -> None:
    value = torch.tensor([math.inf, -math.inf, math.nan, -0.0, 1.0], dtype=dtype)
    assert same(value, crossed(value))


def test_foreign_byte_order_crosses_by_value() -> None:
    array = np.arange(5, dtype=">i4")
    assert np.array_equal(crossed(array), array)


def test_numpy_scalars_stay_numpy_scalars() -> None:
    for value in (np.float64(0.5), np.float32(0.5), np.int8(-3), np.bool_(True)):
        back = crossed(value)
        assert type(back) is type(value)
        assert back == value
    assert isinstance(crossed(np.float64(1)), float)


def test_kit_records_are_rebuilt_as_themselves() -> None:
    vocabulary = Vocabulary(10, 1, 2, 3, 4, 5)
    assert type(crossed(vocabulary)) is Vocabulary
    assert crossed(vocabulary) == vocabulary
    batch = MaskedBatch(*[torch.zeros(1, 2)] * 4)
    assert type(crossed(batch)) is MaskedBatch


class Shapes(NamedTuple):
    first: tuple
    second: int


@dataclass
class Pair:
    left: int
    right: str


def test_records_of_the_student_cross_by_field_names() -> None:
    back = crossed(Shapes((1, 2), 3))
    assert (back.first, back.second) == ((1, 2), 3)
    assert isinstance(back, tuple)
    assert type(back).__name__ == "Shapes"
    back = crossed(Pair(1, "x"))
    assert (back.left, back.right) == (1, "x")
    with pytest.raises(AttributeError):
        _ = back.middle


def test_generators_cross_with_their_state() -> None:
    generator = torch.Generator().manual_seed(3)
    torch.rand(5, generator=generator)
    back = crossed(generator)
    assert torch.equal(torch.rand(4, generator=back), torch.rand(4, generator=generator))


def test_dtypes_devices_sizes_and_references_cross() -> None:
    for value in (torch.float16, torch.device("cpu"), torch.Size([2, 3]), Remote(3, "model")):
        assert crossed(value) == value


class _Float(float):
    pass


class _Str(str):
    pass


class _Equal:
    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


class _Tensor(torch.Tensor):
    pass


REFUSED = {
    "float subclass": _Float(1.0),
    "str subclass": _Str("x"),
    "object equal to everything": _Equal(),
    "tensor subclass": torch.zeros(2).as_subclass(_Tensor),
    "masked array": np.ma.array([1.0]),
    "object array": np.array([object()]),
    "string array": np.array(["x"]),
    "sparse tensor": torch.eye(2).to_sparse(),
    "meta tensor": torch.empty(2, device="meta"),
    "function": len,
    "module": math,
    "set": {1},
    "huge integer": 1 << 2000,
    "complex": 1j,
}


@pytest.mark.parametrize("value", REFUSED.values(), ids=REFUSED)
def test_anything_else_is_refused(value: Any) -> None:
    with pytest.raises(WireError):
        Encoder().pack([value])


def test_a_cycle_and_a_deep_value_are_refused() -> None:
    cycle: list[Any] = []
    cycle.append(cycle)
    deep: list[Any] = []
    for _ in range(1000):
        deep = [deep]
    for value in (cycle, deep, [0] * 200_000):
        with pytest.raises(WireError):
            Encoder().pack([value])


def _decodes_or_refuses(data: bytes) -> None:
    with contextlib.suppress(WireError):
        Decoder().unpack(data)


def _samples() -> list[bytes]:
    values: list[Any] = [
        [None, True, 1, -1.5, "text", b"bytes", 1 << 900],
        {"a": [1, (2, 3)], "b": torch.arange(6.0).reshape(2, 3)},
        [torch.zeros(0), torch.ones(2, dtype=torch.bool), np.arange(3), np.float32(2)],
        [torch.Generator().manual_seed(1), torch.Size([3]), torch.int8, torch.device("cpu")],
        [Vocabulary(9, 1, 2, 3, 4, 5), Shapes((1,), 2), Remote(1, "x")],
    ]
    return [Encoder().pack(["value", b"0" * 16, value]) for value in values]


def test_random_and_mutated_bytes_decode_or_raise_wire_error() -> None:
    """24,000 inputs, each in bounded time and memory."""
    rng = random.Random(20261130)
    samples = _samples()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    slowest = 0.0
    for number in range(24_000):
        if number % 4 == 0:
            data = rng.randbytes(rng.randrange(200))
        else:
            mutated = bytearray(rng.choice(samples))
            for _ in range(rng.choice([1, 1, 2, 8])):
                where = rng.randrange(len(mutated))
                action = rng.randrange(4)
                if action == 0:
                    mutated[where] = rng.randrange(256)
                elif action == 1:
                    del mutated[where : where + rng.randrange(1, 9)]
                elif action == 2:
                    mutated[where:where] = rng.randbytes(rng.randrange(1, 9))
                else:
                    mutated[where] = rng.choice([0xDC, 0xDD, 0xDE, 0xDF, 0xC6, 0xDB, 0xCF, 0x9F])
                if not mutated:
                    mutated = bytearray(b"\x00")
            data = bytes(mutated)
        started = time.process_time()
        _decodes_or_refuses(data)
        slowest = max(slowest, time.process_time() - started)
    grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    assert slowest < 2.0
    assert grown < 512 * 1024  # KiB


BOMBS = {
    "nested arrays that claim a million items each": b"\xdd\x00\x0f\x42\x40" * 500,
    "nested arrays within the item limit": b"\xdd\x00\x01\x86\x00" * 500,
    "a map": msgpack.packb(["l", [{"a": 1}]]),
    "an extension type": msgpack.packb(["l", [msgpack.ExtType(1, b"x")]]),
    "a deep list": b"\x92\xa1l\x91" * 5000 + b"\xc0",
    "a huge expanded tensor": msgpack.packb(
        ["l", [["T", "float64", [10**7] * 3, [0, 0, 0], "cpu", False, -1, b"\0" * 8]]]
    ),
    "a shape of huge sizes": msgpack.packb(["l", [["T", "float64", [2**62, 4], None, "cpu", False, -1, b"\0" * 8]]]),
    "a place in memory": msgpack.packb(["l", [["n", "uint8", [4], None, [], [0, 4]]]]),
    "a device that is not there": msgpack.packb(["l", [["T", "float64", [1], None, "xla", False, -1, b"\0" * 8]]]),
    "an integer of many digits": msgpack.packb(["l", [["i", "0x" + "f" * 100_000]]]),
    "a class that is not of the kit": msgpack.packb(["l", [["k", "Popen", [["l", ["true"]]]]]]),
    "an unhashable key": msgpack.packb(["l", [["d", [[["l", []], 1]]]]]),
    "a key that only looks hashable": msgpack.packb(["l", [["d", [[["t", [["l", []]]], 1]]]]]),
    "a state that is none": msgpack.packb(["l", [["g", "cpu", b"no state"]]]),
}


@pytest.mark.parametrize("data", BOMBS.values(), ids=BOMBS)
def test_bombs_are_refused_quickly(data: bytes) -> None:
    started = time.process_time()
    with pytest.raises(WireError):
        Decoder().unpack(data)
    assert time.process_time() - started < 2


def test_booleans_from_raw_bytes_are_true_or_false() -> None:
    """A byte of 7 in a bool tensor would be neither: equal to True in one operation and not in the next."""
    packed = msgpack.packb(["l", [["T", "bool", [2], None, "cpu", False, -1, b"\x07\x00"]]])
    assert Decoder().unpack(packed)[0].view(torch.uint8).tolist() == [1, 0]


@settings(max_examples=20)
@given(plain)
def test_encoding_is_deterministic(value: Any) -> None:
    assert Encoder().pack([value]) == Encoder().pack([value])

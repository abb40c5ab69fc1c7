"""Values to bytes and back: a closed set of types, with limits, so that bytes from a worker can be trusted to be data.

A value is msgpack; what msgpack has no type for is an array that begins with a one-letter tag.  Decoding bytes from
anywhere either gives a value or raises `WireError`; it never runs code, imports, or allocates more than the limits say.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any

import msgpack
import numpy as np
import torch

from exercises import kit

MAX_BYTES = 64 * 1024 * 1024
MAX_DEPTH = 24
MAX_ITEMS = 100_000
MAX_INT_BITS = 1_024
MAX_RECORDS = 1_000
#: Keys can be chosen so that all of them collide: then a dict takes time that grows with the square of their number.
MAX_PAIRS = 2_000
MAX_DIMENSIONS = 16
_NUMPY_KINDS = "biufc"
#: What msgpack has as it is, and what else is where the integers are small enough.
_AS_IT_IS = frozenset({type(None), bool, float, str, bytes})
_INTEGERS = frozenset({int})
_PLAIN = _AS_IT_IS | _INTEGERS
_CPU = torch.device("cpu")

DTYPES: dict[str, torch.dtype] = {
    name: getattr(torch, name)
    for name in [
        "bool",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "bfloat16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    ]
}
_DTYPE_NAMES = {dtype: name for name, dtype in DTYPES.items()}
_NUMPY_DTYPES = {
    name: np.dtype(name)
    for name in [
        "bool",
        "uint8",
        "uint16",
        "uint32",
        "uint64",
        "int8",
        "int16",
        "int32",
        "int64",
        "float16",
        "float32",
        "float64",
        "complex64",
        "complex128",
    ]
}
#: The given types of the exercises: the only classes that are rebuilt by name.
RECORDS: dict[str, type] = {
    name: value
    for name, value in vars(kit).items()
    if isinstance(value, type) and (hasattr(value, "_fields") or dataclasses.is_dataclass(value))
}


class WireError(ValueError):
    """The value or the bytes are not what may cross; the message says why, in a sentence for the student."""


class Record(tuple):
    """A NamedTuple or dataclass of the student's own: its values in order, with its fields as attributes."""

    __slots__ = ()
    _names: tuple[str, ...] = ()

    def __new__(cls, name: str, fields: Sequence[str], values: Sequence[Any]) -> Record:
        kind = type(name[:100] or "Record", (Record,), {"_names": tuple(fields), "_fields": tuple(fields)})
        return tuple.__new__(kind, values)

    def __getattr__(self, name: str) -> Any:
        try:
            return self[self._names.index(name)]
        except ValueError:
            raise AttributeError(f"{type(self).__name__} has no field {name}") from None


@dataclasses.dataclass(frozen=True)
class Remote:
    """A reference to something that stays on the other side: a callable, a model.  kind: what it is."""

    number: int
    kind: str


class Encoder:
    """Encodes values.

    store: puts bytes into shared memory and returns where, or None to have them inline.
    refer: turns something that cannot cross into a number that stands for it, or returns None to refuse it.
    track: called with every floating tensor that requires a gradient; returns a number by which to find it again.
    keep_strides: True to have arrays rebuilt with the very strides they had.
    """

    def __init__(
        self,
        store: Callable[[np.ndarray], list[int] | None] | None = None,
        refer: Callable[[Any], Remote | None] | None = None,
        track: Callable[[torch.Tensor], int] | None = None,
        keep_strides: bool = False,
    ) -> None:
        self._store = store
        self._refer = refer
        self._track = track
        self._keep_strides = keep_strides
        self._items = 0

    def pack(self, frame: Sequence[Any]) -> bytes:
        """A whole message.  Raises WireError if a value in it may not cross."""
        self._items = 0
        return self.seal([self.encode(item) for item in frame])

    def seal(self, encoded: list[Any]) -> bytes:
        """A message of values that are encoded already."""
        body = ["l", encoded]
        packed = msgpack.packb(body, use_bin_type=True, unicode_errors="surrogatepass")
        if len(packed) > MAX_BYTES:
            raise WireError(f"a value of {len(packed):,} bytes is too large: the limit is {MAX_BYTES:,}")
        return packed

    def encode(self, value: Any, depth: int = 0) -> Any:
        self._items += 1
        if depth > MAX_DEPTH:
            raise WireError(f"a value nested more than {MAX_DEPTH} deep")
        if self._items > MAX_ITEMS:
            raise WireError(f"a value of more than {MAX_ITEMS:,} items")
        kind = type(value)
        if value is None or kind in (bool, float, str, bytes):
            return value
        if kind is int:
            if -(2**63) <= value < 2**63:
                return value
            if value.bit_length() > MAX_INT_BITS:
                raise WireError(f"an integer of {value.bit_length()} bits")
            return ["i", hex(value)]
        if kind is list or kind is tuple:
            return ["l" if kind is list else "t", self._all(list(value), depth + 1)]
        if kind is torch.Tensor or kind is torch.nn.Parameter:
            return self._tensor(value)
        if kind is np.ndarray:
            return self._ndarray(value)
        if kind is dict:
            pairs = [[self.encode(k, depth + 1), self.encode(v, depth + 1)] for k, v in value.items()]
            return ["d", pairs]
        if kind is torch.Size:
            return ["z", [int(size) for size in value]]
        if kind is torch.dtype and value in _DTYPE_NAMES:
            return ["y", _DTYPE_NAMES[value]]
        if kind is torch.device:
            return ["v", str(value)]
        if kind is torch.Generator:
            return ["g", str(value.device), value.get_state().numpy().tobytes()]
        if isinstance(value, np.generic) and value.dtype.name in _NUMPY_DTYPES and kind is value.dtype.type:
            return ["s", value.dtype.name, value.tobytes()]
        if kind is Remote:
            return ["h", value.number, value.kind]
        record = self._record(value, kind, depth)
        if record is not None:
            return record
        remote = self._refer(value) if self._refer is not None else None
        if remote is not None:
            return ["h", remote.number, remote.kind]
        raise WireError(f"a value of type {_class_name(kind)}, which is not plain data")

    def _all(self, items: list[Any], depth: int) -> list[Any]:
        kinds = set(map(type, items))
        if kinds <= _AS_IT_IS or (kinds == _INTEGERS and -(2**63) <= min(items) <= max(items) < 2**63):
            self._items = _counted(self._items, items, depth)
            return items
        return [self.encode(item, depth) for item in items]

    def _record(self, value: Any, kind: type, depth: int) -> Any:
        if RECORDS.get(kind.__name__) is kind:
            names = [f.name for f in dataclasses.fields(kind)] if dataclasses.is_dataclass(kind) else None
            values = list(tuple.__iter__(value)) if names is None else [getattr(value, name) for name in names]
            return ["k", kind.__name__, [self.encode(item, depth + 1) for item in values]]
        mro = type.__dict__["__mro__"].__get__(kind)
        named = getattr(kind, "_fields", None)
        if tuple in mro and isinstance(named, tuple):
            fields, values = list(named), list(tuple.__iter__(value))
        elif dataclasses.is_dataclass(kind):
            fields = [field.name for field in dataclasses.fields(kind)]
            values = [getattr(value, field) for field in fields]
        else:
            return None
        if len(fields) != len(values) or any(type(field) is not str for field in fields):
            raise WireError(f"a {_class_name(kind)} whose fields do not fit its values")
        return ["r", _class_name(kind), fields, [self.encode(item, depth + 1) for item in values]]

    def _tensor(self, value: torch.Tensor) -> Any:
        if value.layout != torch.strided or value.is_quantized or value.dtype not in _DTYPE_NAMES:
            raise WireError(f"a tensor of layout {value.layout} and dtype {value.dtype}")
        if value.device.type == "meta" or value.is_nested:
            raise WireError("a tensor that holds no data")
        number = -1
        if self._track is not None and value.requires_grad:
            number = self._track(value)
        plain = value.detach().resolve_conj().resolve_neg()
        shape, strides = list(plain.shape), None
        if not plain.is_contiguous() and self._keep_strides and plain.device.type == "cpu" and plain.numel():
            strides = list(plain.stride())
            extent = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
            plain = plain.as_strided((extent,), (1,), plain.storage_offset())
        return [
            "T",
            _DTYPE_NAMES[value.dtype],
            shape,
            strides,
            str(value.device),
            bool(value.requires_grad),
            number,
            self._bytes(raw_bytes(plain)),
        ]

    def _ndarray(self, value: np.ndarray) -> Any:
        if value.dtype.name not in _NUMPY_DTYPES:
            raise WireError(f"an array of dtype {value.dtype}")
        value = value.astype(value.dtype.newbyteorder("="), copy=False)
        shape, strides, flips = list(value.shape), None, []
        contiguous = value.flags.c_contiguous or not self._keep_strides or value.size == 0
        if not contiguous and all(s % value.itemsize == 0 for s in value.strides):
            flips = [axis for axis, s in enumerate(value.strides) if s < 0]
            lowest = value[tuple(slice(None, None, -1) if axis in flips else slice(None) for axis in range(value.ndim))]
            strides = [s // value.itemsize for s in lowest.strides]
            extent = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
            flat = np.lib.stride_tricks.as_strided(lowest, (extent,), (value.itemsize,))
        else:
            flat = np.ascontiguousarray(value).reshape(-1)
        return ["n", value.dtype.name, shape, strides, flips, self._bytes(flat.view(np.uint8))]

    def _bytes(self, data: np.ndarray) -> Any:
        place = self._store(data) if self._store is not None else None
        return data.tobytes() if place is None else place


class Decoder:
    """Decodes values.

    memory: the shared memory that stored bytes lie in; arrays are then views of it, writable.  Only the worker has it;
        bytes from a worker are never a place in memory and never strided.
    attach: called with every tensor that the other side tracks, (tensor, number), returning what to use for it.
    find: turns a reference into what it stands for; without it references stay `Remote`.
    """

    def __init__(
        self,
        memory: memoryview | None = None,
        attach: Callable[[torch.Tensor, int], torch.Tensor] | None = None,
        find: Callable[[Remote], Any] | None = None,
    ) -> None:
        self._memory = memory
        self._attach = attach
        self._find = find
        self._items = 0
        self._records = 0

    @property
    def items(self) -> int:
        """How many values the last message held."""
        return self._items

    def unpack(self, packed: bytes) -> list[Any]:
        """A whole message.  Raises WireError for anything that `Encoder.pack` does not produce."""
        if len(packed) > MAX_BYTES:
            raise WireError(f"a message of {len(packed):,} bytes is too large")
        self._items = self._records = 0
        try:
            body = msgpack.unpackb(
                packed,
                raw=False,
                use_list=True,
                unicode_errors="surrogatepass",
                max_array_len=MAX_ITEMS,
                max_map_len=0,
                max_ext_len=0,
                max_bin_len=MAX_BYTES,
                max_str_len=MAX_BYTES,
            )
            value = self.decode(body)
        except WireError:
            raise
        except Exception as error:  # whatever a library makes of bytes that somebody chose
            raise WireError(f"bytes that are not a message ({type(error).__name__})") from error
        if type(value) is not list:
            raise WireError("bytes that are not a message")
        return value

    def decode(self, body: Any, depth: int = 0) -> Any:
        self._items += 1
        if depth > MAX_DEPTH:
            raise WireError(f"a value nested more than {MAX_DEPTH} deep")
        if self._items > MAX_ITEMS:
            raise WireError(f"a value of more than {MAX_ITEMS:,} items")
        kind = type(body)
        if body is None or kind in (bool, int, float, str, bytes):
            return body
        if kind is not list or not body or type(body[0]) is not str:
            raise WireError("a value of no known type")
        tag, *rest = body
        reader = _READERS.get(tag)
        if reader is None:
            raise WireError(f"a value of no known type ({tag[:10]!r})")
        return reader(self, depth, *rest)

    def _list(self, depth: int, items: Any) -> list[Any]:
        if _PLAIN.issuperset(map(type, _checked(items, list))):
            self._items = _counted(self._items, items, depth + 1)
            return list(items)
        return [self.decode(item, depth + 1) for item in items]

    def _tuple(self, depth: int, items: Any) -> tuple[Any, ...]:
        return tuple(self._list(depth, items))

    def _dict(self, depth: int, pairs: Any) -> dict[Any, Any]:
        found = {}
        if len(_checked(pairs, list)) > MAX_PAIRS:
            raise WireError(f"a dict of more than {MAX_PAIRS:,} entries")
        for pair in pairs:
            key, value = _checked(pair, list)
            key = self.decode(key, depth + 1)
            if not isinstance(key, str | int | float | bytes | bool | tuple | None):
                raise WireError(f"a dict with a key of type {type(key).__name__}")
            found[key] = self.decode(value, depth + 1)
        return found

    def _int(self, depth: int, text: Any) -> int:
        if len(_checked(text, str)) > MAX_INT_BITS // 4 + 3:
            raise WireError("an integer of too many digits")
        return int(text, 16)

    def _size(self, depth: int, sizes: Any) -> torch.Size:
        return torch.Size(_shape(sizes))

    def _dtype(self, depth: int, name: Any) -> torch.dtype:
        return DTYPES[_checked(name, str)]

    def _device(self, depth: int, name: Any) -> torch.device:
        return _device(name)

    def _generator(self, depth: int, device: Any, state: Any) -> torch.Generator:
        generator = torch.Generator(_device(device))
        generator.set_state(torch.frombuffer(bytearray(_checked(state, bytes)), dtype=torch.uint8))
        return generator

    def _scalar(self, depth: int, name: Any, data: Any) -> np.generic:
        dtype = _NUMPY_DTYPES[_checked(name, str)]
        if len(_checked(data, bytes)) != dtype.itemsize:
            raise WireError("a number of the wrong size")
        return np.frombuffer(data, dtype)[0]

    def _remote(self, depth: int, number: Any, kind: Any) -> Any:
        remote = Remote(_checked(number, int), _checked(kind, str)[:100])
        return remote if self._find is None else self._find(remote)

    def _kit_record(self, depth: int, name: Any, values: Any) -> Any:
        cls = RECORDS[_checked(name, str)]
        return cls(*self._list(depth, values))

    def _own_record(self, depth: int, name: Any, fields: Any, values: Any) -> Record:
        names = [_checked(field, str)[:100] for field in _checked(fields, list)]
        items = self._list(depth, values)
        self._records += 1
        if self._records > MAX_RECORDS:
            raise WireError(f"a value of more than {MAX_RECORDS:,} records")
        if len(names) != len(items) or len(set(names)) != len(names) or len(names) > 100:
            raise WireError("a record whose fields do not fit its values")
        return Record(_checked(name, str).replace("\0", ""), names, items)

    def _tensor(
        self, depth: int, name: Any, shape: Any, strides: Any, device: Any, grad: Any, number: Any, data: Any
    ) -> torch.Tensor:
        dtype = DTYPES[_checked(name, str)]
        shape = _shape(shape)
        flat = self._flat(data, dtype.itemsize, shape, strides)
        if name == "bool" and not self._memory:
            flat = (np.frombuffer(flat, np.uint8) != 0).data
        tensor = torch.frombuffer(flat, dtype=dtype) if len(flat) else torch.empty(0, dtype=dtype)
        tensor = tensor.view(shape) if strides is None else tensor.as_strided(shape, _shape(strides))
        where = _device(device)
        if where.type != "cpu":
            tensor = tensor.to(where)
        if self._attach is not None and _checked(grad, bool):
            tensor = self._attach(tensor, _checked(number, int))
        return tensor

    def _ndarray(self, depth: int, name: Any, shape: Any, strides: Any, flips: Any, data: Any) -> np.ndarray:
        dtype = _NUMPY_DTYPES[_checked(name, str)]
        shape = _shape(shape)
        flat = np.frombuffer(self._flat(data, dtype.itemsize, shape, strides), np.uint8)
        array = (flat != 0) if name == "bool" and not self._memory else flat.view(dtype)
        if strides is None:
            return array.reshape(shape)
        steps = [s * dtype.itemsize for s in _shape(strides)]
        array = np.lib.stride_tricks.as_strided(array, shape, steps)
        turned = set(_shape(flips))
        return array[tuple(slice(None, None, -1) if axis in turned else slice(None) for axis in range(len(shape)))]

    def _flat(self, data: Any, itemsize: int, shape: list[int], strides: Any) -> bytearray | memoryview:
        if strides is None:
            extent = math.prod(shape)
        else:
            if self._memory is None or len(_shape(strides)) != len(shape) or 0 in shape:
                raise WireError("strides that do not fit a shape")
            extent = 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))
        if type(data) is bytes:
            flat: bytearray | memoryview = bytearray(data)
        else:
            if self._memory is None:
                raise WireError("a place in memory that is not shared")
            offset, length = _shape(data)
            flat = self._memory[offset : offset + length]
        if len(flat) != extent * itemsize:
            raise WireError("an array whose data do not fit its shape")
        return flat


_READERS: dict[str, Callable[..., Any]] = {
    "l": Decoder._list,
    "t": Decoder._tuple,
    "d": Decoder._dict,
    "i": Decoder._int,
    "z": Decoder._size,
    "y": Decoder._dtype,
    "v": Decoder._device,
    "g": Decoder._generator,
    "s": Decoder._scalar,
    "h": Decoder._remote,
    "k": Decoder._kit_record,
    "r": Decoder._own_record,
    "T": Decoder._tensor,
    "n": Decoder._ndarray,
}


def packed_plain(value: Any) -> bytes | None:
    """A list or dict of plain data as bytes, equal for equal bits only; None if there is anything else in it."""
    try:
        packed: bytes = msgpack.packb(value, strict_types=True, unicode_errors="surrogatepass")
    except (TypeError, ValueError, OverflowError):  # tuples, tensors, huge numbers, too deep
        return None
    return packed


def raw_bytes(tensor: torch.Tensor) -> np.ndarray:
    """The bytes of a tensor's values in row-major order (uint8, 1-D); of its own memory where they lie so already."""
    if tensor.numel() == 0:
        return np.empty(0, np.uint8)
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    if flat.stride() != (1,):  # one number at any stride counts as contiguous
        flat = flat.clone(memory_format=torch.contiguous_format).as_strided((1,), (1,))
    return flat.view(torch.uint8).numpy()


def _checked(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise WireError(f"a {type(value).__name__} where a {kind.__name__} belongs")
    return value


def _counted(before: int, items: list[Any], depth: int) -> int:
    """How many values there are with these, none of which holds others.  Raises WireError if that is too many."""
    if items and depth > MAX_DEPTH:
        raise WireError(f"a value nested more than {MAX_DEPTH} deep")
    if before + len(items) > MAX_ITEMS:
        raise WireError(f"a value of more than {MAX_ITEMS:,} items")
    return before + len(items)


def _shape(value: Any) -> list[int]:
    sizes = _checked(value, list)
    if len(sizes) > MAX_DIMENSIONS or not _INTEGERS.issuperset(map(type, sizes)):
        raise WireError("a shape that is not one")
    if sizes and not 0 <= min(sizes) <= max(sizes) <= MAX_BYTES:
        raise WireError("a shape that is not one")
    return sizes


def _device(name: Any) -> torch.device:
    if _checked(name, str) == "cpu":
        return _CPU
    device = torch.device(name[:20])
    if device.type not in ("cpu", "cuda"):
        raise WireError(f"a tensor on {device.type}")
    return device


def _class_name(kind: type) -> str:
    return str.__str__(type.__dict__["__name__"].__get__(kind))[:100]

"""Values as students read them in messages: small ones whole, large ones summarised."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np
import torch

SHOWN = 20
#: Fields of a record that are another number each time: the same submission has the same report.
_MEASURED = frozenset({"train_seconds", "predict_seconds", "peak_memory_bytes"})


def show(value: Any) -> str:
    """A value in a line: a tensor of at most 20 numbers whole, a larger one by dtype, shape and range."""
    if isinstance(value, torch.Tensor):
        return _array(value.dtype, tuple(value.shape), value.numel(), value.detach().cpu())
    if isinstance(value, np.ndarray):
        return "array " + _array(value.dtype, value.shape, value.size, value)
    if isinstance(value, np.generic):
        return f"{type(value).__name__}({value!r})" if not isinstance(value, float) else repr(float(value))
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        shown = ", ".join(f"{name}={_named(name, item)}" for name, item in zip(value._fields, value, strict=False))
        return f"{type(value).__name__}({shown})"
    if isinstance(value, list | tuple) and any(
        isinstance(item, torch.Tensor | np.ndarray) or _is_record(item) for item in value
    ):
        shown = ", ".join(show(item) for item in value[:5])
        more = f", … ({len(value)} in all)" if len(value) > 5 else ""
        return f"[{shown}{more}]" if isinstance(value, list) else f"({shown}{more})"
    if isinstance(value, torch.Generator):
        return f"Generator(seed {value.initial_seed()})"
    text = _record(value) if _is_record(value) else repr(value)
    return text if len(text) <= 200 else text[:180] + f"… ({len(text)} characters)"


def _is_record(value: Any) -> bool:
    """Whether it is a dataclass, or a dict or named tuple with fields that are measured."""
    names = value if isinstance(value, dict) else getattr(value, "_fields", ()) if isinstance(value, tuple) else ()
    if not _MEASURED.isdisjoint(names):
        return True
    return is_dataclass(value) and not isinstance(value, type)


def _record(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{name!r}: {_named(name, item)}" for name, item in value.items()) + "}"
    shown = (f"{field.name}={_named(field.name, getattr(value, field.name))}" for field in fields(value))
    return f"{type(value).__name__}({', '.join(shown)})"


def _named(name: Any, item: Any) -> str:
    measured = name in _MEASURED and isinstance(item, int | float) and item > 0
    return "(measured)" if measured else show(item)


def _array(dtype: Any, shape: tuple[int, ...], count: int, value: Any) -> str:
    name = str(dtype).removeprefix("torch.")
    dims = str(tuple(shape))
    if count == 0:
        return f"{name} {dims}, empty"
    if count <= SHOWN:
        return f"{name} {dims} {_rounded(value.tolist())}"
    if name == "bool":
        return f"{name} {dims}, {int(value.sum())} of {count} True"
    if getattr(value, "dtype", None) is not None and ("complex" in name):
        return f"{name} {dims}"
    numbers = value.double().numpy() if isinstance(value, torch.Tensor) else value.astype(np.float64)
    finite = numbers[np.isfinite(numbers)]
    odd = count - finite.size
    span = f", values {finite.min():.6g} … {finite.max():.6g}" if finite.size else ""
    return f"{name} {dims}{span}" + (f", {odd} not finite" if odd else "")


def _rounded(value: Any) -> str:
    if isinstance(value, list):
        return "[" + ", ".join(map(_rounded, value)) + "]"
    return f"{value:.6g}" if isinstance(value, float) else repr(value)

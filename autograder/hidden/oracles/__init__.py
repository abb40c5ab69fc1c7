"""Slow loops that read like the definition: what the hidden checks compare with."""

from __future__ import annotations

import functools
import hashlib
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, ParamSpec, TypeVar

import numpy as np
import torch

from autograder.wire.codec import raw_bytes

Parameters = ParamSpec("Parameters")
Answer = TypeVar("Answer")

#: So many answers are kept of each function.
KEPT = 1024


def remembered(oracle: Callable[Parameters, Answer]) -> Callable[Parameters, Answer]:
    """The same function, computed once for the same numbers: every submission of a batch is asked the same."""
    kept: OrderedDict[Hashable, Answer] = OrderedDict()

    @functools.wraps(oracle)
    def ask(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Answer:
        key = (*map(_key, args), *((name, _key(value)) for name, value in kwargs.items()))
        if key in kept:
            kept.move_to_end(key)
        else:
            kept[key] = oracle(*args, **kwargs)
            if len(kept) > KEPT:
                kept.popitem(last=False)
        return _copy(kept[key])

    return ask


def _key(value: Any) -> Hashable:
    """Equal for equal bits only: 0.0 is not -0.0, and 1 is not True."""
    if isinstance(value, torch.Tensor):
        return value.dtype, str(value.device), tuple(value.shape), _digest(raw_bytes(value).tobytes())
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, _digest(value.tobytes())
    if isinstance(value, list | tuple):
        return type(value), tuple(map(_key, value))
    return type(value), value.hex() if isinstance(value, float) else value


def _digest(data: bytes) -> bytes:
    return hashlib.blake2b(data, digest_size=16).digest()


def _copy(value: Any) -> Any:
    """What is handed out may be changed without harm."""
    if isinstance(value, torch.Tensor):
        return value.clone()
    if isinstance(value, np.ndarray):
        return value.copy()
    return tuple(map(_copy, value)) if type(value) is tuple else value

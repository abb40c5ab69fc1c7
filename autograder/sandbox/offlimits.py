"""Exercise 2 asks for the loss itself: the library's own softmax and cross-entropy say so when they are called.

Guarded twice: the names are replaced before the submission is imported, and the kernels behind them are replaced in
PyTorch's dispatcher, which every other door leads to as well.  `torch.distributions` keeps working.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable
from functools import cache
from types import CodeType
from typing import Any

import torch

_FUNCTIONS = [
    "softmax",
    "log_softmax",
    "cross_entropy",
    "nll_loss",
    "softmin",
    "gumbel_softmax",
    "_softmax",
    "_log_softmax",
]
_MODULES = [
    "Softmax",
    "LogSoftmax",
    "Softmin",
    "Softmax2d",
    "CrossEntropyLoss",
    "NLLLoss",
    "NLLLoss2d",
    "AdaptiveLogSoftmaxWithLoss",
]
_KERNELS = [
    "_softmax",
    "_log_softmax",
    "nll_loss_forward",
    "nll_loss2d_forward",
    "_masked_softmax",
    "_softmax.out",
    "_log_softmax.out",
    "nll_loss_forward.output",
    "nll_loss2d_forward.output",
    "_scaled_dot_product_flash_attention_for_cpu",
]
_PLACES = (
    "torch",
    "torch._C",
    "torch._C._VariableFunctions",
    "torch._C._nn",
    "torch._C._special",
    "torch._C.TensorBase",
    "torch.Tensor",
    "torch.special",
    "torch.nn.functional",
    "torch._VF",
    "torch._refs",
    "torch._refs.nn.functional",
    "torch._refs.special",
    "torch._decomp.decompositions",
    "torch.masked",
    "torch.masked._ops",
)

Refusal = Callable[..., Any]

_allowed_callers: list[CodeType] = []
_libraries: list[Any] = []


class OffLimitsError(RuntimeError):
    """A function that this exercise asks the student to write was called instead of written."""


def forbid() -> None:
    """Replace the functions, in this process, for good."""
    names, kernels = prepared()
    for holder, name, refusal in names:
        _replace(holder, name, refusal)
    _libraries.append(_guarding(kernels))


def _guarding(kernels: list[tuple[str, Refusal]]) -> Any:
    """What keeps the kernels replaced for as long as it is there."""
    library = torch.library.Library("aten", "IMPL")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for key in ("CPU", *(("CUDA",) if torch.cuda.is_available() else ())):
            for kernel, refusal in kernels:
                library.impl(kernel, refusal, key)
    return library


@cache
def prepared() -> tuple[list[tuple[Any, str, Refusal]], list[tuple[str, Refusal]]]:
    """What takes the place of which name of a holder, and of which kernel.  Looked up and tried once, in the zygote."""
    from torch.distributions import utils

    _allowed_callers.append(utils.logits_to_probs.__code__)
    names: list[tuple[Any, str, Refusal]] = []
    for place in _PLACES:
        holder = _find(place)
        for name in _FUNCTIONS:
            original = getattr(holder, name, None)
            if callable(original):
                names.append((holder, name, _refusing(f"{place.removesuffix('.TensorBase')}.{name}", original)))
    for name in _MODULES:
        for holder in (torch.nn, torch.nn.modules, torch.nn.modules.activation, torch.nn.modules.loss):
            if hasattr(holder, name):
                names.append((holder, name, _refusing(f"torch.nn.{name}", None)))
    kernels = [(kernel, _kernel(kernel)) for kernel in _KERNELS if _has(kernel)]
    _guarding(kernels)  # PyTorch warns the first time
    return names, kernels


def _find(place: str) -> Any:
    first, *rest = place.split(".")
    holder: Any = sys.modules[first]
    for name in rest:
        holder = getattr(holder, name, None)
    return holder


def _has(kernel: str) -> bool:
    name, _, overload = kernel.partition(".")
    packet = getattr(torch.ops.aten, name, None)
    return packet is not None and (overload or "default") in packet.overloads()


def _replace(holder: Any, name: str, value: Any) -> None:
    try:
        setattr(holder, name, value)
    except (AttributeError, TypeError):  # a built-in type: its kernel is guarded below
        return


def _from_distributions() -> bool:
    """Whether torch.distributions asked: by the identity of its code, which cannot be forged."""
    frame = sys._getframe(2)
    for _ in range(8):
        if frame.f_code in _allowed_callers:
            return True
        if frame.f_back is None:
            return False
        frame = frame.f_back
    return False


def _refusing(name: str, original: Callable[..., Any] | None) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        if original is not None and _from_distributions():
            return original(*args, **kwargs)
        raise OffLimitsError(f"{name} is off limits in this exercise: it is what you are asked to write yourself")

    refuse.__name__ = refuse.__qualname__ = name.rsplit(".", 1)[-1]
    return refuse


def _kernel(name: str) -> Callable[..., Any]:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        if name == "_softmax" and _from_distributions():
            logits, dim, _half = args
            shifted = (logits - logits.amax(dim, keepdim=True)).exp()
            return shifted / shifted.sum(dim, keepdim=True)
        raise OffLimitsError(f"aten::{name} is off limits in this exercise: it is what you are asked to write yourself")

    return refuse

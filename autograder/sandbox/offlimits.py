"""Exercise 2 asks for the loss itself: the library's own softmax and cross-entropy say so when they are called.

Guarded twice: names are replaced before the submission is imported, and so are the kernels behind them in PyTorch's
dispatcher, for every kind of tensor, which every other door leads to as well.  `torch.distributions` keeps working.

The zygote guards itself before it makes a worker for that exercise, and puts everything back before it makes another.
In the worker nothing is left by which it could be put back.
"""

from __future__ import annotations

import ctypes
import re
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
    "_safe_softmax",
    "_nll_loss_forward",
    "nll_loss_forward",
    "nll_loss2d_forward",
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
_PLACES = (
    "torch",
    "torch._C._nn",
    "torch._C._special",
    "torch._C._sparse",
    "torch.Tensor",
    "torch.special",
    "torch.sparse",
    "torch.nn.functional",
    "torch._VF",
    "torch._refs",
    "torch._refs.nn.functional",
    "torch._refs.special",
    "torch._decomp.decompositions",
    "torch.masked",
    "torch.masked._ops",
)
#: What replaces anything else holds on to nothing: through that it would be found.
_ASKED_BY_DISTRIBUTIONS = ("torch.nn.functional.softmax", "torch.Tensor.softmax")
#: Operators of PyTorch that compute one of them; attention does if its values are the unit matrix.
_OPERATOR = re.compile(r"softmax|cross_entropy|nll_loss|attention")
_NO_OPERATOR = re.compile(r"backward|binary_|poisson_")

Refusal = Callable[..., Any]
Holder = dict[Any, Any] | type

_MISSING = object()
_was: list[tuple[Holder, Any, Any]] = []  # holder, name, value
_library: Any = None


class OffLimitsError(RuntimeError):
    """A function that this exercise asks the student to write was called instead of written."""


def guard(wanted: bool) -> None:
    """Replace the functions in this process, or put them back, if that is not so already."""
    global _library
    if wanted == (_library is not None):
        return
    if not wanted:
        _library.reset()
        _library = None
        while _was:
            _put(*_was.pop())
        return
    names, kernels = prepared()
    for holder, name, refusal in names:
        _was.append((holder, name, (vars(holder) if isinstance(holder, type) else holder).get(name, _MISSING)))
        _put(holder, name, refusal)
    # what torch.library.Library is made of; that itself is found among the objects of the collector
    _library = torch._C._dispatch_library("IMPL", "aten", "", __file__, 0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for kernel, key, refusal in kernels:
            _library.impl(kernel, key, refusal, False)


def seal() -> None:
    """Leave it as it is for as long as this process lives: what could put it back is kept where no name leads to it.

    It is not freed: that would write to a page for every name.
    """
    global _library, _was
    for kept in (_library, _was):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))
    _library, _was = None, []


@cache
def prepared() -> tuple[list[tuple[Holder, Any, Refusal]], list[tuple[str, str, Refusal]]]:
    """What takes the place of which name of a holder, and of which kernel for which kind of tensor."""
    from torch.distributions import utils

    allowed = utils.logits_to_probs.__code__
    names: list[tuple[Holder, Any, Refusal]] = []
    for place in _PLACES:
        there = _find(place)
        if there is None:  # another version of PyTorch
            continue
        holder = there if isinstance(there, type) else vars(there)
        for name in _FUNCTIONS:
            if callable(original := getattr(there, name, None)):
                whole = f"{place}.{name}"
                asked = original if whole in _ASKED_BY_DISTRIBUTIONS else None
                names.append((holder, name, _refusing(whole, asked, allowed)))
    for module in (torch.nn, torch.nn.modules, torch.nn.modules.activation, torch.nn.modules.loss):
        found = [name for name in _MODULES if hasattr(module, name)]
        names += [(vars(module), name, _refusing(f"torch.nn.{name}", None, allowed)) for name in found]
    for operator in torch._decomp.decomposition_table:
        name = str(operator).removeprefix("aten.")
        if _computes_it(name):
            refusal = _kernel(name, allowed)
            names.append((torch._decomp.decomposition_table, operator, refusal))
            names += [(operator.py_kernels, key, refusal) for key in operator.py_kernels]
    return names, [(name, key, _kernel(name, allowed)) for name, key in _kernels()]


def _kernels() -> list[tuple[str, str]]:
    """The kernels to replace: name without the library's, and dispatch key."""
    keys = [key for key in dir(torch._C.DispatchKey) if key.endswith(("CPU", "CUDA")) and not key.startswith("Auto")]
    keys.append("MkldnnCPU")  # which that list leaves out
    keys.append("Meta")  # what is registered there is written out in Python
    found = []
    for schema in torch._C._jit_get_all_schemas():
        library, _, name = f"{schema.name}.{schema.overload_name}".rstrip(".").partition("::")
        if library == "aten" and _computes_it(name):
            has = torch._C._dispatch_has_kernel_for_dispatch_key
            found += [(name, key) for key in keys if has(f"aten::{name}", key)]
    return found


def _computes_it(operator: str) -> bool:
    return _OPERATOR.search(operator) is not None and _NO_OPERATOR.search(operator) is None


def _find(place: str) -> Any:
    first, *rest = place.split(".")
    holder: Any = sys.modules[first]
    for name in rest:
        holder = getattr(holder, name, None)
    return holder


def _put(holder: Holder, name: Any, value: Any) -> None:
    """Put a value, or none, into a holder."""
    if isinstance(holder, type):
        delattr(holder, name) if value is _MISSING else setattr(holder, name, value)
    elif value is _MISSING:
        holder.pop(name)
    else:
        holder[name] = value


def _from_distributions(allowed: CodeType) -> bool:
    """Whether torch.distributions asked: by the identity of its code, which cannot be forged."""
    frame = sys._getframe(2)
    for _ in range(8):
        if frame.f_code is allowed:
            return True
        if frame.f_back is None:
            return False
        frame = frame.f_back
    return False


def _refusing(name: str, original: Callable[..., Any] | None, allowed: CodeType) -> Refusal:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        if original is not None and _from_distributions(allowed):
            return original(*args, **kwargs)
        raise OffLimitsError(f"{name} is off limits in this exercise: it is what you are asked to write yourself")

    refuse.__name__ = refuse.__qualname__ = name.rsplit(".", 1)[-1]
    return refuse


def _kernel(name: str, allowed: CodeType) -> Refusal:
    def refuse(*args: Any, **kwargs: Any) -> Any:
        if name == "_softmax" and _from_distributions(allowed):
            logits, dim, _half = args
            shifted = (logits - logits.amax(dim, keepdim=True)).exp()
            return shifted / shifted.sum(dim, keepdim=True)
        raise OffLimitsError(f"aten::{name} is off limits in this exercise: it is what you are asked to write yourself")

    return refuse

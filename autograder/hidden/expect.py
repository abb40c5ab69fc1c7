"""What hidden checks say when they fail: comparisons, refusals and gradients with messages for students."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn

import numpy as np
import torch

from autograder.wire.errors import RemoteError
from autograder.wire.show import show

#: Contract: absolute below 1, relative above.
TOLERANCE = {
    torch.float64: 1e-6,
    torch.float32: 1e-5,
    torch.float16: 2e-3,
    torch.bfloat16: 1e-2,
}
Likely = Sequence[tuple[str, Any]]


class Wrong(AssertionError):
    """A check failed: what was seen, and the id of the misconception that explains it, where one does."""

    def __init__(self, message: str, misconception: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.misconception = misconception


def wrong(message: str, misconception: str | None = None) -> NoReturn:
    """Fail the check."""
    raise Wrong(message, misconception)


def close(
    got: Any,
    expected: Any,
    call: Any,
    *,
    likely: Likely = (),
    tolerance: float | None = None,
    dtype: bool = True,
    what: str = "",
    misconception: str | None = None,
) -> None:
    """Fail unless `got` has the kind, shape, dtype, device and values of `expected`.

    expected: a tensor, an ndarray or a number; integer and boolean values must be equal, floating ones
        within tolerance·max(1, |expected|).
    call: the call that returned `got` (`student.last`), for the message.
    likely: pairs (misconception id, value that it gives, or a function of no arguments returning it): the first whose
        value is what was returned names the failure.
    dtype: False where the contract leaves the dtype open.
    what: which part of the result this is, e.g. "labels".
    """
    problem = mismatch(got, expected, tolerance=tolerance, dtype=dtype)
    if problem is None:
        return
    named = _diagnose(got, likely, tolerance) or misconception
    part = f"{what} of " if what else ""
    wrong(f"{part}{call.text}\nreturned {show(got)}\nexpected {show(expected)}\n{problem}", named)


def mismatch(got: Any, expected: Any, *, tolerance: float | None = None, dtype: bool = True) -> str | None:
    """What is wrong with `got` in one sentence, or None.  Arguments as in `close`."""
    if isinstance(expected, torch.Tensor):
        if not isinstance(got, torch.Tensor):
            return f"The result must be a torch.Tensor, not {kind(got)}."
        if tuple(got.shape) != tuple(expected.shape):
            return f"The shape is {tuple(got.shape)}, not {tuple(expected.shape)}."
        if dtype and got.dtype != expected.dtype:
            return f"The dtype is {got.dtype}, not {expected.dtype}."
        if got.device != expected.device:
            return f"The result is on {got.device}, not on {expected.device}."
        limit = TOLERANCE.get(expected.dtype, 0.0) if tolerance is None else tolerance
        exact = not (expected.is_floating_point() or got.is_floating_point())
        return _values(_array(got), _array(expected), exact, limit)
    if isinstance(expected, np.ndarray):
        if not isinstance(got, np.ndarray):
            return f"The result must be a NumPy array, not {kind(got)}."
        if got.shape != expected.shape:
            return f"The shape is {got.shape}, not {expected.shape}."
        if dtype and got.dtype != expected.dtype:
            return f"The dtype is {got.dtype}, not {expected.dtype}."
        exact = expected.dtype.kind in "biu" and got.dtype.kind in "biu"
        limit = (
            tolerance
            if tolerance is not None
            else TOLERANCE.get(getattr(torch, expected.dtype.name, torch.float64), 1e-6)
        )
        return _values(got, expected, exact, limit)
    if isinstance(expected, bool) or not isinstance(expected, int | float):
        return None if type(got) is type(expected) and got == expected else f"Expected {show(expected)}."
    if not is_number(got):
        return f"The result must be a Python number, not {kind(got)}."
    return _values(np.float64(got), np.float64(expected), False, 1e-6 if tolerance is None else tolerance)


def is_number(value: Any) -> bool:
    """True for what the contract calls a float: a float (np.float64 is one) or an int, but not a bool or a tensor."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def kind(value: Any) -> str:
    """The kind of a value, for messages: 'a torch.Tensor', 'None'."""
    if value is None:
        return "None"
    name = type(value).__name__
    return f"a torch.{name}" if isinstance(value, torch.Tensor) else f"a {name}"


def _array(value: torch.Tensor) -> np.ndarray:
    value = value.detach().cpu()
    if value.is_floating_point():
        value = value.double()
    return value.numpy()


def _values(got: Any, expected: Any, exact: bool, tolerance: float) -> str | None:
    got, expected = np.asarray(got), np.asarray(expected)
    if got.dtype.kind == "c":
        return "The result holds complex numbers."
    if exact:
        bad = got != expected
    else:
        got, expected = got.astype(np.float64), expected.astype(np.float64)
        with np.errstate(invalid="ignore"):
            near = np.abs(got - expected) <= tolerance * np.maximum(1.0, np.abs(expected))
            bad = np.where(np.isinf(expected), got != expected, ~near)
    if not bad.any():
        return None
    if got.dtype.kind == "f" and np.isnan(got).any() and not np.isnan(expected).any():
        return "The result holds NaN." if got.ndim else "The result is NaN."
    index = tuple(int(i) for i in np.argwhere(bad)[0])
    at = f" at {list(index)}" if index else ""
    count = f" ({int(bad.sum())} of {bad.size} values differ)" if bad.size > 1 else ""
    return f"Got {_number(got[index])}{at} where {_number(expected[index])} is right{count}."


def _number(value: Any) -> str:
    return f"{value:.7g}" if np.asarray(value).dtype.kind == "f" else str(value)


def _diagnose(got: Any, likely: Likely, tolerance: float | None) -> str | None:
    for name, value in likely:
        candidate = value() if callable(value) else value
        if candidate is not None and mismatch(got, candidate, tolerance=tolerance, dtype=False) is None:
            return name
    return None


def refuses(
    function: Callable[..., Any],
    *args: Any,
    names: Iterable[str],
    values: Iterable[float] = (),
    because: str,
    misconception: str | None = None,
    own: bool = True,
    **kwargs: Any,
) -> None:
    """Fail unless the call raises the contract's ValueError.

    names: the offending parameters, of which the message must name one (underscores, spaces and case are forgiven).
    values: the offending ids or numbers, of which the message must show one; empty where the contract asks for none.
    because: what is wrong with the input, in words, for the message: "the label 11 is outside [0, 11)".
    own: whether a `raise` of the student's must have raised it; False where it is another function's to refuse.

    A check that refuses must also make the valid call next to it, so that a function that always raises earns nothing.
    """
    try:
        result = function(*args, **kwargs)
    except ValueError as error:
        raised = getattr(error, "raised", None)
        if raised is None:  # not the student's: ours
            raise
    except RemoteError as error:
        raised = error.raised
        if raised.base == "NotImplementedError":
            raise
        wrong(
            f"{function.last.text}\nraised {raised.text}\n"  # type: ignore[attr-defined]
            f"expected a ValueError, because {because}",
            misconception or "incidental-error",
        )
    else:
        wrong(
            f"{function.last.text}\nreturned {show(result)}\n"  # type: ignore[attr-defined]
            f"expected a ValueError, because {because}",
            misconception or "bad-input-accepted",
        )
    call = function.last.text  # type: ignore[attr-defined]
    names, values = tuple(names), tuple(values)
    if own and not raised.explicit:
        wrong(
            f"{call}\nraised {raised.text}\nThis ValueError comes from a library or the interpreter, not from a "
            f"`raise` of yours. Check the argument yourself and say what is wrong: {because}.",
            misconception or "incidental-error",
        )
    if not any(_names(raised.message, name) for name in names):
        wrong(
            f"{call}\nraised {raised.text}\nThe message must name the parameter at fault "
            f"({' or '.join(names)}): {because}.",
            "message-without-parameter",
        )
    if values and not any(_shows(raised.message, value) for value in values):
        shown = " or ".join(f"{value:g}" for value in values)
        wrong(
            f"{call}\nraised {raised.text}\nThe message must show the value at fault ({shown}): {because}.",
            "message-without-value",
        )


def _names(message: str, parameter: str) -> bool:
    pattern = "[ _-]?".join(map(re.escape, parameter.split("_")))
    return re.search(rf"(?<![A-Za-z0-9]){pattern}(?![A-Za-z0-9])", message, re.IGNORECASE) is not None


def _shows(message: str, value: float) -> bool:
    if math.isnan(value):
        return "nan" in message.lower()
    if math.isinf(value):
        return "inf" in message.lower()
    for text in re.findall(r"[-+−]?\d+(?:[_,]\d{3})*(?:\.\d+)?(?:[eE][-+]?\d+)?|(?<![\d.])[-+−]?\.\d+", message):
        number = float(text.replace("−", "-").replace("_", "").replace(",", ""))
        if abs(number - value) <= 1e-2 * max(abs(value), 1e-9):
            return True
        if value < 0 and abs(number + value) <= 1e-2 * abs(value) and f"- {text}" in message:
            return True
    return False


def gradients(result: Any, inputs: Sequence[torch.Tensor], call: Any, weights: torch.Tensor | None = None) -> list:
    """Gradients of sum(result·weights) with respect to `inputs`; fails if the result is not differentiable.

    An input that the result does not depend on has gradient zero.
    """
    if not isinstance(result, torch.Tensor) or not result.is_floating_point():
        wrong(f"{call.text}\nreturned {show(result)}\nexpected a floating-point tensor", None)
    if not result.requires_grad:
        wrong(
            f"{call.text}\nreturned a tensor that is cut off from its inputs (requires_grad is False), "
            f"so nothing could be learned through it.",
            "gradient-cut",
        )
    weighted = result.sum() if weights is None else (result * weights).sum()
    found = torch.autograd.grad(weighted, list(inputs), allow_unused=True)
    return [torch.zeros_like(x) if g is None else g for x, g in zip(inputs, found, strict=True)]


def unchanged(student: Any, name: str) -> None:
    """Fail if any call of the function so far changed one of its arguments or moved a global random generator."""
    witness = student.witness(name)
    if witness.mutated:
        call, argument = witness.mutated[0]
        wrong(f"{call}\nchanged its argument `{argument}`; inputs belong to the caller.", "input-mutated")
    if witness.moved:
        call, generator = witness.moved[0]
        wrong(f"{call}\nused the global random generator of {generator}.", "global-generator")

"""Device hygiene without a second device: which tensors were made on the default device.  Self-witnessed.

Inputs stand for tensors on an accelerator.  A tensor made by a factory function without `device=` would be on the
default device there, that is, somewhere else.  It may be moved, used as an index, be 0-dimensional, or be read out;
mixed with the inputs in arithmetic, or returned, it is a fault.  Everything that is not certain is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._device import _device_constructors

_MARK = "_made_on"
_DEFAULT, _INPUT = "default", "input"
#: Reading or writing across devices is legal here, or the result has no device of its own.
_CROSSING = {
    "__getitem__",
    "__setitem__",
    "copy_",
    "index_put_",
    "index_put",
    "to",
    "type_as",
    "cpu",
    "cuda",
    "new_tensor",
    "new_full",
    "new_zeros",
    "new_ones",
    "new_empty",
    "as_tensor",
    "tensor",
    "set_",
}


class DeviceTrap(TorchFunctionMode):
    """While active, marks tensors by where they were made and notes faults in `faults`."""

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []
        self._constructors = _device_constructors()

    def guard(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The function, with its arguments marked as inputs and its result looked at."""

        def guarded(*args: Any, **kwargs: Any) -> Any:
            inputs = list(_tensors((args, kwargs)))
            for tensor in inputs:
                _mark(tensor, _INPUT)
            result = function(*args, **kwargs)
            if inputs and any(_made_on(tensor) == _DEFAULT for tensor in _tensors(result)):
                self._note("returned a tensor made on the default device, not on the device of the inputs")
            return result

        return guarded

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = kwargs or {}
        name = getattr(func, "__name__", "")
        given = list(_tensors((args, kwargs)))
        result = func(*args, **kwargs)
        made = list(_tensors(result))
        if not made:
            return result
        if func in self._constructors and name not in {"as_tensor", "from_file"}:
            if kwargs.get("device") is None and kwargs.get("generator") is None:
                for tensor in made:
                    _mark(tensor, _DEFAULT)
            return result
        if name in _CROSSING or kwargs.get("generator") is not None:
            if name in {"to", "type_as", "cuda"}:
                for tensor in made:
                    _mark(tensor, _INPUT if _moves(args, kwargs) else _made_on(given[0]) if given else None)
            elif name == "__getitem__" and isinstance(args[0], torch.Tensor):
                for tensor in made:
                    _mark(tensor, _made_on(args[0]))
            return result
        places = {_made_on(tensor) for tensor in given if tensor.ndim > 0}
        if places == {_DEFAULT} and not any(_made_on(t) != _DEFAULT for t in given):
            place = _DEFAULT
        elif _DEFAULT in places and _INPUT in places:
            self._note(f"`{name}` mixes a tensor made on the default device with the inputs")
            place = None
        elif _INPUT in places or any(_made_on(tensor) == _INPUT for tensor in given):
            place = _INPUT
        else:
            place = None
        for tensor in made:
            if not any(tensor is other for other in given):
                _mark(tensor, place)
        return result

    def _note(self, fault: str) -> None:
        if fault not in self.faults:
            self.faults.append(fault)


def _moves(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
    """True if a call of Tensor.to names a device or another tensor, so that the result is where that is."""
    return any(isinstance(v, str | torch.device | torch.Tensor | int) for v in (*args[1:], *kwargs.values()))


def _tensors(value: Any, depth: int = 0) -> Iterable[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict) and depth < 5:
        for item in value.values():
            yield from _tensors(item, depth + 1)
    elif isinstance(value, list | tuple) and depth < 5:
        for item in value:
            yield from _tensors(item, depth + 1)


def _mark(tensor: torch.Tensor, place: str | None) -> None:
    setattr(tensor, _MARK, place)


def _made_on(tensor: torch.Tensor) -> str | None:
    return getattr(tensor, _MARK, None)

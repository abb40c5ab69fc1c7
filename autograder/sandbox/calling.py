"""Calling a student's function and describing what came of it.  Runs where the student's code runs."""

from __future__ import annotations

import ctypes
import dis
import inspect
import io
import random
import struct
import sys
import sysconfig
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import CodeType, FunctionType, MethodType, TracebackType
from typing import Any

import numpy as np
import torch

from autograder.wire.errors import BASE_NAMES, Raised

MESSAGE_LIMIT = 2_000
_RAISING = {dis.opmap[name] for name in ("RAISE_VARARGS", "RERAISE") if name in dis.opmap}
_LIBRARY = tuple(
    {
        path
        for path in (*sysconfig.get_paths().values(), sys.prefix, sys.base_prefix, *(p for p in sys.path if p))
        if path and path != "/"
    }
)
#: Where a generator stands when an exception is thrown into it.
_THROWN_INTO = {
    dis.opmap[name] for name in ("RETURN_GENERATOR", "RESUME", "POP_TOP", "YIELD_VALUE", "SEND") if name in dis.opmap
}
#: Library functions that raise a ValueError with the caller's own words.
_SPEAKS_FOR_CALLER: tuple[CodeType, ...] = (torch._check_with.__code__,)


@dataclass
class Outcome:
    """What one call came to: a value, or an exception; the generators it moved, and their states after it."""

    value: Any = None
    raised: Raised | None = None
    moved: list[str] = field(default_factory=list)
    states: tuple[Any, Any, Any] | None = None


class Output(io.TextIOBase):
    """What stands for `sys.stdout` and `sys.stderr`: it can be asked and told what a file of text can."""

    encoding = "utf-8"
    errors = "strict"
    name = "<output>"
    mode = "w"

    @cached_property
    def buffer(self) -> io.BufferedWriter:
        """For bytes, which nobody reads."""
        return io.BufferedWriter(_Nowhere())

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        return 2

    def detach(self) -> io.BufferedWriter:
        return self.buffer

    def reconfigure(self, **_: Any) -> None:
        """`sys.stdout.reconfigure(encoding="utf-8")` is what some consoles need; here nothing does."""


class _Nowhere(io.RawIOBase):
    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        return memoryview(data).nbytes


class Silence(Output):
    """Swallows what is written: output is no part of a grade, and may be endless."""

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() takes a str, not {type(text).__name__}")
        return len(text)


def invoke(
    function: Callable[..., Any],
    args: Sequence[Any],
    kwargs: dict[str, Any],
    sources: dict[str, str],
    before: tuple[Any, Any, Any] | None = None,
) -> Outcome:
    """Call the function.

    sources: file name -> text of the student's own code, for the lines shown with an exception.
    before: states of the global generators, where the caller knows them.
    """
    outcome = Outcome()
    before = before or generator_states()
    streams = sys.stdout, sys.stderr
    sys.stdout = sys.stderr = Silence()
    try:
        outcome.value = function(*args, **kwargs)
    except BaseException as error:  # whatever it is, it is the student's, and it is described, not handled
        outcome.raised = describe(error, sources)
    finally:
        sys.stdout, sys.stderr = streams
    outcome.states = generator_states()
    outcome.moved = [name for name, was, now in zip(_GENERATORS, before, outcome.states, strict=True) if was != now]
    return outcome


def is_library(name: str) -> bool:
    """Whether code of a file of that name came with Python or was installed."""
    return name.startswith((*_LIBRARY, "<frozen "))


def handle_kind(value: Any) -> str:
    """What to call a thing that stays on its side: the name of a function, or that of a thing's class."""
    named = value if isinstance(value, FunctionType | MethodType) else type(value)
    name = getattr(named, "__name__", "object")
    return str.__str__(name)[:100] if isinstance(name, str) else "object"


def describe(error: BaseException, sources: dict[str, str]) -> Raised:
    """The exception as plain data.  Nothing of its class is trusted: names come through the descriptors of `type`."""
    cls = type(error)
    try:
        name = str.__str__(type.__dict__["__name__"].__get__(cls))
        mro = type.__dict__["__mro__"].__get__(cls)
        base = next((c.__name__ for c in mro if c.__module__ == "builtins" and c.__name__ in BASE_NAMES), "Exception")
    except Exception:
        name, base = "Exception", "Exception"
    try:
        message = str.__str__(str(error))[:MESSAGE_LIMIT]
    except BaseException as second:
        message = f"(the exception's own message could not be read: {type.__dict__['__name__'].__get__(type(second))})"
    traceback = BaseException.__dict__["__traceback__"].__get__(error)
    explicit, lines = _trace(traceback, sources)
    return Raised(name[:200], base, message, explicit, lines)


def _trace(traceback: TracebackType | None, sources: dict[str, str]) -> tuple[bool, tuple[tuple[int, str], ...]]:
    """Whether a `raise` of the student's raised it, and the student's lines on the way."""
    steps = [step for step in _steps(traceback) if step.tb_frame.f_code is not invoke.__code__]
    lines = []
    for step in steps:
        code = step.tb_frame.f_code
        text = sources.get(code.co_filename)
        if text is not None:
            number = step.tb_lineno or 0
            all_lines = text.splitlines()
            lines.append((number, all_lines[number - 1].strip()[:200] if 0 < number <= len(all_lines) else ""))
    if not steps:
        return False, ()
    last = steps[-1]
    code = last.tb_frame.f_code
    if code in _SPEAKS_FOR_CALLER:
        explicit = True
    else:
        at = code.co_code[last.tb_lasti] if 0 <= last.tb_lasti < len(code.co_code) else -1
        thrown = bool(code.co_flags & inspect.CO_GENERATOR) and at in _THROWN_INTO
        explicit = _own(code, sources) and (at in _RAISING or thrown)
    return explicit, tuple(lines[-5:])


def _steps(traceback: TracebackType | None) -> Iterator[TracebackType]:
    count = 0
    while traceback is not None and count < 10_000:
        yield traceback
        traceback = traceback.tb_next
        count += 1


def _own(code: CodeType, sources: dict[str, str]) -> bool:
    """True for code of the student's: its files, and what it compiled itself."""
    name = code.co_filename
    return name in sources or not is_library(name)


_GENERATORS = ("torch", "numpy", "random")
#: Python's own generator, and struct RandomObject of CPython's Modules/_randommodule.c: a position and 624 words.
_RANDOM = random.getstate.__self__  # type: ignore[attr-defined]
_RANDOM_STATE = struct.Struct("=i624I")


def generator_states() -> tuple[Any, Any, Any]:
    """The states of the global generators, as values that compare equal only if nothing was drawn or seeded."""
    return torch.default_generator.get_state().numpy().tobytes(), _numpy_state(), _python_state()


def _python_state() -> Any:
    """The state of Python's own generator, read where it lies, if it lies there."""
    return (_read_random(), _RANDOM.gauss_next) if _LIES_THERE else _RANDOM.getstate()


def _read_random() -> bytes:
    return ctypes.string_at(id(_RANDOM) + object.__basicsize__, _RANDOM_STATE.size)


def _lies_there() -> bool:
    """Whether this Python has the state where it is looked for."""
    if sys.implementation.name != "cpython" or type(_RANDOM).__basicsize__ < object.__basicsize__ + _RANDOM_STATE.size:
        return False
    position, *words = _RANDOM_STATE.unpack(_read_random())
    return (*words, position) == _RANDOM.getstate()[1]


_LIES_THERE = _lies_there()


def _numpy_state() -> tuple[int, bytes]:
    """The state of NumPy's global generator, read where it lies: asking for it costs more than most calls."""
    source = np.random.mtrand._rand._bit_generator
    if type(source) is np.random.MT19937:
        return id(source), ctypes.string_at(source.ctypes.state_address, _MT19937_BYTES)
    return id(source), repr(source.state).encode()


#: struct mt19937_state of numpy/random/src/mt19937/mt19937.h: 624 words and a position
_MT19937_BYTES = 625 * 4

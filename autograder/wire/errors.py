"""What a call into a submission can end in, other than a value."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from autograder.report import Verdict


@dataclass(frozen=True)
class Raised:
    """An exception that the student's function raised, described in plain data.

    type_name: name of its class.  base: name of the nearest built-in base class.
    explicit: True if a `raise` statement of the student's own code raised it, not a library or the interpreter.
    lines: the student's lines on the way, innermost last, as (number, text).
    """

    type_name: str
    base: str
    message: str
    explicit: bool = False
    lines: tuple[tuple[int, str], ...] = ()

    @property
    def text(self) -> str:
        where = f" (line {self.lines[-1][0]}: `{self.lines[-1][1]}`)" if self.lines else ""
        return f"{self.type_name}: {self.message}{where}" if self.message else f"{self.type_name}{where}"


class RemoteError(Exception):
    """An exception of the submission, raised again in the grader as a subclass of its built-in base."""

    raised: Raised


#: Not StopIteration: whatever iterates in a check would take it for the end, and say nothing.
_BASES: dict[str, type[Exception]] = {
    base.__name__: base
    for base in (
        ArithmeticError,
        AssertionError,
        AttributeError,
        BufferError,
        EOFError,
        ImportError,
        IndexError,
        KeyError,
        LookupError,
        MemoryError,
        NameError,
        NotImplementedError,
        OSError,
        OverflowError,
        RecursionError,
        RuntimeError,
        TypeError,
        ValueError,
        ZeroDivisionError,
    )
}
BASE_NAMES = frozenset(_BASES)
_CLASSES: dict[str, type[RemoteError]] = {
    name: type(f"Remote{name}", (RemoteError, base), {"__doc__": f"A {name} of the submission."})
    for name, base in _BASES.items()
}


def remote_error(raised: Raised) -> RemoteError:
    """The exception to raise in the grader for `raised`: `except ValueError` sees the student's ValueError."""
    error = _CLASSES.get(raised.base, RemoteError)(raised.text)
    error.raised = raised
    return error


def builtin_error(name: str, message: str) -> Exception:
    """The built-in exception of that name, or a RuntimeError that names it."""
    base = _BASES.get(name)
    return base(message) if base is not None else RuntimeError(f"{name}: {message}")


class Interrupted(BaseException):
    """The check cannot go on.  Not an Exception, so neither a test nor Hypothesis can swallow it.

    conduct: what the submission tried, where it could not even be loaded.
    """

    def __init__(self, verdict: Verdict, message: str) -> None:
        super().__init__(message)
        self.verdict: Verdict = verdict
        self.message = message
        self.conduct: tuple[str, ...] = ()


class GraderFault(Exception):
    """Something of ours does not work; never the student's doing."""

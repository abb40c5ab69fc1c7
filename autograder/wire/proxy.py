"""The student's functions as a hidden test sees them: attributes that are called like local functions."""

from __future__ import annotations

import contextlib
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
import torch

from autograder.sandbox import fixtures
from autograder.sandbox.calling import describe, handle_kind, invoke
from autograder.sandbox.devices import DeviceTrap
from autograder.syllabus import Exercise
from autograder.wire.codec import RECORDS, packed_plain, raw_bytes
from autograder.wire.errors import Interrupted, Raised, RemoteError, remote_error
from autograder.wire.show import show
from autograder.wire.testing import Collected, Implementation, Tested, tested


@dataclass
class Call:
    """One call of a student's function, for messages.  The text is made only when somebody reads it."""

    function: str
    parameters: tuple[str, ...]
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    returned: Any = None
    raised: Raised | None = None

    @property
    def names(self) -> list[str]:
        """The name of every argument, positional ones first."""
        extra = [f"argument {number + 1}" for number in range(len(self.parameters), len(self.args))]
        return [*self.parameters[: len(self.args)], *extra, *self.kwargs]

    @property
    def values(self) -> list[Any]:
        return [*self.args, *self.kwargs.values()]

    @cached_property
    def text(self) -> str:
        named = zip(self.names, self.values, strict=True)
        return f"{self.function}({', '.join(f'{name}={show(value)}' for name, value in named)})"


@dataclass
class Witness:
    """What was seen beside the results: (call, argument) changed, (call, generator) moved.

    excused: which of those moves may be the fault of another function of the submission's.
    """

    mutated: list[tuple[str, str]] = field(default_factory=list)
    moved: list[tuple[str, str]] = field(default_factory=list)
    excused: set[int] = field(default_factory=set)


class Function:
    """Something that is called on the student's side: a function of theirs, a handle, or a fixture of ours.

    Call it; `last` is the last call.  handle: what is called, if not the module's function of that name.
    fixture: True for a function of `autograder.sandbox.fixtures`; messages never speak of such a call.
    keep: True to have the result stay there, as a Handle, whatever it is.
    """

    def __init__(
        self,
        student: Student,
        name: str,
        parameters: tuple[str, ...],
        handle: Handle | None = None,
        fixture: bool = False,
        keep: bool = False,
    ) -> None:
        self._student = student
        self.name = name
        self.parameters = parameters
        self.handle = handle
        self.fixture = fixture
        self.keep = keep
        self.last: Call = Call(name, parameters, (), {})

    @property
    def kept(self) -> Function:
        """The same function, whose result stays on the student's side: a call returns a Handle."""
        return Function(self._student, self.name, self.parameters, self.handle, self.fixture, keep=True)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = self.last = Call(self.name, self.parameters, args, kwargs)
        if not self.fixture:
            self._student.last = call
        self._student.calls += 1
        try:
            call.returned = self._student.perform(self, call)
        except Interrupted:
            self._student.no_precedent()
            raise
        except Exception as error:
            call.raised = getattr(error, "raised", None)
            error.call = call  # type: ignore[attr-defined]
            raise
        return call.returned


class Handle:
    """Something that stays on the student's side: a model, a function, whatever is no plain data.

    It can be called, and given as an argument to other calls.  kind: what it says it is.
    target: what it stands for.  owner: the worker it lives in, if any.
    """

    def __init__(self, student: Student, target: Any, kind: str, owner: object = None) -> None:
        self._student = student
        self.target = target
        self.kind = kind
        self.owner = owner

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return Function(self._student, self.kind, (), self)(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<{self.kind}>"


class Lent:
    """A function of the grader's, given to the student's side as an argument."""

    def __init__(self, number: int, function: Callable[..., Any]) -> None:
        self.number = number
        self.function = function

    def __repr__(self) -> str:
        return "<function>"


#: What was made once: the value or why there is none, and the last call.
Kept = tuple[Any, BaseException | None, Call]


class _Fixtures:
    """The functions of `autograder.sandbox.fixtures`, called on the student's side."""

    def __init__(self, student: Student) -> None:
        self._student = student

    def __getattr__(self, name: str) -> Function:
        return Function(self._student, name, (), fixture=True)


class Student(ABC):
    """The submission under test: `student.mlm_loss(logits, labels)`.

    last: the last call of any function.  calls: how many were made.
    conduct: what it tried that no exercise needs, each once; for the instructor.
    """

    def __init__(self, exercise: Exercise) -> None:
        self.exercise = exercise
        self.calls = 0
        self._functions = {f.name: Function(self, f.name, f.parameters) for f in exercise.functions}
        self._witnesses = {f.name: Witness() for f in exercise.functions}
        self.last = Call("", (), (), {})
        self.conduct: dict[str, None] = {}
        self.fixtures = _Fixtures(self)
        self._lent: dict[int, Callable[..., Any]] = {}
        self._lent_so_far = 0
        self._kept: dict[str, Kept] = {}

    def lend(self, function: Callable[..., Any]) -> Lent:
        """A function of the grader's as an argument: the student's side calls it, and it answers here.

        It takes and returns plain data; tensors and lists that it changes in place are changed there too.
        It answers until the end of the check: what the student's side keeps of it is of no use after that.
        """
        self._lent_so_far += 1
        self._lent[self._lent_so_far] = function
        return Lent(self._lent_so_far, function)

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        """What `make` returns or raises, computed for this submission the first time that a check asks for the key.

        What it is follows from the key and from what the submission answers in `make`.  Nobody may change it.
        """
        name = repr(key)
        if name not in self._kept:
            self._kept[name] = self._made(name, make)
        value, raised, self.last = self._kept[name]
        self.calls += 1
        if raised is not None:
            raise raised
        return value

    def _made(self, name: str, make: Callable[[], Any]) -> Kept:
        try:
            return make(), None, self.last
        except Interrupted as error:
            if error.verdict == "grader_error":
                raise
            return None, error, self.last
        except RemoteError as error:
            return None, error, self.last

    def __getattr__(self, name: str) -> Function:
        try:
            return self.__dict__["_functions"][name]
        except KeyError:
            raise AttributeError(f"exercise {self.exercise.id} has no function {name}") from None

    def witness(self, name: str) -> Witness:
        """What was witnessed over all calls of that function so far, in this and earlier checks."""
        return self._witnesses.setdefault(name, Witness())

    def excuse(self, name: str, since: int) -> None:
        """The generators that calls of that function moved, from the so manieth on, are not held against it."""
        witness = self.witness(name)
        witness.excused.update(range(since, len(witness.moved)))

    def begin_check(  # noqa: B027 — nothing to do in-process
        self, function: str, again: bool = False, check: str = ""
    ) -> None:
        """A check of that function starts: its time budget begins.

        check: its name, if how it ends may be a precedent.  again: it is repeated after a fault of ours.
        """

    def precedent(self) -> Any:
        """How this check ended for a submission that answered as this one does; None if it has to be run."""
        return None

    def set_precedent(self, ending: Any) -> None:  # noqa: B027 — nothing to do in-process
        """How the check ended that was begun last, for submissions to come."""

    def no_precedent(self) -> None:  # noqa: B027 — nothing to do in-process
        """How this check ends depends on more than answers to calls."""

    def end_check(self) -> None:  # noqa: B027 — nothing to do in-process
        """The check is over: what it kept alive on the other side may go."""

    @abstractmethod
    def perform(self, function: Function, call: Call) -> Any:
        """Make the call: return its value, raise its exception, note what was witnessed."""

    @abstractmethod
    def tests(self) -> Collected:
        """The tests that the student has written, collected as pytest does."""

    @abstractmethod
    def run_test(self, name: str, implementation: Implementation, seconds: float) -> Tested:
        """Run one of them on functions of the grader's, for at most that many seconds.

        The functions see and change arguments, and PyTorch's default generator, as if they were called over there.
        """

    @abstractmethod
    def replacing(self, **functions: Callable[..., Any]) -> contextlib.AbstractContextManager[None]:
        """While active, the names in the student's module are these functions of the grader's, or what handles name."""

    @abstractmethod
    def device_trap(self) -> contextlib.AbstractContextManager[list[str]]:
        """While active, calls note tensors made on the default device and mixed with, or returned beside, the inputs.

        The list fills with one sentence a fault, after each call.  Self-witnessed: it runs beside the student's code.
        """


class LocalStudent(Student):
    """The same interface without the boundary, for authors: the module is trusted and runs in this process."""

    def __init__(self, exercise: Exercise, module: ModuleType, sources: dict[str, str]) -> None:
        super().__init__(exercise)
        self._module = module
        self._sources = sources
        self._trap: list[str] | None = None
        self._suite: Any = None

    def tests(self) -> Collected:
        if self._suite is None:
            from exercises.kit.testing import Suite

            self._suite = Suite(self._module)
        suite = self._suite
        self.calls += 1
        return Collected(tuple(suite.names), suite.left_out, tuple(suite.problems))

    def run_test(self, name: str, implementation: Implementation, seconds: float) -> Tested:
        self.calls += 1
        self.last = Call(name, (), (), {})
        result = invoke(self._suite.run, [name, implementation, seconds], {}, self._sources).value
        return tested(result.outcome, "" if result.error is None else describe(result.error, self._sources).text)

    def perform(self, function: Function, call: Call) -> Any:
        target: Any
        if function.fixture:
            target = fixtures.find(function.name)
        elif function.handle is not None:
            target = function.handle.target
        else:
            target = getattr(self._module, function.name, None)
        if not callable(target):
            raise Interrupted("not_implemented", f"The module has no function `{function.name}`.")
        before = [(name, value, frozen(value)) for name, value in zip(call.names, call.values, strict=True)]
        args = [_unwrapped(value) for value in call.args]
        kwargs = {name: _unwrapped(value) for name, value in call.kwargs.items()}
        if self._trap is not None:
            with DeviceTrap() as trap:
                outcome = invoke(trap.guard(target), args, kwargs, self._sources)
            self._trap += trap.faults
        else:
            outcome = invoke(target, args, kwargs, self._sources)
        witness = self.witness(function.name)
        witness.mutated += [(call.text, name) for name, value, was in before if frozen(value) != was]
        witness.moved += [(call.text, name) for name in outcome.moved]
        if outcome.raised is not None:
            raise remote_error(outcome.raised)
        if function.keep:
            return Handle(self, outcome.value, type(outcome.value).__name__)
        return self._wrapped(outcome.value, function.fixture)

    def _wrapped(self, value: Any, opaque: bool) -> Any:
        """The value as it would come over the wire: what is no plain data stays behind a handle."""
        kind = type(value)
        if kind in (list, tuple):
            return kind(self._wrapped(item, False) for item in value)
        if kind is dict:
            return {name: self._wrapped(item, False) for name, item in value.items()}
        if RECORDS.get(kind.__name__) is kind and not opaque:
            names = getattr(kind, "_fields", None) or [entry.name for entry in fields(kind)]
            return kind(*(self._wrapped(getattr(value, name), False) for name in names))
        if isinstance(value, torch.Tensor | np.ndarray | np.generic | torch.dtype | torch.device | torch.Generator):
            return value
        if callable(value) or (opaque and kind not in (type(None), bool, int, float, str, bytes)):
            return Handle(self, value, handle_kind(value))
        return value

    @contextlib.contextmanager
    def replacing(self, **functions: Callable[..., Any]) -> Iterator[None]:
        missing = object()
        saved = {name: getattr(self._module, name, missing) for name in functions}
        for name, function in functions.items():
            setattr(self._module, name, _unwrapped(function))
        try:
            yield
        finally:
            for name, value in saved.items():
                if value is missing:
                    delattr(self._module, name)
                else:
                    setattr(self._module, name, value)

    @contextlib.contextmanager
    def device_trap(self) -> Iterator[list[str]]:
        self._trap = []
        try:
            yield self._trap
        finally:
            self._trap = None


def _unwrapped(value: Any) -> Any:
    """An argument as the student's side gets it: what a handle or a lent function stands for."""
    if isinstance(value, Handle):
        return value.target
    if isinstance(value, Lent):
        return value.function
    if type(value) in (list, tuple):
        return type(value)(_unwrapped(item) for item in value) if _has_handles(value) else value
    if type(value) is dict:
        return {name: _unwrapped(item) for name, item in value.items()} if _has_handles(value.values()) else value
    return value


def _has_handles(values: Any) -> bool:
    return any(isinstance(value, Handle | Lent) or type(value) in (list, tuple, dict) for value in values)


def frozen(value: Any) -> Any:
    """A value that compares equal only if nothing in the argument changed; generators are expected to move."""
    if isinstance(value, torch.Tensor):
        return raw_bytes(value).tobytes()
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if type(value) is list or type(value) is dict:
        packed = packed_plain(value)
        if packed is not None:
            return packed
    if isinstance(value, list | tuple):
        return [type(value).__name__, *map(frozen, value)]
    if isinstance(value, dict):
        return [[frozen(k), frozen(v)] for k, v in value.items()]
    if isinstance(value, torch.Generator):
        return None
    if isinstance(value, float):  # NaN equals nothing, itself included
        return struct.pack("d", value)
    return value

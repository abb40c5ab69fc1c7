"""The student's functions as a hidden test sees them: attributes that are called like local functions."""

from __future__ import annotations

import contextlib
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np
import torch

from autograder.sandbox.calling import invoke
from autograder.sandbox.devices import DeviceTrap
from autograder.syllabus import Exercise
from autograder.wire.codec import raw_bytes
from autograder.wire.errors import Interrupted, Raised, remote_error
from autograder.wire.show import show


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
    """What was seen beside the results: (call, argument) changed, (call, generator) moved."""

    mutated: list[tuple[str, str]] = field(default_factory=list)
    moved: list[tuple[str, str]] = field(default_factory=list)


class Function:
    """One function of the student's.  Call it; `last` is the last call."""

    def __init__(self, student: Student, name: str, parameters: tuple[str, ...]) -> None:
        self._student = student
        self.name = name
        self.parameters = parameters
        self.last: Call = Call(name, parameters, (), {})

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        call = self.last = self._student.last = Call(self.name, self.parameters, args, kwargs)
        self._student.calls += 1
        try:
            call.returned = self._student.perform(self, call)
        except Exception as error:
            call.raised = getattr(error, "raised", None)
            error.call = call  # type: ignore[attr-defined]
            raise
        return call.returned


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

    def __getattr__(self, name: str) -> Function:
        try:
            return self.__dict__["_functions"][name]
        except KeyError:
            raise AttributeError(f"exercise {self.exercise.id} has no function {name}") from None

    def witness(self, name: str) -> Witness:
        """What was witnessed over all calls of that function so far, in this and earlier checks."""
        return self._witnesses[name]

    def begin_check(self, function: str, again: bool = False) -> None:  # noqa: B027 — nothing to do in-process
        """A check of that function starts: its time budget begins.  again: it is repeated after a fault of ours."""

    def end_check(self) -> None:  # noqa: B027 — nothing to do in-process
        """The check is over: what it kept alive on the other side may go."""

    @abstractmethod
    def perform(self, function: Function, call: Call) -> Any:
        """Make the call: return its value, raise its exception, note what was witnessed."""

    @abstractmethod
    def replacing(self, **functions: Callable[..., Any]) -> contextlib.AbstractContextManager[None]:
        """While active, the names in the student's module are these functions of the grader's."""

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

    def perform(self, function: Function, call: Call) -> Any:
        target = getattr(self._module, function.name, None)
        if not callable(target):
            raise Interrupted("not_implemented", f"The module has no function `{function.name}`.")
        before = [(name, value, frozen(value)) for name, value in zip(call.names, call.values, strict=True)]
        if self._trap is not None:
            with DeviceTrap() as trap:
                outcome = invoke(trap.guard(target), call.args, call.kwargs, self._sources)
            self._trap += trap.faults
        else:
            outcome = invoke(target, call.args, call.kwargs, self._sources)
        witness = self._witnesses[function.name]
        witness.mutated += [(call.text, name) for name, value, was in before if frozen(value) != was]
        witness.moved += [(call.text, name) for name in outcome.moved]
        if outcome.raised is not None:
            raise remote_error(outcome.raised)
        return outcome.value

    @contextlib.contextmanager
    def replacing(self, **functions: Callable[..., Any]) -> Iterator[None]:
        missing = object()
        saved = {name: getattr(self._module, name, missing) for name in functions}
        for name, function in functions.items():
            setattr(self._module, name, function)
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


def frozen(value: Any) -> Any:
    """A value that compares equal only if nothing in the argument changed; generators are expected to move."""
    if isinstance(value, torch.Tensor):
        return raw_bytes(value).tobytes()
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if isinstance(value, list | tuple):
        return [type(value).__name__, *map(frozen, value)]
    if isinstance(value, dict):
        return [[frozen(k), frozen(v)] for k, v in value.items()]
    if isinstance(value, torch.Generator):
        return None
    if isinstance(value, float):  # NaN equals nothing, itself included
        return struct.pack("d", value)
    return value

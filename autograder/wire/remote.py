"""The student's functions across the wire: every call a message to a worker and back, gradients included."""

from __future__ import annotations

import contextlib
import secrets
import signal
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch.autograd.function import once_differentiable

from autograder.report import plain_text
from autograder.syllabus import Exercise
from autograder.wire import frames
from autograder.wire.codec import Decoder, Encoder, Remote, WireError
from autograder.wire.errors import GraderFault, Interrupted, Raised, remote_error
from autograder.wire.proxy import Call, Function, Handle, Lent, Student, frozen
from autograder.wire.testing import (
    NAME_LIMIT,
    Collected,
    Implementation,
    Tested,
    collected,
    tested,
    with_their_state,
)
from autograder.wire.zygote_process import Worker, Zygote

#: What a function of the grader's may change in place, as it would locally.
_CHANGEABLE = (torch.Tensor, np.ndarray, list)


class RemoteStudent(Student):
    """The student's functions, each call a message to the worker and back.  A worker that ends is replaced."""

    def __init__(self, zygote: Zygote, exercise: Exercise, parts: Sequence[Any]) -> None:
        super().__init__(exercise)
        self._zygote = zygote
        self._limits = zygote.limits.times(exercise.time_factor)
        self._parts = [[part.name, part.text, part.may_fail] for part in parts]
        self._worker: Worker | None = None
        self._failed_cells: list[list[str]] = []
        self._trap: list[str] | None = None
        self._replaced: dict[str, Handle | Lent] = {}
        self._checked = ""
        self._again = False
        self._holding = False
        self._cpu_left = {f.name: self._limits.function_cpu for f in exercise.functions}
        self._wall_left = {f.name: self._limits.function_wall for f in exercise.functions}
        self._exercise_cpu = 0.0
        self._cpu_start = 0.0
        self._cpu_limit = self._limits.load_cpu
        self._wall_used = 0.0
        self._wall_limit = self._limits.check_wall

    # -- budget -----------------------------------------------------------------------------------------------------
    def begin_check(self, function: str, again: bool = False) -> None:
        self._again = again
        if not function:
            return
        self._checked = function
        limits = self._limits
        self._cpu_limit = min(limits.check_cpu, self._cpu_left[function], limits.exercise_cpu - self._exercise_cpu)
        self._wall_limit = min(limits.check_wall, self._wall_left[function])
        self._wall_used = 0.0
        self._cpu_start = self._worker.cpu() if self._worker is not None else 0.0

    def end_check(self) -> None:
        self._lent.clear()
        if self._worker is None:
            return
        self._exercise_cpu += max(0.0, self._worker.cpu() - self._cpu_start)
        self._cpu_limit, self._wall_limit, self._wall_used = 5.0, 20.0, 0.0
        self._cpu_start = self._worker.cpu()
        if self._worker.arena.used or self._holding:
            with contextlib.suppress(Interrupted):
                self._exchange("end")
                self._holding = False
                self._worker.arena.reset()

    def _pause(self) -> None:
        """Wait for the worker to say something; end it when its time is up."""
        worker = self._worker
        assert worker is not None
        step = 0.02
        while True:
            started = time.monotonic()
            ready = worker.wait(step)
            self._wall_used += time.monotonic() - started
            if ready:
                return
            used = worker.cpu() - self._cpu_start
            if used > self._cpu_limit or self._wall_used > self._wall_limit:
                if self._checked:
                    self._cpu_left[self._checked] -= used
                    self._wall_left[self._checked] -= self._wall_used
                self._exercise_cpu += used
                self._drop()
                spent = f"{used:.0f} s of computing" if used > self._cpu_limit else f"{self._wall_used:.0f} s"
                raise Interrupted("timeout", f"{self.last.text or 'Loading the file'}\ngave no answer within {spent}.")
            step = min(step * 1.5, 0.2)

    # -- the worker -------------------------------------------------------------------------------------------------
    def load(self) -> None:
        """Start a worker and load the submission in it.  Raises Interrupted if it cannot be loaded."""
        try:
            self._worker = self._zygote.spawn()
        except GraderFault as fault:  # through Hypothesis, which would take an Exception for the submission's
            raise Interrupted("grader_error", f"The grader failed, not the submission: {fault}.") from fault
        checked, saved = self._checked, (self._cpu_limit, self._wall_limit, self._wall_used)
        self._checked = ""
        self._cpu_start, self._cpu_limit = 0.0, self._limits.load_cpu
        self._wall_used, self._wall_limit = 0.0, self._limits.check_wall
        kind, *rest = self._exchange("load", self.exercise.module, self._parts, self.exercise.off_limits)
        if kind != "loaded" or len(rest) != 3:
            self._drop()
            raise Interrupted("crashed", "The file could not be loaded: the process answered out of turn.")
        problem, self._failed_cells, conduct = rest
        self._note_conduct(conduct)
        if problem is not None:
            self._drop()
            raise Interrupted("crashed", f"The file could not be loaded: {problem}")
        if self._replaced:
            self._swap(self._replaced)
        self._checked, (self._cpu_limit, self._wall_limit, self._wall_used) = checked, saved
        self._cpu_start = self._worker.cpu()

    def close(self) -> None:
        self._drop()

    def _drop(self) -> int | None:
        worker, self._worker = self._worker, None
        return None if worker is None else worker.close()

    def _exchange(self, kind: str, *values: Any) -> list[Any]:
        """One request of plain values and its reply."""
        identity = secrets.token_bytes(16)
        return self._reply(identity, Encoder().pack([kind, identity, *values]), Decoder())

    def _reply(self, identity: bytes, message: bytes, decoder: Decoder) -> list[Any]:
        """Send a request and wait for its reply, answering what the worker asks in between."""
        worker = self._worker
        assert worker is not None
        try:
            worker.send(message)
            while True:
                frame = decoder.unpack(worker.reader.receive(self._pause))
                if len(frame) < 2 or not isinstance(frame[0], str) or frame[1] != identity:
                    self._drop()
                    self._note_conduct(["answered what nobody asked"])
                    raise Interrupted("crashed", f"{self.last.text}\nanswered what nobody asked, and was ended.")
                kind, _, *rest = frame
                if kind != "ask":
                    return [kind, *rest]
                self._answer(rest)
        except frames.Closed:
            raise self._gone() from None
        except WireError as error:
            self._drop()
            self._note_conduct(["sent bytes that are no message"])
            raise Interrupted("failed", f"{self.last.text}\nreturned {error}.") from None

    def _gone(self) -> Interrupted:
        """What to say of a worker that is not heard any more."""
        closed = self._worker is not None and not self._worker.ended()
        status = self._drop()
        where = self.last.text or "Loading the file"
        if closed:
            self._note_conduct(["closed its channel to the grader"])
            return Interrupted("crashed", f"{where}\nclosed its channel to the grader.")
        if status is None:
            return Interrupted("grader_error", "The process that workers are made from has ended.")
        if status == -signal.SIGKILL and not self._again:
            # The kernel short of memory, or somebody outside: if the submission is the cause, it happens again.
            return Interrupted("grader_error", "The worker was killed from outside.")
        if status == -signal.SIGXCPU:
            return Interrupted("timeout", f"{where}\nused up all the computing time there is.")
        if status < 0:
            with contextlib.suppress(ValueError):
                return Interrupted("crashed", f"{where}\nended the process by {signal.Signals(-status).name}.")
        return Interrupted("crashed", f"{where}\nended the process (exit status {status}).")

    def _answer(self, rest: list[Any]) -> None:
        """Run a function of the grader's for the worker."""
        number, args, kwargs = rest
        worker = self._worker
        assert worker is not None
        if type(number) is not int or number not in self._lent or type(args) is not list:
            raise WireError("a question that cannot be answered")
        if type(kwargs) is not dict or not all(type(name) is str for name in kwargs):
            raise WireError("a question that cannot be answered")
        given = [*args, *kwargs.values()]
        before = [frozen(value) for value in given]
        started = time.monotonic()
        try:
            answer = ["answer", self._lent[number](*args, **kwargs)]
        except Exception as error:
            answer = ["raise", type(error).__name__, str(error)[:500]]
        self._wall_used += time.monotonic() - started
        changed = [
            [place, value]
            for place, (value, was) in enumerate(zip(given, before, strict=True))
            if isinstance(value, torch.Generator) or (isinstance(value, _CHANGEABLE) and frozen(value) != was)
        ]
        worker.send(Encoder(refer=self._refer).pack([*answer, changed]))

    def _refer(self, value: Any) -> Remote | None:
        """What a handle or a lent function is on the other side."""
        if isinstance(value, Lent):
            return Remote(value.number, "grader")
        if not isinstance(value, Handle):
            return None
        if value.owner is not self._worker:
            raise Interrupted("crashed", f"{self.last.text}\nended before all that was to be asked of it was asked.")
        target: Remote = value.target
        return target

    def _handle(self, remote: Remote) -> Handle:
        self._holding = True
        return Handle(self, remote, plain_text(remote.kind, 100), self._worker)

    # -- calls ------------------------------------------------------------------------------------------------------
    def perform(self, function: Function, call: Call) -> Any:
        if self._cpu_limit <= 0.1 or self._wall_limit <= 0.1:
            raise Interrupted("timeout", f"Not run: earlier checks of `{self._checked}` used up all its time.")
        if self._worker is None:
            self.load()
        worker = self._worker
        assert worker is not None
        identity = secrets.token_bytes(16)
        inputs: list[torch.Tensor] = []
        stored: list[tuple[str, list[int], np.ndarray]] = []
        name = ""

        def store(data: np.ndarray) -> list[int] | None:
            place = worker.arena.store(data)
            if place is not None:
                stored.append((name, place, data))
            return place

        def track(tensor: torch.Tensor) -> int:
            inputs.append(tensor)
            return len(inputs) - 1

        encoder = Encoder(store=store, refer=self._refer, track=track, keep_strides=True)
        names = call.names
        encoded = []
        for name, value in zip(names, call.values, strict=True):  # noqa: B007 — read by store
            encoded.append(encoder.encode(value))
        positional = len(call.args)
        keywords = [[key, item] for key, item in zip(call.kwargs, encoded[positional:], strict=True)]
        message = encoder.seal(
            [
                "fixture" if function.fixture else "call",
                identity,
                function.name if function.handle is None else encoder.encode(function.handle),
                ["l", encoded[:positional]],
                ["d", keywords],
                self._trap is not None,
                function.keep,
            ]
        )
        graph = _Graph(self, worker, identity, inputs)
        kind, *rest = self._reply(
            identity, message, Decoder(attach=graph.attach if inputs else None, find=self._handle)
        )
        if kind == "missing":
            failed = "".join(f"\n{cell} failed: {problem}" for cell, problem in self._failed_cells[:3])
            raise Interrupted("not_implemented", f"There is no function `{function.name}`.{failed}")
        if kind == "bad":
            raise Interrupted("failed", f"{call.text}\nreturned {rest[0]}.")
        try:
            if kind == "raised":
                *description, lines, moved, after, faults, conduct = rest
                type_name, base, text, explicit = description
                raised = Raised(type_name, base, text, explicit is True, tuple((int(n), str(t)) for n, t in lines))
            else:
                value, moved, after, faults, conduct = rest
                raised = None
            self._note_conduct(conduct)
            self._note(function, call, stored, [str(m) for m in moved], list(after))
            if self._trap is not None:
                self._trap += [str(fault) for fault in faults]
        except (ValueError, TypeError) as error:
            self._drop()
            raise Interrupted("crashed", f"{call.text}\nanswered what nobody asked, and was ended.") from error
        if raised is not None:
            raise remote_error(raised)
        return value

    def _note(
        self,
        function: Function,
        call: Call,
        stored: list[tuple[str, list[int], np.ndarray]],
        moved: list[str],
        after: list[Any],
    ) -> None:
        """Compare the arguments with what they were: tensors in shared memory, lists as they were sent back."""
        assert self._worker is not None
        witness = self.witness(function.name)
        changed = [name for name, place, data in stored if not self._worker.arena.holds(place, data)]
        for name, value, now in zip(call.names, call.values, after, strict=False):
            if isinstance(value, torch.Generator):
                if isinstance(now, torch.Generator) and now.device == value.device:
                    value.set_state(now.get_state())
            elif (isinstance(value, list | dict) or isinstance(now, torch.Tensor)) and frozen(now) != frozen(value):
                changed.append(name)
        witness.mutated += [(call.text, name) for name in changed]
        witness.moved += [(call.text, name) for name in moved]

    def _note_conduct(self, notes: list[str]) -> None:
        """Keep what the submission tried, for the instructor."""
        for note in notes[:20]:
            if len(self.conduct) < 20:
                self.conduct[str(note)[:200]] = None

    def gradient(self, worker: Worker, identity: bytes, numbers: list[int], weights: list[torch.Tensor]) -> list[Any]:
        """The backward pass of an earlier call, run where its graph is."""
        if worker is not self._worker:
            raise Interrupted("crashed", f"{self.last.text}\nended before its gradient was asked for.")
        kind, *rest = self._exchange("grad", identity, numbers, weights)
        if kind == "raised":
            type_name, base, text, *_ = rest
            raise remote_error(Raised(type_name, base, text))
        if kind != "value" or not isinstance(rest[0], list):
            raise Interrupted("failed", f"{self.last.text}\nhas a gradient that cannot be read.")
        return rest[0]

    # -- tests of the student's -------------------------------------------------------------------------------------
    def tests(self) -> Collected:
        self.calls += 1
        self.last = Call("the tests", (), (), {})
        if self._worker is None:
            self.load()
        kind, *rest = self._exchange("tests")
        try:
            if kind != "tests":
                raise ValueError
            names, left_out, problems, conduct = rest
            self._note_conduct(conduct)
            return collected(names, left_out, problems)
        except (ValueError, TypeError) as error:
            self._drop()
            text = "The tests could not be collected: the process answered out of turn."
            raise Interrupted("crashed", text) from error

    def run_test(self, name: str, implementation: Implementation, seconds: float) -> Tested:
        self.calls += 1
        self.last = Call(plain_text(name, NAME_LIMIT), (), (), {})
        if self._cpu_limit <= 0.1 or self._wall_limit <= 0.1:
            raise Interrupted("timeout", f"Not run: earlier checks of `{self._checked}` used up all its time.")
        if self._worker is None:
            self.load()
        lent = {key: self.lend(with_their_state(function)) for key, function in implementation.items()}
        functions = {key: Remote(function.number, "grader") for key, function in lent.items()}
        try:
            kind, *rest = self._exchange("test", name, functions, float(seconds))
            if kind != "tested":
                raise ValueError
            outcome, message, conduct = rest
            self._note_conduct(conduct)
        except (ValueError, TypeError):
            self._drop()
            return Tested("error", "The process answered out of turn, and was ended.")
        except Interrupted as interruption:
            if interruption.verdict not in ("crashed", "failed"):
                raise
            return Tested("error", interruption.message)
        finally:
            self._take_back(lent.values())
        return tested(outcome, message)

    # -- settings ---------------------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def replacing(self, **functions: Callable[..., Any]) -> Iterator[None]:
        if self._worker is None:
            self.load()
        lent = {name: f if isinstance(f, Handle) else self.lend(f) for name, f in functions.items()}
        self._replaced = lent
        self._swap(lent)
        try:
            yield
        finally:
            self._replaced = {}
            self._take_back(f for f in lent.values() if isinstance(f, Lent))
            if self._worker is not None:
                with contextlib.suppress(Interrupted):
                    self._swap({})

    def _swap(self, functions: dict[str, Handle | Lent]) -> None:
        self._exchange("swap", {name: self._refer(function) for name, function in functions.items()})

    def _take_back(self, lent: Iterable[Lent]) -> None:
        for function in lent:
            self._lent.pop(function.number, None)

    @contextlib.contextmanager
    def device_trap(self) -> Iterator[list[str]]:
        self._trap = []
        try:
            yield self._trap
        finally:
            self._trap = None


class _Graph:
    """Ties the outputs of one call to its inputs: their gradient is computed by the worker, which kept the graph."""

    def __init__(self, student: RemoteStudent, worker: Worker, identity: bytes, inputs: list[torch.Tensor]) -> None:
        self._student = student
        self._worker = worker
        self._identity = identity
        self._inputs = inputs

    def attach(self, output: torch.Tensor, number: int) -> torch.Tensor:
        if not output.is_floating_point() or number < 0:
            return output
        return _Backward.apply(self, number, output, *self._inputs)

    def gradients(self, number: int, weight: torch.Tensor) -> list[torch.Tensor | None]:
        found = self._student.gradient(self._worker, self._identity, [number], [weight])
        result: list[torch.Tensor | None] = []
        for given, gradient in zip(self._inputs, found, strict=False):
            if gradient is None:
                result.append(None)
            elif isinstance(gradient, torch.Tensor) and gradient.shape == given.shape and gradient.dtype == given.dtype:
                result.append(gradient)
            else:
                raise Interrupted("failed", f"{self._student.last.text}\nhas a gradient of the wrong shape.")
        if len(result) != len(self._inputs):
            raise Interrupted("failed", f"{self._student.last.text}\nhas a gradient that cannot be read.")
        return result


class _Backward(torch.autograd.Function):
    """The node in the grader's graph that stands for the student's function."""

    @staticmethod
    def forward(ctx: Any, graph: _Graph, number: int, output: torch.Tensor, *inputs: torch.Tensor) -> torch.Tensor:
        ctx.graph, ctx.number = graph, number
        return output.detach()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, weight: torch.Tensor) -> Any:
        return (None, None, None, *ctx.graph.gradients(ctx.number, weight))

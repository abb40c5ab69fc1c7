"""The student's functions across the wire: every call a message to a worker and back, gradients included."""

from __future__ import annotations

import contextlib
import hashlib
import secrets
import signal
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn

import numpy as np
import torch
from torch.autograd.function import once_differentiable

from autograder.report import plain_text
from autograder.syllabus import Exercise
from autograder.wire import frames, replies
from autograder.wire.budget import Budget
from autograder.wire.codec import Decoder, Encoder, Remote, WireError
from autograder.wire.errors import GraderFault, Interrupted, remote_error
from autograder.wire.precedents import PART, Conversation, Precedents
from autograder.wire.proxy import Call, Function, Handle, Kept, Lent, Student, frozen
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

#: What one call may ask of functions of the grader's, which may keep what they are given: bytes and items in all.
MAX_ASKED_BYTES = 256 * 1024 * 1024
MAX_ASKED_ITEMS = 5_000_000
#: Tells a worker that it may forget what was asked before.
_END = Encoder().pack(["end", b""])
#: What a function of the grader's may change in place, as it would locally.
_CHANGEABLE = (torch.Tensor, np.ndarray, list)


class RemoteStudent(Student):
    """The student's functions, each call a message to the worker and back.  A worker that ends is replaced."""

    def __init__(
        self, zygote: Zygote, exercise: Exercise, parts: Sequence[Any], precedents: Precedents[Any] | None = None
    ) -> None:
        super().__init__(exercise)
        self._zygote = zygote
        self._precedents: Precedents[Any] = precedents or Precedents()
        self._conversation: Conversation[Any] = self._precedents.begin(exercise.id, "")
        self._seen = hashlib.blake2b(digest_size=16)
        self._notes: list[tuple[Any, ...]] = []
        self._digests: dict[str, bytes | None] = {}
        self._begun: dict[str, Conversation[Any]] = {}
        self._budget = Budget(zygote.limits.times(exercise.time_factor), (f.name for f in exercise.functions))
        self._parts = [[part.name, part.text, part.may_fail] for part in parts]
        self._worker: Worker | None = None
        self._failed_cells: list[tuple[str, str]] = []
        self._trap: list[str] | None = None
        self._replaced: dict[str, Handle | Lent] = {}
        self._again = False
        self._holding = self._tracked = self._over = False
        self._reads = 0

    # -- checks and their time --------------------------------------------------------------------------------------
    def begin_check(self, function: str, again: bool = False, check: str = "") -> None:
        self._again = again
        self._conversation = self._precedents.begin(self.exercise.id, check, self._seen.digest())
        self._notes = []
        if check:  # the same numbers for every submission, others for every check
            self._lent_so_far = zlib.crc32(check.encode()) << 20
        if not check or again:
            self._conversation.forget()
        if function:
            self._budget.begin(function)

    def precedent(self) -> Any:
        if not self._conversation.kept:
            return None
        found = self._retraced(self._conversation)
        if found is None and self._worker is not None:
            self._worker.arena.reset()  # and filled again by the check itself
        return found

    def _retraced(self, conversation: Conversation[Any]) -> Any:
        """Ask what was asked before, as long as the answers are those of before; what it came to, if it came to it."""
        worker = self._worker
        if worker is None:
            return None
        stored: list[tuple[list[int] | None, bytes]] = []
        while (request := conversation.next_request(secrets.token_bytes(16))) is not None:
            if request.is_part:
                digest = self._part(request.message.decode("utf-8", "surrogatepass"))
                if digest is None or not conversation.answered(request, digest):
                    return None
                continue
            if not request.is_answer:
                stored = [(worker.arena.store(np.frombuffer(data, np.uint8)), data) for data in request.stored]
            self._reads = 0
            answer: bytes | Exception
            try:
                answer = self._ask(request.message)
            except (frames.Closed, WireError, _Late) as error:
                answer = error
            changed = any(place is None or not worker.arena.holds(place, data) for place, data in stored)
            if not conversation.answered(request, answer, changed):
                return None
        if conversation.ending is None:
            return None
        found, notes = conversation.ending
        for witnessed, *what in notes:
            witnessed(self, *what)
        return found

    def set_precedent(self, ending: Any) -> None:
        self._conversation.close((ending, self._notes))

    # -- what checks share ------------------------------------------------------------------------------------------
    def _part(self, name: str) -> bytes | None:
        """What stands for the answers of a part, if they can be had without running it."""
        self._tidy()
        if name not in self._digests:
            part = self._begun[name] = self._new_part(name)
            found = self._retraced(part)
            if found is None:
                return None
            self._kept[name], self._digests[name] = found, part.digest
            self._tidy()
        return self._digests[name]

    def _new_part(self, name: str) -> Conversation[Any]:
        return self._precedents.begin(self.exercise.id, f"{PART}{name}")

    def once(self, key: Any, make: Callable[[], Any]) -> Any:
        name = repr(key)
        message = name.encode("utf-8", "surrogatepass")
        if self._holding or self._tracked:  # then what was asked before is not over
            self.no_precedent()
        elif self._conversation.telling or name in self._begun:  # that was done when it was retraced
            assert self._worker is not None
            self._worker.arena.reset()
        else:
            self._tidy()
        try:
            return super().once(key, make)
        finally:
            digest = self._digests.get(name)
            if digest is None:
                self.no_precedent()
            elif self._told(message) is None:
                self._conversation.note(message, b"", digest)

    def _made(self, name: str, make: Callable[[], Any]) -> Kept:
        whole, notes = self._conversation, self._notes
        self._conversation = self._begun.pop(name) if name in self._begun else self._new_part(name)
        self._notes = []
        if not whole.kept:
            self._conversation.forget()
        try:
            made = super()._made(name, make)
            if made[1] is not None:
                self._conversation.forget()
            self._conversation.close((made, self._notes))
            self._digests[name] = self._conversation.digest
            if whole.kept:
                self._tidy()
            return made
        finally:
            self._conversation, self._notes = whole, notes

    def no_precedent(self) -> None:
        self._conversation.forget()

    def end_check(self) -> None:
        self._lent.clear()
        self._begun.clear()
        self._budget.tidy()
        self._tidy()

    def _tidy(self) -> None:
        """What was asked before is over: the worker may forget it, and the shared memory is free.

        It is told before it is asked again, and not woken for that alone.
        """
        if self._worker is not None and (self._worker.arena.used or self._holding):
            self._over = True
            self._holding = self._tracked = False
            self._worker.arena.reset()

    def _pause(self) -> None:
        """Wait for the worker to say something.  Raises _Late when its time is up.

        A reply in many pieces, or with many questions before it, is looked at after each of them: a worker that always
        has a little more to say would otherwise never be late.
        """
        worker = self._worker
        assert worker is not None
        self._reads += 1
        step = 0.02
        while True:
            try:
                with self._budget.waiting():
                    ready = worker.wait(step)
            except KeyboardInterrupt:  # nothing will be asked of this worker any more, not even to tidy up
                self._drop()
                raise
            late = self._budget.late()
            if ready and (self._reads == 1 or not late):
                return
            if late:
                raise _Late
            step = min(step * 1.5, 0.2)

    # -- the worker -------------------------------------------------------------------------------------------------
    def load(self) -> None:
        """Load the submission in a worker, a new one if there is none.  Raises Interrupted if it cannot be loaded."""
        self.no_precedent()
        self._worker = self._worker or self._spawned()
        with self._budget.loading(self._worker):
            kind, *rest = self._exchange("load", self.exercise.module, self._parts)
            try:
                if kind != "loaded":
                    raise WireError("another reply")
                problem, self._failed_cells, conduct = replies.loaded(rest)
            except WireError as error:
                self._drop()
                text = "The file could not be loaded: the process answered out of turn."
                raise Interrupted("crashed", text) from error
            self._note_conduct(conduct)
            if problem is not None:
                self._drop()
                raise Interrupted("crashed", f"The file could not be loaded: {problem}")
            if self._replaced:
                self._swap(self._replaced)

    def _spawned(self) -> Worker:
        try:
            return self._zygote.spawn(self.exercise.off_limits)
        except GraderFault as fault:  # through Hypothesis, which would take an Exception for the submission's
            raise Interrupted("grader_error", f"The grader failed, not the submission: {fault}.") from fault

    def close(self) -> None:
        self._drop()

    def _drop(self) -> int | None:
        self._budget.gone()
        worker, self._worker = self._worker, None
        return None if worker is None else worker.close()

    def _exchange(self, kind: str, *values: Any) -> list[Any]:
        """One request of plain values, which is no call, and its reply."""
        identity = secrets.token_bytes(16)
        message = Encoder().pack([kind, identity, *values])
        return self._reply(identity, lambda: self._ask(message), Decoder())

    def _call(
        self,
        identity: bytes,
        message: bytes,
        decoder: Decoder,
        stored: Sequence[np.ndarray] = (),
        names: bytes | None = None,
    ) -> list[Any]:
        """A request that runs the student's code, and its reply, which may be there already.

        stored: arguments in shared memory.  names: the identity of the call whose gradient it is.
        """
        try:
            return self._reply(identity, lambda: self._heard(identity, message, stored, names), decoder)
        except Interrupted:  # also where a check hides it: the answer that did not come is no answer
            self.no_precedent()
            raise

    def _heard(
        self, identity: bytes, message: bytes, stored: Sequence[np.ndarray] = (), names: bytes | None = None
    ) -> bytes:
        """What the worker says to a message of a check, or said when it was retraced."""
        told = self._told(message)
        if told is not None:
            return told
        packed = self._ask(message)
        self._conversation.note(message, identity, packed, stored, names)
        return packed

    def _told(self, message: bytes) -> bytes | None:
        """The answer that there is already."""
        try:
            return self._conversation.told(message)
        except LookupError:
            raise Interrupted("grader_error", "A check asked something else after the same answers.") from None

    def _reply(self, identity: bytes, heard: Callable[[], bytes], decoder: Decoder) -> list[Any]:
        """The reply to a request, after all that the worker asks before it is answered."""
        self._reads = size = items = 0
        try:
            packed = heard()
            while True:
                frame = decoder.unpack(packed)
                if not replies.is_reply(frame, identity):
                    self._drop()
                    self._note_conduct(["answered what nobody asked"])
                    raise Interrupted("crashed", f"{self.last.text}\nanswered what nobody asked, and was ended.")
                kind, _, *rest = frame
                if kind != "ask":
                    return [kind, *rest]
                size, items = size + len(packed), items + decoder.items
                if size > MAX_ASKED_BYTES or items > MAX_ASKED_ITEMS:
                    raise WireError("more questions than can be answered")
                packed = self._answer(identity, rest)
        except frames.Closed:
            raise self._gone() from None
        except _Late:
            spent = self._budget.overdrawn()
            self._drop()
            where = self.last.text or "Loading the file"
            raise Interrupted("timeout", f"{where}\ngave no answer within {spent}.") from None
        except WireError as error:
            self._drop()
            self._note_conduct(["sent bytes that are no message"])
            raise Interrupted("failed", f"{self.last.text}\nreturned {error}.") from None

    def _ask(self, message: bytes) -> bytes:
        """Send a message and wait for what comes back."""
        worker = self._worker
        assert worker is not None
        self._send(worker, message)
        return worker.reader.receive(self._pause)

    def _send(self, worker: Worker, message: bytes) -> None:
        """Send a message; the time that a worker takes to read it is its own."""
        before, self._over = [_END] if self._over else [], False
        with self._budget.waiting():
            worker.send(*before, message)

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

    def _answer(self, identity: bytes, rest: list[Any]) -> bytes:
        """Run a function of the grader's for the worker; what that says next."""
        if len(rest) != 3:
            raise WireError("a question that cannot be answered")
        number, args, kwargs = rest
        worker = self._worker
        assert worker is not None
        if type(number) is not int or type(args) is not list:
            raise WireError("a question that cannot be answered")
        if type(kwargs) is not dict or not all(type(name) is str for name in kwargs):
            raise WireError("a question that cannot be answered")
        given = [*args, *kwargs.values()]
        before = [frozen(value) for value in given]
        try:
            with self._budget.waiting():
                answer = ["answer", self._lent.get(number, _gone)(*args, **kwargs)]
        except Exception as error:
            answer = ["raise", type(error).__name__, str(error)[:500]]
        changed = [
            [place, value]
            for place, (value, was) in enumerate(zip(given, before, strict=True))
            if isinstance(value, torch.Generator) or (isinstance(value, _CHANGEABLE) and frozen(value) != was)
        ]
        return self._heard(identity, Encoder(refer=self._refer).pack([*answer, changed]))

    def _refer(self, value: Any) -> Remote | None:
        """What a handle or a lent function is on the other side."""
        if isinstance(value, Lent):
            return Remote(value.number, "grader")
        if not isinstance(value, Handle):
            return None
        if value.owner is not self._worker:
            raise Interrupted("crashed", f"{self.last.text}\nended before all that was to be asked of it was asked.")
        self.no_precedent()
        target: Remote = value.target
        return target

    def _handle(self, remote: Remote) -> Handle:
        self.no_precedent()
        self._holding = True
        return Handle(self, remote, plain_text(remote.kind, 100), self._worker)

    # -- calls ------------------------------------------------------------------------------------------------------
    def perform(self, function: Function, call: Call) -> Any:
        self._have_worker()
        worker = self._worker
        assert worker is not None
        conversation = self._conversation
        identity = conversation.identity() or secrets.token_bytes(16)
        inputs: list[torch.Tensor] = []
        stored: list[tuple[str, list[int], np.ndarray]] = []
        name = ""

        def store(data: np.ndarray) -> list[int] | None:
            place = worker.arena.store(data, copy=not conversation.telling)
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
        self._tracked = self._tracked or bool(inputs)
        decoder = Decoder(attach=graph.attach if inputs else None, find=self._handle)
        kind, *rest = self._call(identity, message, decoder, [data for _, _, data in stored])
        if kind == "missing":
            failed = "".join(f"\n{cell} failed: {problem}" for cell, problem in self._failed_cells[:3])
            raise Interrupted("not_implemented", f"There is no function `{function.name}`.{failed}")
        if kind == "bad" and len(rest) == 1 and type(rest[0]) is str:
            raise Interrupted("failed", f"{call.text}\nreturned {rest[0][: replies.TEXT_LIMIT]}.")
        try:
            raised = replies.raised(rest[:5]) if kind == "raised" else None
            value, *described = (None, *rest[5:]) if raised is not None else rest
            if kind not in ("raised", "value"):
                raise WireError("another reply")
            seen = replies.seen(described)
            self._note_conduct(seen.conduct)
            self._note(function, call, [] if conversation.unchanged else stored, seen.moved, seen.after)
            if self._trap is not None:
                self._trap += seen.faults
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
        """Compare the arguments with what they were: tensors in shared memory, others as far as they were sent back."""
        assert self._worker is not None
        changed = [name for name, place, data in stored if not self._worker.arena.holds(place, data)]
        if changed:  # which no answer tells
            self.no_precedent()
        for name, value, now in zip(call.names, call.values, after, strict=False):
            if isinstance(value, torch.Generator):
                if isinstance(now, torch.Generator) and now.device == value.device:
                    value.set_state(now.get_state())
            elif now is not None and frozen(now) != frozen(value):
                changed.append(name)
        if changed or moved:
            self._bear_witness(function.name, call.text, changed, moved)

    def _bear_witness(self, function: str, text: str, changed: list[str], moved: list[str]) -> None:
        """Note what a call changed, and moved: later checks may ask."""
        witness = self.witness(function)
        witness.mutated += [(text, name) for name in changed]
        witness.moved += [(text, name) for name in moved]
        self._remember(RemoteStudent._bear_witness, function, text, changed, moved)

    def excuse(self, name: str, since: int) -> None:
        super().excuse(name, since)
        self._remember(RemoteStudent.excuse, name, since)

    def _remember(self, witnessed: Callable[..., None], *what: Any) -> None:
        """Keep what an earlier check has left for later ones: it is part of what they go by."""
        self._notes.append((witnessed, *what))
        self._seen.update(repr((witnessed.__name__, what)).encode("utf-8", "surrogatepass"))

    def _note_conduct(self, notes: list[str]) -> None:
        """Keep what the submission tried, for the instructor."""
        if notes:
            self.no_precedent()
        for note in notes:
            if len(self.conduct) < replies.NOTES_LIMIT:
                self.conduct[note] = None

    def _have_worker(self) -> None:
        """Have a worker with time left to use.  Raises Interrupted if it is used up, or there is none to be had."""
        self._budget.refuse_if_spent(new_worker=self._worker is None)
        if self._worker is None:
            self.load()

    def gradient(self, worker: Worker, identity: bytes, numbers: list[int], weights: list[torch.Tensor]) -> list[Any]:
        """The backward pass of an earlier call, run where its graph is."""
        if worker is not self._worker:
            raise Interrupted("crashed", f"{self.last.text}\nended before its gradient was asked for.")
        own = self._conversation.identity() or secrets.token_bytes(16)
        message = Encoder().pack(["grad", own, identity, numbers, weights])
        kind, *rest = self._call(own, message, Decoder(), names=identity)
        raised = None
        with contextlib.suppress(WireError):
            raised = replies.raised(rest[:5]) if kind == "raised" else None
        if raised is not None:
            raise remote_error(raised)
        if kind != "value" or not rest or not isinstance(rest[0], list):
            raise Interrupted("failed", f"{self.last.text}\nhas a gradient that cannot be read.")
        gradients: list[Any] = rest[0]
        return gradients

    # -- tests of the student's -------------------------------------------------------------------------------------
    def tests(self) -> Collected:
        self.no_precedent()
        self.calls += 1
        self.last = Call("the tests", (), (), {})
        self._have_worker()
        kind, *rest = self._exchange("tests")
        try:
            if kind != "tests":
                raise ValueError
            names, left_out, problems, conduct = rest
            self._note_conduct(replies.notes(conduct))
            return collected(names, left_out, problems)
        except (ValueError, TypeError) as error:
            self._drop()
            text = "The tests could not be collected: the process answered out of turn."
            raise Interrupted("crashed", text) from error

    def run_test(self, name: str, implementation: Implementation, seconds: float) -> Tested:
        self.calls += 1
        self.last = Call(plain_text(name, NAME_LIMIT), (), (), {})
        self._have_worker()
        lent = {key: self.lend(with_their_state(function)) for key, function in implementation.items()}
        functions = {key: Remote(function.number, "grader") for key, function in lent.items()}
        try:
            kind, *rest = self._exchange("test", name, functions, float(seconds))
            if kind != "tested":
                raise ValueError
            outcome, message, conduct = rest
            self._note_conduct(replies.notes(conduct))
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
        self._have_worker()
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
        identity = self._conversation.identity() or secrets.token_bytes(16)
        references = {name: self._refer(function) for name, function in functions.items()}
        self._call(identity, Encoder().pack(["swap", identity, references]), Decoder())

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


def _gone(*_: Any, **__: Any) -> NoReturn:
    """What a function that is not lent any more answers."""
    raise RuntimeError("this function was lent for a call or a check that is over")


class _Late(Exception):
    """The worker has used up its time."""


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

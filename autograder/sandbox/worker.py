"""The untrusted side: loads a submission, answers calls, keeps their graphs.  All it says is the student's word."""

from __future__ import annotations

import contextlib
import linecache
import os
import socket
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from autograder.sandbox import cells, fixtures, loading
from autograder.sandbox.calling import Outcome, describe, handle_kind, invoke
from autograder.sandbox.conduct import Conduct
from autograder.sandbox.devices import DeviceTrap
from autograder.wire import frames
from autograder.wire.arena import attach
from autograder.wire.codec import Decoder, Encoder, Remote, WireError, packed_plain
from autograder.wire.errors import Raised, builtin_error

_MISSING = object()
_PLAIN = (type(None), bool, int, float, str, bytes, list, tuple, dict, torch.Tensor, np.ndarray, Remote)


#: A submission for warming up: what loading, calling, raising and a backward pass touch is touched in the zygote.
_WARM_MODULE = "warming_up"
_WARM_TEXT = """
import math
import numpy as np
import torch
from torch.nn import functional as F

def right(x, numbers, *, scale=1.0):
    if len(numbers) != x.shape[0]:
        raise ValueError("unequal lengths")
    return scale * torch.logsumexp(F.log_softmax(x, dim=-1), dim=-1).sum() + math.log(2)

def unwritten(x):
    raise NotImplementedError
"""
_WARM_CELL = "cell 1"
_WARM_ROUNDS = 20


def warm_up() -> None:
    """Do in the zygote, over and over, what every worker does first: imports, memory, the interpreter's own caches."""
    import torch.distributions
    import torch.nn.utils.rnn  # noqa: F401 — in every worker's memory, should its submission import it

    seed(0)
    ours, theirs = socket.socketpair()
    answers = frames.Reader(ours)
    with ours, theirs:
        for _ in range(_WARM_ROUNDS):
            worker = _Worker(theirs, memoryview(bytearray(64)), Conduct([]))
            for request in _warm_requests():
                frames.send(ours, request)
                worker.step()
            for _ in _warm_requests()[:-1]:
                Decoder(attach=lambda tensor, number: tensor).unpack(answers.receive())
    for name in (_WARM_MODULE, f"{_WARM_MODULE}.py", _WARM_CELL):
        sys.modules.pop(name, None)
        linecache.cache.pop(name, None)


def _warm_requests() -> list[bytes]:
    x, numbers, call = torch.zeros(2, 3, requires_grad=True), [1, 2], bytes(16)
    plain: list[Any] = [[], None, True, 0.5, torch.int64, np.zeros(2), {"a": (1,)}]
    parts = [[_WARM_CELL, "x = 1 / 0\ny = 2", True], [f"{_WARM_MODULE}.py", _WARM_TEXT, False]]
    requests: list[list[Any]] = [
        ["load", call, _WARM_MODULE, parts],
        ["call", call, "right", [x, numbers], {"scale": 2.0}, False, False],
        ["grad", call, call, [0], [torch.ones(())]],
        ["call", call, "right", [x, []], {}, False, False],
        ["call", call, "unwritten", [plain], {}, False, False],
        ["end", call],
    ]
    return [Encoder(track=lambda tensor: 0).pack(request) for request in requests]


def seed(number: int) -> None:
    """Set the global generators: what a submission does with them is reproducible, and nobody's stream."""
    torch.default_generator.manual_seed(number)  # torch.manual_seed reads source files for devices that are not there
    if torch.backends.cuda.is_built():
        torch.cuda.manual_seed_all(number)
    np.random.seed(number % 2**32)


def serve(channel: socket.socket, arena: int, visible: list[str]) -> None:
    """Answer frames until the channel closes.  visible: folders that opening a file in is nobody's business."""
    warnings.simplefilter("ignore")
    memory = attach(arena)
    os.close(arena)
    conduct = Conduct(visible)
    conduct.watch()
    _Worker(channel, memory, conduct).run()


class _Worker:
    def __init__(self, channel: socket.socket, memory: memoryview, conduct: Conduct) -> None:
        self._channel = channel
        self._reader = frames.Reader(channel)
        self._conduct = conduct
        self._memory = memory
        self._module: Any = None
        self._notebook: cells.Notebook | None = None
        self._sources: dict[str, str] = {}
        self._graphs: dict[bytes, tuple[list[torch.Tensor], list[torch.Tensor]]] = {}
        self._inputs: list[torch.Tensor] = []
        self._outputs: list[torch.Tensor] = []
        self._remotes: dict[int, Any] = {}
        self._kept = 0
        self._replaced: dict[str, Any] = {}
        self._states: tuple[Any, Any, Any] | None = None
        self._current = b""
        self._suite: Any = None
        self._handlers: dict[str, Callable[..., list[Any]]] = {
            "load": self._load,
            "cell": self._cell,
            "call": self._call,
            "fixture": self._fixture,
            "grad": self._grad,
            "swap": self._swap,
            "tests": self._tests,
            "test": self._test,
        }

    def run(self) -> None:
        with contextlib.suppress(frames.Closed):
            while True:
                self.step()

    def step(self) -> None:
        """Answer one request; the end of a check needs no answer.  Raises frames.Closed when there will be no other."""
        kind, self._current, *rest = self._receive()
        if kind == "end":
            self._end()
        else:
            self._send(self._handlers[kind](*rest))

    # -- frames -----------------------------------------------------------------------------------------------------
    def _receive(self) -> list[Any]:
        decoder = Decoder(self._memory, attach=self._attach, find=self._find)
        self._inputs = []
        return decoder.unpack(self._reader.receive())

    def _send(self, frame: list[Any]) -> None:
        kind, *rest = frame
        self._outputs = []
        encoder = Encoder(refer=self._refer, track=self._track)
        try:
            message = encoder.pack([kind, self._current, *rest])
        except WireError as error:
            message = Encoder().pack(["bad", self._current, str(error)])
        except BaseException as error:  # a value whose own methods raise while it is read
            message = Encoder().pack(["bad", self._current, f"a value that cannot be read ({type(error).__name__})"])
        if self._current in self._graphs:
            self._graphs[self._current] = (self._graphs[self._current][0], self._outputs)
        frames.send(self._channel, message)

    def _attach(self, tensor: torch.Tensor, number: int) -> torch.Tensor:
        tensor = tensor.requires_grad_()
        self._inputs.append(tensor)
        return tensor

    def _track(self, tensor: torch.Tensor) -> int:
        self._outputs.append(tensor)
        return len(self._outputs) - 1

    def _refer(self, value: Any) -> Remote | None:
        return self._keep(value) if callable(value) else None

    def _keep(self, value: Any) -> Remote:
        self._kept += 1
        self._remotes[self._kept] = value
        return Remote(self._kept, handle_kind(value))

    def _find(self, remote: Remote) -> Any:
        if remote.kind == "grader":
            return self._asking(remote.number)
        return self._remotes[remote.number]

    def _asking(self, number: int) -> Callable[..., Any]:
        """A function that asks the grader, which answers with a value or an exception."""

        def ask(*args: Any, **kwargs: Any) -> Any:
            inputs = self._inputs
            encoder = Encoder()
            frames.send(self._channel, encoder.pack(["ask", self._current, number, list(args), dict(kwargs)]))
            decoder = Decoder(self._memory)
            answer = decoder.unpack(self._reader.receive())
            self._inputs = inputs
            given = [*args, *kwargs.values()]
            for place, changed in answer[-1]:
                change(given[place], changed)
            if answer[0] == "raise":
                raise builtin_error(answer[1], answer[2])
            return answer[1]

        return ask

    # -- requests ---------------------------------------------------------------------------------------------------
    def _load(self, module: str, parts: list[list[Any]]) -> list[Any]:
        if self._notebook is not None:  # its cells have run one by one
            loaded, self._sources = self._notebook.loaded(), self._notebook.sources
        else:
            sys.argv = [module]
            self._conduct.active = True
            loaded = loading.load(module, [loading.Part(*part) for part in parts])
            self._conduct.active = False
            self._sources = {name: text for name, text, _ in parts}
        self._module = loaded.module
        failed = [[name, raised.text] for name, raised in loaded.failed_cells]
        problem = None if loaded.raised is None else loaded.raised.text
        return ["loaded", problem, failed, self._conduct.take()]

    def _cell(self, module: str, name: str, text: str) -> list[Any]:
        """Run one cell of a notebook, in the namespace of those before it, and say what it put out."""
        if self._notebook is None:
            sys.argv = [module]
            self._notebook = cells.Notebook(module)
        self._conduct.active = True
        ran = self._notebook.run(name, text)
        self._conduct.active = False
        return ["ran", *ran]

    def _fixture(self, name: str, args: list[Any], kwargs: dict[str, Any], trap: bool, keep: bool) -> list[Any]:
        """Run a function of ours: what it returns stays here, unless it is plain data."""
        frame = self._call(fixtures.find(name), args, kwargs, trap, keep)
        if frame[0] == "value" and type(frame[1]) not in _PLAIN:
            frame[1] = self._keep(frame[1])
        return frame

    def _call(self, target: Any, args: list[Any], kwargs: dict[str, Any], trap: bool, keep: bool) -> list[Any]:
        function = getattr(self._module, target, None) if isinstance(target, str) else target
        if not callable(function):
            return ["missing"]
        inputs = self._inputs
        given = [*args, *kwargs.values()]
        before = [packed_plain(value) if type(value) in (list, dict) else None for value in given]
        faults: list[str] = []
        self._conduct.active = True
        if trap:
            with DeviceTrap() as device_trap:
                outcome = invoke(device_trap.guard(function), args, kwargs, self._sources, self._states)
            faults = device_trap.faults
        else:
            outcome = invoke(function, args, kwargs, self._sources, self._states)
        self._conduct.active = False
        self._states = outcome.states  # those before the next call, too: only calls run student code
        after = [value if _sent_back(value, was) else None for value, was in zip(given, before, strict=True)]
        if keep and outcome.raised is None:
            outcome.value = self._keep(outcome.value)
        return self._outcome(outcome, inputs, after, faults)

    def _outcome(self, outcome: Outcome, inputs: list[torch.Tensor], after: list[Any], faults: list[str]) -> list[Any]:
        seen = [outcome.moved, after, faults, self._conduct.take()]
        if outcome.raised is not None:
            return ["raised", *raised_frame(outcome.raised), *seen]
        if inputs:
            self._graphs[self._current] = (inputs, [])
        return ["value", outcome.value, *seen]

    def _grad(self, call: bytes, wanted: list[int], weights: list[Any]) -> list[Any]:
        inputs, outputs = self._graphs[call]

        def backward() -> list[Any]:
            # grad(outputs, inputs, weights) is the same, but imports SymPy, which no other call needs
            weighted = sum((outputs[number] * weight).sum() for number, weight in zip(wanted, weights, strict=True))
            return list(torch.autograd.grad(weighted, inputs, retain_graph=True, allow_unused=True))

        outcome = invoke(backward, [], {}, self._sources, self._states)
        self._states = outcome.states
        return self._outcome(outcome, [], [], [])

    def _swap(self, functions: dict[str, Any]) -> list[Any]:
        """Put functions of the grader's into the student's module; an empty dict puts everything back."""
        names = self._module.__dict__
        if not functions:
            for name, value in self._replaced.items():
                if value is _MISSING:
                    names.pop(name, None)
                else:
                    names[name] = value
            self._replaced = {}
        for name, function in functions.items():
            self._replaced.setdefault(name, names.get(name, _MISSING))
            names[name] = function
        return ["done"]

    def _tests(self) -> list[Any]:
        return ["tests", self._collected().names, self._suite.left_out, self._suite.problems, self._conduct.take()]

    def _collected(self) -> Any:
        if self._suite is None:
            from exercises.kit.testing import Suite

            outcome = invoke(Suite, [self._module], {}, self._sources)
            if outcome.raised is not None:
                raise RuntimeError(outcome.raised.text)
            self._suite = outcome.value
        return self._suite

    def _test(self, name: str, functions: dict[str, Any], seconds: float) -> list[Any]:
        """Run a test of the student's on functions that ask the grader."""
        implementation = {key: _with_our_state(function) for key, function in functions.items()}
        suite = self._collected()
        self._conduct.active = True
        outcome = invoke(suite.run, [name, implementation, seconds], {}, self._sources, self._states)
        self._conduct.active = False
        self._states = outcome.states
        if outcome.raised is not None:
            return ["tested", "error", outcome.raised.text, self._conduct.take()]
        error = outcome.value.error
        text = "" if error is None else describe(error, self._sources).text
        return ["tested", outcome.value.outcome, text, self._conduct.take()]

    def _end(self) -> None:
        self._graphs.clear()
        self._remotes.clear()
        self._inputs, self._outputs = [], []


def _with_our_state(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of the grader's that draws from this process's default generator, where it draws from the default."""

    def call(*args: Any, **kwargs: Any) -> Any:
        state = [torch.get_rng_state()]
        try:
            return function(state, *args, **kwargs)
        finally:
            torch.set_rng_state(state[0])

    return call


def change(given: Any, changed: Any) -> None:
    """Make an argument what a function of the grader's made of it, in place."""
    if isinstance(given, torch.Generator):
        given.set_state(changed.get_state())
    elif isinstance(given, torch.Tensor):
        with torch.no_grad():
            given.copy_(changed)
    elif isinstance(given, list) and len(given) == len(changed):
        for place, (was, now) in enumerate(zip(given, changed, strict=True)):
            if isinstance(was, list) and isinstance(now, list):  # whoever else holds that list sees the change too
                change(was, now)
            else:
                given[place] = now
    elif isinstance(given, np.ndarray | list):
        given[:] = changed


def _sent_back(value: Any, before: bytes | None) -> bool:
    """Arguments that the grader compares: lists and dicts that seem changed; generators; tensors on a GPU."""
    if type(value) in (list, dict):
        return before is None or packed_plain(value) != before
    return type(value) is torch.Generator or (type(value) is torch.Tensor and value.device.type != "cpu")


def raised_frame(raised: Raised) -> list[Any]:
    lines = [[number, text] for number, text in raised.lines]
    return [raised.type_name, raised.base, raised.message, raised.explicit, lines]

"""The untrusted side: loads a submission, answers calls, keeps their graphs.  All it says is the student's word."""

from __future__ import annotations

import os
import socket
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from autograder.sandbox import loading, offlimits
from autograder.sandbox.calling import Outcome, invoke
from autograder.sandbox.conduct import Conduct
from autograder.sandbox.devices import DeviceTrap
from autograder.wire import frames
from autograder.wire.arena import attach
from autograder.wire.codec import Decoder, Encoder, Remote, WireError
from autograder.wire.errors import Raised, remote_error

_MISSING = object()


def warm_up() -> None:
    """Load in the zygote what every worker would load."""
    import torch.distributions
    import torch.nn.utils.rnn

    Decoder(memoryview(b"")).unpack(Encoder().pack(["x", torch.zeros(1), np.zeros(1)]))


def seed(number: int) -> None:
    """Set the global generators: what a submission does with them is reproducible, and nobody's stream."""
    torch.manual_seed(number)
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
        self._sources: dict[str, str] = {}
        self._graphs: dict[bytes, tuple[list[torch.Tensor], list[torch.Tensor]]] = {}
        self._inputs: list[torch.Tensor] = []
        self._outputs: list[torch.Tensor] = []
        self._remotes: dict[int, Any] = {}
        self._replaced: dict[str, Any] = {}
        self._states: tuple[Any, Any, Any] | None = None
        self._current = b""

    def run(self) -> None:
        handlers: dict[str, Callable[..., list[Any]]] = {
            "load": self._load,
            "call": self._call,
            "grad": self._grad,
            "swap": self._swap,
            "end": self._end,
        }
        while True:
            try:
                kind, self._current, *rest = self._receive()
            except frames.Closed:
                return
            self._send(handlers[kind](*rest))

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
        if callable(value):
            number = len(self._remotes)
            self._remotes[number] = value
            return Remote(number, type(value).__name__)
        return None

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
            if answer[0] == "raise":
                raise remote_error(Raised(*answer[1:4]))
            for given, state in zip([*args, *kwargs.values()], answer[2], strict=False):
                if isinstance(given, torch.Generator) and isinstance(state, torch.Generator):
                    given.set_state(state.get_state())
            return answer[1]

        return ask

    # -- requests ---------------------------------------------------------------------------------------------------
    def _load(self, module: str, parts: list[list[Any]], off_limits: bool) -> list[Any]:
        if off_limits:
            offlimits.forbid()
        sys.argv = [module]
        self._conduct.active = True
        loaded = loading.load(module, [loading.Part(*part) for part in parts])
        self._conduct.active = False
        self._module = loaded.module
        self._sources = {name: text for name, text, _ in parts}
        failed = [[name, raised.text] for name, raised in loaded.failed_cells]
        problem = None if loaded.raised is None else loaded.raised.text
        return ["loaded", problem, failed, self._conduct.take()]

    def _call(self, target: Any, args: list[Any], kwargs: dict[str, Any], trap: bool) -> list[Any]:
        function = getattr(self._module, target, None) if isinstance(target, str) else target
        if not callable(function):
            return ["missing"]
        inputs = self._inputs
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
        after = [value if _sent_back(value) else None for value in (*args, *kwargs.values())]
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
            return list(
                torch.autograd.grad(
                    [outputs[number] for number in wanted], inputs, weights, retain_graph=True, allow_unused=True
                )
            )

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

    def _end(self) -> list[Any]:
        self._graphs.clear()
        self._inputs = []
        return ["done"]


def _sent_back(value: Any) -> bool:
    """Arguments that are compared after the call: lists and dicts; generators, whose state moves; tensors on a GPU."""
    return type(value) in (list, dict, torch.Generator) or (type(value) is torch.Tensor and value.device.type != "cpu")


def raised_frame(raised: Raised) -> list[Any]:
    lines = [[number, text] for number, text in raised.lines]
    return [raised.type_name, raised.base, raised.message, raised.explicit, lines]

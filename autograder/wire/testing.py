"""The wire turned round: tests of the student's that run on their side, on functions that answer in the grader."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from autograder.report import plain_text

#: How a test may end, as `exercises.kit.testing` says; anything else that a worker says is an error.
OUTCOMES = ("passed", "failed", "error", "timeout", "skipped", "unwritten")
MOST_TESTS = 100
NAME_LIMIT = 200
MESSAGE_LIMIT = 500

Implementation = Mapping[str, Callable[..., Any]]


@dataclass(frozen=True)
class Collected:
    """The student's tests.  left_out: how many beyond the limit.  problems: what could not be collected."""

    names: tuple[str, ...]
    left_out: int = 0
    problems: tuple[str, ...] = ()


@dataclass(frozen=True)
class Tested:
    """How one test ended.  outcome: "failed" is a failed assertion and nothing else.  message: what it said."""

    outcome: str
    message: str = ""


def collected(names: Any, left_out: Any, problems: Any) -> Collected:
    """What a worker says of its tests.  Raises ValueError if that is no list of different names."""
    if type(names) is not list or type(left_out) is not int or type(problems) is not list:
        raise ValueError("no list of tests")
    if len(names) > MOST_TESTS or any(type(text) is not str for text in (*names, *problems[:5])):
        raise ValueError("too many tests, or names that are none")
    if len(set(names)) != len(names):
        raise ValueError("two tests of one name")
    return Collected(tuple(names), left_out, tuple(plain_text(problem, MESSAGE_LIMIT) for problem in problems[:5]))


def tested(outcome: Any, message: Any) -> Tested:
    """What a worker says of one test."""
    known = outcome if isinstance(outcome, str) and outcome in OUTCOMES else "error"
    return Tested(known, plain_text(message if isinstance(message, str) else "", MESSAGE_LIMIT))


def with_their_state(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, drawing from the default generator of PyTorch of whoever calls it from the other side.

    The caller gives the generator's state first, in a list; what is in the list afterwards is its new state.
    """

    def call(state: list[torch.Tensor], *args: Any, **kwargs: Any) -> Any:
        ours = torch.get_rng_state()
        torch.set_rng_state(state[0])
        try:
            return function(*args, **kwargs)
        finally:
            state[0] = torch.get_rng_state()
            torch.set_rng_state(ours)

    return call

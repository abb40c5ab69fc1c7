"""Verdicts by precedent: what a check asks and how it ends follow from the answers, so the same answers end the same.

A submission is asked what the last one was asked, and as long as its answers are those of one before it, bit by bit,
nothing is judged: the check ends as it ended then.  With the first answer that is new the check itself runs, is told
the answers so far, and asks on.  No question is asked before the answers to those before it are there.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Generic, TypeVar

import numpy as np

#: What all precedents of a grading process may take, and one check of one submission: bytes.
ALL_BYTES = 32 * 1024 * 1024
CHECK_BYTES = 8 * 1024 * 1024
#: A request, an answer and what ties them together take so many bytes beside their own; what a part comes to, so many.
_OVERHEAD = 600
_PART_BYTES = 1024 * 1024

#: So begins the name of a part of checks.
PART = "part "

Ending = TypeVar("Ending")


@dataclass(frozen=True, slots=True)
class Request:
    """A message to a worker.

    message: with the identity of this request, and those of earlier ones that it names: (identity, how manieth).
        An answer to a question of the worker's has no identity of its own: it goes by that of the request.
        The name of a part that checks share, which is a conversation of its own, has an empty one.
    stored: what of its arguments lies in the shared memory, one after the other.
    """

    message: bytes
    identity: bytes
    earlier: tuple[tuple[bytes, int], ...]
    stored: tuple[bytes, ...]

    @property
    def is_part(self) -> bool:
        return not self.identity

    @property
    def is_answer(self) -> bool:
        """Whether it belongs to the request before it."""
        return self.identity not in self.message


@dataclass(slots=True)
class Point(Generic[Ending]):
    """Where a check stands after certain answers: what it asks next, or how it ends, if that is known."""

    request: Request | None = None
    answers: dict[bytes, Point[Ending]] = field(default_factory=dict)
    ending: Ending | None = None


class Precedents(Generic[Ending]):
    """How checks ended, by the answers they got.  Only for checks that run on the same inputs for every submission."""

    def __init__(self) -> None:
        self._roots: dict[tuple[str, str, bytes], Point[Ending]] = {}
        self._arrays: dict[bytes, bytes] = {}
        self._left = ALL_BYTES

    def begin(self, exercise: str, check: str, seen: bytes = b"") -> Conversation[Ending]:
        """The check begins.  seen: what else it may know of the submission, from earlier checks."""
        key = (exercise, check, seen)
        return Conversation(self, self._roots.get(key) or Point(), key)

    def add(self, key: tuple[str, str, bytes], exchanges: Sequence[_Exchange], ending: Ending) -> None:
        """Keep how a check ended, if there is room."""
        arrays = {data for exchange in exchanges for data in exchange.request.stored} - self._arrays.keys()
        new = sum(len(exchange.request.message) + _OVERHEAD for exchange in exchanges) + sum(map(len, arrays))
        new += _PART_BYTES if key[1].startswith(PART) else 0
        if new > self._left:
            return
        self._left -= new
        point = self._roots.setdefault(key, Point())
        for exchange in exchanges:
            assert not isinstance(exchange.answer, Exception)
            if point.request is None:
                stored = tuple(self._arrays.setdefault(data, data) for data in exchange.request.stored)
                point.request = replace(exchange.request, stored=stored)
            point = point.answers.setdefault(_digest(exchange.answer, exchange.request.identity), Point())
        point.ending = ending


@dataclass(frozen=True, slots=True)
class _Exchange:
    """changed: whether the worker had changed arguments in the shared memory when it answered."""

    request: Request
    answer: bytes | Exception
    changed: bool = False


class Conversation(Generic[Ending]):
    """What one check asks one submission, and the answers.

    First it is retraced: `next_request`, `answered`, and so on; then the check runs, and is `told` the answers that
    there are already.  What it asks beyond them is to be kept by `note`, and in the end by `close`.
    """

    def __init__(self, precedents: Precedents[Ending], root: Point[Ending], key: tuple[str, str, bytes]) -> None:
        self._precedents = precedents
        self._key = key
        self._point = root
        self._exchanges: list[_Exchange] = []
        self._told = 0
        #: Whether what was told last came with arguments that nobody had changed.
        self.unchanged = False
        self._left = CHECK_BYTES
        self._kept = True

    # -- retracing --------------------------------------------------------------------------------------------------
    def next_request(self, identity: bytes) -> Request | None:
        """What was asked here before, under a new identity; None if nothing is known to come."""
        request = self._point.request
        if request is None or request.is_part:
            return request
        if request.is_answer:
            return replace(request, identity=self._exchanges[-1].request.identity)
        named = [(old, self._exchanges[place].request.identity, place) for old, place in request.earlier]
        message = request.message.replace(request.identity, identity)
        for old, new, _ in named:
            message = message.replace(old, new)
        return Request(message, identity, tuple((new, place) for _, new, place in named), request.stored)

    def answered(self, request: Request, answer: bytes | Exception, changed: bool = False) -> bool:
        """Note the answer, or why there is none; whether it was given before.

        changed: whether the worker has changed arguments in the shared memory, which is no precedent.
        """
        self._exchanges.append(_Exchange(request, answer, changed))
        known = None
        if not changed and not isinstance(answer, Exception):
            known = self._point.answers.get(_digest(answer, request.identity))
        if known is not None:
            self._point = known
        return known is not None

    @property
    def ending(self) -> Ending | None:
        """How the check ended, if it was retraced to its end."""
        return self._point.ending

    # -- running ----------------------------------------------------------------------------------------------------
    @property
    def telling(self) -> bool:
        """Whether the next request has an answer already."""
        return self._told < len(self._exchanges)

    def identity(self) -> bytes | None:
        """The identity under which the next request was made already; None if it was not."""
        return self._exchanges[self._told].request.identity if self.telling else None

    def told(self, message: bytes) -> bytes | None:
        """The answer that this request got already, see `unchanged`; None if it was not made yet.

        Raises what it came to, if it got none, and LookupError if another request was made in its place.
        """
        if not self.telling:
            self.unchanged = False
            return None
        exchange = self._exchanges[self._told]
        self._told += 1
        self.unchanged = not exchange.changed
        if exchange.request.message != message:
            raise LookupError
        if isinstance(exchange.answer, Exception):
            raise exchange.answer
        return exchange.answer

    @property
    def digest(self) -> bytes | None:
        """What stands for all answers of a part in the checks that share it; None if it is no precedent."""
        if not self._kept:
            return None
        answers = b"".join(
            _digest(exchange.answer, exchange.request.identity)
            for exchange in self._exchanges
            if isinstance(exchange.answer, bytes)
        )
        return hashlib.blake2b(answers, digest_size=16).digest()

    def note(
        self,
        message: bytes,
        identity: bytes,
        answer: bytes,
        stored: Sequence[np.ndarray] = (),
        names: bytes | None = None,
    ) -> None:
        """Keep a request and its answer.

        stored: arguments in shared memory, as they were.  names: the identity of an earlier request that it is about.
        """
        if not self._kept:
            return
        self._left -= len(message) + sum(data.size for data in stored)
        if self._left < 0:
            return self.forget()
        earlier = tuple(
            (names, place) for place, exchange in enumerate(self._exchanges) if exchange.request.identity == names
        )
        request = Request(message, identity, earlier, tuple(data.tobytes() for data in stored))
        self._exchanges.append(_Exchange(request, answer))
        self._told += 1

    @property
    def kept(self) -> bool:
        """Whether this may follow a precedent, and be one."""
        return self._kept

    def forget(self) -> None:
        """This is no precedent: more than the answers had a part in it."""
        self._kept = False

    def close(self, ending: Ending) -> None:
        """The check is over: the next submission that answers like this one ends like it."""
        if self._kept and self._exchanges and not self.telling:
            self._precedents.add(self._key, self._exchanges, ending)


def _digest(answer: bytes, identity: bytes) -> bytes:
    """What is kept of an answer: equal for the same answer only, whatever the identity of the request."""
    return hashlib.blake2b(answer.replace(identity, b"", 1), digest_size=16).digest()

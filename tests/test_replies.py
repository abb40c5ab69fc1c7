"""What a worker says beside a result is what it is named, or is refused."""

from __future__ import annotations

import fcntl
import itertools
import os
from typing import Any

import numpy as np
import pytest
import torch

from autograder.wire import replies, testing
from autograder.wire.arena import Arena
from autograder.wire.codec import MAX_PAIRS, Decoder, Encoder, WireError
from autograder.wire.errors import Raised, remote_error

IDENTITY = b"0123456789abcdef"
ODD: list[Any] = [
    *(None, True, 5, -1.5, float("inf"), float("nan"), "x" * 10_000, b"x", [], [[]], [5], (), {}, {"a": 1}, 2**1000),
    *(torch.zeros(3), torch.zeros(0), np.zeros(3), np.float64(1), torch.float32, [None] * 200, ["\x1b[2J\n::error::x"]),
]


@pytest.mark.parametrize(
    ("read", "right"),
    [
        (replies.seen, (["torch"], [None], ["fault"], ["note"])),
        (replies.raised, ("E", "ValueError", "why", True, [[3, "x = 1"]])),
        (replies.loaded, (None, [["cell 1", "why"]], ["note"])),
        (lambda fields: testing.collected(*fields), (["test_a", "test_b"], 0, ["problem"])),
        (lambda fields: testing.tested(*fields), ("failed", "why")),
    ],
)
def test_every_odd_field_is_refused_or_made_plain(read: Any, right: tuple[Any, ...]) -> None:
    read(right)
    for place, odd in itertools.product(range(len(right)), ODD):
        try:
            found = read((*right[:place], odd, *right[place + 1 :]))
        except ValueError:  # WireError is one
            continue
        assert len(repr(found)) < 30_000
        assert "\x1b" not in repr(found)
        if isinstance(found, Raised):
            remote_error(found)
    for count in range(len(right) - 1):
        with pytest.raises((ValueError, TypeError)):
            read(right[:count])


def test_notes_are_one_line_each() -> None:
    assert replies.notes(["a\n::error::b"]) == ["a ::error::b"]


def test_a_reply_names_the_request_it_answers() -> None:
    assert replies.is_reply(["value", IDENTITY, 1], IDENTITY)
    for frame in ([], ["value"], ["value", np.zeros(16, np.uint8)], [5, IDENTITY], ["value", bytearray(IDENTITY)]):
        assert not replies.is_reply(frame, IDENTITY)


def test_a_dict_with_too_many_keys_is_refused() -> None:
    """Thirty thousand keys of one hash value took the decoder minutes."""
    for count, right in ((MAX_PAIRS, True), (MAX_PAIRS + 1, False)):
        packed = Encoder().pack([dict.fromkeys(range(count), 0)])
        if right:
            assert len(Decoder().unpack(packed)[0]) == count
        else:
            with pytest.raises(WireError):
                Decoder().unpack(packed)


def test_shared_memory_cannot_be_resized() -> None:
    """Whoever made it smaller had the grader end by SIGBUS at its next look."""
    arena = Arena()
    try:
        seals = fcntl.fcntl(arena.descriptor, fcntl.F_GET_SEALS)
        assert seals & fcntl.F_SEAL_SHRINK
        assert seals & fcntl.F_SEAL_SEAL
        with pytest.raises(PermissionError):
            os.ftruncate(arena.descriptor, 0)
    finally:
        arena.close()

"""What is noticed of a call: draws from the generators that all share.  And whole messages out of any pieces."""

from __future__ import annotations

import random
import socket
from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from autograder.sandbox import calling
from autograder.wire import frames
from autograder.wire.codec import MAX_DEPTH, MAX_ITEMS, Decoder, Encoder, WireError


@pytest.fixture
def unchanged() -> Callable[[], list[str]]:
    """Puts the generators back in the end; which of them have moved since."""
    before = random.getstate(), np.random.get_state(), torch.get_rng_state()
    states = calling.generator_states()

    def moved() -> list[str]:
        pairs = zip(calling._GENERATORS, states, calling.generator_states(), strict=True)
        return [name for name, was, now in pairs if was != now]

    yield moved
    random.setstate(before[0])
    np.random.set_state(before[1])
    torch.set_rng_state(before[2])


@pytest.mark.parametrize(
    ("draw", "generator"),
    [
        (lambda: None, None),
        (lambda: random.Random(3).random(), None),
        (lambda: torch.rand(2, generator=torch.Generator()), None),
        (lambda: np.random.default_rng(0).random(), None),
        (random.random, "random"),
        (lambda: random.seed(1), "random"),
        (lambda: random.shuffle([1, 2, 3]), "random"),
        (lambda: np.random.rand(), "numpy"),
        (lambda: np.random.seed(1), "numpy"),
        (lambda: torch.rand(1), "torch"),
        (lambda: torch.manual_seed(1), "torch"),
    ],
)
def test_a_draw_is_noticed_and_nothing_else(unchanged, draw: Callable[[], object], generator: str | None) -> None:
    draw()
    assert unchanged() == [generator] * (generator is not None)


def test_the_second_half_of_a_pair_is_a_draw() -> None:
    """`random.gauss` makes two numbers at a time and keeps one: then the words stay as they are."""
    before = random.getstate()
    try:
        random.seed(3)
        random.gauss(0, 1)
        kept = calling.generator_states()[2]
        random.gauss(0, 1)
        assert calling.generator_states()[2] != kept
    finally:
        random.setstate(before)


def test_the_state_lies_where_it_is_looked_for_or_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    assert calling._LIES_THERE  # on CPython 3.11; elsewhere the slow way does
    monkeypatch.setattr(calling, "_LIES_THERE", False)
    assert calling.generator_states()[2] == random.getstate()


@settings(deadline=None)
@given(
    st.lists(st.binary(max_size=30), min_size=1, max_size=6), st.lists(st.integers(1, 40), max_size=10), st.booleans()
)
def test_messages_are_whole_in_whatever_pieces_they_come(messages: list[bytes], cuts: list[int], waits: bool) -> None:
    stream = b"".join(frames.framed(message) for message in messages)
    pieces = []
    for cut in cuts:
        pieces.append(stream[:cut])
        stream = stream[cut:]
    pieces = [piece for piece in [*pieces, stream] if piece]
    ours, theirs = socket.socketpair()
    with ours, theirs:
        reader = frames.Reader(ours)

        def wait() -> None:
            if pieces:
                theirs.sendall(pieces.pop(0))

        if not waits:
            theirs.sendall(b"".join(pieces))
        assert [reader.receive(wait if waits else None) for _ in messages] == messages
        theirs.close()
        with pytest.raises(frames.Closed):
            reader.receive()


@pytest.mark.parametrize("item", [0, "", None, b"", 0.5, True])
def test_lists_of_plain_values_have_limits(item: object) -> None:
    def nested(depth: int, count: int) -> list[object]:
        value: list[object] = [item] * count
        for _ in range(depth):
            value = [value]
        return value

    for value, crosses in (
        (nested(0, MAX_ITEMS - 2), True),
        (nested(0, MAX_ITEMS), False),
        (nested(MAX_DEPTH - 2, 1), True),
        (nested(MAX_DEPTH, 1), False),
    ):
        if crosses:
            assert Decoder().unpack(Encoder().pack([value])) == [value]
        else:
            with pytest.raises(WireError, match=r"nested|items"):
                Encoder().pack([value])


def test_bytes_with_more_plain_values_than_may_cross_are_refused() -> None:
    tree: object = ["l", [0] * 10]
    for _ in range(MAX_DEPTH):
        tree = ["l", [tree]]
    wide = ["l", [["l", [0] * (MAX_ITEMS // 2)], ["l", [0] * (MAX_ITEMS // 2)]]]
    for body in (tree, wide):
        with pytest.raises(WireError, match=r"nested|items"):
            Decoder().unpack(Encoder().seal([body]))


@pytest.mark.parametrize("number", [2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**200])
def test_large_integers_cross_alone_and_in_lists(number: int) -> None:
    for value in (number, [number], [1, number], (number, 0.5), ["a", number]):
        assert Decoder().unpack(Encoder().pack([value])) == [value]

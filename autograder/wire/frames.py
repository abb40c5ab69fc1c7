"""Whole messages over a stream socket: four bytes of length, then the message."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

from autograder.wire.codec import MAX_BYTES, WireError

_LENGTH = struct.Struct("!I")
_PIECE = 1 << 18


class Closed(Exception):
    """The other side is gone."""


def framed(*messages: bytes) -> bytes:
    """The messages as they go over the stream."""
    return b"".join([piece for message in messages for piece in (_LENGTH.pack(len(message)), message)])


def send(channel: socket.socket, message: bytes) -> None:
    """Send one message.  Raises Closed if nobody reads it."""
    try:
        channel.sendall(framed(message))
    except (BrokenPipeError, ConnectionError) as error:
        raise Closed from error


class Reader:
    """Reads messages from a socket, most of them in one call of the kernel."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel
        self._data = bytearray()

    def receive(self, wait: Callable[[], None] | None = None) -> bytes:
        """The next message.

        wait: called before every read; returns once there is something to read, or raises to give up.
        Raises Closed at the end of the stream, WireError for a message larger than the limit.
        """
        if not self._data:
            piece = self._piece(wait)
            if piece.startswith(_LENGTH.pack(max(0, len(piece) - _LENGTH.size))):
                return piece[_LENGTH.size :]  # one message, and nothing else
            self._data += piece
        self._fill(_LENGTH.size, wait)
        (length,) = _LENGTH.unpack_from(self._data)
        if length > MAX_BYTES:
            raise WireError(f"a message of {length:,} bytes is too large")
        end = _LENGTH.size + length
        self._fill(end, wait)
        message = bytes(memoryview(self._data)[_LENGTH.size : end])
        del self._data[:end]
        return message

    def _fill(self, count: int, wait: Callable[[], None] | None) -> None:
        while len(self._data) < count:
            self._data += self._piece(wait)

    def _piece(self, wait: Callable[[], None] | None) -> bytes:
        while True:
            if wait is not None:
                wait()
            try:
                piece = self._read(0 if wait is None else socket.MSG_DONTWAIT)
            except BlockingIOError:
                continue
            if not piece:
                raise Closed
            return piece

    def _read(self, flags: int) -> bytes:
        try:
            return self._channel.recv(_PIECE, flags)
        except ConnectionError as error:
            raise Closed from error

"""Whole messages over a stream socket: four bytes of length, then the message."""

from __future__ import annotations

import os
import socket
import struct
import time
from collections.abc import Callable

from autograder.wire.codec import MAX_BYTES, WireError

_LENGTH = struct.Struct("!I")
_PIECE = 1 << 18
#: Seconds to look for an answer before going to sleep.
_MOMENT = 200e-6


class Closed(Exception):
    """The other side is gone."""


def send(channel: socket.socket, message: bytes) -> None:
    """Send one message.  Raises Closed if nobody reads it."""
    try:
        channel.sendall(_LENGTH.pack(len(message)) + message)
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
            piece = self._soon()
            if piece is None:
                if wait is not None:
                    wait()
                    continue
                piece = self._read(0)
            if not piece:
                raise Closed
            self._data += piece

    def _soon(self) -> bytes | None:
        """What can be read within a moment: going to sleep and being woken costs more than most answers take."""
        deadline = time.perf_counter() + _MOMENT
        while True:
            try:
                return self._read(socket.MSG_DONTWAIT)
            except BlockingIOError:
                if time.perf_counter() > deadline:
                    return None
                os.sched_yield()

    def _read(self, flags: int) -> bytes:
        try:
            return self._channel.recv(_PIECE, flags)
        except ConnectionError as error:
            raise Closed from error

"""Whole messages over a stream socket: four bytes of length, then the message."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

from autograder.wire.codec import MAX_BYTES, WireError

_LENGTH = struct.Struct("!I")


class Closed(Exception):
    """The other side is gone."""


def send(channel: socket.socket, message: bytes) -> None:
    """Send one message.  Raises Closed if nobody reads it."""
    try:
        channel.sendall(_LENGTH.pack(len(message)) + message)
    except (BrokenPipeError, ConnectionError) as error:
        raise Closed from error


def receive(channel: socket.socket, wait: Callable[[], None] | None = None) -> bytes:
    """Receive one message.

    wait: called before every read; returns once there is something to read, or raises to give up.
    Raises Closed at the end of the stream, WireError for a message larger than the limit.
    """
    length = _LENGTH.unpack(_exactly(channel, _LENGTH.size, wait))[0]
    if length > MAX_BYTES:
        raise WireError(f"a message of {length:,} bytes is too large")
    return _exactly(channel, length, wait)


def _exactly(channel: socket.socket, count: int, wait: Callable[[], None] | None) -> bytes:
    data = bytearray()
    while len(data) < count:
        if wait is not None:
            wait()
        try:
            piece = channel.recv(min(count - len(data), 1 << 20))
        except BlockingIOError:
            continue
        except ConnectionError as error:
            raise Closed from error
        if not piece:
            raise Closed
        data += piece
    return bytes(data)

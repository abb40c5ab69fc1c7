"""Memory that grader and worker share: arguments lie in it, so that the grader sees whether they were changed."""

from __future__ import annotations

import fcntl
import mmap
import os

import numpy as np

SIZE = 256 * 1024 * 1024
_ALIGNMENT = 64


class Arena:
    """A region of shared memory that fills from the bottom.

    Memory is used again only after `reset`, at the end of a check, because the worker's graphs refer to it.
    used: bytes in use.
    """

    def __init__(self) -> None:
        self.descriptor = os.memfd_create("arguments", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.ftruncate(self.descriptor, SIZE)
        # a worker that made it smaller would have the grader end by SIGBUS (memfd_create(2), file sealing)
        fcntl.fcntl(self.descriptor, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_SEAL)
        self._memory = mmap.mmap(self.descriptor, SIZE)
        self._bytes = np.frombuffer(self._memory, np.uint8)
        self.used = 0

    def store(self, data: np.ndarray, copy: bool = True) -> list[int] | None:
        """Copy bytes (uint8, 1-D) in; their [offset, length], or None if there is no room left.

        copy: False for bytes that were stored there before the memory was `reset`.
        """
        start = -(-self.used // _ALIGNMENT) * _ALIGNMENT
        if start + data.size > SIZE:
            return None
        if copy:
            self._bytes[start : start + data.size] = data
        self.used = start + data.size
        return [start, int(data.size)]

    def holds(self, place: list[int], data: np.ndarray | bytes) -> bool:
        """Whether the bytes at that place still are these."""
        start, length = place
        return self._memory[start : start + length] == bytes(data)

    def reset(self) -> None:
        self.used = 0

    def close(self) -> None:
        self._bytes = np.empty(0, np.uint8)
        self._memory.close()
        os.close(self.descriptor)


def attach(descriptor: int) -> memoryview:
    """The worker's view of the arena."""
    return memoryview(mmap.mmap(descriptor, SIZE))

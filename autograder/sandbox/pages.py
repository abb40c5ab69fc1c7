"""The memory that workers share with the zygote: a fork and an end cost time by the page, and so does what is written.

A page that a worker writes to is copied for it.  So little of what is shared should be written to, and the rest lie on
large pages.
"""

from __future__ import annotations

import contextlib
import gc
import os
import re
import sys
from collections.abc import Callable

from autograder.sandbox import syscalls

LARGE = 2 * 1024 * 1024
#: Sizes of blocks that fill the gaps of the C library's heap, in bytes.
_SIZES = (*(1 << power for power in range(16, 10, -1)), *range(1024, 0, -16))
#: A line of what Python says of its own heap: class, size, pools, blocks in use, free blocks.
_SIZE_CLASS = re.compile(r"^ *\d+ +(\d+) +\d+ +\d+ +(\d+)$", re.MULTILINE)
_BYTES_HEAD = sys.getsizeof(b"")
_filling: list[object] = []


def forget_everything() -> None:
    """Keep the collector from touching, and so copying, what is there already."""
    gc.collect()
    gc.freeze()
    gc.enable()  # it was of no use while libraries were loaded


def fill_gaps() -> None:
    """Take what is free between blocks in use, for good: what a worker makes lies together then, on pages of its own.

    In the gaps it would lie on pages that are shared, nearly each on another.
    """
    for size, free in _SIZE_CLASS.findall(_said(getattr(sys, "_debugmallocstats", lambda: None))):
        _filling.extend([_block(int(size)) for _ in range(int(free))])
    for bytes_ in _SIZES:
        free, top = syscalls.heap()
        for _ in range(free // bytes_):
            syscalls.allocate(bytes_)
            if syscalls.heap()[1] != top:  # no gap of that size is left
                break


def _block(size: int) -> object:
    """An object of so many bytes, at most, that comes from the heap whatever there is already."""
    if size > _BYTES_HEAD:
        return bytes(size - _BYTES_HEAD)
    return complex(size, size) if size >= 32 else object()


def _said(function: Callable[[], None]) -> str:
    """What a function writes to the standard error from C."""
    stderr, said = os.dup(2), os.memfd_create("said")
    try:
        os.dup2(said, 2)
        function()
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
    with open(said, encoding="utf-8") as file:
        file.seek(0)
        return file.read()


def ranges() -> list[tuple[int, int]]:
    """This process's own memory that is backed by no file, in whole large pages: (address, bytes), from proc(5)."""
    found = []
    if not os.path.exists("/proc/self/maps"):
        return []
    with open("/proc/self/maps", encoding="utf-8") as lines:
        for line in lines:
            addresses, mode, _, _, inode, *name = line.split()
            if inode != "0" or "w" not in mode or (name and name != ["[heap]"]):
                continue
            first, last = (int(address, 16) for address in addresses.split("-"))
            first, last = -(-first // LARGE) * LARGE, last // LARGE * LARGE
            if last > first:
                found.append((first, last - first))
    return found


def enlarge(memory: list[tuple[int, int]]) -> None:
    """Make small pages large where the kernel can (Linux 6.1 or newer), and leave the rest as it is."""
    for first, size in memory:
        for address in range(first, first + size, LARGE):
            with contextlib.suppress(OSError):
                syscalls.collapse(address, LARGE)

"""Large pages for the memory that workers share with the zygote: a fork and an end cost time by the page.

What a worker writes to is still copied in small pages.
"""

from __future__ import annotations

import contextlib
import os

from autograder.sandbox import syscalls

LARGE = 2 * 1024 * 1024


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

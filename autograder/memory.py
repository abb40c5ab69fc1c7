"""Memory of a process that grades for hours."""

from __future__ import annotations

import ctypes

#: Submissions after which it is done; it takes some 50 ms.
EVERY = 100


def give_back() -> None:
    """Return to the kernel what lies free between blocks in use: malloc_trim(3), where the C library has it.

    Checks of exercise 5 make large arrays of every size, and what is left between others adds up.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)

"""Processes that tests start: what is below them, and how they take Ctrl-C."""

from __future__ import annotations

import contextlib
import os
import signal
from pathlib import Path


def below(pid: int) -> list[int]:
    """The process and all that it started."""
    found = [pid]
    for process in found:
        with contextlib.suppress(OSError):  # it may end while it is looked at
            for task in os.listdir(f"/proc/{process}/task"):
                found += map(int, Path(f"/proc/{process}/task/{task}/children").read_text().split())
    return found


def heeds_ctrl_c() -> None:
    """For preexec_fn: who runs the tests in the background may have SIGINT ignored, and Python then keeps to that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)

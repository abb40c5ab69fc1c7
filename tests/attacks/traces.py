"""What a command may leave behind: processes that still run, and files in its folder for temporary ones."""

from __future__ import annotations

import time
from pathlib import Path

from benchmarks.soak_check import left_processes

PATIENCE = 20.0


def left_by(temporary: Path) -> list[str]:
    """Processes that were started with the command's folder for temporary files, and files in it.

    Zygotes are started with a path below it; all that is forked from them has the same command line.
    """
    deadline = time.monotonic() + PATIENCE
    while (found := left_processes(temporary)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return [*(f"process {pid}" for pid in found), *(str(path) for path in temporary.iterdir())]

"""What a command may leave behind: processes that still run, and files in its folder for temporary ones."""

from __future__ import annotations

import os
import time
from pathlib import Path

PATIENCE = 20.0


def left_by(temporary: Path) -> list[str]:
    """Processes whose command line names the command's folder for temporary files, and files in it.

    Zygotes are started with a path below it; all that is forked from them has the same command line.
    """
    deadline = time.monotonic() + PATIENCE
    while (found := _processes(temporary)) and time.monotonic() < deadline:
        time.sleep(0.1)
    return [*found, *(str(path) for path in temporary.iterdir())]


def _processes(temporary: Path) -> list[str]:
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            line = Path(f"/proc/{pid}/cmdline").read_bytes()
        except OSError:
            continue
        if os.fsencode(temporary) in line:
            found.append(f"process {pid}")
    return found

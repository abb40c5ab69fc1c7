"""Scratch folders that nobody leaves behind: what a killed process could not remove, the next one does."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import time
from pathlib import Path

PREFIX = "autograder-zygote-"
_LOCK = "owner"
_UNFINISHED_SECONDS = 3600


class ScratchFolder:
    """A folder of its own in the temporary folder, locked (flock(2)) for as long as the process lives.

    path: readable by everybody, writable by its owner.
    """

    def __init__(self) -> None:
        remove_abandoned()
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX))
        lock = self.path / f"{_LOCK}.new"
        self._descriptor = os.open(lock, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        lock.rename(self.path / _LOCK)  # under that name it was never to be had without the lock
        self.path.chmod(0o755)

    def remove(self) -> None:
        """Remove it, and what was abandoned meanwhile: a process that this one started may have been killed."""
        _remove(self.path)
        os.close(self._descriptor)
        remove_abandoned()


def remove_abandoned() -> None:
    """Remove this user's folders whose owners are gone."""
    base = tempfile.gettempdir()
    with contextlib.suppress(OSError), os.scandir(base) as entries:
        for entry in entries:
            if entry.name.startswith(PREFIX):
                with contextlib.suppress(OSError):
                    _remove_if_abandoned(entry.path)


def _remove_if_abandoned(path: str) -> None:
    about = os.lstat(path)
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid():
        return
    try:
        descriptor = os.open(os.path.join(path, _LOCK), os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:  # killed while it was made, or another program's
        if time.time() - about.st_mtime > _UNFINISHED_SECONDS and set(os.listdir(path)) <= {f"{_LOCK}.new"}:
            shutil.rmtree(path)
        return
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        _remove(Path(path))
    finally:
        os.close(descriptor)


def _remove(folder: Path) -> None:
    """Remove a folder, its lock last: what cannot be removed, as a worker still writes there, is by the next."""
    with contextlib.suppress(OSError):
        for entry in folder.iterdir():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
            elif entry.name != _LOCK:
                entry.unlink()
        if [entry.name for entry in folder.iterdir()] == [_LOCK]:
            shutil.rmtree(folder)

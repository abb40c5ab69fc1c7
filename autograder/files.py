"""Files that are there as a whole or not at all, under names that do no harm."""

from __future__ import annotations

import errno
import hashlib
import os
import re
from collections.abc import Sequence
from pathlib import Path

#: What `write_atomically` calls a file that is not whole yet.
UNFINISHED = re.compile(r"\..+\.\d+\.tmp")


class CannotWrite(OSError):
    """A file that is to hold results cannot be written; the message says which, and why."""

    def __str__(self) -> str:
        return f"{self.filename}: cannot be written ({self.strerror})"


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that, whatever happens, it is there as a whole or not at all (rename(2), fsync(2)).

    Raises CannotWrite.
    """
    try:
        _write_atomically(path, text)
    except OSError as error:
        raise CannotWrite(error.errno or errno.EIO, error.strerror or str(error), str(path)) from error


def _write_atomically(path: Path, text: str) -> None:
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def file_stems(paths: Sequence[str]) -> list[str]:
    """A file name without suffix for each path: readable, harmless, and not one of them twice, whatever their case."""
    names: list[str] = []
    taken: set[str] = set()
    for path in paths:
        plain = path.replace("/", "-").strip("-.")
        stem = re.sub(r"[^\w.-]+", "-", plain, flags=re.ASCII)[-100:].strip("-.")
        if stem != plain or not stem or stem.casefold() in taken:
            digest = hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:8]
            stem = f"{stem or 'submission'}-{digest}"
        name, copy = stem, 1
        while name.casefold() in taken:
            copy += 1
            name = f"{stem}-{copy}"
        taken.add(name.casefold())
        names.append(name)
    return names

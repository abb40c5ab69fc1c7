"""The folder that `grade --out` and `batch --out` leave, read one result after the other."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from autograder.render import jsonlines
from autograder.report import Report
from autograder.submission import UsageError


@dataclass(frozen=True)
class Unreadable:
    """A file of the folder that is no result.  why: in a sentence."""

    why: str


def result_files(folder: str) -> list[Path]:
    """The results in a folder, in the order of their names.  Raises UsageError if there are none."""
    try:
        with os.scandir(folder) as entries:
            names = sorted(entry.name for entry in entries if entry.name.endswith(".json") and entry.name[0] != ".")
    except OSError as error:
        raise UsageError(f"{folder}: the folder of results cannot be read ({error.strerror})") from None
    if not names:
        raise UsageError(
            f"{folder}: there is no result there: name the folder that `autograder batch --out` has filled"
        )
    return [Path(folder, name) for name in names]


def read_result(path: Path) -> Report | Unreadable:
    """What a file holds.  One that is damaged, or no file, is no reason to stop."""
    try:
        if not path.is_file():
            return Unreadable("it is not a file")
        return jsonlines.read(path.read_text(encoding="utf-8"))
    except OSError as error:
        return Unreadable(f"it cannot be read ({error.strerror})")
    except UnicodeDecodeError:
        return Unreadable("it is not text in UTF-8")
    except ValueError as error:
        return Unreadable(str(error))

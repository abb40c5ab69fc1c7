"""The code of a class as JPlag and Dolos read it: a folder for each submission, and what was given to all."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from datetime import UTC, datetime

from autograder.classreport.site import OwnFolder
from autograder.plain import plain_text
from autograder.syllabus import EXERCISES

_MODULES = {exercise.id: exercise.module for exercise in EXERCISES.values()}
_README = """\
# The code of a class, for JPlag and Dolos

One folder a submission in `submissions/`; a notebook is there as a module of its code cells. `base/` holds the stubs:
what all were given. What both tools report is a signal, not a verdict.

JPlag compares all exercises together:

    java -jar jplag.jar -l python3 -bc base submissions

Dolos compares one exercise at a time, and shows who handed in when:

{dolos}
"""


class Export:
    """Writes each submission as it comes; `finish` writes what both tools need beside."""

    def __init__(self, folder: OwnFolder) -> None:
        self._folder = folder
        self._rows: dict[str, list[tuple[str, str, str]]] = {}

    def add(self, page: str, name: str, time: float | None, code: Mapping[str, str]) -> None:
        for exercise, text in code.items():
            file = f"submissions/{page}/{_MODULES[exercise]}.py"
            self._folder.write(file, text)
            when = "" if time is None else datetime.fromtimestamp(time, UTC).strftime("%Y-%m-%d %H:%M:%S +0000")
            self._rows.setdefault(exercise, []).append((file, name, when))

    def finish(self, stubs: Mapping[str, str]) -> None:
        commands = []
        for exercise, rows in sorted(self._rows.items()):
            stream = io.StringIO(newline="")
            table = csv.writer(stream, lineterminator="\n")
            table.writerows([("filename", "full_name", "created_at"), *((f, _inert(n), t) for f, n, t in rows)])
            self._folder.write(f"{exercise}.csv", stream.getvalue())
            self._folder.write(f"base/{_MODULES[exercise]}.py", stubs[exercise])
            commands.append(f"    dolos run -f web -l python -i base/{_MODULES[exercise]}.py {exercise}.csv")
        self._folder.write("README.md", _README.format(dolos="\n".join(commands)))


def _inert(name: str) -> str:
    """A cell that no spreadsheet computes."""
    clean = " ".join(plain_text(name, 200).split())
    return f"'{clean}" if clean.startswith(("=", "+", "-", "@")) else clean

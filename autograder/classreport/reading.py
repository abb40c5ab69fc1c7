"""Stored results one after the other, however many there are, and the work that each of them is about."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from autograder.batch.sources import HandedIn, handed_in
from autograder.batch.stored import Unreadable, read_result, result_files
from autograder.notebook import Cell
from autograder.report import Report
from autograder.submission import UsageError, look
from autograder.syllabus import EXERCISES

STUBS = Path(__file__).parents[2] / "exercises"
_NUMBERS = {exercise.id: exercise.number for exercise in EXERCISES.values()}


class _Named(msgspec.Struct):
    submission: str


class Results:
    """The folder that `batch --out` or `grade --out` has filled.

    names: the submissions', known before any result is read as a whole.  unreadable: files left out, and why.
    """

    def __init__(self, folder: str) -> None:
        self.unreadable: list[str] = []
        self.names: list[str] = []
        self._files: list[Path] = []
        for file in result_files(folder):
            name = _name(file)
            if isinstance(name, Unreadable):
                self.unreadable.append(f"{file}: {name.why}")
            else:
                self.names.append(name)
                self._files.append(file)
        if not self.names:
            raise UsageError(f"{folder}: no result there can be read; {self.unreadable[0]}")

    def __iter__(self) -> Iterator[tuple[int, Report]]:
        """Each result with the index of its name; without those that turn out to be none."""
        for index, file in enumerate(self._files):
            report = read_result(file)
            if isinstance(report, Report):
                yield index, report
            else:
                self.unreadable.append(f"{file}: {report.why}")


def _name(file: Path) -> str | Unreadable:
    """The submission's name, without reading all the rest if that can be."""
    try:
        return msgspec.json.decode(file.read_bytes(), type=_Named).submission
    except (OSError, ValueError, RecursionError):  # a name that is not UTF-8 is one of these
        report = read_result(file)
        return report.submission if isinstance(report, Report) else report


class Submissions:
    """What was handed in, found by the names in the results."""

    def __init__(self, path: str, scratch: Path) -> None:
        found, self.notes = handed_in(path, scratch)
        self._by_name: dict[str, HandedIn] = {one.name: one for one in found}

    def path(self, submission: str) -> str | None:
        """Where it lies: by its whole name, or by its last parts, as `grade class/zoe` calls it."""
        parts = submission.strip("/").split("/")
        for first in range(len(parts)):
            if one := self._by_name.get("/".join(parts[first:])):
                return one.path
        return None


def code(path: str, exercises: Iterable[str]) -> dict[str, str]:
    """The code of each of these exercises, by their ids; nothing where none could be read."""
    wanted = {_NUMBERS[exercise] for exercise in exercises if exercise in _NUMBERS}
    if not wanted:
        return {}
    try:
        founds, _ = look(path, wanted)
    except UsageError:
        return {}
    return {EXERCISES[found.number].id: _text(found.code) for found in founds if found.code}


def stub(exercise: str) -> str:
    """What all were given for an exercise; nothing if there is no such exercise any more."""
    if exercise not in _NUMBERS:
        return ""
    return (STUBS / f"{EXERCISES[_NUMBERS[exercise]].module}.py").read_text(encoding="utf-8")


def _text(cells: tuple[Cell, ...]) -> str:
    return "\n\n".join(cell.text for cell in cells)

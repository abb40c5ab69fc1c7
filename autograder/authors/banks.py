"""The two banks: impostors, each wrong in one way, and honest submissions, each right in an unusual way."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from autograder.grading import Submission, Work
from autograder.hidden.catalogue import catalogue
from autograder.sandbox.loading import Part
from autograder.syllabus import EXERCISES, Exercise

HIDDEN = Path(__file__).parents[1] / "hidden"
_HEADER = re.compile(r"^# (fault|function|check|misconception|honest): (.+)$")


@dataclass(frozen=True)
class Impostor:
    """A wrong submission.

    fault: what is wrong, in a sentence.  function: where.  check: the check that must fail.
    misconception: the id that the report must name first.
    """

    exercise: Exercise
    path: Path
    fault: str
    function: str
    check: str
    misconception: str

    @property
    def name(self) -> str:
        return f"{self.exercise.id}/{self.path.stem}"


@dataclass(frozen=True)
class Honest:
    """A right submission.  honest: what is unusual about it."""

    exercise: Exercise
    path: Path
    honest: str

    @property
    def name(self) -> str:
        return f"{self.exercise.id}/{self.path.stem}"


def impostors(numbers: set[int] | None = None) -> list[Impostor]:
    """The impostors of these exercises (default: all).  Raises ValueError for a header that is not as it should be."""
    found = []
    for exercise, path in _files("impostors", numbers):
        header = _header(path)
        missing = {"fault", "function", "check", "misconception"} - header.keys()
        if missing:
            raise ValueError(f"{path}: the header lacks “# {sorted(missing)[0]}: …”")
        if header["function"] not in exercise.by_name:
            raise ValueError(f"{path}: exercise {exercise.id} has no function {header['function']}")
        if header["misconception"] not in catalogue():
            raise ValueError(f"{path}: misconceptions.toml has no {header['misconception']}")
        found.append(Impostor(exercise, path, **header))
    return found


def honest(numbers: set[int] | None = None) -> list[Honest]:
    """The honest submissions of these exercises (default: all)."""
    found = []
    for exercise, path in _files("honest", numbers):
        header = _header(path)
        if "honest" not in header:
            raise ValueError(f"{path}: the header lacks “# honest: …”")
        found.append(Honest(exercise, path, header["honest"]))
    return found


def submission(exercise: Exercise, path: Path, name: str) -> Submission:
    """One bank file as a submission of its exercise."""
    part = Part(f"{exercise.module}.py", path.read_text(encoding="utf-8"))
    return Submission(name, (Work(exercise, (part,)),))


def _files(bank: str, numbers: set[int] | None) -> list[tuple[Exercise, Path]]:
    return [
        (exercise, path)
        for exercise in EXERCISES.values()
        if numbers is None or exercise.number in numbers
        for path in sorted((HIDDEN / bank / exercise.id).glob("*.py"))
    ]


def _header(path: Path) -> dict[str, str]:
    header = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        match = _HEADER.match(line)
        if match is None:
            break
        header[match.group(1)] = match.group(2).strip()
    return header

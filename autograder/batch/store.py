"""Results by what they depend on: the submission's content, the grader, the seed, the limits, where it ran."""

from __future__ import annotations

import hashlib
import json
import platform
from dataclasses import asdict
from functools import cache
from pathlib import Path

import msgspec
import numpy
import torch

import exercises.kit
from autograder.files import write_atomically
from autograder.grading import Options, Submission, chosen_device
from autograder.render import jsonlines
from autograder.report import Report

PACKAGE = Path(__file__).parents[1]


#: What a verdict depends on; not how it is shown, and not the banks that the checks are tried on.
JUDGING = ("hidden", "sandbox", "wire", *(f"{name}.py" for name in ("grading", "limits", "notebook", "syllabus")))
_BANKS = ("hidden/impostors", "hidden/honest")


@cache
def grader_hash() -> str:
    """What the grader is: every file that a verdict depends on, and the versions of what it computes with."""
    digest = hashlib.sha256()
    kit = Path(exercises.kit.__file__).parent
    files = [
        file for name in JUDGING for file in ([PACKAGE / name] if name.endswith(".py") else _files(PACKAGE / name))
    ]
    for root, file in [*((PACKAGE, file) for file in files), *((kit, file) for file in _files(kit))]:
        name = file.relative_to(root).as_posix()
        if not name.startswith(_BANKS):
            digest.update(f"{name}\0".encode())
            digest.update(hashlib.sha256(file.read_bytes()).digest())
    digest.update(f"{platform.python_version()} {numpy.__version__} {torch.__version__}".encode())
    return digest.hexdigest()


def _files(folder: Path) -> list[Path]:
    return sorted(file for file in folder.rglob("*") if file.is_file() and "__pycache__" not in file.parts)


def key(submission: Submission, options: Options) -> str:
    """The key of a submission's result: the same for the same code, wherever it lies and whoever handed it in."""
    content = [
        [
            work.exercise.number,
            [[part.name, part.text, part.may_fail] for part in work.parts],
            work.refused,
            work.verdict,
        ]
        for work in submission.works
    ]
    rest = [options.seed, asdict(options.limits), chosen_device(options.device).type, options.sandbox]
    record = json.dumps([grader_hash(), content, list(submission.notes), rest], ensure_ascii=True)
    return hashlib.sha256(record.encode("utf-8", "surrogatepass")).hexdigest()


class Store:
    """A folder of results.  Every result is a file of its own, whole or not there."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def get(self, name: str) -> Report | None:
        """The result stored under that key, or None.  One that cannot be read counts as none."""
        try:
            return jsonlines.read(self._path(name).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None

    def put(self, name: str, report: Report) -> None:
        """Keep a result.  One that needs attention is no result: the next run tries again."""
        if report.needs_attention:
            return
        path = self._path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, jsonlines.stored(report) + "\n")

    def _path(self, name: str) -> Path:
        return self._folder / name[:2] / f"{name}.json"


def renamed(report: Report, submission: Submission) -> Report:
    """The result of the same code, as this submission's."""
    return msgspec.structs.replace(report, submission=submission.name)

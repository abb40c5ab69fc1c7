"""Results by what they depend on: the submission's content, the grader, the seed, the limits, where it ran."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import hashlib
import json
import os
import platform
from collections.abc import Iterator
from dataclasses import asdict
from functools import cache
from importlib.metadata import version
from pathlib import Path

import msgspec

import exercises.kit
from autograder.files import UNFINISHED, CannotWrite, write_atomically
from autograder.grading import Options, Submission, chosen_device
from autograder.render import jsonlines
from autograder.report import Report
from autograder.submission import UsageError

PACKAGE = Path(__file__).parents[1]
#: Where OUT has what later runs need not do again.
STORE = ".store"

#: What a verdict or its message depends on; not how it is shown, and not the banks that the checks are tried on.
_MODULES = ("grading", "limits", "notebook", "plain", "syllabus")
JUDGING = ("hidden", "sandbox", "wire", *(f"{name}.py" for name in _MODULES))
_LIBRARIES = ("numpy", "torch", "hypothesis", "transformers", "scikit-learn")
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
    libraries = [f"{name} {version(name)}" for name in _LIBRARIES]
    digest.update(f"{platform.python_version()} {libraries}".encode())
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
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CannotWrite(error.errno, error.strerror, str(path.parent)) from error
        write_atomically(path, jsonlines.stored(report) + "\n")

    def _path(self, name: str) -> Path:
        return self._folder / name[:2] / f"{name}.json"


def renamed(report: Report, submission: Submission) -> Report:
    """The result of the same code, as this submission's."""
    return msgspec.structs.replace(report, submission=submission.name)


@contextlib.contextmanager
def alone_in(out: Path) -> Iterator[None]:
    """Hold OUT for one run at a time (flock(2)), and clear away what a killed one left half written.

    Raises UsageError if another run is at it, or nothing can be written there.
    """
    try:
        (out / STORE).mkdir(parents=True, exist_ok=True)
        descriptor = os.open(out / STORE / "lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise UsageError(f"--out {out}: nothing can be written there ({error.strerror})") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno == errno.EWOULDBLOCK:
                raise UsageError(f"--out {out}: another run of `autograder batch` is writing there") from None
            # else a file system without locks: then nobody can tell
        for folder in (out, *(entry for entry in (out / STORE).iterdir() if entry.is_dir())):
            for file in folder.iterdir():
                if UNFINISHED.fullmatch(file.name):
                    file.unlink(missing_ok=True)
        yield
    finally:
        os.close(descriptor)

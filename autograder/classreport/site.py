"""A folder of files that appears as a whole, and takes the place of nothing but an earlier one of its kind."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path, PurePosixPath
from types import TracebackType

from autograder.submission import UsageError

#: The list of a folder's files, in the folder: by it we know again what is ours.
LIST = ".made-by-autograder-report"


class OwnFolder:
    """Write files into it, in a `with` block; when that ends without an error they are there, and no earlier ones.

    option: what the command calls the folder, for messages.  inputs: what the command reads, which must not be inside.
    Raises UsageError if something else is in the folder, or it cannot be made.
    """

    def __init__(self, path: str, option: str, inputs: list[str]) -> None:
        self._shown = f"{option} {path}"
        self.path = Path(os.path.realpath(path))
        for given in inputs:
            if Path(os.path.realpath(given)).is_relative_to(self.path):
                raise UsageError(f"{self._shown}: {given} is in that folder; name another")
        self._must_be_ours()
        self._written: dict[str, None] = {}

    def __enter__(self) -> OwnFolder:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._new = Path(tempfile.mkdtemp(prefix=f".{self.path.name}.", dir=self.path.parent))
            self._new.chmod(0o755)
        except OSError as error:
            raise UsageError(f"{self._shown}: cannot be made ({error.strerror})") from None
        return self

    def write(self, name: str, text: str) -> None:
        """name: a path within the folder, with slashes.  Lone surrogates, which UTF-8 has none of, become `?`."""
        path = PurePosixPath(name)
        if path.is_absolute() or ".." in path.parts or name in self._written:
            raise ValueError(f"{name} is no new path within the folder")
        file = self._new / path
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8", errors="replace", newline="\n")
        except OSError as error:
            raise UsageError(f"{self._shown}: cannot be written ({error.strerror})") from None
        self._written[name] = None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            if kind is None:
                (self._new / LIST).write_text("".join(f"{name}\n" for name in self._written), encoding="utf-8")
                self._put_in_place()
        except OSError as problem:
            raise UsageError(f"{self._shown}: cannot be written ({problem.strerror})") from None
        finally:
            shutil.rmtree(self._new, ignore_errors=True)

    def _put_in_place(self) -> None:
        self._must_be_ours()
        if not self.path.exists():
            os.rename(self._new, self.path)
            return
        old = Path(tempfile.mkdtemp(prefix=f".{self.path.name}.", dir=self.path.parent))
        os.rename(self.path, old / "old")
        try:
            os.rename(self._new, self.path)
        except BaseException:
            os.rename(old / "old", self.path)
            raise
        finally:
            shutil.rmtree(old, ignore_errors=True)

    def _must_be_ours(self) -> None:
        if not os.path.lexists(self.path):
            return
        if not self.path.is_dir():
            raise UsageError(f"{self._shown}: there is a file of that name")
        files = (file for file in self.path.rglob("*") if file.is_symlink() or not file.is_dir())
        here = {file.relative_to(self.path).as_posix() for file in files}
        if not here:
            return
        try:
            ours = set((self.path / LIST).read_text(encoding="utf-8").splitlines())
        except (OSError, UnicodeDecodeError):
            ours = set()
        if strange := sorted(here - ours - {LIST}):
            raise UsageError(
                f"{self._shown}: there is something else in that folder ({strange[0]}); name a new folder, or clear it"
            )

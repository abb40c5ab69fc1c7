"""Loading a notebook cell by cell and keeping what each puts out, for feedback.  Runs where the student's code runs."""

from __future__ import annotations

import ast
import contextlib
import io
import linecache
import os
import sys
import types
import warnings
from typing import Any

from autograder import jupyter
from autograder.sandbox.calling import Output, describe
from autograder.sandbox.loading import Loaded
from autograder.wire.errors import Raised

STREAM_LIMIT = 64 * 1024
IMAGES_LIMIT = 4
IMAGE_BYTES = 1024 * 1024


class Capped(Output):
    """Keeps the first `STREAM_LIMIT` characters and says how many it did not keep."""

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._left = STREAM_LIMIT
        self._dropped = 0

    def write(self, text: str) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() takes a str, not {type(text).__name__}")
        kept = text[: self._left]
        if kept:
            self._pieces.append(kept)
        self._left -= len(kept)
        self._dropped += len(text) - len(kept)
        return len(text)

    def text(self) -> str:
        more = f"\n… ({self._dropped} more characters)" if self._dropped else ""
        return _sendable("".join(self._pieces) + more)


class Notebook:
    """The namespace that the cells of one notebook share.  `__name__` is the module's, so `__main__` guards do not run,
    as in grading."""

    def __init__(self, module_name: str) -> None:
        os.environ["MPLBACKEND"] = "Agg"  # there is no screen, and looking for one takes time
        self._module = types.ModuleType(module_name)
        self._module.__file__ = f"{module_name}.ipynb"
        self.sources: dict[str, str] = {}
        self._failed: list[tuple[str, Raised]] = []
        self._warnings = warnings.catch_warnings(action="ignore")
        self._warnings.__enter__()
        self._module.__dict__.update(jupyter.names())
        sys.modules[module_name] = self._module

    def run(self, name: str, text: str) -> list[Any]:
        """Run one cell: [standard output, standard error, value of the last expression, error, images].

        error: [type, message, [[line number, line], …]] or None.  images: PNG bytes.
        """
        self.sources[name] = text
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        out, err = Capped(), Capped()
        shown, error = "", None
        images: list[bytes] = []
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            try:
                shown = self._run(name, text)
            except BaseException as raised:
                described = describe(raised, self.sources)
                self._failed.append((name, described))
                lines = [[number, _sendable(line)] for number, line in described.lines]
                error = [_sendable(described.type_name), _sendable(described.message), lines]
                jupyter.go_on(name, text, self._module.__dict__)
            with contextlib.suppress(BaseException):
                images = _figures()
        return [out.text(), err.text(), shown, error, images]

    def loaded(self) -> Loaded:
        """The namespace, to be graded: as `loading.load` has it once the same cells have run."""
        self._warnings.__exit__(None, None, None)
        return Loaded(self._module, None, self._failed)

    def _run(self, name: str, text: str) -> str:
        """Run the statements; the representation of the last one's value, if it is an expression that has one."""
        tree = ast.parse(text, name)
        last = tree.body[-1] if tree.body else None
        value = None
        if isinstance(last, ast.Expr) and not text.rstrip().endswith(";"):
            tree.body.pop()
            self._exec(compile(tree, name, "exec", dont_inherit=True))
            value = eval(compile(ast.Expression(last.value), name, "eval", dont_inherit=True), self._module.__dict__)
        else:
            self._exec(compile(tree, name, "exec", dont_inherit=True))
        if value is None:
            return ""
        stream = Capped()
        stream.write(str.__str__(repr(value)))
        return stream.text()

    def _exec(self, code: types.CodeType) -> None:
        exec(code, self._module.__dict__)


def _figures() -> list[bytes]:
    """The open figures of matplotlib, if the cell used it, as PNG; closed afterwards, as a notebook does."""
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is None:
        return []
    images: list[bytes] = []
    for number in pyplot.get_fignums():
        if len(images) < IMAGES_LIMIT:
            file = io.BytesIO()
            pyplot.figure(number).savefig(file, format="png", dpi=80)
            if file.tell() <= IMAGE_BYTES:
                images.append(file.getvalue())
    pyplot.close("all")
    return images


def _sendable(text: str) -> str:
    return text.encode("utf-8", "replace").decode("utf-8")

"""What a notebook counts on beyond Python: names that Jupyter provides, and that a failure is not the end.

Runs where the student's code runs.
"""

from __future__ import annotations
import __future__

import ast
import contextlib
import functools
import operator
import sys
from types import TracebackType
from typing import Any

_FUTURES = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)


#: Cell magics whose cell is Python that runs here and now; every other cell magic takes its cell elsewhere.
BODY_RUNS = frozenset({"capture", "time", "timeit", "prun", "memit", "mprun"})


class InteractiveShell:
    """What `get_ipython()` gives: it takes any request, and does nothing but to run the Python in it.

    nbconvert writes a cell that begins with `%%time` as `get_ipython().run_cell_magic('time', '', …)`.
    """

    def run_cell_magic(self, magic: str, line: str, cell: str) -> None:
        if magic in BODY_RUNS:
            exec(compile(cell, "<cell>", "exec", dont_inherit=True), sys._getframe(1).f_globals)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _nothing


def _nothing(*_: object, **__: object) -> None:
    pass


def _display(*values: object, **_: object) -> None:
    for value in values:
        print(repr(value))


def names() -> dict[str, Any]:
    """The names that every notebook has without an import."""
    shell = InteractiveShell()
    return {"display": _display, "get_ipython": lambda: shell, "In": [""], "Out": {}}


def go_on(name: str, text: str, namespace: dict[str, Any]) -> None:
    """After a cell has failed, inside the `except`: run its statements below the one that failed, each by itself.

    On Google's machines `drive.mount` works, on a student's own there is a file to open: what the cell defines after
    that is graded none the less.  name, text: of the cell.
    """
    line = _line_of(name, sys.exc_info()[2])
    if line is None:  # it did not even begin
        return
    tree = ast.parse(text, name)
    futures = compile(tree, name, "exec", dont_inherit=True).co_flags & _FUTURES
    for statement in tree.body:
        first = min([statement.lineno, *(d.lineno for d in getattr(statement, "decorator_list", ()))])
        if first > line:
            with contextlib.suppress(BaseException):
                module = ast.Module([statement], [])
                exec(compile(module, name, "exec", futures, dont_inherit=True), namespace)


def _line_of(name: str, traceback: TracebackType | None) -> int | None:
    """The line of the cell's own statement that raised."""
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if (code.co_filename, code.co_name) == (name, "<module>"):
            return traceback.tb_lineno
        traceback = traceback.tb_next
    return None

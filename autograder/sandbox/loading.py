"""Turning a student's source into a module.  Runs where the student's code runs."""

from __future__ import annotations

import contextlib
import linecache
import sys
import types
import warnings
from collections.abc import Sequence
from dataclasses import dataclass

from autograder import jupyter
from autograder.sandbox.calling import Silence, describe
from autograder.wire.errors import Raised


@dataclass(frozen=True)
class Part:
    """A file, or one cell of a notebook.

    may_fail: True for a cell: a scratch cell that fails does not hide the definitions after it, nor those further down
        in the cell.
    """

    name: str
    text: str
    may_fail: bool = False


@dataclass
class Loaded:
    """The module, the exception that stopped it (None if it loaded), and the cells that failed."""

    module: types.ModuleType
    raised: Raised | None
    failed_cells: list[tuple[str, Raised]]


def load(module_name: str, parts: Sequence[Part]) -> Loaded:
    """Run the parts in order in one module namespace.  `__name__` is the module's, so `__main__` guards do not run."""
    module = types.ModuleType(module_name)
    module.__file__ = parts[0].name if len(parts) == 1 else f"{module_name}.ipynb"
    module.__dict__.update(jupyter.names())
    sys.modules[module_name] = module
    sources = {part.name: part.text for part in parts}
    for name, text in sources.items():  # for whoever asks for the source of a function, as torch.jit.script does
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    failed: list[tuple[str, Raised]] = []
    output = Silence()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for part in parts:
            try:
                exec(compile(part.text, part.name, "exec", dont_inherit=True), module.__dict__)
            except BaseException as error:
                raised = describe(error, sources)
                if not part.may_fail:
                    return Loaded(module, raised, failed)
                failed.append((part.name, raised))
                jupyter.go_on(part.name, part.text, module.__dict__)
    return Loaded(module, None, failed)

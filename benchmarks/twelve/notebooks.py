"""A class's notebooks for the twelve checks: right, wrong and unwritten work in the one solution cell."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from autograder.syllabus import EXERCISES
from benchmarks.measuring import ROOT
from benchmarks.twelve.checks import CHECKS, FUNCTIONS, IMPORTS

NAME = EXERCISES[2].module
_WORKS = (
    f"examples/submissions/right/{NAME}.py",
    f"examples/submissions/mean_over_all_positions/{NAME}.py",
    f"examples/submissions/stub/{NAME}.py",
)
_CLEARED = "\n\n".join(f"def {name}(*args, **kwargs):\n    raise NotImplementedError" for name in FUNCTIONS)


def works(size: int) -> list[str]:
    """The code that a class of that size hands in, every one different."""
    kinds = [(ROOT / path).read_text(encoding="utf-8") for path in _WORKS]
    return [f"{kinds[number % len(kinds)]}\n# handed in by {number}\n" for number in range(size)]


def notebook(code: str = _CLEARED, checks: bool = True) -> NotebookNode:
    """The notebook with that code in its solution cell, and a grade cell for every check if `checks`."""
    cells = [
        _cell(IMPORTS, "imports", locked=True),
        _cell(f"### BEGIN SOLUTION\n{code}\n### END SOLUTION" if code == _CLEARED else code, "code", solution=True),
    ]
    if checks:
        cells += [_cell(one.text, one.name, locked=True, grade=True, points=1) for one in CHECKS]
    made: NotebookNode = new_notebook(cells=cells)
    made.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
    return made


def hand_in(folder: Path, code: str, checks: bool = True) -> Path:
    """Write one notebook into a folder."""
    folder.mkdir(parents=True)
    path = folder / f"{NAME}.ipynb"
    nbformat.write(notebook(code, checks), path)
    return path


def _cell(source: str, name: str, **settings: Any) -> NotebookNode:
    flags = {"grade": False, "locked": False, "solution": False, "task": False, "schema_version": 3, "grade_id": name}
    cell: NotebookNode = new_code_cell(source, id=name)
    cell.metadata["nbgrader"] = {**flags, **settings}
    return cell

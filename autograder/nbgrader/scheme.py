"""What a written answer is marked by, for formgrader's page of a submission."""

from __future__ import annotations

import re
from pathlib import Path

import nbformat
from nbformat import NotebookNode

from autograder.nbgrader.repair import grade_id

#: What `autograder build` writes around it, and nbgrader takes out of what is released.
_SOLUTION = re.compile(r"^### BEGIN SOLUTION$(.*?)^### END SOLUTION$", re.M | re.S)


def marking_scheme(cell: NotebookNode, assignment: str, notebook: str) -> str:
    """The model answer and the marking scheme of a written answer, as Markdown, from the source notebook of the course.

    "" for any other cell, and where there is no source: formgrader runs in the folder of the course.
    """
    if cell.cell_type != "markdown" or not grade_id(cell):
        return ""
    try:
        source = nbformat.read(Path("source", assignment, f"{notebook}.ipynb"), as_version=4)
    except OSError:
        return ""
    text = next((one.source for one in source.cells if grade_id(one) == grade_id(cell)), "")
    found = _SOLUTION.search(text)
    return found[1].strip() if found else ""

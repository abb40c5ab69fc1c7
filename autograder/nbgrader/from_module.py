"""A module as the notebook that the same student would have handed in: for the sample class, tests and benchmarks."""

from __future__ import annotations

import ast
import copy
from itertools import pairwise

from nbformat import NotebookNode

from autograder.nbgrader.repair import grade_id


def fill(released: NotebookNode, code: str) -> NotebookNode:
    """The released notebook with the code of a module in its solution cells.

    Every function goes into the cell that is meant for it, with the statements before it.  A module that cannot be
    taken apart like that, because it is no valid Python or has another order, goes into the first cell as a whole.
    """
    notebook: NotebookNode = copy.deepcopy(released)
    cells = [cell for cell in notebook.cells if cell.cell_type == "code" and grade_id(cell).endswith("-solution")]
    texts = _split(code, [_name(cell) for cell in cells]) or [code, *([""] * (len(cells) - 1))]
    for cell, text in zip(cells, texts, strict=True):
        cell.source = text
    return notebook


def _name(cell: NotebookNode) -> str:
    return grade_id(cell).partition("-")[2].removesuffix("-solution")


def _split(code: str, names: list[str]) -> list[str]:
    """The code in as many pieces as there are names, each ending with the definition of one; [] if that cannot be."""
    try:
        body = ast.parse(code).body
    except (SyntaxError, ValueError):
        return []
    ends = [
        (node.name, node.end_lineno or 0)
        for node in body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in names
    ]
    if [name for name, _ in ends] != names:
        return []
    lines = code.splitlines()
    bounds = [0, *(end for _, end in ends[:-1]), len(lines)]
    return ["\n".join(lines[start:end]).strip("\n") for start, end in pairwise(bounds)]

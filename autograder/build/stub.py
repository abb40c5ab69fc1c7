"""The stub of an exercise: the solution without its answers, as the module that a student fills."""

from __future__ import annotations

import ast
import re
from itertools import pairwise

import jupytext
from nbformat import NotebookNode, from_dict
from nbformat.v4 import new_notebook

from autograder.build.source import (
    BEGIN_ANSWER,
    BEGIN_SOLUTION,
    END_ANSWER,
    END_SOLUTION,
    BuildError,
    Definition,
    Source,
)
from autograder.syllabus import Exercise, Family

#: What workers of a family have, and solutions may import, beside the kit.
_LIBRARIES: dict[Family, str] = {
    "torch": "NumPy, PyTorch, the standard library",
    "transformers": "NumPy, PyTorch, transformers, scikit-learn, SciPy, the standard library",
}
_RULES = """\
- Inputs belong to the caller: do not change them. Returning one of them, or a view of it, is fine.
- Results live on the device of the inputs: give new tensors a `device=`.
- No function touches a global random generator (torch, numpy, random).
- Each exercise is graded on its own: import {libraries}
  and `exercises.kit`, but not another exercise.
- Bad input, as listed under "Raises", gets a ValueError that your own `raise` statement raises. Its message, in any
  language, names at least one of the parameters at fault and, where that is an id or a number, shows it. An error that
  a library raises for you does not count. Bad input that is not listed is not graded.
- The floating dtype is kept unless the docstring says otherwise; NumPy results have the dtype of `np.result_type`.
- Ids and labels come as int64, masks as bool or 0/1 integers, unless the docstring says otherwise. Tensors and arrays
  come with any strides and memory order. Empty batches do not come.
- Results are compared with a tolerance of tol · max(1, |expected|): tol is 1e-6 in float64, 1e-5 in float32, 2e-3 in
  float16 and 1e-2 in bfloat16, unless the docstring says otherwise.
- Tensors that a function returns are differentiable in its floating inputs, with the right gradient."""

_HOW = """\
Both run the same few checks, which you can read; grading runs many more. You may add functions and imports of your
own, but keep the names and parameters of those given. The file opens as a notebook too (Jupyter with jupytext, or
VS Code).

What holds in every exercise:

{rules}"""
_HOW_TESTS = """\
Both run the same few checks, which you can read; grading runs many more. You may rename, split and add tests, and add
fixtures, functions and imports of your own: NumPy, PyTorch, pytest, Hypothesis, the standard library and
`exercises.kit`, but not another exercise. The file opens as a notebook too (Jupyter with jupytext, or VS Code)."""

_SOLUTION = re.compile(
    rf"^(?P<indent>[ \t]*){re.escape(BEGIN_SOLUTION)}[ \t]*\n.*?^[ \t]*{re.escape(END_SOLUTION)}[ \t]*$", re.M | re.S
)
_ANSWER = re.compile(rf"^{re.escape(BEGIN_ANSWER)}\n.*?^{re.escape(END_ANSWER)}$", re.M | re.S)
_YOUR_ANSWER = {"en": "*Your answer:*", "zh": "*你的回答：*"}


def rules(exercise: Exercise) -> str:
    """What holds in every exercise, for students, and what they may import in this one."""
    return _RULES.format(libraries=_LIBRARIES[exercise.family])


def stub(source: Source) -> str:
    """The text of `exercises/exNN_name.py`."""
    cells = [without_answers(cell, source) for cell in source.notebook.cells if in_language(cell, "en")]
    for cell, following in pairwise(cells):
        cell.metadata["lines_to_next_cell"] = 2 if _ends_definition(cell) or _begins_definition(following) else 1
    notebook = new_notebook(
        cells=cells,
        metadata={"jupytext": {"notebook_metadata_filter": "-all", "cell_metadata_filter": "-all"}},
    )
    return _docstring(source) + "\n" + jupytext.writes(notebook, fmt="py:percent")


def in_language(cell: NotebookNode, lang: str) -> bool:
    """True for code, for prose in that language, and for prose that names no language."""
    return cell.metadata.get("lang", lang) == lang


def without_answers(cell: NotebookNode, source: Source) -> NotebookNode:
    """A copy of a cell in which a stub stands for every solution, and a place to write for every model answer."""
    metadata = cell.metadata
    if cell.cell_type == "markdown":
        text = _ANSWER.sub(_YOUR_ANSWER[metadata.get("lang", "en")], cell.source)
    else:
        text = _SOLUTION.sub(lambda match: _not_implemented(match, cell.source), cell.source)
        try:
            ast.parse(text)
        except SyntaxError:
            raise BuildError(
                f"{source.path}: the cell that begins with `{text.splitlines()[0]}` is not valid Python without its "
                f"solution. A solution region must be a whole part of a function's body."
            ) from None
    kept = {key: value for key, value in metadata.items() if key not in ("lang", "lines_to_next_cell")}
    return from_dict({**cell, "metadata": kept, "source": text})


def _begins_definition(cell: NotebookNode) -> bool:
    return cell.cell_type == "code" and any(isinstance(node, Definition) for node in ast.parse(cell.source).body[:1])


def _ends_definition(cell: NotebookNode) -> bool:
    return cell.cell_type == "code" and any(isinstance(node, Definition) for node in ast.parse(cell.source).body[-1:])


def _not_implemented(match: re.Match[str], code: str) -> str:
    line = code.count("\n", 0, match.start()) + 1
    name = next(
        node.name
        for node in ast.parse(code).body
        if isinstance(node, Definition) and node.lineno < line <= (node.end_lineno or 0)
    )
    return f'{match["indent"]}raise NotImplementedError("{name} is yours to write")'


def _docstring(source: Source) -> str:
    exercise = source.exercise
    return f'''"""Exercise {exercise.number}: {exercise.title}.

Replace every `raise NotImplementedError(…)` by your code, and check it with

    autograder check {exercise.number}
    pytest exercises/tests/test_{exercise.module}.py

{_HOW_TESTS if exercise.tests else _HOW.format(rules=rules(exercise))}

(Generated by `autograder build` from {source.path.as_posix()}: authors edit that file.)
"""
'''

"""A notebook as people leave it: what Jupyter provides is there, and a line that fails hides nothing below it."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
import torch

from autograder.grading import Options, grade_all
from autograder.limits import Limits
from autograder.nbgrader.outputs import ShownStudent
from autograder.nbgrader.process import Output
from autograder.report import Report
from autograder.sandbox.loading import Part, load
from autograder.submission import find
from autograder.syllabus import EXERCISES
from autograder.wire.classroom import RemoteClassroom

ROOT = Path(__file__).parents[1]
SOLUTION = (ROOT / "solutions" / "ex03_copy_shortcut.py").read_text(encoding="utf-8")

#: What stands above the definitions, in the same cell.
ABOVE = {
    "names of Jupyter": "display({'a': 1}, display_id=True); print(In[0], Out)\nshell = get_ipython()",
    "magics as nbconvert writes them": "get_ipython().run_line_magic('time', ''); get_ipython().system('ls')",
    "where it runs": "colab = 'google.colab' in str(get_ipython())\nimport os; os.environ['A'] = str(colab)",
    "Google's machines": "from google.colab import drive\ndrive.mount('/content/drive')",
    "a question": "name = input('name? ')\nprint(name)",
    "a file at home": "with open('reviews.csv') as file:\n    rows = file.read()\nprint(len(rows))",
    "a wrong trial": "trial = copy_logits(1, 2)\nassert trial == 3",
    "the end": "import sys\nsys.exit()",
    "two things": "1 / 0\nundefined\n(\n    undefined\n)",
}


def notebook(folder: Path, *cells: str) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / "ex03_copy_shortcut.ipynb"
    found = [{"cell_type": "code", "metadata": {}, "outputs": [], "source": text} for text in cells]
    path.write_text(json.dumps({"cells": found, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    return path


def test_what_stands_above_definitions_costs_no_points(tmp_path: Path) -> None:
    """All of these gave no points at all: the cell ended there, and with it what it would have defined."""
    paths = [notebook(tmp_path / name, f"{text}\n{SOLUTION}") for name, text in ABOVE.items()]
    reports: list[Report] = []
    grade_all([find(str(path), None) for path in paths], Options(), reports.append)
    assert {Path(report.submission).parent.name: report.points for report in reports} == dict.fromkeys(ABOVE, 1000)


@pytest.mark.parametrize("above", ["names of Jupyter", "a file at home", "the end"])
def test_the_visible_checks_see_the_same(tmp_path: Path, above: str) -> None:
    path = notebook(tmp_path / "a", f"{ABOVE[above]}\n{SOLUTION}")
    command = [sys.executable, "-m", "autograder", "check", "3", str(path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "✓" in done.stdout
    assert "✗" not in done.stdout


def test_the_outputs_in_feedback_show_the_error_and_go_on(tmp_path: Path) -> None:
    work = find(str(notebook(tmp_path / "a", "display([1])\n1 / 0\nx = 2\nprint('below')", "x + 1")), None).works[0]
    shown: list[Output] = []
    student = partial(ShownStudent, shown=shown)
    with RemoteClassroom("auto", torch.device("cpu"), limits=Limits(), student=student) as room, room.open(work):
        first, second = shown
    assert first.stdout == "[1]\nbelow\n"
    assert first.error is not None
    assert first.error[0] == "ZeroDivisionError"
    assert second.value == "3"


@pytest.mark.parametrize(
    ("text", "defined"),
    [
        ("a = 1\nb = undefined\nc = 3", {"a", "c"}),
        ("undefined\n@undefined\ndef a(): pass\ndef b(): pass", {"b"}),
        ("@undefined\ndef a(): pass\nb = 1", {"b"}),
        ("def a():\n    undefined\na()\nb = 1", {"a", "b"}),
        ("if True:\n    a = 1\n    undefined\n    b = 1\nc = 1", {"a", "c"}),
        ("from __future__ import annotations\nundefined\ndef a(x: no_such_type): pass", {"annotations", "a"}),
        ("a = 1\nb = = 2", set()),
        ("exec(compile('undefined', 'cell 1', 'exec'))\na = 1", {"a"}),
        ("try:\n    undefined\nfinally:\n    a = 1\nb = 1", {"a", "b"}),
        ("raise type('E', (BaseException,), {'__traceback__': 5})\na = 1", {"a"}),
    ],
)
def test_what_is_defined_when_a_line_of_a_cell_fails(text: str, defined: set[str]) -> None:
    plain = load("ex03_copy_shortcut", [Part("cell 1", "", may_fail=True)]).module.__dict__.keys()
    loaded = load("ex03_copy_shortcut", [Part("cell 1", text, may_fail=True)])
    assert loaded.module.__dict__.keys() - plain - {"__builtins__"} == defined
    assert [name for name, _ in loaded.failed_cells] == ["cell 1"]


def test_a_file_ends_where_it_fails() -> None:
    loaded = load(EXERCISES[3].module, [Part("ex03.py", "a = 1\nundefined\nb = 1")])
    assert loaded.raised is not None
    assert "a" in vars(loaded.module)
    assert "b" not in vars(loaded.module)


def test_a_notebook_that_nbconvert_wrote_as_a_script_is_graded(tmp_path: Path) -> None:
    path = tmp_path / "ex03_copy_shortcut.py"
    magic = "get_ipython().run_cell_magic('bash', '', 'ls')\nget_ipython().run_line_magic('matplotlib', 'inline')"
    path.write_text(f"# In[1]:\n{magic}\n# In[2]:\nget_ipython().run_cell_magic('time', '', {SOLUTION!r})\n")
    reports: list[Report] = []
    grade_all([find(str(path), None)], Options(), reports.append)
    assert reports[0].points == 1000

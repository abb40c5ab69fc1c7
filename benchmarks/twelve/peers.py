"""nbgrader and otter-grader as they come, installed from the registry into an environment of their own, and run."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import venv
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent

import nbformat
import torch

from benchmarks.measuring import ROOT, run
from benchmarks.twelve.checks import CHECKS, FUNCTIONS, IMPORTS
from benchmarks.twelve.notebooks import NAME, hand_in, notebook

PINS = {"nbgrader": "0.9.6", "otter-grader": "7.0.0"}


@dataclass(frozen=True)
class Class:
    """What grading one class gave: CPU seconds of the first submission with the start, and of each one more."""

    first: float
    each: float
    points: list[float]


class NotThere(Exception):
    """A peer cannot be had here; the message says which, and why."""


def installed(package: str) -> Path:
    """The Python of an environment with that package as pinned, made when it is first asked for.

    PyTorch is the course's own, so that all graders load the same.  Raises NotThere.
    """
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "bert-exercises"
    folder = cache / f"{package}-{PINS[package]}-python{sys.version_info.major}.{sys.version_info.minor}"
    python = folder / "bin" / "python"
    done = folder / "installed"
    if not done.exists():
        shutil.rmtree(folder, ignore_errors=True)
        print(f"installing {package} {PINS[package]} into {folder}", file=sys.stderr)
        try:
            venv.create(folder, with_pip=True, symlinks=True)
            command = [str(python), "-m", "pip", "install", "-q", "-c", str(ROOT / "constraints.txt"), "ipykernel"]
            said = subprocess.run([*command, f"{package}=={PINS[package]}"], capture_output=True, text=True)
        except (OSError, subprocess.CalledProcessError) as error:
            raise NotThere(f"{package} {PINS[package]}: no environment can be made here") from error
        if said.returncode != 0:
            print(said.stderr, file=sys.stderr)
            raise NotThere(f"{package} {PINS[package]}: pip could not install it here (it says why above)")
        done.touch()
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "course.pth").write_text(f"{Path(torch.__file__).parents[1]}\n", encoding="utf-8")  # after its own
    return python


def nbgrader(python: Path, works: Sequence[str]) -> tuple[float, list[float]]:
    """CPU seconds of one `nbgrader autograde` of that class with nothing configured, and everybody's points."""
    with tempfile.TemporaryDirectory(prefix="bench-nbgrader-") as name:
        course = Path(name)
        source = course / "source" / "ex02"
        source.mkdir(parents=True)
        nbformat.write(notebook(), source / f"{NAME}.ipynb")
        (course / "nbgrader_config.py").write_text("c = get_config()\n", encoding="utf-8")
        command: list[str | Path] = [python, "-m", "nbgrader"]
        path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
        run([*command, "generate_assignment", "ex02"], cwd=course, PATH=path)
        for number, code in enumerate(works):
            hand_in(course / "submitted" / f"s{number:02d}" / "ex02", code)
        spent, _ = run([*command, "autograde", "ex02"], cwd=course, PATH=path)
        query = (
            "select submitted_assignment.student_id, sum(grade.auto_score) from grade "
            "join submitted_notebook on submitted_notebook.id = grade.notebook_id "
            "join submitted_assignment on submitted_assignment.id = submitted_notebook.assignment_id "
            "group by 1 order by 1"
        )
        with sqlite3.connect(course / "gradebook.db") as database:
            return spent.cpu, [points for _, points in database.execute(query)]


def nbgrader_class(python: Path, works: Sequence[str]) -> Class:
    """A class of one and the whole class, each in one command: what one more costs is the difference."""
    one, _ = nbgrader(python, works[:1])
    all_of_them, points = nbgrader(python, works)
    return Class(one, (all_of_them - one) / (len(works) - 1), points)


def otter_class(python: Path, works: Sequence[str]) -> Class:
    """The class by otter-grader's own interface for grading without containers, in one process."""
    with tempfile.TemporaryDirectory(prefix="bench-otter-") as name:
        folder = Path(name)
        archive = folder / "autograder.zip"
        with zipfile.ZipFile(archive, "w") as file:
            file.writestr("otter_config.json", json.dumps({"show_stdout": False}))
            for function in FUNCTIONS:
                file.writestr(f"tests/{function}.py", _test_file(function))
        paths = [hand_in(folder / f"s{number:02d}", code, checks=False) for number, code in enumerate(works)]
        script = ROOT / "benchmarks" / "twelve" / "otter_loop.py"
        path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"
        spent, said = run([python, script, archive, *paths], cwd=folder, PATH=path)
        result = json.loads(said.splitlines()[-1])
        each = sum(result["cpu"][1:]) / (len(works) - 1)
        return Class(spent.cpu - sum(result["cpu"][1:]), each, result["points"])


def _test_file(function: str) -> str:
    """The checks of one function in otter-grader's exception-based format."""
    parts = [
        f"from otter.test_files import test_case\n{IMPORTS}\n",
        f"OK_FORMAT = False\nname = {function!r}\npoints = None\n",
    ]
    for one in CHECKS:
        if one.function == function:
            head = f"@test_case(points=1)\ndef {one.name}({', '.join(FUNCTIONS)}):"
            parts.append(f"{head}\n{indent(one.text, '    ')}\n")
    return "\n".join(parts)

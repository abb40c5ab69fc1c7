"""The sample class, from released assignments to grades and feedback, by nbgrader's commands: `make nbgrader-demo`."""

from __future__ import annotations

import argparse
import csv
import os
import shlex
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import nbformat
from nbformat import NotebookNode

from autograder.nbgrader.from_module import fill
from autograder.nbgrader.repair import grade_id
from autograder.syllabus import SYLLABUS

ROOT = Path(__file__).parents[2]
DUE = "2026-03-01 12:00:00 UTC"
HANDED_IN = "2026-03-01 11:00:00 UTC"
LATE = "2026-03-02 18:00:00 UTC"
ASSIGNMENTS = ("ex02", "ex03")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--course", type=Path, default=ROOT / "results" / "nbgrader-demo", help="made anew")
    course = parser.parse_args().course.resolve()
    started = time.monotonic()
    shutil.rmtree(course, ignore_errors=True)
    where = os.path.relpath(course)
    entries = tomllib.loads(Path(__file__).with_name("students.toml").read_text(encoding="utf-8"))["handed_in"]
    print(f"A sample class as an nbgrader course, in {where}/. This runs there:")
    shutil.copytree(ROOT / "notebooks", course, ignore=shutil.ignore_patterns("zh", *PRODUCTS))
    for assignment in ASSIGNMENTS:
        nbgrader(course, "db", "assignment", "add", assignment, "--duedate", DUE)
        nbgrader(course, "generate_assignment", assignment)
    hand_in(course, entries)
    print(f"  {len({entry['student'] for entry in entries})} students hand in {len(entries)} notebooks: submitted/")
    for assignment in ASSIGNMENTS:
        nbgrader(course, "autograde", assignment)
        nbgrader(course, "generate_feedback", assignment)
    nbgrader(course, "export", "--to", "grades.csv")
    rows = list(csv.DictReader((course / "grades.csv").read_text(encoding="utf-8").splitlines()))
    show(rows, entries)
    print(f"Feedback, a page for each: {where}/feedback/STUDENT/EXERCISE/   ({time.monotonic() - started:.0f} s)")
    print(f"To mark the answer of s01 that waits: cd {where} && jupyter lab, then Nbgrader › Formgrader")
    wrong = [problem for problem in problems(rows) if problem]
    if wrong:
        raise SystemExit("\n".join(["The demo did not end as it should:", *wrong]))
    print("nbgrader demo ok")


#: What nbgrader makes in the folder of a course.
PRODUCTS = ("release", "submitted", "autograded", "feedback", "gradebook.db", "*.csv")


def nbgrader(course: Path, *arguments: str) -> None:
    """Run one of nbgrader's commands in the folder of the course; say so, and end if it fails."""
    print("$ nbgrader", shlex.join(arguments), flush=True)
    command = [sys.executable, "-m", "nbgrader", *arguments]
    done = subprocess.run(command, cwd=course, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{done.stdout}{done.stderr}nbgrader {arguments[0]} ended with {done.returncode}")


def hand_in(course: Path, entries: list[dict[str, str]]) -> None:
    """Put what the class handed in where `nbgrader collect` would put it."""
    for entry in entries:
        module = next(exercise.module for exercise in SYLLABUS if exercise.id == entry["assignment"])
        released = nbformat.read(course / "release" / entry["assignment"] / f"{module}.ipynb", as_version=4)
        code = (ROOT / "examples" / "submissions" / entry["from"]).read_text(encoding="utf-8")
        notebook = fill(released, code)
        _answer(notebook, entry.get("written", ""))
        folder = course / "submitted" / entry["student"] / entry["assignment"]
        folder.mkdir(parents=True)
        (folder / "timestamp.txt").write_text(HANDED_IN, encoding="utf-8")
        path = folder / f"{module}.ipynb"
        nbformat.write(notebook, path)
        if "then" in entry:
            MISHAPS[entry["then"]](path)


def _answer(notebook: NotebookNode, text: str) -> None:
    for cell in notebook.cells:
        if text and grade_id(cell).endswith("-written"):
            cell.source = text.strip()


def _renamed(path: Path) -> None:
    path.rename(path.with_name("EX 2 最终版.ipynb"))


def _with_cells(path: Path, change: Callable[[list[Any]], list[Any]]) -> None:
    notebook = nbformat.read(path, as_version=4)
    notebook.cells = change(notebook.cells)
    nbformat.write(notebook, path)


def _is_grade_cell(cell: NotebookNode) -> bool:
    return bool(cell.metadata.get("nbgrader", {}).get("grade"))


def _copied(path: Path) -> None:
    def twice(cells: list[Any]) -> list[Any]:
        copied = nbformat.from_dict(next(cell for cell in cells if _is_grade_cell(cell)))
        copied.id, copied.source = "copied", "print('mine')"
        return [*cells, copied]

    _with_cells(path, twice)


def _deleted(path: Path) -> None:
    _with_cells(path, lambda cells: [cell for cell in cells if cell is not next(filter(_is_grade_cell, cells))])


def _late(path: Path) -> None:
    path.with_name("timestamp.txt").write_text(LATE, encoding="utf-8")


MISHAPS: dict[str, Callable[[Path], None]] = {
    "the file was renamed": _renamed,
    "a grade cell was copied": _copied,
    "a grade cell was deleted": _deleted,
    "it came 30 hours late": _late,
}


def show(rows: list[dict[str, str]], entries: list[dict[str, str]]) -> None:
    """The gradebook as a table, with what stands behind each line."""
    behind = {(entry["student"], entry["assignment"]): _behind(entry) for entry in entries}
    print(f"\n{'student':9}{'assignment':11}{'score':>6}{'of':>6}{'late':>7}  {'status':20}what was handed in")
    for row in sorted(rows, key=lambda row: (row["student_id"], row["assignment"])):
        if row["status"] != "missing":
            late = f"-{row['late_submission_penalty']}" if float(row["late_submission_penalty"] or 0) else ""
            print(
                f"{row['student_id']:9}{row['assignment']:11}{row['score']:>6}{row['max_score']:>6}{late:>7}"
                f"  {row['status']:20}{behind[row['student_id'], row['assignment']]}"
            )
    print()


def _behind(entry: dict[str, str]) -> str:
    """The name of the sample, which says what is wrong with it, and what happened to the notebook."""
    name = entry["from"].partition("/")[0].replace("_", " ")
    return "; ".join(filter(None, [name, entry.get("then", "")]))


def problems(rows: list[dict[str, str]]) -> list[str]:
    """What is not as a gradebook of this class must be."""
    by = {(row["student_id"], row["assignment"]): row for row in rows}
    found = []
    for student in ("s01", "s02"):
        if by[student, "ex02"]["score"] != "10.0":
            found.append(f"{student} did everything right in ex02, but has {by[student, 'ex02']['score']}")
    for student in ("s05", "s06"):
        if float(by[student, "ex02"]["score"]) != 0:
            found.append(f"{student} did nothing that runs in ex02, but has {by[student, 'ex02']['score']}")
    if by["s01", "ex03"]["status"] != "needs manual grade":
        found.append(f"the written answer of s01 does not wait for a person: {by['s01', 'ex03']['status']}")
    found += [f"{row['student_id']} needs attention" for row in rows if row["status"] == "needs attention"]
    return found


if __name__ == "__main__":
    main()

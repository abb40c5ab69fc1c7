"""`nbgrader autograde` of one class, twice: as nbgrader does it, and as this course does it.  CPU and wall time.

As nbgrader does it: a kernel for every notebook, in which a grade cell calls the hidden checks.  As this course does
it: the settings of notebooks/nbgrader_config.py.  Both run the same checks on the same notebooks, and the scores are
compared.  Submissions that would end or hang the kernel are left out, because the plain way has no answer to them.
A smaller class, of the same kinds of work, tells what one submission more costs, without the start of nbgrader.
Everything runs several times, in turn; numbers are medians, and ratios are taken round by round.
"""

from __future__ import annotations

import argparse
import os
import platform
import resource
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import nbformat

ROOT = Path(__file__).resolve().parents[1]
sys.path = [path for path in sys.path if Path(path or ".").resolve() != Path(__file__).resolve().parent]

from autograder.authors import banks  # noqa: E402 — this file is called nbgrader, too
from autograder.build.notebook import path_of  # noqa: E402 — likewise
from autograder.nbgrader.from_module import fill  # noqa: E402 — likewise
from autograder.syllabus import EXERCISES, Exercise  # noqa: E402 — likewise


class Run(NamedTuple):
    cpu: float
    wall: float
    scores: dict[tuple[str, str], float | None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--students", type=int, default=30, help="size of the class (default: 30)")
    parser.add_argument("--exercise", type=int, default=2, choices=sorted(EXERCISES), help="default: 2")
    parser.add_argument("--rounds", type=int, default=3, help="how often everything runs (default: 3)")
    options = parser.parse_args()
    exercise = EXERCISES[options.exercise]
    fewer = max(2, options.students // 5)
    rounds = [(_both(exercise, fewer), _both(exercise, options.students)) for _ in range(options.rounds)]
    print(_table(exercise, fewer, options.students, rounds))


def _both(exercise: Exercise, size: int) -> tuple[Run, Run]:
    """A class of that size, as nbgrader does it and as this course does it."""
    with tempfile.TemporaryDirectory(prefix="nbgrader-benchmark-") as folder:
        works = _class(exercise, size)
        plain = _measure(_plain_course(Path(folder, "plain"), exercise), exercise, works)
        return plain, _measure(_our_course(Path(folder, "ours")), exercise, works)


def _class(exercise: Exercise, size: int) -> list[str]:
    """The code that the class hands in: right, wrong and unwritten, in turn."""
    texts = {entry.name: entry.path.read_text(encoding="utf-8") for entry in banks.impostors({exercise.number})}
    wrong = [text for _, text in sorted(texts.items()) if "_exit" not in text and "while True" not in text]
    right = (ROOT / "examples" / "submissions" / "right" / f"{exercise.module}.py").read_text(encoding="utf-8")
    stub = (ROOT / "exercises" / f"{exercise.module}.py").read_text(encoding="utf-8")
    kinds = [right, *wrong[:: max(1, len(wrong) // 4)][:4], stub]
    return [kinds[number % len(kinds)] for number in range(size)]


def _our_course(folder: Path) -> Path:
    shutil.copytree(
        ROOT / "notebooks", folder, ignore=shutil.ignore_patterns("zh", "release", "submitted", "autograded", "*.db")
    )
    return folder


def _plain_course(folder: Path, exercise: Exercise) -> Path:
    """The same notebook for nbgrader as it comes: the grade cells, at the end, call the checks in the kernel."""
    notebook = nbformat.read(ROOT / path_of(exercise, "en"), as_version=4)
    graded = [cell for cell in notebook.cells if _is_grade_cell(cell)]
    locked = [cell for cell in notebook.cells if cell.metadata.get("nbgrader", {}).get("locked")]
    notebook.cells = [cell for cell in notebook.cells if cell not in locked] + graded
    for cell in graded:
        name = cell.metadata.nbgrader.grade_id.partition("-")[2]
        cell.source = f"import in_kernel\nin_kernel.points({exercise.number}, {name!r}, In)"
    source = folder / "source" / exercise.id
    source.mkdir(parents=True)
    nbformat.write(notebook, source / f"{exercise.module}.ipynb")
    (folder / "nbgrader_config.py").write_text(
        "c = get_config()\n"
        "c.ClearSolutions.code_stub = {'python': 'raise NotImplementedError'}\n"
        "c.Execute.timeout = 600\n",
        encoding="utf-8",
    )
    return folder


def _is_grade_cell(cell: Any) -> bool:
    return cell.cell_type == "code" and bool(cell.metadata.get("nbgrader", {}).get("grade"))


def _measure(course: Path, exercise: Exercise, works: list[str]) -> Run:
    _nbgrader(course, "generate_assignment", exercise.id)
    released = nbformat.read(course / "release" / exercise.id / f"{exercise.module}.ipynb", as_version=4)
    for number, code in enumerate(works, start=1):
        folder = course / "submitted" / f"s{number:02d}" / exercise.id
        folder.mkdir(parents=True)
        nbformat.write(fill(released, code), folder / f"{exercise.module}.ipynb")
    before, started = _children(), time.perf_counter()
    _nbgrader(course, "autograde", exercise.id)
    return Run(_children() - before, time.perf_counter() - started, _scores(course))


def _nbgrader(course: Path, *arguments: str) -> None:
    paths = [str(ROOT), str(ROOT / "benchmarks" / "kernel"), *filter(None, [os.environ.get("PYTHONPATH")])]
    programs = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": os.pathsep.join(paths), "PATH": programs}
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", *arguments], cwd=course, env=environment, capture_output=True, text=True
    )
    if done.returncode != 0:
        raise SystemExit(f"{done.stdout}{done.stderr}nbgrader {' '.join(arguments)} ended with {done.returncode}")


def _children() -> float:
    """CPU seconds of all processes that were started and have ended, theirs included (getrusage(2))."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _scores(course: Path) -> dict[tuple[str, str], float | None]:
    query = (
        "select submitted_assignment.student_id, base_cell.name, grade.auto_score from grade "
        "join base_cell on base_cell.id = grade.cell_id "
        "join submitted_notebook on submitted_notebook.id = grade.notebook_id "
        "join submitted_assignment on submitted_assignment.id = submitted_notebook.assignment_id"
    )
    with sqlite3.connect(course / "gradebook.db") as database:
        return {(student, name): score for student, name, score in database.execute(query)}


def _table(exercise: Exercise, fewer: int, students: int, rounds: list[tuple[tuple[Run, Run], tuple[Run, Run]]]) -> str:
    """rounds: of each the smaller and the larger class, each both ways."""
    scores = [(plain.scores, ours.scores) for _, (plain, ours) in rounds]
    equal = sum(plain[key] == ours[key] for plain, ours in scores for key in plain)
    more = students - fewer
    cpu = [[large[way].cpu for _, large in rounds] for way in (0, 1)]
    wall = [[large[way].wall for _, large in rounds] for way in (0, 1)]
    cpu_more = [[(large[way].cpu - small[way].cpu) / more for small, large in rounds] for way in (0, 1)]
    wall_more = [[(large[way].wall - small[way].wall) / more for small, large in rounds] for way in (0, 1)]
    lines = ["| | plain nbgrader | this course | ratio | min … max |", "| --- | ---: | ---: | ---: | ---: |"]
    for what, (plain, ours) in (
        (f"CPU, all {students}", cpu),
        ("CPU, a submission, with its share of the start", [[value / students for value in way] for way in cpu]),
        (f"CPU, a submission more, from {fewer} to {students}", cpu_more),
        (f"wall, all {students}", wall),
        ("wall, a submission more", wall_more),
    ):
        ratios = [theirs / mine for theirs, mine in zip(plain, ours, strict=True)]
        numbers = f"{median(plain):.2f} s | {median(ours):.2f} s | {median(ratios):.1f}×"
        lines.append(f"| {what} | {numbers} | {min(ratios):.1f}× … {max(ratios):.1f}× |")
    packages = ", ".join(f"{name} {version(name)}" for name in ("nbgrader", "torch", "ipykernel"))
    return "\n".join(
        [
            f"{students} notebooks of exercise {exercise.number}, {len(rounds)} rounds; "
            f"{equal} of {sum(len(plain) for plain, _ in scores)} scores are equal.",
            f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}, {packages}.",
            "",
            *lines,
        ]
    )


if __name__ == "__main__":
    main()

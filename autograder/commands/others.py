"""The commands that do not grade: `check`, `build`, `doctor`, `syllabus`."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from autograder.commands.arguments import exercise_number
from autograder.commands.console import GRADED, GRADER_ERROR
from autograder.report import points_number
from autograder.submission import UsageError
from autograder.syllabus import SYLLABUS


def add(commands: Any) -> None:
    check = commands.add_parser(
        "check",
        help="check your own work on one exercise",
        description="Run the visible checks of an exercise on your own file and say what is wrong. "
        "Exit status 0 if all pass, 1 if not.",
    )
    check.set_defaults(run=_check)
    check.add_argument("exercise", type=exercise_number, metavar="N", help="number of the exercise")
    check.add_argument("path", nargs="?", metavar="PATH", help="your module, notebook or folder (default: exercises/)")

    build = commands.add_parser(
        "build",
        help="generate the exercises from the solutions (authors)",
        description="Write every generated file that is missing or stale.",
    )
    build.set_defaults(run=_build)
    build.add_argument("--check", action="store_true", help="write nothing; exit with 1 if anything is stale")

    doctor = commands.add_parser(
        "doctor",
        help="say what this host offers for keeping student code in",
        description="Say which walls this host offers around student code, and what to install or switch on for the "
        "others. Exit status 0 if there are at least Landlock and seccomp, 3 if not.",
    )
    doctor.set_defaults(run=_doctor)

    syllabus = commands.add_parser(
        "syllabus", help="list the exercises and their points", description="List the exercises and their points."
    )
    syllabus.set_defaults(run=_syllabus)
    syllabus.add_argument("--format", choices=["terminal", "json"], default="terminal")


def _check(arguments: argparse.Namespace) -> int:
    from autograder.visible import check

    text, passed = check(arguments.exercise, arguments.path)
    print(text)
    return 0 if passed else 1


def _build(arguments: argparse.Namespace) -> int:
    from autograder.build import BuildError, drift, write

    root = Path.cwd() if Path("solutions").is_dir() else Path(__file__).parents[2]
    if not (root / "solutions").is_dir():
        raise UsageError("there is no folder solutions/ here: run this command in the folder of the course")
    try:
        if arguments.check:
            lines = drift(root)
            print("\n".join(lines) or "Everything generated is up to date.")
            return 1 if lines else 0
        written = write(root)
    except BuildError as error:
        raise UsageError(str(error)) from None
    print("\n".join(f"wrote {path}" for path in written) or "Everything generated was up to date.")
    return 0


def _doctor(arguments: argparse.Namespace) -> int:
    from autograder.doctor import examine

    text, safe = examine()
    print(text)
    return GRADED if safe else GRADER_ERROR


def _syllabus(arguments: argparse.Namespace) -> int:
    if arguments.format == "json":
        record = [
            {
                "id": exercise.id,
                "module": exercise.module,
                "title": exercise.title,
                "title_zh": exercise.title_zh,
                "points": points_number(exercise.points),
                "written_points": points_number(exercise.written_points),
                "needs": list(exercise.needs),
                "functions": [
                    {"name": f.name, "points": points_number(f.points), "parameters": list(f.parameters)}
                    for f in exercise.functions
                ],
            }
            for exercise in SYLLABUS
        ]
        print(json.dumps(record))
        return 0
    for exercise in SYLLABUS:
        written = f" + {points_number(exercise.written_points)} written" if exercise.written_points else ""
        print(f"{exercise.id}  {exercise.title}: {points_number(exercise.points)} points{written}")
        print(f"      exercises/{exercise.module}.py")
        for function in exercise.functions:
            print(f"      {points_number(function.points):>4}  {function.name}({', '.join(function.parameters)})")
    return 0

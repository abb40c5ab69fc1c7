"""The commands that students have too: `check`, `syllabus`."""

from __future__ import annotations

import argparse
import json
from typing import Any

from autograder.commands.arguments import exercise_number
from autograder.plain import points_number
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

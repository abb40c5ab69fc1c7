"""The commands for the keepers of a course that do not grade: `build`, `doctor`."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from autograder.commands.console import GRADED, GRADER_ERROR
from autograder.submission import UsageError


def add(commands: Any) -> None:
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

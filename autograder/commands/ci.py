"""`autograder ci`: a ready folder for grading on GitHub, GitLab or Gradescope."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from autograder.commands.arguments import exercise_number
from autograder.commands.console import GRADED, made_folder
from autograder.render.words import LANGUAGES
from autograder.submission import UsageError
from autograder.syllabus import EXERCISES

PLATFORMS = ("github", "gitlab", "gradescope")


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "ci",
        help="write what GitHub, GitLab or Gradescope need to grade with this course",
        description="Write a ready folder for grading on GitHub, GitLab or Gradescope. Its README.md says what to do.",
    )
    parser.set_defaults(run=ci)
    parser.add_argument("platform", choices=PLATFORMS, metavar="PLATFORM", help=", ".join(PLATFORMS))
    parser.add_argument("--out", metavar="DIR", required=True, help="the folder to write")
    parser.add_argument(
        "-e",
        "--exercise",
        action="append",
        default=[],
        type=exercise_number,
        metavar="N",
        help="grade exercise N there; may be repeated (default: all)",
    )
    parser.add_argument("--lang", choices=LANGUAGES, default="en", help="language of what students see (default: en)")


def ci(arguments: argparse.Namespace) -> int:
    from autograder.cikits import kit, write

    numbers = sorted(set(arguments.exercise) or EXERCISES)
    files = kit(
        arguments.platform, Path(__file__).parents[2], [EXERCISES[number] for number in numbers], arguments.lang
    )
    folder = made_folder(arguments.out)
    try:
        write(files, folder)
    except OSError as error:
        raise UsageError(f"--out {arguments.out}: cannot be written ({error.strerror})") from None
    print("\n".join(f"wrote {folder / name}" for name in files))
    print(f"What to do with them: {folder / 'README.md'}")
    return GRADED

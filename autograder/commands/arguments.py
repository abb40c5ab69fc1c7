"""Arguments that several commands take, and what they may be."""

from __future__ import annotations

import argparse
import re
from decimal import Decimal, InvalidOperation
from typing import TYPE_CHECKING

from autograder.commands.console import say
from autograder.submission import UsageError
from autograder.syllabus import EXERCISES

if TYPE_CHECKING:
    from autograder.grading import Options


def add_grading_arguments(parser: argparse.ArgumentParser) -> None:
    """What to grade, where, and between which walls."""
    parser.add_argument(
        "-e",
        "--exercise",
        action="append",
        default=[],
        type=exercise_number,
        metavar="N",
        help="grade exercise N, counting as not implemented what is missing; may be repeated; with exactly one, a file "
        "of any name is taken as exercise N (default: whatever PATH has)",
    )
    parser.add_argument(
        "--device", choices=["auto", "cpu", "cuda"], default="auto", help="where inputs live (default: the GPU, if any)"
    )
    parser.add_argument("--seed", type=seed, default=0, metavar="S", help="seed of all generated inputs (default: 0)")
    parser.add_argument(
        "--sandbox",
        choices=["auto", "strict", "off"],
        default="auto",
        help="walls around what is graded: auto takes the strongest that this host offers, strict refuses to run with "
        "less than Landlock and seccomp, off leaves only limits of time and memory",
    )
    parser.add_argument(
        "--jobs", type=positive, default=1, metavar="N", help="grade N at a time, at most one a core (default: 1)"
    )


def grading_options(arguments: argparse.Namespace) -> Options:
    from autograder.grading import Options, chosen_device

    try:
        device = chosen_device(arguments.device).type
    except ValueError as error:
        raise UsageError(str(error)) from None
    return Options(device, arguments.seed, arguments.sandbox, in_process=getattr(arguments, "in_process", False))


def jobs(wanted: int) -> int:
    if wanted == 1:
        return 1
    from autograder.pool import cores

    if wanted > cores():
        say(f"--jobs {wanted}: this machine has {cores()} cores, so {cores()} jobs")
    return min(wanted, cores())


def exercise_number(text: str) -> int:
    match = re.fullmatch(r"(?:ex)?0*(\d{1,3})", text.strip(), re.I)
    if match is None or int(match.group(1)) not in EXERCISES:
        raise argparse.ArgumentTypeError(f"there is no exercise {text}: there are {', '.join(map(str, EXERCISES))}")
    return int(match.group(1))


def seed(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 10 or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 0 to {2**32 - 1}")
    return int(text)


def positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 6 or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1")
    return int(text)


def points(text: str) -> Decimal:
    try:
        points = Decimal(text)
    except InvalidOperation:
        raise argparse.ArgumentTypeError(f"{text} is not a number of points") from None
    if not points.is_finite():
        raise argparse.ArgumentTypeError(f"{text} is not a number of points")
    return points

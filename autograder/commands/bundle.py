"""`autograder bundle`: what students get, as one ZIP file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from autograder.commands.console import GRADED
from autograder.submission import UsageError


def add(commands: Any) -> None:
    parser = commands.add_parser(
        "bundle",
        help="write what students get into a ZIP file",
        description="Write stubs, given code, visible checks, notebooks and a README for students into a ZIP file. "
        "Nothing that is hidden gets into it; the same course gives the same bytes.",
    )
    parser.set_defaults(run=bundle)
    parser.add_argument("--out", metavar="X.zip", required=True, help="the file to write")


def bundle(arguments: argparse.Namespace) -> int:
    from autograder.build import BuildError
    from autograder.bundle import TOP, contents, write

    out = Path(arguments.out)
    root = course()
    try:
        files = contents(root)
    except BuildError as error:
        raise UsageError(str(error)) from None
    try:
        write(files, out)
    except OSError as error:
        raise UsageError(f"--out {out}: cannot be written ({error.strerror})") from None
    size = out.stat().st_size / 2**20
    print(f"{out}: {len(files)} files, {size:.1f} MiB; it unpacks to {TOP}/, and README.md there says how to begin")
    return GRADED


def course() -> Path:
    """The folder of the course.  Raises UsageError if the solutions, which everything is made from, are not there."""
    root = Path.cwd() if Path("solutions").is_dir() else Path(__file__).parents[2]
    if not (root / "solutions").is_dir():
        raise UsageError("there is no folder solutions/ here: run this command in the folder of the course")
    return root

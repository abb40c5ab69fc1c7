"""The command `autograder`."""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn, TextIO

from autograder import __version__
from autograder.report import Report, plain_text, points_number
from autograder.submission import UsageError, find
from autograder.syllabus import EXERCISES, SYLLABUS

if TYPE_CHECKING:
    from autograder.grading import Options

GRADED, BELOW_MIN_SCORE, USAGE, GRADER_ERROR, INTERRUPTED = 0, 1, 2, 3, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit status: 0 graded, 1 below --min-score, 2 usage, 3 the grader itself failed."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):  # what a test put there
            stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    try:
        given = list(sys.argv[1:] if argv is None else argv)
        arguments = _parser(for_authors=given[:1] == ["authors"]).parse_args(given)
        return int(arguments.run(arguments))
    except UsageError as error:
        _say(str(error))
        return USAGE
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED
    except BrokenPipeError:  # whoever read our output has closed it
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return GRADER_ERROR


# -- grade -------------------------------------------------------------------------------------------------------------


def _grade(arguments: argparse.Namespace) -> int:
    wanted = set(arguments.exercise) or None
    submissions = [find(path, wanted) for path in arguments.paths]
    options = _options(arguments)
    folder = None if arguments.out is None else _folder(arguments.out)
    jobs = _jobs(arguments.jobs)

    from autograder.pool import grade_in_order
    from autograder.render import jsonlines, terminal

    stdout = sys.stdout
    as_json = arguments.format == "json"
    several = len(submissions) > 1
    colour, width = _colour(stdout), _width()
    names = file_names([submission.name for submission in submissions])
    status = GRADED
    reports: list[Report] = []

    def emit(report: Report) -> None:
        nonlocal status
        if folder is not None:
            write_atomically(folder / names[len(reports)], jsonlines.line(report) + "\n")
        if report.needs_attention:
            status = GRADER_ERROR
            _say(f"{report.submission}: the grader itself failed: {_first_fault(report)}")
        elif arguments.min_score is not None and report.points < arguments.min_score * 100:
            status = max(status, BELOW_MIN_SCORE)
        if as_json:
            print(jsonlines.line(report), file=stdout, flush=True)
            for note in report.notes:
                _say(f"{report.submission}: {note}")
        elif not several or arguments.verbose:
            print(
                terminal.report_text(report, verbose=arguments.verbose, colour=colour, width=width),
                file=stdout,
                flush=True,
            )
        elif sys.stderr.isatty():
            print(f"\r{len(reports) + 1} of {len(submissions)} graded", end="", file=sys.stderr, flush=True)
        reports.append(report)

    try:
        with _terminable(), contextlib.redirect_stdout(sys.stderr):
            grade_in_order(submissions, options, jobs, emit)
    finally:
        if as_json:
            if gpu := next((line for report in reports if (line := terminal.gpu_line(report))), ""):
                _say(gpu)
        elif several and reports:
            if sys.stderr.isatty():
                print(file=sys.stderr)
            print(terminal.table_text(reports, colour=colour, width=width), end="", file=stdout, flush=True)
    return status


def _options(arguments: argparse.Namespace) -> Options:
    from autograder.grading import Options, chosen_device

    try:
        device = chosen_device(arguments.device).type
    except ValueError as error:
        raise UsageError(str(error)) from None
    return Options(device, arguments.seed, arguments.sandbox, in_process=arguments.in_process)


def _folder(text: str) -> Path:
    folder = Path(text)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--out {text}: the folder cannot be made ({error.strerror})") from None
    return folder


def _jobs(wanted: int) -> int:
    if wanted == 1:
        return 1
    from autograder.pool import cores

    if wanted > cores():
        _say(f"--jobs {wanted}: this machine has {cores()} cores, so {cores()} jobs")
    return min(wanted, cores())


def _first_fault(report: Report) -> str:
    return next(check.message for check in report.checks if check.verdict == "grader_error")


@contextlib.contextmanager
def _terminable() -> Iterator[None]:
    """SIGTERM ends the command as Ctrl-C does: with everything it started."""

    def interrupt(*_: object) -> NoReturn:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGTERM, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def file_names(paths: Sequence[str]) -> list[str]:
    """A file name for each path: readable, harmless, and not one of them twice, whatever their case."""
    names: list[str] = []
    taken: set[str] = set()
    for path in paths:
        plain = path.replace("/", "-").strip("-.")
        stem = re.sub(r"[^\w.-]+", "-", plain, flags=re.ASCII)[-100:].strip("-.")
        if stem != plain or not stem or stem.casefold() in taken:
            digest = hashlib.sha256(path.encode("utf-8", "surrogateescape")).hexdigest()[:8]
            stem = f"{stem or 'submission'}-{digest}"
        name, copy = stem, 1
        while name.casefold() in taken:
            copy += 1
            name = f"{stem}-{copy}"
        taken.add(name.casefold())
        names.append(f"{name}.json")
    return names


def write_atomically(path: Path, text: str) -> None:
    """Write a file so that, whatever happens, it is there as a whole or not at all (rename(2), fsync(2))."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


# -- the other commands ------------------------------------------------------------------------------------------------


def _check(arguments: argparse.Namespace) -> int:
    from autograder.visible import check

    text, passed = check(arguments.exercise, arguments.path)
    print(text)
    return 0 if passed else 1


def _build(arguments: argparse.Namespace) -> int:
    from autograder.build import BuildError, drift, write

    root = Path.cwd() if Path("solutions").is_dir() else Path(__file__).parents[1]
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


# -- arguments ---------------------------------------------------------------------------------------------------------


def _parser(for_authors: bool) -> argparse.ArgumentParser:
    """for_authors: whether the authors' tools are asked for; only then are they, and with them PyTorch, loaded."""
    parser = argparse.ArgumentParser(
        "autograder",
        description="Grade work on the BERT exercises.",
        epilog="exit status: 0 graded, 1 below --min-score, 2 the command makes no sense, 3 the grader itself failed",
    )
    parser.add_argument("--version", action="version", version=f"autograder {__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    grade = commands.add_parser(
        "grade",
        help="grade submissions with all checks",
        description="Grade submissions with all checks. What is graded runs in a process of its own, walled off from "
        "this one. One PATH gives a report, several give a table.",
    )
    grade.set_defaults(run=_grade)
    grade.add_argument(
        "paths",
        nargs="+",
        metavar="PATH",
        help="a module (.py), a notebook (.ipynb), or a folder of them; which exercise a file is, its name tells: "
        "ex02_mlm_loss.py, EX 2.ipynb, …",
    )
    grade.add_argument(
        "-e",
        "--exercise",
        action="append",
        default=[],
        type=_exercise_number,
        metavar="N",
        help="grade exercise N, counting as not implemented what is missing; may be repeated; with exactly one, a file "
        "of any name is taken as exercise N (default: whatever PATH has)",
    )
    grade.add_argument(
        "--format",
        choices=["terminal", "json"],
        default="terminal",
        help="json: one line for each PATH, in their order",
    )
    grade.add_argument(
        "--device", choices=["auto", "cpu", "cuda"], default="auto", help="where inputs live (default: the GPU, if any)"
    )
    grade.add_argument("--seed", type=_seed, default=0, metavar="S", help="seed of all generated inputs (default: 0)")
    grade.add_argument(
        "--sandbox",
        choices=["auto", "strict", "off"],
        default="auto",
        help="walls around what is graded: auto takes the strongest that this host offers, strict refuses to run with "
        "less than Landlock and seccomp, off leaves only limits of time and memory",
    )
    grade.add_argument(
        "--jobs", type=_positive, default=1, metavar="N", help="grade N at a time, at most one a core (default: 1)"
    )
    grade.add_argument(
        "--min-score", type=_points, metavar="X", help="exit with 1 if any submission has less than X points"
    )
    grade.add_argument("--out", metavar="DIR", help="also write one JSON file for each PATH into DIR")
    grade.add_argument("-v", "--verbose", action="store_true", help="show passed checks too, and whole messages")
    grade.add_argument("--in-process", action="store_true", help=argparse.SUPPRESS)  # no walls: authors only

    check = commands.add_parser(
        "check",
        help="check your own work on one exercise",
        description="Run the visible checks of an exercise on your own file and say what is wrong. "
        "Exit status 0 if all pass, 1 if not.",
    )
    check.set_defaults(run=_check)
    check.add_argument("exercise", type=_exercise_number, metavar="N", help="number of the exercise")
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

    if for_authors:
        from autograder.authors.commands import add

        add(commands)
    else:
        commands.add_parser("authors", help="tools for authors of checks")
    return parser


def _exercise_number(text: str) -> int:
    match = re.fullmatch(r"(?:ex)?0*(\d{1,3})", text.strip(), re.I)
    if match is None or int(match.group(1)) not in EXERCISES:
        raise argparse.ArgumentTypeError(f"there is no exercise {text}: there are {', '.join(map(str, EXERCISES))}")
    return int(match.group(1))


def _seed(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 10 or int(text) >= 2**32:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 0 to {2**32 - 1}")
    return int(text)


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 6 or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1")
    return int(text)


def _points(text: str) -> Decimal:
    try:
        points = Decimal(text)
    except InvalidOperation:
        raise argparse.ArgumentTypeError(f"{text} is not a number of points") from None
    if not points.is_finite():
        raise argparse.ArgumentTypeError(f"{text} is not a number of points")
    return points


# -- talking -----------------------------------------------------------------------------------------------------------


def _say(text: str) -> None:
    """One line on standard error, whatever is in it."""
    with contextlib.suppress(OSError):
        print(f"autograder: {' '.join(plain_text(text).split())}", file=sys.stderr, flush=True)


def _colour(stream: TextIO) -> bool:
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _width() -> int:
    return max(60, min(120, shutil.get_terminal_size((100, 24)).columns))

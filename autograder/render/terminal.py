"""A Report for people at a terminal: one screen for one submission, one table for many."""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Iterator, Sequence

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from autograder.render.reasons import reason
from autograder.render.words import common_folder
from autograder.report import Check, ExerciseReport, FunctionReport, Report, Verdict, plain_text, points_number

COLOURS = {"passed": "green", "skipped": "yellow", "not_implemented": "yellow", "grader_error": "bold magenta"}
MESSAGE_LINES = 14
TITLES_SHOWN = 4
#: What CI services take for commands wherever it stands in a line; at a line's start nothing of a student's ever is.
_CI_COMMAND = re.compile(r"##(?=\w*\[)")
#: In the note of a class table the worst comes first.
_WORST_FIRST: tuple[Verdict, ...] = ("grader_error", "crashed", "out_of_memory", "timeout", "not_implemented")


def report_text(report: Report, *, verbose: bool = False, colour: bool = False, width: int = 100) -> str:
    """What one submission got, and for every check that did not pass: what was wrong.

    verbose: list the passed checks too, and shorten nothing.
    """
    console = new_console(colour, width)
    console.print(Text.assemble("Submission  ", (one_line(report.submission), "bold")), soft_wrap=True)
    for note in report.notes:
        _print_block(console, "  · ", one_line(note), "dim")
    for exercise in report.exercises:
        console.print()
        _print_exercise(console, exercise, verbose)
    console.print()
    total = f"{_points(report.points)} / {_points(report.max_points)}"
    console.print(Text.assemble("Total  ", (f"{total} points", "bold")), soft_wrap=True)
    if report.needs_attention:
        console.print(Text("Needs attention: the grader itself failed in places. This is not a grade yet.", "magenta"))
    for line in _circumstances(report):
        _print_block(console, "", line, "dim")
    return text_of(console)


def table_text(reports: Sequence[Report], *, colour: bool = False, width: int = 100) -> str:
    """One row a submission: points by exercise, total, and the most telling thing about it."""
    console = new_console(colour, width)
    folder = common_folder([report.submission for report in reports])
    if folder:
        _print_block(console, "", f"Submissions in {one_line(folder)}")
    numbers = sorted({exercise.id for report in reports for exercise in report.exercises})
    table = Table(box=box.ROUNDED)
    table.add_column("submission", overflow="fold", min_width=12)
    for number in numbers:
        table.add_column(number, justify="right", no_wrap=True)
    table.add_column("total", justify="right", no_wrap=True)
    table.add_column("note", overflow="fold", min_width=12)
    for report in reports:
        by_id = {exercise.id: exercise for exercise in report.exercises}
        cells = [_cell(by_id[number]) if number in by_id else Text("–", "dim") for number in numbers]
        total = Text(f"{_points(report.points)} / {_points(report.max_points)}", "bold")
        table.add_row(Text(one_line(report.submission[len(folder) :])), *cells, total, _note(report))
    console.print(table)
    for line in dict.fromkeys(line for report in reports for line in _circumstances(report)):
        _print_block(console, "", line, "dim")
    return text_of(console)


def gpu_line(report: Report) -> str:
    """One line if the GPU was left out, else empty."""
    return "" if report.device == "cuda" else "GPU checks were not run: everything was graded on the CPU."


def _print_exercise(console: Console, exercise: ExerciseReport, verbose: bool) -> None:
    heading = f"Exercise {exercise.id.removeprefix('ex').lstrip('0')} · {one_line(exercise.title)}"
    line = Text.assemble((heading, "bold"), "  ", _bar(exercise.points, exercise.max_points, 20), "  ", _of(exercise))
    console.print(line, soft_wrap=True)
    checks = [check for function in exercise.functions for check in function.checks]
    reasons = {reason(check) for check in checks}
    if len(checks) > 1 and len(reasons) == 1 and checks[0].verdict != "passed" and not verbose:
        console.print(Text.assemble("  ", _verdict(checks[0]), f", all {len(checks)} checks"))
        _print_reason(console, "    ", checks[0], verbose)
        return
    name_width = max((len(one_line(function.name)) for function in exercise.functions), default=0)
    for function in exercise.functions:
        passed = sum(check.verdict == "passed" for check in function.checks)
        line = Text.assemble(
            f"  {one_line(function.name):{name_width}}  ",
            _bar(function.points, function.max_points, 10),
            f"  {_of(function)}",
            (f"   {passed} of {len(function.checks)} checks passed", "dim"),
        )
        console.print(line, soft_wrap=True)
        _print_checks(console, function, verbose)


def _print_checks(console: Console, function: FunctionReport, verbose: bool) -> None:
    if verbose:
        for check in function.checks:
            if check.verdict == "passed":
                _print_block(console, "    ✓ ", one_line(check.title), "green")
    groups: dict[tuple[str, str, str], list[Check]] = {}
    for check in function.checks:
        if check.verdict != "passed":
            groups.setdefault(reason(check), []).append(check)
    if len(groups) == 1 and len(function.checks) > 1 and all(len(g) == len(function.checks) for g in groups.values()):
        check = function.checks[0]
        _print_block(console, "    ✗ ", Text.assemble(_verdict(check), f", all {len(function.checks)} checks"))
        _print_reason(console, "      ", check, verbose)
        return
    for group in groups.values():
        shown = group if verbose or len(group) <= TITLES_SHOWN else group[: TITLES_SHOWN - 1]
        for check in shown:
            worth = f"  {_points(check.points)} / {_points(check.max_points)}"
            title = Text.assemble(one_line(check.title), "  ", _verdict(check), (worth, "dim"))
            _print_block(console, "    ✗ ", title)
        if len(shown) < len(group):
            _print_block(console, "    ✗ ", f"and {len(group) - len(shown)} more, for the same reason", "dim")
        _print_reason(console, "      ", group[0], verbose)


def _print_reason(console: Console, indent: str, check: Check, verbose: bool) -> None:
    message = _inert(check.message)
    if check.verdict == "not_implemented" and not verbose:
        message = message.rpartition("\n")[2]
    if message:
        _print_block(console, f"{indent}│ ", message, most=None if verbose else MESSAGE_LINES)
    if check.hint:
        _print_block(console, f"{indent}│ ", f"→ {_inert(check.hint)}", "cyan")


def _print_block(console: Console, prefix: str, content: str | Text, style: str = "", most: int | None = None) -> None:
    """Print wrapped lines, each behind the prefix: no line begins with what a student wrote."""
    text = Text(content, style) if isinstance(content, str) else content
    text.expand_tabs(4)
    lines = list(text.wrap(console, max(20, console.width - len(prefix)), overflow="fold"))
    left_out = 0 if most is None else len(lines) - most
    follow = prefix if "│" in prefix else " " * len(prefix)
    for number, line in enumerate(lines[:most] if left_out > 1 else lines):
        line.rstrip()
        start = prefix if number == 0 else follow
        console.print(Text.assemble((start, "dim" if "│" in start else ""), _guarded(line, start)), soft_wrap=True)
    if left_out > 1:
        console.print(Text(f"{prefix}… ({left_out} more lines: -v shows them)", "dim"), soft_wrap=True)


def _guarded(line: Text, start: str) -> Text:
    """Behind a blank prefix `::` would still begin the line for a CI service, which skips blanks."""
    return Text.assemble("· ", line) if not start.strip() and line.plain.lstrip().startswith("::") else line


def _circumstances(report: Report) -> Iterator[str]:
    yield f"sandbox: {one_line(report.sandbox)} · device: {one_line(report.device)} · seed: {report.seed} · " + (
        f"grader: {one_line(report.grader_version)}"
    )
    if line := gpu_line(report):
        yield line


def _note(report: Report) -> Text:
    count = Counter(check.verdict for check in report.checks)
    words = [
        f"{verdict.replace('_', ' ')} ({count[verdict]} of {len(report.checks)} checks)"
        for verdict in _WORST_FIRST
        if count[verdict]
    ]
    if words:
        return Text(", ".join(words), "bold magenta" if report.needs_attention else "yellow")
    failed = [check for check in report.checks if check.verdict == "failed"]
    if not failed:
        return Text("")
    explained = next((check for check in failed if check.hint), None)
    what = failed[0].title if explained is None else misconception(explained)
    return Text(f"{_cut(one_line(what), 60)} ({len(failed)} of {len(report.checks)} checks)")


def misconception(check: Check) -> str:
    """The name of the misconception that a failed check with a hint ends its message with."""
    return check.message.rpartition("\n")[2].partition(":")[0]


def _cell(exercise: ExerciseReport) -> Text:
    full = exercise.points == exercise.max_points
    return Text(str(_points(exercise.points)), "green" if full else "")


def _bar(points: int, most: int, length: int) -> Text:
    """Full only for full points, and empty only for none."""
    filled = 0 if most <= 0 else max(int(points > 0), length * points // most)
    return Text.assemble(("█" * filled, "green" if points == most else "yellow"), ("░" * (length - filled), "dim"))


def _of(part: ExerciseReport | FunctionReport) -> str:
    return f"{_points(part.points)} / {_points(part.max_points)}"


def _verdict(check: Check) -> Text:
    return Text(check.verdict.replace("_", " "), COLOURS.get(check.verdict, "red"))


def _points(hundredths: int) -> int | float:
    return points_number(hundredths)


def _inert(text: str) -> str:
    return _CI_COMMAND.sub("# #", plain_text(text)).strip("\n")


def one_line(text: str) -> str:
    return " ".join(_inert(text).split())


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[: most - 1] + "…"


def new_console(colour: bool, width: int) -> Console:
    return Console(
        file=io.StringIO(),
        width=width,
        force_terminal=colour,
        color_system="standard" if colour else None,
        no_color=not colour,
        markup=False,
        emoji=False,
        highlight=False,
        legacy_windows=False,
        _environ={},
    )


def text_of(console: Console) -> str:
    file = console.file
    assert isinstance(file, io.StringIO)
    return file.getvalue()

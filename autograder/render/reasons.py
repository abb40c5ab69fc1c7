"""Which checks failed for one and the same reason, so that it is told once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from autograder.report import Check, FunctionReport, Report, Verdict

#: Of two verdicts the one that has to be seen first.
WORST_FIRST: tuple[Verdict, ...] = (
    "grader_error",
    "crashed",
    "out_of_memory",
    "timeout",
    "failed",
    "not_implemented",
    "skipped",
    "passed",
)


def reason(check: Check) -> tuple[str, str, str]:
    """What makes two checks fail alike.  A function that is not written fails alike whatever it is called with."""
    message = check.message.rpartition("\n")[2] if check.verdict == "not_implemented" else check.message
    return check.verdict, message, check.hint


def groups(checks: Iterable[Check]) -> list[list[Check]]:
    """The checks that did not pass, those with one reason together, in the order of the first of each."""
    found: dict[tuple[str, str, str], list[Check]] = {}
    for check in checks:
        if check.verdict != "passed":
            found.setdefault(reason(check), []).append(check)
    return list(found.values())


def misconceptions(report: Report) -> dict[str, int]:
    """How many checks point at each misconception, by its id; most first."""
    count: dict[str, int] = {}
    for check in report.checks:
        if check.misconception is not None:
            count[check.misconception] = count.get(check.misconception, 0) + 1
    return dict(sorted(count.items(), key=lambda item: -item[1]))


def passed(function: FunctionReport) -> int:
    return sum(check.verdict == "passed" for check in function.checks)


def functions(report: Report) -> Iterator[tuple[str, FunctionReport]]:
    """Every function with the id of its exercise."""
    for exercise in report.exercises:
        for function in exercise.functions:
            yield exercise.id, function


def at_fault(checks: Iterable[Check]) -> bool:
    """Whether the grader itself failed at one of them."""
    return any(check.verdict == "grader_error" for check in checks)

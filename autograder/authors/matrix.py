"""The kill matrix: which check catches which impostor, and whether any check hits an honest submission."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from autograder.authors import banks
from autograder.authors.banks import Honest, Impostor
from autograder.authors.parallel import grade_many
from autograder.grading import Options
from autograder.report import Report
from autograder.syllabus import EXERCISES


@dataclass
class Matrix:
    """Reports of both banks, and what is wrong with them.

    killed: impostor name -> ids of the checks that it failed.  named: the misconception that its report names first.
    sole: check ("ex05 test_…") -> the impostors that only it catches.
    problems: sentences; none means that the checks judge as they should.
    """

    impostors: list[Impostor]
    honest: list[Honest]
    killed: dict[str, list[str]] = field(default_factory=dict)
    named: dict[str, str | None] = field(default_factory=dict)
    sole: dict[str, list[str]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


def run(
    numbers: set[int] | None = None,
    options: Options = Options(),  # noqa: B008 — frozen
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
    every: int = 1,
) -> Matrix:
    """Grade both banks of these exercises (default: all) and judge the checks by them.

    every: 1 for all; n for every n-th submission of each bank, which leaves open whether each check is needed.
    """
    matrix = Matrix(banks.impostors(numbers)[::every], banks.honest(numbers)[::every])
    entries: list[Impostor | Honest] = [*matrix.impostors, *matrix.honest]
    submissions = [banks.submission(entry.exercise, entry.path, entry.name) for entry in entries]
    reports = grade_many(submissions, options, jobs, progress)
    for entry, report in zip(entries, reports, strict=True):
        if isinstance(entry, Impostor):
            _judge_impostor(matrix, entry, report)
        else:
            _judge_honest(matrix, entry, report)
    if every == 1:
        _judge_checks(matrix, reports)
    _judge_texts(matrix)
    return matrix


def _judge_impostor(matrix: Matrix, impostor: Impostor, report: Report) -> None:
    exercise = report.exercises[0]
    lost = [f.name for f in exercise.functions if f.points < f.max_points]
    failed = [check for check in report.checks if check.verdict not in ("passed", "skipped")]
    matrix.killed[impostor.name] = [check.id for check in failed]
    first = next((check.misconception for check in failed if check.misconception is not None), None)
    matrix.named[impostor.name] = first
    if report.needs_attention:
        matrix.problems.append(f"{impostor.name}: the grader itself failed")
    elif not lost:
        matrix.problems.append(f"{impostor.name}: passes, though wrong: {impostor.fault}")
    elif lost != [impostor.function]:
        matrix.problems.append(f"{impostor.name}: loses points in {', '.join(lost)}, is wrong in {impostor.function}")
    elif impostor.check not in matrix.killed[impostor.name]:
        caught = ", ".join(matrix.killed[impostor.name])
        matrix.problems.append(f"{impostor.name}: passes {impostor.check}, and is caught by {caught}")
    elif first != impostor.misconception:
        matrix.problems.append(f"{impostor.name}: is called {first}, not {impostor.misconception}: {impostor.fault}")


def _judge_honest(matrix: Matrix, honest: Honest, report: Report) -> None:
    for check in report.checks:
        if check.verdict != "passed":
            matrix.problems.append(
                f"{honest.name}: {check.verdict} in {check.id}, though right ({honest.honest}): {check.message}"
            )


def _judge_checks(matrix: Matrix, reports: list[Report]) -> None:
    """Every check must be the only one to catch some impostor: otherwise it is not needed."""
    for exercise in EXERCISES.values():
        mine = [impostor for impostor in matrix.impostors if impostor.exercise == exercise]
        report = next((r for r in reports if r.exercises[0].id == exercise.id), None)
        if report is None or not mine:
            continue
        for check in report.checks:
            only = [i.name for i in mine if matrix.killed[i.name] == [check.id]]
            matrix.sole[f"{exercise.id} {check.id}"] = only
            if not only:
                matrix.problems.append(f"{exercise.id}: no impostor is caught by {check.id} alone")


def _judge_texts(matrix: Matrix) -> None:
    seen: dict[str, str] = {}
    for impostor in matrix.impostors:
        lines = impostor.path.read_text(encoding="utf-8").splitlines()
        code = "\n".join(line for line in lines if not line.startswith("# "))
        if code in seen:
            matrix.problems.append(f"{impostor.name}: the same text as {seen[code]}")
        seen[code] = impostor.name


def as_markdown(matrix: Matrix) -> str:
    """The matrix as a page: per exercise a table impostor × (checks that fail, misconception named)."""
    lines = ["# Kill matrix", ""]
    for exercise in EXERCISES.values():
        mine = [impostor for impostor in matrix.impostors if impostor.exercise == exercise]
        if not mine:
            continue
        count = sum(honest.exercise == exercise for honest in matrix.honest)
        lines += [f"## {exercise.id} {exercise.title}: {len(mine)} impostors, {count} honest", ""]
        lines += ["| impostor | function | fault | caught by | named |", "| --- | --- | --- | --- | --- |"]
        for impostor in mine:
            caught = ", ".join(name.removeprefix("test_") for name in matrix.killed[impostor.name])
            fault = impostor.fault.replace("|", "\\|")
            named = matrix.named[impostor.name]
            lines.append(f"| {impostor.path.stem} | {impostor.function} | {fault} | {caught} | {named} |")
        lines.append("")
    return "\n".join(lines)

"""The flake audit: the same submissions graded under many seeds; no verdict may change."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from autograder.authors import banks
from autograder.authors.parallel import grade_many
from autograder.grading import Options, Submission
from autograder.syllabus import EXERCISES


@dataclass
class Audit:
    """submissions × seeds gradings; changes: (submission, check) -> the verdicts seen, where there was more than one.

    losses: (submission, seed, check, message) for right submissions that lost points.
    """

    submissions: int = 0
    seeds: tuple[int, ...] = ()
    changes: dict[tuple[str, str], set[str]] = field(default_factory=dict)
    losses: list[tuple[str, int, str, str]] = field(default_factory=list)


def run(
    numbers: set[int] | None,
    root: Path,
    seeds: Iterable[int],
    options: Options,
    with_impostors: bool = True,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Audit:
    """Grade the reference, the honest bank and, if wanted, the impostors of these exercises once for every seed."""
    right: list[Submission] = [
        banks.submission(exercise, root / "solutions" / f"{exercise.module}.py", f"solutions/{exercise.id}")
        for number, exercise in EXERCISES.items()
        if numbers is None or number in numbers
    ]
    right += [banks.submission(entry.exercise, entry.path, entry.name) for entry in banks.honest(numbers)]
    wrong = banks.impostors(numbers) if with_impostors else []
    submissions = right + [banks.submission(entry.exercise, entry.path, entry.name) for entry in wrong]
    audit = Audit(len(submissions), tuple(seeds))
    seen: dict[tuple[str, str], set[str]] = defaultdict(set)
    for count, seed in enumerate(audit.seeds):

        def advance(done: int, total: int, before: int = count) -> None:
            if progress is not None:
                progress(before * total + done, len(audit.seeds) * total)

        reports = grade_many(submissions, replace(options, seed=seed), jobs, advance)
        for index, report in enumerate(reports):
            for check in report.checks:
                seen[report.submission, check.id].add(check.verdict)
                if index < len(right) and check.verdict != "passed":
                    audit.losses.append((report.submission, seed, check.id, check.message))
    audit.changes = {key: verdicts for key, verdicts in seen.items() if len(verdicts) > 1}
    return audit

"""Grading many submissions on all cores and collecting the reports."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from autograder.grading import Options, Submission
from autograder.pool import cores, grade_in_order
from autograder.report import Report


def grade_many(
    submissions: Sequence[Submission],
    options: Options,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Report]:
    """The reports of the submissions, in their order.  jobs: processes; default and maximum: one a core."""
    reports: list[Report] = []

    def emit(report: Report) -> None:
        reports.append(report)
        if progress is not None:
            progress(len(reports), len(submissions))

    grade_in_order(submissions, options, min(jobs or cores(), cores()), emit)
    return reports

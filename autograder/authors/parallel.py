"""Grading many submissions on all cores, each process with a zygote of its own."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace

from autograder.grading import Options, Submission, grade_all
from autograder.report import Report

SHARE = 24


def grade_many(
    submissions: Sequence[Submission],
    options: Options,
    jobs: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Report]:
    """The reports of the submissions, in their order.  jobs: processes, at most one a core."""
    jobs = min(jobs or os.cpu_count() or 1, os.cpu_count() or 1, max(1, len(submissions)))
    if jobs == 1:
        return _grade(list(submissions), options)
    shares = [range(start, min(start + SHARE, len(submissions))) for start in range(0, len(submissions), SHARE)]
    found: dict[int, Report] = {}
    with ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn")) as pool:
        running = {pool.submit(_grade, [submissions[i] for i in share], options): share for share in shares}
        for done in as_completed(running):
            found.update(zip(running[done], done.result(), strict=True))
            if progress is not None:
                progress(len(found), len(submissions))
    return [found[number] for number in range(len(submissions))]


def with_seeds(submissions: Sequence[Submission], options: Options, seeds: Sequence[int]) -> dict[int, list[Report]]:
    """The reports for every seed."""
    return {seed: grade_many(submissions, replace(options, seed=seed)) for seed in seeds}


def _grade(submissions: list[Submission], options: Options) -> list[Report]:
    reports: list[Report] = []
    grade_all(submissions, options, reports.append)
    return reports

"""Grading many submissions in one process or several; the reports come in the order of the submissions."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import traceback
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess

from autograder import __version__
from autograder.grading import Options, Submission, grade_all
from autograder.report import Check, ExerciseReport, FunctionReport, Report

#: So many grading processes may die one after the other, before it is clear that none will live here.
DEATHS_IN_A_ROW = 8

Emit = Callable[[Report], None]


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def grade_in_order(submissions: Sequence[Submission], options: Options, jobs: int, emit: Emit) -> None:
    """Grade all submissions, `jobs` at a time, and emit one Report for each, in order.

    What the grader itself could not grade is emitted too, with the verdict grader_error.
    """
    if min(jobs, len(submissions)) > 1:
        _Pool(submissions, options, emit).run(min(jobs, len(submissions)))
        return
    done = 0

    def count(report: Report) -> None:
        nonlocal done
        done += 1
        emit(report)

    try:
        grade_all(submissions, options, count)
    except BrokenPipeError:
        raise
    except Exception as error:
        if done == len(submissions):
            raise
        for submission in submissions[done:]:
            emit(not_graded(submission, options, _fault(error)))


def not_graded(submission: Submission, options: Options, why: str) -> Report:
    """The report on a submission that the grader failed on: no points yet, and no zero either."""

    def check(points: int) -> Check:
        title = "The grader itself failed: this is not a grade yet."
        return Check("not_graded", title, "grader_error", 0, points, why, "", 0.0)

    return Report(
        submission=submission.name,
        exercises=tuple(
            ExerciseReport(
                work.exercise.id,
                work.exercise.title,
                tuple(FunctionReport(f.name, (check(f.points),)) for f in work.exercise.functions),
            )
            for work in submission.works
        ),
        sandbox="none",
        device=options.device,
        seed=options.seed,
        grader_version=__version__,
        notes=submission.notes,
    )


def _fault(error: Exception) -> str:
    if os.environ.get("AUTOGRADER_DEBUG"):
        traceback.print_exception(error)
    return f"{type(error).__name__}: {error}"


class _Pool:
    """Processes that are handed one submission at a time.

    The submission of a process that dies goes to a new process; if that dies too, it is the grader's fault.
    """

    def __init__(self, submissions: Sequence[Submission], options: Options, emit: Emit) -> None:
        self._submissions = submissions
        self._options = options
        self._emit = emit
        self._waiting = iter(range(len(submissions)))
        self._graded: dict[int, Report] = {}
        self._emitted = 0
        self._in_hand: dict[Connection, int] = {}
        self._processes: dict[Connection, SpawnProcess] = {}
        self._context = multiprocessing.get_context("spawn")
        self._again: set[int] = set()
        self._deaths = 0

    def run(self, jobs: int) -> None:
        try:
            for _ in range(jobs):
                self._hand_out(self._start())
            why = ""
            while self._in_hand:
                for connection in wait(list(self._in_hand)):
                    assert isinstance(connection, Connection)
                    why = self._take(connection) or why
            for index in self._waiting:
                self._file(index, not_graded(self._submissions[index], self._options, why))
        finally:
            for connection, process in self._processes.items():
                connection.close()
                process.terminate()
            for process in self._processes.values():
                process.join(15)
                if process.is_alive():
                    process.kill()

    def _start(self) -> Connection:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=grade_what_comes, args=(theirs, self._options), daemon=True)
        process.start()
        theirs.close()
        self._processes[ours] = process
        return ours

    def _hand_out(self, connection: Connection, index: int | None = None) -> None:
        index = next(self._waiting, None) if index is None else index
        if index is not None:
            self._in_hand[connection] = index
        with contextlib.suppress(OSError):  # it is gone: noticed when its answer is read
            connection.send(None if index is None else self._submissions[index])

    def _take(self, connection: Connection) -> str:
        """File what a process says of the submission it had; the reason, if it could not grade it."""
        index = self._in_hand.pop(connection)
        try:
            answer = connection.recv()
        except (EOFError, OSError):
            process = self._processes[connection]
            process.join(10)
            answer = f"the grading process ended (exit status {process.exitcode})"
            self._deaths += 1
            if self._deaths <= DEATHS_IN_A_ROW:
                again = index not in self._again
                self._again.add(index)
                self._hand_out(self._start(), index if again else None)
                if again:
                    return ""
        if isinstance(answer, Report):
            self._deaths = 0
            self._file(index, answer)
            self._hand_out(connection)
            return ""
        self._file(index, not_graded(self._submissions[index], self._options, answer))
        return str(answer)

    def _file(self, index: int, report: Report) -> None:
        self._graded[index] = report
        while self._emitted in self._graded:
            self._emit(self._graded.pop(self._emitted))
            self._emitted += 1


def grade_what_comes(connection: Connection, options: Options) -> None:
    """In a process of the pool: grade until None comes.  Its standard output is the standard error of the command."""
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started us ends us
    signal.signal(signal.SIGTERM, _interrupt)

    def incoming() -> Iterator[Submission]:
        while (submission := connection.recv()) is not None:
            yield submission

    try:
        grade_all(incoming(), options, connection.send)
    except (EOFError, KeyboardInterrupt, BrokenPipeError):
        return
    except Exception as error:
        connection.send(_fault(error))


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt

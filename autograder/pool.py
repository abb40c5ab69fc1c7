"""Grading many submissions in one process or several: each report as soon as it is there, or in order."""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
import select
import signal
import tempfile
import threading
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from multiprocessing import resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkServerContext, SpawnContext
from multiprocessing.process import BaseProcess
from multiprocessing.util import Finalize
from pathlib import Path

from autograder import __version__
from autograder.grading import HIDDEN, Options, Submission, chosen_device, grade_all
from autograder.report import Check, ExerciseReport, FunctionReport, Report
from autograder.wire.classroom import Classrooms, Leases
from autograder.wire.errors import GraderFault
from autograder.wire.scratch import ScratchFolder

#: The grader may fail so many times, one after the other, before it is clear that nothing can be graded here.
FAULTS_IN_A_ROW = 8

#: So often a process is tried to be started.
STARTS = 3
#: The name of a socket takes 107 bytes (unix(7)), of which multiprocessing adds 32.
LONGEST_FOLDER = 75
#: What grading takes, whatever the exercise.
_LOADED_BY_ALL = (
    "autograder.grading",
    "autograder.hidden.expect",
    "autograder.hidden.properties",
    "autograder.hidden.strategies",
    "autograder.wire.classroom",
)

#: Told of each Report, and which of the submissions it is of.
Emit = Callable[[int, Report], None]


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0))


def grade_in_order(
    submissions: Sequence[Submission], options: Options, jobs: int, emit: Callable[[Report], None]
) -> None:
    """Grade all submissions, `jobs` at a time, and emit one Report for each, in order."""
    graded: dict[int, Report] = {}
    emitted = 0

    def file(index: int, report: Report) -> None:
        nonlocal emitted
        graded[index] = report
        while emitted in graded:
            emit(graded.pop(emitted))
            emitted += 1

    grade_as_they_finish(submissions, options, jobs, file)


def grade_as_they_finish(submissions: Sequence[Submission], options: Options, jobs: int, emit: Emit) -> None:
    """Grade all submissions, `jobs` at a time, and emit one Report for each as soon as it is there.

    What the grader itself fails on is tried once more, with all that is started afresh; then it is emitted too, with
    the verdict grader_error.
    """
    at_a_time = min(jobs, len(submissions))
    engine = _Pool(submissions, options, emit) if at_a_time > 1 else _Here(submissions, options, emit)
    engine.run(at_a_time)


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


class _Engine:
    """What is left to grade, and what was tried before."""

    def __init__(self, submissions: Sequence[Submission], options: Options, emit: Emit) -> None:
        self._submissions = submissions
        self._options = options
        self._emit = emit
        self._waiting = iter(range(len(submissions)))
        self._tried: set[int] = set()
        self._faults = 0

    def _done(self, index: int, report: Report) -> None:
        self._faults = 0
        self._emit(index, report)

    def _failed(self, index: int, why: str) -> int | None:
        """Note that the grader failed on a submission: it, if it is to be tried again; else its report is emitted."""
        self._faults += 1
        again = index not in self._tried and self._faults <= FAULTS_IN_A_ROW
        self._tried.add(index)
        if again:
            return index
        self._emit(index, not_graded(self._submissions[index], self._options, why))
        return None

    def _give_up(self, why: str) -> None:
        for index in self._waiting:
            self._emit(index, not_graded(self._submissions[index], self._options, why))


class _Here(_Engine):
    """One submission after the other, in this process."""

    def run(self, jobs: int) -> None:
        first: int | None = None
        at: int | None = None
        why = ""

        def incoming() -> Iterator[Submission]:
            nonlocal at
            at = first if first is not None else next(self._waiting, None)
            while at is not None:
                yield self._submissions[at]
                at = next(self._waiting, None)

        def done(report: Report) -> None:
            assert at is not None
            try:
                self._done(at, report)
            except Exception as error:
                raise _NotTaken(error) from error

        while self._faults <= FAULTS_IN_A_ROW:
            try:
                return grade_all(incoming(), self._options, done)
            except _NotTaken as refusal:
                raise refusal.error from None
            except Exception as error:
                if at is None:  # all is graded: the fault is of tidying up
                    raise
                why = _fault(error)
                first = self._failed(at, why)
        self._give_up(why)


class _NotTaken(Exception):
    """Whoever wanted the reports could not take one: no fault of grading."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class _Pool(_Engine):
    """Processes that are handed one submission at a time.

    They are forked from one that has loaded what grading takes, and their workers from zygotes that all of them share:
    what is the same for all is in memory once.
    The submission of a process that fails goes to a new process; if that fails too, it is the grader's fault.
    """

    def __init__(self, submissions: Sequence[Submission], options: Options, emit: Emit) -> None:
        super().__init__(submissions, options, emit)
        self._why = ""
        self._in_hand: dict[Connection, int] = {}
        self._processes: dict[Connection, BaseProcess] = {}
        exercises = {work.exercise for submission in submissions for work in submission.works}
        self._families = {exercise.family for exercise in exercises}
        self._context: ForkServerContext | SpawnContext = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(_loaded_once({exercise.id for exercise in exercises}))
        if len(os.fsencode(_folder())) > LONGEST_FOLDER:  # then each loads for itself
            self._context = multiprocessing.get_context("spawn")

    def run(self, jobs: int) -> None:
        device = chosen_device(self._options.device)
        settings = self._options.sandbox, device, self._options.seed, self._options.limits
        with Classrooms(*settings) as self._classrooms:
            self._run(jobs)

    def _run(self, jobs: int) -> None:
        try:
            for _ in range(jobs):
                self._employ()
            while self._in_hand:
                for connection in wait(list(self._in_hand)):
                    assert isinstance(connection, Connection)
                    self._take(connection)
            self._give_up(self._why)
        finally:
            for connection in self._processes:
                connection.close()  # which ends its process, whatever that is at
            for process in self._processes.values():
                _bury(process)

    def _employ(self, index: int | None = None) -> None:
        """Start a process on that submission, or on the next one."""
        for _ in range(STARTS):  # what it is forked from may have been killed a moment ago
            try:
                return self._hand_out(self._start(), index)
            except (EOFError, OSError) as error:
                self._why = f"no grading process can be started: {_fault(error)}"
        if index is not None:
            self._emit(index, not_graded(self._submissions[index], self._options, self._why))

    def _start(self) -> Connection:
        ours, theirs = self._context.Pipe()
        leases = self._leases()
        process = self._context.Process(target=grade_what_comes, args=(theirs, self._options, leases), daemon=True)
        try:
            with _environment():
                process.start()
        except (EOFError, OSError):
            ours.close()
            raise
        finally:
            theirs.close()
            for lease in leases.values():
                lease.control.close()
        self._processes[ours] = process
        return ours

    def _leases(self) -> Leases:
        if self._options.in_process:
            return {}
        try:
            return self._classrooms.lend(self._families)
        except (OSError, GraderFault):  # a zygote has ended or cannot be had: the process finds out for itself
            return {}

    def _hand_out(self, connection: Connection, index: int | None = None) -> None:
        index = next(self._waiting, None) if index is None else index
        if index is not None:
            self._in_hand[connection] = index
        with contextlib.suppress(OSError):  # it is gone: noticed when its answer is read
            connection.send(None if index is None else self._submissions[index])

    def _take(self, connection: Connection) -> None:
        """Take what a process says of the submission it had; if it could not grade it, it is replaced."""
        index = self._in_hand.pop(connection)
        try:
            answer = connection.recv()
        except (EOFError, OSError):
            answer = None
        if isinstance(answer, Report):
            self._done(index, answer)
            return self._hand_out(connection)
        connection.close()
        status = _bury(self._processes.pop(connection))
        self._why = answer if isinstance(answer, str) else f"the grading process ended (exit status {status})"
        again = self._failed(index, self._why)
        if self._faults <= FAULTS_IN_A_ROW:
            self._employ(again)


def _loaded_once(exercises: Iterable[str]) -> list[str]:
    """The modules that grading these exercises takes, for the process that grading processes are forked from."""
    hidden = sorted(file.stem for one in exercises for file in HIDDEN.glob(f"[!t]*_{one}.py"))
    return [*_LOADED_BY_ALL, *(f"autograder.hidden.{name}" for name in hidden)]


@cache
def _folder() -> Path:
    """A folder for as long as this process lives."""
    folder = ScratchFolder()
    Finalize(None, folder.remove, exitpriority=-200)  # after what multiprocessing has in it, which has -100
    return folder.path


@contextlib.contextmanager
def _environment() -> Iterator[None]:
    """multiprocessing has Python look for modules in the current folder first, where submissions may lie: not so here.

    And a process that is to be forked has one thread, and its socket lies where the next run finds what a killed one
    leaves behind.  Ctrl-C in a terminal goes to all of them: it is for this process, who ends the others.
    """
    wanted = {"PYTHONSAFEPATH": "1", "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    before = {name: os.environ.get(name) for name in wanted}
    temporary, tempfile.tempdir = tempfile.tempdir, str(_folder())
    os.environ.update(wanted)
    resource_tracker.ensure_running()  # whose start would unblock what is blocked here
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # until `grade_what_comes` ignores it
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        tempfile.tempdir = temporary
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def _bury(process: BaseProcess) -> int | None:
    """Wait for a process of the pool to end, and make it if it does not; its exit status."""
    process.join(15)
    if process.is_alive():
        process.kill()
        process.join()
    status = process.exitcode
    process.close()
    return status


def grade_what_comes(connection: Connection, options: Options, leases: Leases | None = None) -> None:
    """In a process of the pool: grade until None comes.  Its standard output is the standard error of the command."""
    gc.freeze()  # the collector would write to, and so copy, what is shared with the process it was forked from
    os.dup2(2, 1)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the process that started us ends us
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})

    def incoming() -> Iterator[Submission]:
        with contextlib.suppress(EOFError):
            while (submission := connection.recv()) is not None:
                yield submission
        signal.signal(signal.SIGTERM, signal.SIG_IGN)  # there is only tidying up left to do

    try:
        signal.signal(signal.SIGTERM, _interrupt)
        threading.Thread(target=_end_when_alone, args=(connection,), daemon=True).start()
        grade_all(incoming(), options, connection.send, leases)
    except (EOFError, KeyboardInterrupt, ConnectionError):
        return
    except Exception as error:
        with contextlib.suppress(OSError):
            connection.send(_fault(error))


def _end_when_alone(connection: Connection) -> None:
    """End this process once nobody reads its reports, also in the middle of a submission (poll(2), POLLHUP)."""
    poll = select.poll()
    poll.register(connection.fileno(), 0)
    poll.poll()
    os.kill(os.getpid(), signal.SIGTERM)


def _interrupt(*_: object) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # once is enough: the rest is tidying up
    raise KeyboardInterrupt

"""One process that grades notebook after notebook for a run of nbgrader: PyTorch is loaded once, not once a student."""

from __future__ import annotations

import atexit
import contextlib
import gc
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autograder.report import Report

if TYPE_CHECKING:
    from autograder.grading import Submission

#: A process that nobody asks anything for so long ends itself: a server would otherwise keep old checks for days.
IDLE_SECONDS = 120


@dataclass(frozen=True)
class Task:
    """What to grade, in plain data.  exercise: its number.  cells: (name, text) of the student's.

    refused: why there is nothing to run, in a sentence, or None.
    """

    name: str
    exercise: int
    cells: tuple[tuple[str, str], ...]
    refused: str | None = None


@dataclass(frozen=True)
class Output:
    """What one cell put out.  value: of its last expression.  error: (type, message, lines).  images: PNG.

    ended: why the cells from this one on did not run to their end, in a word: "timeout" or "crashed"; else "".
    """

    stdout: str = ""
    stderr: str = ""
    value: str = ""
    error: tuple[str, str, tuple[str, ...]] | None = None
    images: tuple[bytes, ...] = ()
    ended: str = ""


@dataclass(frozen=True)
class Graded:
    """outputs: what each cell put out, as far as they ran."""

    report: Report
    outputs: list[Output]


class GradingFailed(Exception):
    """The grader itself could not grade; the message says why."""


class GradingProcess:
    """The grading process from outside; started when first needed, and again when it is gone."""

    def __init__(self, sandbox: str) -> None:
        self._sandbox = sandbox
        self._process: subprocess.Popen[bytes] | None = None
        self._connection: Connection | None = None

    def grade(self, task: Task) -> Graded:
        """Grade one notebook.  Raises GradingFailed, after a second try."""
        why = ""
        for _ in range(2):
            try:
                answer = self._ask(task)
            except (OSError, EOFError) as error:
                why = f"the grading process ended ({type(error).__name__})"
                self.close()
                continue
            if isinstance(answer, Graded):
                return answer
            why = str(answer)
            self.close()
        raise GradingFailed(why)

    def _ask(self, task: Task) -> Any:
        if self._connection is None or self._process is None or self._process.poll() is not None:
            self.close()
            self._start()
        assert self._connection is not None
        self._connection.send(task)
        return self._connection.recv()

    def _start(self) -> None:
        ours, theirs = socket.socketpair()
        root = str(Path(__file__).parents[2])
        path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
        self._process = subprocess.Popen(
            [
                sys.executable,
                "-P",
                "-c",
                f"import gc; gc.disable(); from {__name__} import main; main()",
                str(theirs.fileno()),
            ],
            env={**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
            cwd=root,  # the course's folder may go before the process does
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr.fileno() if _is_a_file(sys.stderr) else subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
            start_new_session=True,  # an interrupt is for the process that nbgrader runs in
        )
        theirs.close()
        self._connection = Connection(ours.detach())
        self._connection.send(self._sandbox)

    def close(self) -> None:
        """End the process; it ends by itself once nobody listens."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None
        if self._process is not None:
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._process = None


def _is_a_file(stream: Any) -> bool:
    try:
        return isinstance(stream.fileno(), int)
    except (OSError, AttributeError, ValueError):
        return False


_PROCESSES: dict[str, GradingProcess] = {}


def grading_process(sandbox: str) -> GradingProcess:
    """The process with these walls: one for a whole run of nbgrader, closed when the interpreter ends."""
    if sandbox not in _PROCESSES:
        process = _PROCESSES[sandbox] = GradingProcess(sandbox)
        atexit.register(process.close)
    return _PROCESSES[sandbox]


def serve(connection: Connection) -> None:
    """In the process: grade what comes until nothing more does."""
    from autograder.grading import Options, chosen_device, grade_in
    from autograder.nbgrader.outputs import ShownStudent
    from autograder.wire.classroom import Classrooms

    gc.enable()  # it was of no use while libraries were loaded
    options = Options(sandbox=connection.recv())
    shown: list[Output] = []

    def incoming() -> Iterator[Submission]:
        while connection.poll(IDLE_SECONDS):
            shown.clear()
            try:
                task = connection.recv()
            except EOFError:
                return
            yield _submission(task)

    def answer(report: Report) -> None:
        connection.send(Graded(report, shown))

    settings = options.sandbox, chosen_device(options.device), options.seed, options.limits
    with Classrooms(*settings, student=partial(ShownStudent, shown=shown)) as classrooms:
        try:
            grade_in(classrooms, incoming(), options, answer)
        except BrokenPipeError:
            return
        except Exception as error:
            with contextlib.suppress(BrokenPipeError):
                connection.send(f"{type(error).__name__}: {error}")


def _submission(task: Task) -> Submission:
    from autograder.grading import Submission, Work
    from autograder.sandbox.loading import Part
    from autograder.syllabus import EXERCISES

    parts = tuple(Part(name, text, may_fail=True) for name, text in task.cells)
    return Submission(task.name, (Work(EXERCISES[task.exercise], parts, task.refused, "crashed"),))


def main() -> None:
    """Entry point of the process; its one argument is the descriptor of the connection."""
    serve(Connection(int(sys.argv[1])))

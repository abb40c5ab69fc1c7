"""Grading on a Dask cluster: every Dask worker keeps a grading process with a zygote of its own."""

from __future__ import annotations

import atexit
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection

from autograder.grading import Options, Submission
from autograder.pool import grade_what_comes, not_graded
from autograder.report import Report
from autograder.submission import UsageError

#: A submission whose Dask worker is lost goes to another one, so many times.
RETRIES = 3


def grade_on(address: str, submissions: Sequence[Submission], options: Options, emit: Callable[[Report], None]) -> None:
    """Grade all submissions on the cluster of that scheduler, and emit one Report for each, in order.

    Raises UsageError if there is no such cluster.
    """
    try:
        from dask.distributed import Client
    except ImportError:
        raise UsageError("--scheduler needs Dask: pip install -c constraints.txt -e '.[cluster]'") from None
    try:
        client = Client(address, timeout=20)
    except (OSError, ValueError) as error:
        raise UsageError(f"--scheduler {address}: there is no scheduler ({error})") from None
    with client:
        futures = [
            client.submit(_grade_there, submission, options, retries=RETRIES, pure=False) for submission in submissions
        ]
        for index, future in enumerate(futures):
            try:
                report = future.result()
            except Exception as error:  # of the cluster, not of the submission
                report = not_graded(submissions[index], options, f"the cluster could not grade it: {error}")
            emit(report)
            future.release()


class _Grader:
    """A process that grades one submission after the other, started by the Dask worker that this is.

    A process of the pool, but for how it starts: Dask workers may have no children of `multiprocessing`.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self._turn = threading.Lock()
        ours, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "autograder.batch.cluster", str(theirs.fileno())], pass_fds=[theirs.fileno()]
        )
        theirs.close()
        self._connection = Connection(ours.detach())
        self._connection.send(options)

    def grade(self, submission: Submission) -> Report:
        """Its Report.  Raises EOFError or OSError if the process is gone, RuntimeError if it could not grade."""
        with self._turn:
            self._connection.send(submission)
            answer = self._connection.recv()
        if not isinstance(answer, Report):
            raise RuntimeError(answer)
        return answer

    def close(self) -> None:
        self._connection.close()
        self._process.kill()
        self._process.wait()


_grader: _Grader | None = None
_starting = threading.Lock()


def _grade_there(submission: Submission, options: Options) -> Report:
    """Runs in a Dask worker.  A grading process that fails is replaced, and Dask has its submission graded again."""
    global _grader
    with _starting:
        if _grader is None or _grader.options != options:
            if _grader is not None:
                _grader.close()
            _grader = _Grader(options)
            atexit.register(_grader.close)
        grader = _grader
    try:
        return grader.grade(submission)
    except (EOFError, OSError, RuntimeError):
        with _starting:
            if _grader is grader:
                atexit.unregister(grader.close)
                grader.close()
                _grader = None
        raise


if __name__ == "__main__":
    connection = Connection(int(sys.argv[1]))
    grade_what_comes(connection, connection.recv())

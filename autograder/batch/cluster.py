"""Grading on a Dask cluster: every Dask worker keeps a grading process with a zygote of its own."""

from __future__ import annotations

import atexit
import itertools
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection

from autograder.batch.run import Stopped
from autograder.batch.store import grader_hash
from autograder.grading import Options, Submission
from autograder.pool import grade_what_comes, not_graded
from autograder.report import Report
from autograder.submission import UsageError

#: A submission whose Dask worker is lost goes to another one, so many times.
RETRIES = 3
#: So many submissions are on their way beyond what the cluster's threads need.
SPARE = 4


def grade_on(
    address: str,
    submissions: Sequence[Submission],
    options: Options,
    emit: Callable[[int, Report], None],
    tell: Callable[[str], None],
) -> None:
    """Grade all submissions on the cluster of that scheduler, and emit one Report for each as soon as it is there.

    tell: told what whoever waits should know.  Raises UsageError if there is no such cluster, or it has another grader;
    Stopped if the cluster is lost meanwhile.
    """
    try:
        from dask.distributed import CancelledError, Client, Future, as_completed
    except ImportError:
        raise UsageError("--scheduler needs Dask: pip install -c constraints.txt -e '.[cluster]'") from None
    try:
        client = Client(address, timeout=20)
    except (OSError, ValueError) as error:
        raise UsageError(f"--scheduler {address}: there is no scheduler ({error})") from None
    with client:
        if not client.nthreads():
            tell("the cluster has no workers yet: waiting for the first")
        waiting = iter(range(len(submissions)))
        in_flight: dict[Future, int] = {}
        completed = as_completed()
        grader = grader_hash()
        lost = Stopped(f"--scheduler {address}: the scheduler is gone")

        def submit() -> None:
            """Keep every thread of the cluster busy, and no more in memory than that takes."""
            try:
                most = SPARE + 2 * sum(client.nthreads().values())
                for index in itertools.islice(waiting, max(0, most - len(in_flight))):
                    task = (_grade_there, submissions[index], options, grader)
                    future = client.submit(*task, retries=RETRIES, pure=False)
                    in_flight[future] = index
                    completed.add(future)
            except OSError as error:
                raise lost from error

        submit()
        for future in completed:
            index = in_flight.pop(future)
            try:
                report = future.result()
            except UsageError:
                raise
            except CancelledError:
                raise lost from None
            except Exception as error:  # of the cluster, not of the submission
                report = not_graded(submissions[index], options, f"the cluster could not grade it: {error}")
            future.release()
            emit(index, report)
            submit()


class _Grader:
    """A process that grades one submission after the other, started by the Dask worker that this is.

    A process of the pool, but for how it starts: Dask workers may have no children of `multiprocessing`.
    """

    def __init__(self, options: Options) -> None:
        self.options = options
        self._turn = threading.Lock()
        ours, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "autograder.batch.cluster", str(theirs.fileno())], pass_fds=[theirs.fileno()]
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
        """End the process, and let it tidy up."""
        self._connection.close()
        try:
            self._process.wait(15)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


_grader: _Grader | None = None
_starting = threading.Lock()


def _grade_there(submission: Submission, options: Options, grader: str) -> Report:
    """Runs in a Dask worker.  A grading process that fails is replaced, and Dask has its submission graded again.

    Raises UsageError if this is not the grader whose results were asked for: they would be stored as that one's.
    """
    global _grader
    if grader != grader_hash():
        raise UsageError(
            f"--scheduler: the worker on {socket.gethostname()} has another version of the grader, of Python or of a "
            "library; install the same everywhere"
        )
    with _starting:
        if _grader is None or _grader.options != options:
            if _grader is not None:
                _grader.close()
            _grader = _Grader(options)
            atexit.register(_grader.close)
        process = _grader
    try:
        return process.grade(submission)
    except (EOFError, OSError, RuntimeError):
        with _starting:
            if _grader is process:
                atexit.unregister(process.close)
                process.close()
                _grader = None
        raise


if __name__ == "__main__":
    connection = Connection(int(sys.argv[1]))
    grade_what_comes(connection, connection.recv())

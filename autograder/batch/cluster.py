"""Grading on a Dask cluster: every Dask worker keeps a grading process with a zygote of its own."""

from __future__ import annotations

import atexit
import contextlib
import os
import pickle
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import BinaryIO, cast

from autograder.grading import Options, Submission, grade_all
from autograder.pool import not_graded
from autograder.render import jsonlines
from autograder.report import Report
from autograder.submission import UsageError

_LENGTH = struct.Struct("!I")
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
                report = jsonlines.read(future.result())
            except Exception as error:  # of the cluster, not of the submission
                report = not_graded(submissions[index], options, f"the cluster could not grade it: {error}")
            emit(report)
            future.release()


class _Grader:
    """A process that grades one submission after the other, started by the Dask worker that this is."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._turn = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "autograder.batch.cluster"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self._stdin, self._stdout = (cast(BinaryIO, stream) for stream in (self._process.stdin, self._process.stdout))
        _send(self._stdin, pickle.dumps(options))

    def grade(self, submission: Submission) -> str:
        """Its Report as a line of JSON.  Raises EOFError if the process is gone."""
        with self._turn:
            try:
                _send(self._stdin, pickle.dumps(submission))
            except BrokenPipeError:
                raise EOFError("the grading process is gone") from None
            return _receive(self._stdout).decode()

    def close(self) -> None:
        self._process.kill()
        self._process.wait()


_grader: _Grader | None = None
_starting = threading.Lock()


def _grade_there(submission: Submission, options: Options) -> str:
    """Runs in a Dask worker.  A grading process that is gone is replaced, and its submission graded again."""
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
    except EOFError:
        with _starting:
            if _grader is grader:
                grader.close()
                _grader = None
        raise


def _send(stream: BinaryIO, data: bytes) -> None:
    stream.write(_LENGTH.pack(len(data)) + data)
    stream.flush()


def _receive(stream: BinaryIO) -> bytes:
    header = stream.read(_LENGTH.size)
    if len(header) < _LENGTH.size:
        raise EOFError("the grading process is gone")
    data = stream.read(_LENGTH.unpack(header)[0])
    if len(data) < _LENGTH.unpack(header)[0]:
        raise EOFError("the grading process is gone")
    return data


def _serve() -> None:
    """The grading process: submissions come in, reports go out.  It ends when the Dask worker does.

    What comes is pickled, as everything is that Dask hands on: whoever may speak to a cluster may run code on it.
    """
    incoming, outgoing = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)
    options = pickle.loads(_receive(incoming))

    def submissions() -> Iterator[Submission]:
        with contextlib.suppress(EOFError):
            while True:
                yield pickle.loads(_receive(incoming))

    grade_all(submissions(), options, lambda report: _send(outgoing, jsonlines.stored(report).encode()))


if __name__ == "__main__":
    _serve()

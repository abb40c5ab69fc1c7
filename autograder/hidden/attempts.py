"""Which fault is told when a check that failed is made once more, with other functions beside the one judged."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from autograder.hidden import expect
from autograder.wire.errors import Interrupted, RemoteError


@contextlib.contextmanager
def second_attempt(fault: expect.Wrong | RemoteError) -> Iterator[None]:
    """While active, whatever goes wrong is told as the fault of the first attempt.

    A second attempt may end in more than a fault: time runs out, or a model that the submission has kept since an
    earlier check speaks up, though nobody listens to it any more.  None of that says more than the first fault, and
    how much time there is depends on the machine.  What the grader has to answer for is raised as it is.
    """
    try:
        yield
    except (expect.Wrong, RemoteError):
        raise fault from None
    except Interrupted as interruption:
        if interruption.verdict == "grader_error":
            raise
        raise fault from interruption  # the cause tells that this is no precedent (autograder.wire.precedents)

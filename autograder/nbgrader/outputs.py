"""What the cells of a notebook put out, run in a confined worker: for feedback, never for the grade."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from typing import Any

from autograder.grading import Work
from autograder.nbgrader.process import Output
from autograder.report import plain_text
from autograder.wire import frames, replies
from autograder.wire.codec import Decoder, Encoder, WireError
from autograder.wire.errors import GraderFault
from autograder.wire.zygote_process import Worker, Zygote

IMAGES_LIMIT = 12
_TEXT_LIMIT = 70_000
_PNG = b"\x89PNG\r\n\x1a\n"


def run_cells(zygote: Zygote, work: Work) -> list[Output]:
    """The output of each part of the work, in order; the list ends with the cell that ends the worker."""
    limits = zygote.limits.times(work.exercise.time_factor)
    try:
        worker = zygote.spawn()
    except GraderFault:  # the grade itself does not need it
        return []
    deadline = time.monotonic() + limits.check_wall

    def pause() -> None:
        ready = False
        while not ready:
            ready = worker.wait(0.1)
            if worker.cpu() > limits.load_cpu or time.monotonic() > deadline:
                raise TimeoutError

    outputs: list[Output] = []
    images = IMAGES_LIMIT
    try:
        for part in work.parts:
            reply = _ask(worker, pause, "cell", work.exercise.module, part.name, part.text, work.exercise.off_limits)
            outputs.append(_read(reply, images))
            images -= len(outputs[-1].images)
    except TimeoutError:
        outputs.append(Output(ended="timeout"))
    except (frames.Closed, WireError):
        outputs.append(Output(ended="crashed"))
    finally:
        worker.close()
    return outputs


def _ask(worker: Worker, pause: Callable[[], None], kind: str, *values: Any) -> list[Any]:
    identity = secrets.token_bytes(16)
    worker.send(Encoder().pack([kind, identity, *values]))
    frame = Decoder().unpack(worker.reader.receive(pause))
    if not replies.is_reply(frame, identity) or frame[0] != "ran" or len(frame) != 7:
        raise WireError("a reply to nothing that was asked")
    return frame[2:]


def _read(reply: Sequence[Any], images_left: int) -> Output:
    """The reply of a worker, which may say anything, as an Output.  Raises WireError."""
    stdout, stderr, value, error, images = reply
    if not all(type(text) is str for text in (stdout, stderr, value)) or type(images) is not list:
        raise WireError("a reply of the wrong shape")
    found = None
    if error is not None:
        if type(error) is not list or len(error) != 3 or type(error[2]) is not list:
            raise WireError("a reply of the wrong shape")
        if type(error[0]) is not str or type(error[1]) is not str:
            raise WireError("a reply of the wrong shape")
        found = (_text(error[0], 200), _text(error[1]), tuple(_line(line) for line in error[2][:5]))
    kept = [image for image in images if type(image) is bytes and image.startswith(_PNG)][: max(0, images_left)]
    return Output(_text(stdout), _text(stderr), _text(value), found, tuple(kept))


def _text(value: str, limit: int = _TEXT_LIMIT) -> str:
    return plain_text(value[: 2 * limit], limit)


def _line(line: Any) -> str:
    if type(line) is not list or len(line) != 2:
        raise WireError("a reply of the wrong shape")
    if type(line[0]) is not int or type(line[1]) is not str:
        raise WireError("a reply of the wrong shape")
    return f"line {line[0]}: {_text(line[1], 200)}"

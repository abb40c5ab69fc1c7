"""What the cells of a notebook put out while it is loaded: for feedback, never for the grade."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from typing import Any

from autograder.limits import Limits
from autograder.nbgrader.process import Output
from autograder.report import plain_text
from autograder.sandbox.loading import Part
from autograder.syllabus import Exercise
from autograder.wire import frames, replies
from autograder.wire.codec import Decoder, Encoder, WireError
from autograder.wire.remote import RemoteStudent
from autograder.wire.zygote_process import Worker, Zygote

IMAGES_LIMIT = 12
_TEXT_LIMIT = 70_000
_PNG = b"\x89PNG\r\n\x1a\n"


class ShownStudent(RemoteStudent):
    """A notebook whose cells are run one by one when it is loaded first.  shown: takes what they put out.

    What is graded is the namespace that they leave, unless the worker has not survived that: then the notebook is
    loaded without being shown, by a worker that does nothing else.
    """

    def __init__(
        self, zygote: Zygote, exercise: Exercise, parts: Sequence[Part], *more: Any, shown: list[Output]
    ) -> None:
        super().__init__(zygote, exercise, parts, *more)
        self._limits = zygote.limits.times(exercise.time_factor)
        self._cells = parts
        self._shown = shown

    def load(self) -> None:
        if not self._shown:
            self._worker = self._spawned()
            self._shown += run_cells(self._worker, self.exercise, self._cells, self._limits)
            if self._shown and self._shown[-1].ended:
                self._drop()
        super().load()


def run_cells(worker: Worker, exercise: Exercise, parts: Sequence[Part], limits: Limits) -> list[Output]:
    """The output of each part, in order; the list ends with the cell that ends the worker, or is to end it."""
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
        for part in parts:
            reply = _ask(worker, pause, "cell", exercise.module, part.name, part.text, exercise.off_limits)
            outputs.append(_read(reply, images))
            images -= len(outputs[-1].images)
    except TimeoutError:
        outputs.append(Output(ended="timeout"))
    except (frames.Closed, WireError):
        outputs.append(Output(ended="crashed"))
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

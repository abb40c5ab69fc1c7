"""What the cells of a notebook put out while it is loaded: for feedback, never for the grade."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from typing import Any

from autograder.nbgrader.process import Output
from autograder.report import plain_text
from autograder.wire import frames, replies
from autograder.wire.codec import Decoder, Encoder, WireError
from autograder.wire.remote import RemoteStudent
from autograder.wire.zygote_process import Worker

IMAGES_LIMIT = 12
_TEXT_LIMIT = 70_000
_PNG = b"\x89PNG\r\n\x1a\n"


class ShownStudent(RemoteStudent):
    """A notebook whose cells are run one by one when it is loaded first.  shown: takes what they put out.

    What is graded is the namespace that they leave, unless the worker has not survived that: then the notebook is
    loaded without being shown, by a worker that does nothing else.
    """

    def __init__(self, *settings: Any, shown: list[Output]) -> None:
        super().__init__(*settings)
        self._shown = shown

    def load(self) -> None:
        if not self._shown:
            self._worker = self._spawned()
            ended = self._show(self._worker)
            if ended:
                self._shown.append(Output(ended=ended))
                self._drop()
        super().load()

    def _show(self, worker: Worker) -> str:
        """Run cell by cell; why one did not run to its end, in a word, or an empty one."""
        limits = self._zygote.limits.times(self.exercise.time_factor)
        deadline = time.monotonic() + limits.check_wall

        def pause() -> None:
            ready = False
            while not ready:
                ready = worker.wait(0.1)
                if worker.cpu() > limits.load_cpu or time.monotonic() > deadline:
                    raise TimeoutError

        images = IMAGES_LIMIT
        try:
            for name, text, _ in self._parts:
                reply = _ask(worker, pause, "cell", self.exercise.module, name, text)
                self._shown.append(_read(reply, images))
                images -= len(self._shown[-1].images)
        except TimeoutError:
            return "timeout"
        except (frames.Closed, WireError):
            return "crashed"
        return ""


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

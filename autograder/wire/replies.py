"""What a worker says of a call, beside its result: each field has one form, and whatever has another is refused.

A reply that is well-formed data can still be anything: a tensor of sixty million numbers where a list of names belongs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from autograder.plain import plain_text
from autograder.wire.codec import WireError
from autograder.wire.errors import Raised

NOTES_LIMIT = 20
FAULTS_LIMIT = 100
LINES_LIMIT = 10
CELLS_LIMIT = 1_000
NAME_LIMIT = 200
TEXT_LIMIT = 4_000


@dataclass(frozen=True)
class Seen:
    """What was seen beside a call.

    moved: global generators.  after: for each argument what it is now, None if it did not seem to change.
    faults: of the device trap.  conduct: notes for the instructor.
    """

    moved: list[str]
    after: list[Any]
    faults: list[str]
    conduct: list[str]


def is_reply(frame: Sequence[Any], identity: bytes) -> bool:
    """Whether a message is of a kind and names the request it answers."""
    return len(frame) >= 2 and type(frame[0]) is str and type(frame[1]) is bytes and frame[1] == identity


def seen(fields: Sequence[Any]) -> Seen:
    """The last four fields of the reply to a call.  Raises WireError."""
    if len(fields) != 4:
        raise WireError("a reply of the wrong shape")
    moved, after, faults, conduct = fields
    if type(after) is not list:
        raise WireError("a reply of the wrong shape")
    return Seen(_texts(moved, 3), after, _texts(faults, FAULTS_LIMIT), notes(conduct))


def notes(conduct: Any) -> list[str]:
    """Notes on what a submission tried, a line each.  Raises WireError."""
    return [" ".join(note.split()) for note in _texts(conduct, NOTES_LIMIT)]


def raised(fields: Sequence[Any]) -> Raised:
    """The five fields that describe an exception.  Raises WireError."""
    if len(fields) != 5:
        raise WireError("a reply of the wrong shape")
    name, base, message, explicit, lines = fields
    if type(lines) is not list or len(lines) > LINES_LIMIT:
        raise WireError("a reply of the wrong shape")
    return Raised(
        _text(name, NAME_LIMIT), _text(base, NAME_LIMIT), _text(message), explicit is True, tuple(map(_line, lines))
    )


def loaded(fields: Sequence[Any]) -> tuple[str | None, list[tuple[str, str]], list[str]]:
    """What came of loading: the problem that stopped it or None, failed cells and why, notes.  Raises WireError."""
    if len(fields) != 3:
        raise WireError("a reply of the wrong shape")
    problem, cells, conduct = fields
    if type(cells) is not list or len(cells) > CELLS_LIMIT:
        raise WireError("a reply of the wrong shape")
    failed = []
    for cell in cells:
        if type(cell) is not list or len(cell) != 2:
            raise WireError("a reply of the wrong shape")
        failed.append((_text(cell[0], NAME_LIMIT), _text(cell[1])))
    return (None if problem is None else _text(problem)), failed, notes(conduct)


def _line(line: Any) -> tuple[int, str]:
    if type(line) is not list or len(line) != 2 or type(line[0]) is not int:
        raise WireError("a reply of the wrong shape")
    return line[0], _text(line[1], NAME_LIMIT)


def _texts(value: Any, most: int) -> list[str]:
    if type(value) is not list or len(value) > most:
        raise WireError("a reply of the wrong shape")
    return [_text(text, NAME_LIMIT) for text in value]


def _text(value: Any, limit: int = TEXT_LIMIT) -> str:
    if type(value) is not str:
        raise WireError("a reply of the wrong shape")
    return plain_text(value[: 2 * limit], limit)

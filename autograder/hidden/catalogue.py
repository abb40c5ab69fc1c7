"""The catalogue of misconceptions: what a failed check may be a sign of, and the hint that goes with it."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

import msgspec


class Misconception(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One misunderstanding, for students (en, zh).  section: where the lesson treats it."""

    title: str
    title_zh: str
    explanation: str
    explanation_zh: str
    hint: str
    hint_zh: str
    section: str


@cache
def catalogue() -> dict[str, Misconception]:
    """All misconceptions by id.  Raises ValueError naming the file and the entry that is not as it should be."""
    found: dict[str, Misconception] = {}
    for path in sorted(Path(__file__).parent.glob("misconceptions*.toml")):
        entries = tomllib.loads(path.read_text(encoding="utf-8"))
        if twice := sorted(found.keys() & entries.keys()):
            raise ValueError(f"{path.name}: {twice[0]} is in another file already")
        try:
            found |= {name: msgspec.convert(entry, Misconception) for name, entry in entries.items()}
        except msgspec.ValidationError as error:
            raise ValueError(f"{path.name}: {error}") from error
    return found

"""Putting a submitted notebook right: the cells that nbgrader counts on are all there, once each, as released."""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from typing import Any

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_markdown_cell

from autograder.nbgrader.prose import inert
from autograder.nbgrader.words import say
from autograder.render.words import Lang

_SURROGATE = re.compile("[\ud800-\udfff]")
_CELL_ID = re.compile(r"[a-zA-Z0-9\-_]{1,64}")


def repair(
    submitted: Sequence[NotebookNode], released: Sequence[NotebookNode], lang: Lang
) -> tuple[list[NotebookNode], list[str]]:
    """The cells to grade, and one sentence for everything that was put right.

    Cells are known by their grade ids.  Cells that are locked come back as released; what a student wrote into one
    becomes a cell of the student's own.  What a student wrote elsewhere stays as it is and where it is.
    """
    return _Repair(released, lang).run(submitted)


def grade_id(cell: dict[str, Any]) -> str:
    """The id that nbgrader knows a cell by; "" if it says none."""
    metadata = cell.get("metadata")
    nbgrader = metadata.get("nbgrader") if isinstance(metadata, dict) else None
    found = nbgrader.get("grade_id") if isinstance(nbgrader, dict) else None
    return found if isinstance(found, str) else ""


def is_locked(cell: NotebookNode) -> bool:
    """Whether a released cell is not for students to change: nbgrader's own rule."""
    nbgrader = cell.metadata.get("nbgrader", {})
    return not nbgrader.get("solution") and bool(nbgrader.get("grade") or nbgrader.get("locked"))


class _Repair:
    def __init__(self, released: Sequence[NotebookNode], lang: Lang) -> None:
        self._known = {grade_id(cell): cell for cell in released if grade_id(cell)}
        self._order = list(self._known)
        self._lang: Lang = lang
        self._notes: list[str] = []

    def run(self, submitted: Sequence[NotebookNode]) -> tuple[list[NotebookNode], list[str]]:
        cells = self._matched([cell for cell in submitted if isinstance(cell, dict)])
        cells = self._in_place(cells)
        self._put_back(cells)
        _name(cells)
        return cells, self._notes

    def _say(self, key: str, **values: object) -> None:
        self._notes.append(say(key, self._lang, **values))

    def _matched(self, submitted: list[NotebookNode]) -> list[NotebookNode]:
        """Every known cell at most once and as it must be; all others without nbgrader's marks."""
        claims: dict[str, list[NotebookNode]] = {}
        for cell in submitted:
            claims.setdefault(grade_id(cell), []).append(cell)
        chosen: dict[int, str] = {}
        for name in self._order:
            claiming = claims.get(name, [])
            model = _text(self._known[name])
            if claiming:  # the one that a student worked on, else the first
                best = claiming[0]
                if not is_locked(self._known[name]):
                    best = next((cell for cell in claiming if _text(cell) != model), best)
                chosen[id(best)] = name
            if len(claiming) > 1:
                self._say("duplicate", id=name)
        cells: list[NotebookNode] = []
        for cell in submitted:
            name = grade_id(cell)
            if id(cell) in chosen:
                cells += self._as_released(cell, name)
            elif name not in self._known or _text(cell) != _text(self._known[name]):
                cells.append(_own(cell))
        return cells

    def _as_released(self, cell: NotebookNode, name: str) -> list[NotebookNode]:
        model = self._known[name]
        if cell.get("cell_type") != model.cell_type:
            self._say("retyped", id=name, type=_one_word(cell.get("cell_type")))
        if is_locked(model):
            if _text(cell) == _text(model):
                return [_copy(model)]
            self._say("changed", id=name)
            return [_own(cell), _copy(model)] if _text(cell).strip() else [_copy(model)]
        kept = _copy(model)
        kept.source = _text(cell) if model.cell_type == "code" or _text(cell) == _text(model) else inert(_text(cell))
        if model.cell_type == "markdown" and isinstance(cell.get("attachments"), dict):
            kept["attachments"] = cell["attachments"]
        return [kept]

    def _in_place(self, cells: list[NotebookNode]) -> list[NotebookNode]:
        """Locked cells that stand in another order than released go back to the cell that they follow."""
        names = [name for name in map(grade_id, cells) if name]
        if names == [name for name in self._order if name in names]:
            return cells
        before = dict(zip(names, ["", *names], strict=False))
        locked = [cell for cell in cells if grade_id(cell) and is_locked(cell)]
        cells = [cell for cell in cells if not (grade_id(cell) and is_locked(cell))]
        for cell in sorted(locked, key=lambda cell: self._order.index(grade_id(cell))):
            cells.insert(self._place(cells, grade_id(cell)), cell)
        names = [name for name in map(grade_id, cells) if name]
        after = dict(zip(names, ["", *names], strict=False))
        moved = [name for cell in locked if before[name := grade_id(cell)] != after[name]]
        if moved:
            self._say("moved", id=", ".join(moved))
        return cells

    def _place(self, cells: list[NotebookNode], name: str) -> int:
        """Where a cell belongs: behind the nearest of those before it that is there."""
        index = {grade_id(cell): number for number, cell in enumerate(cells) if grade_id(cell)}
        earlier = self._order[: self._order.index(name)]
        return next((index[other] + 1 for other in reversed(earlier) if other in index), 0)

    def _put_back(self, cells: list[NotebookNode]) -> None:
        for name in self._order:
            model = self._known[name]
            if any(grade_id(cell) == name for cell in cells):
                continue
            if is_locked(model):
                self._say("missing", id=name)
                cells.insert(self._place(cells, name), _copy(model))
            elif model.metadata["nbgrader"].get("grade"):
                # Its text differs from the released one: nbgrader then leaves it to a person, and gives no 0 by itself.
                self._say("missing written", id=name)
                back = _copy(model)
                back.source = f"{say('put back', self._lang)}\n\n{model.source}"
                cells.insert(self._place(cells, name), back)
            else:  # the stub, run after what the student wrote elsewhere, would replace it
                self._say("missing solution", id=name)


def _text(cell: NotebookNode) -> str:
    source = cell.get("source", "")
    if isinstance(source, list):
        source = "".join(line for line in source if isinstance(line, str))
    text = source if isinstance(source, str) else ""
    return _SURROGATE.sub("\ufffd", text).replace("\r\n", "\n").replace("\r", "\n")


def _own(cell: NotebookNode) -> NotebookNode:
    """A cell of the student's: its type and text, and pictures in prose; nothing that it says of itself."""
    if cell.get("cell_type") == "code":
        own = new_code_cell(_text(cell))
    else:
        own = new_markdown_cell(inert(_text(cell)))
        if isinstance(cell.get("attachments"), dict):
            own["attachments"] = cell["attachments"]
    own["id"] = cell.get("id")
    return own


def _copy(model: NotebookNode) -> NotebookNode:
    copied: NotebookNode = copy.deepcopy(model)
    if copied.cell_type == "code":
        copied.outputs, copied.execution_count = [], None
    return copied


def _name(cells: list[NotebookNode]) -> None:
    """Cell ids that are valid and unique; those of released cells come first."""
    taken = {cell["id"] for cell in cells if grade_id(cell)}
    for number, cell in enumerate(cells):
        if grade_id(cell):
            continue
        wanted = cell.get("id")
        if not isinstance(wanted, str) or not _CELL_ID.fullmatch(wanted) or wanted in taken:
            wanted = f"own-{number}"
            while wanted in taken:
                wanted += "-"
        cell["id"] = wanted
        taken.add(wanted)


def _one_word(value: Any) -> str:
    return value if value in ("code", "markdown", "raw") else "?"

"""The code of a notebook: its code cells in order, without the lines that only IPython understands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

from autograder.jupyter import BODY_RUNS

NOTES_LIMIT = 12

#: What every line that only IPython understands has in it somewhere.
_SIGN = re.compile(r"[%!?]|pip|conda|mamba")
_CELL_MAGIC = re.compile(r"\s*%%(\w*)")
_LINE_MAGIC = re.compile(r"\s*(?:[%!?]|(?:pip3?|conda|mamba)\s+(?:install|uninstall|list|show|freeze)\b)")
_ASSIGNED_MAGIC = re.compile(r"\s*[\w.,*\[\] \t]+=\s*[%!]")
_HELP = re.compile(r"\s*[%\w.*]+(?:\[\w+\])?\?{1,2}\s*;?\s*(?:#.*)?$")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MARK = re.compile(r"""#|\"{3}|'{3}|"|'|[(\[{]|[)\]}]|\\$""")


class Unreadable(ValueError):
    """What was handed in cannot be read; the message completes the sentence "FILE cannot be read: …"."""


class Cell(NamedTuple):
    """One code cell, named as a person counts code cells: "cell 3" is the third."""

    name: str
    text: str


def code_cells(text: str) -> tuple[list[Cell], list[str]]:
    """The code cells of a notebook, and one note for each thing that was left out.

    text: the notebook file, of any nbformat version.  Lines keep their numbers: what is left out leaves a line behind.
    Raises Unreadable.
    """
    cells, notes = [], []
    for number, source in enumerate(_sources(text), start=1):
        name = f"cell {number}"
        python, skipped = plain_python(source)
        cells.append(Cell(name, python))
        notes += [f"{name}, line {line}: skipped `{_short(what)}`" for line, what in skipped]
    if len(notes) > NOTES_LIMIT:
        notes[NOTES_LIMIT:] = [f"… and {len(notes) - NOTES_LIMIT} more lines for IPython or the shell were skipped"]
    return cells, notes


def plain_python(source: str) -> tuple[str, list[tuple[int, str]]]:
    """A cell without magics, shell lines and help requests, and (line number, text) of each of them.

    A line inside brackets, a string or a continued statement is left alone: there, `%` is an operator.
    """
    skipped: list[tuple[int, str]] = []
    lines = source.split("\n")
    if not any(_only_ipython(line) for line in lines if _SIGN.search(line)):
        return source, skipped
    start = 0
    while (first := _first_code(lines, start)) is not None and (magic := _CELL_MAGIC.match(lines[first])):
        skipped.append((first + 1, lines[first].strip()))
        if magic.group(1) not in BODY_RUNS:
            return "\n" * (len(lines) - 1), skipped
        lines[first] = f"# {lines[first].strip()}"
        start = first + 1
    state = _State()
    magic_goes_on, stand_in = False, ""
    for index, line in enumerate(lines):
        if magic_goes_on or (state.at_statement and _only_ipython(line)):
            if not magic_goes_on:
                skipped.append((index + 1, line.strip()))
                indent = line[: len(line) - len(line.lstrip())]
                stand_in = f"{indent}pass" if indent else "# skipped"
            magic_goes_on = line.rstrip().endswith("\\")
            lines[index] = stand_in
        else:
            state.read(line)
    return "\n".join(lines), skipped


def _only_ipython(line: str) -> bool:
    return bool(_LINE_MAGIC.match(line) or _ASSIGNED_MAGIC.match(line) or _HELP.match(line))


def _first_code(lines: list[str], start: int) -> int | None:
    """Index of the first line that is neither empty nor a comment."""
    for index in range(start, len(lines)):
        line = lines[index].strip()
        if line and not line.startswith("#"):
            return index
    return None


class _State:
    """How far a reader of Python is at the end of a line: in a string, in brackets, in a continued line, or free."""

    def __init__(self) -> None:
        self._quote = ""
        self._depth = 0
        self._continued = False

    @property
    def at_statement(self) -> bool:
        return not self._quote and self._depth == 0 and not self._continued

    def read(self, line: str) -> None:
        self._continued = False
        position = 0
        while True:
            if self._quote:
                position = self._end_of_string(line, position)
                if position < 0:
                    return
            mark = _MARK.search(line, position)
            if mark is None or mark.group() == "#":
                return
            position = mark.end()
            if mark.group() == "\\":
                self._continued = True
            elif mark.group() in "([{":
                self._depth += 1
            elif mark.group() in ")]}":
                self._depth = max(0, self._depth - 1)
            else:
                self._quote = mark.group()

    def _end_of_string(self, line: str, position: int) -> int:
        """Where the string that is open ends, or -1 if not on this line."""
        for found in re.finditer(rf"\\(?:.|$)|{self._quote}", line[position:]):
            if found.group() == self._quote:
                self._quote = ""
                return position + found.end()
            if found.group() == "\\":  # the line break is escaped: any string goes on
                return -1
        if len(self._quote) == 1:
            self._quote = ""  # a mistake that Python will report
        return -1


def _sources(text: str) -> Iterator[str]:
    """The text of each code cell.  Only the shape that is needed is asked for; the rest may be damaged."""
    for cell in _cells(text):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source = cell.get("source", cell.get("input", ""))  # formats 1 to 3 call it input
        if isinstance(source, list) and all(isinstance(line, str) for line in source):
            source = "".join(source)
        if not isinstance(source, str):
            raise Unreadable("it is not a valid notebook (the source of a cell is not text)")
        yield _SURROGATE.sub("\ufffd", source).replace("\r\n", "\n").replace("\r", "\n")


def _cells(text: str) -> list[Any]:
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError):
        raise Unreadable("it is not a notebook (not valid JSON)") from None
    if not isinstance(notebook, dict):
        raise Unreadable("it is not a notebook (no JSON object)")
    version = notebook.get("nbformat", 1)
    if type(version) is not int or not 1 <= version <= 4:
        raise Unreadable(f"it says that it is a notebook of format {_short(str(version))}; formats 1 to 4 are known")
    sheets = notebook.get("worksheets") if version in (2, 3) else [notebook]
    if not isinstance(sheets, list) or not all(isinstance(sheet, dict) for sheet in sheets):
        raise Unreadable("it is not a valid notebook (it has no list of worksheets)")
    cells = [sheet.get("cells") for sheet in sheets]
    if not all(isinstance(some, list) for some in cells):
        raise Unreadable("it is not a valid notebook (it has no list of cells)")
    return [cell for some in cells for cell in some]


def _short(text: str) -> str:
    return text if len(text) <= 60 else text[:59] + "…"

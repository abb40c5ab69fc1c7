"""What must never reach a student: lines of hidden checks, of oracles, of solutions and of model answers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from pathlib import Path

from autograder.build.source import BEGIN_ANSWER, BEGIN_SOLUTION, END_ANSWER, END_SOLUTION, read
from autograder.syllabus import SYLLABUS

#: A shorter line may stand anywhere by chance; a line of Chinese says more in as many characters.
LEAST, LEAST_ZH = 30, 12
_COMMON = re.compile(r"from |import |@|#|return$|\"\"\"|class |def |raise ValueError|if not isinstance")
_PARAMETERS = re.compile(r"(\w+: [\w.\[\] |]+(= ?[\w.-]+)?,? ?)+")  # the contract's signatures are public
_CHINESE = re.compile(r"[\u4e00-\u9fff]")


def canaries(root: Path) -> set[str]:
    """Lines that must stay where they are.  root: the folder of the course."""
    hidden = root / "autograder" / "hidden"
    code: set[str] = set()
    for path in [*hidden.glob("*.py"), *(hidden / "oracles").glob("*.py")]:
        text = path.read_text(encoding="utf-8")
        spoken = {part.strip() for string in _strings(text) for part in string.splitlines()}
        code |= {line.strip() for line in text.splitlines() if line.strip() not in spoken}
    prose: set[str] = set()
    shown: set[str] = set()
    for exercise in SYLLABUS:
        text = (root / read(root, exercise).path).read_text(encoding="utf-8")
        for region in _between(text, BEGIN_SOLUTION, END_SOLUTION):
            code |= {line.strip() for line in region.splitlines()}
            text = text.replace(region, "")
        for answer in _between(text, BEGIN_ANSWER, END_ANSWER):
            prose |= {line.removeprefix("#").strip() for line in answer.splitlines()}
            text = text.replace(answer, "")
        shown |= {line.strip() for line in text.splitlines()}  # every stub has these
    found = {line for line in code - shown if not _public(line)} | prose
    return {line for line in found if len(line) >= (LEAST_ZH if _CHINESE.search(line) else LEAST)}


def leaked(text: str, lines: Iterable[str]) -> list[str]:
    """Those of the lines that a text holds."""
    return [line for line in lines if line in text]


def _public(line: str) -> bool:
    return bool(_COMMON.match(line) or _PARAMETERS.fullmatch(line))


def _between(text: str, begin: str, end: str) -> list[str]:
    return re.findall(rf"{re.escape(begin)}\n(.*?){re.escape(end)}", text, re.DOTALL)


def _strings(text: str) -> list[str]:
    """Docstrings and messages: they are meant to be read."""
    return [
        node.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    ]

"""The student's own check: the visible checks of one exercise, run on one's own file in a process of its own."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from autograder.plain import plain_text, points_number
from autograder.submission import Found, UsageError, look
from autograder.syllabus import EXERCISES, Exercise

HIDDEN = Path(__file__).parent / "hidden"
SECONDS = 120
_SETUP = re.compile(r'failed on setup with "(.*)"', re.S)


@dataclass(frozen=True)
class Outcome:
    """One visible check.  message: what was wrong, or "" if it passed."""

    title: str
    message: str


def check(number: int, path: str | None) -> tuple[str, bool]:
    """Run the visible checks of an exercise on a file; what to tell the student, and whether all passed.

    path: the file, or a folder with it; None for the stub in `exercises/`.
    Raises UsageError.
    """
    if number not in EXERCISES:
        raise UsageError(f"there is no exercise {number}: there are {', '.join(map(str, EXERCISES))}")
    exercise = EXERCISES[number]
    tests = _exercises_folder() / "tests" / f"test_{exercise.module}.py"
    if not tests.is_file():
        raise UsageError(f"{tests}: the visible checks are not there")
    path = path or str(_own_file(exercise))
    (found,), notes = look(path, {number})
    lines = [f"Exercise {number}: {exercise.title} · {path}", *(f"  · {note}" for note in notes), ""]
    if found.refused is not None:
        return plain_text("\n".join([*lines, found.refused])), False
    outcomes, trouble = _run(tests, exercise, found)
    if trouble:
        return plain_text("\n".join([*lines, trouble])), False
    lines += _told(outcomes)
    passed = sum(not outcome.message for outcome in outcomes)
    lines.append(f"{passed} of {len(outcomes)} visible checks passed. {later(exercise)}")
    return plain_text("\n".join(lines), limit=100_000), passed == len(outcomes)


def later(exercise: Exercise) -> str:
    """One line on the hidden checks.  They are counted, not imported; a student's copy of the course has none."""
    count = hidden_checks(exercise.number)
    more = f"{count} more checks" if count else "More checks"
    return f"{more}, which are not shown here, decide about the {points_number(exercise.points)} points."


def hidden_checks(number: int) -> int:
    """How many hidden checks there are, read from their source; 0 if it is not there."""
    return sum(
        isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        for file in HIDDEN.glob(f"test_ex{number:02d}_*.py")
        for node in ast.parse(file.read_text(encoding="utf-8")).body
    )


def _exercises_folder() -> Path:
    spec = importlib.util.find_spec("exercises")
    if spec is None or not spec.submodule_search_locations:
        raise UsageError("the folder exercises/ is not there: run this command in the folder of the course")
    return Path(next(iter(spec.submodule_search_locations)))


def _own_file(exercise: Exercise) -> Path:
    here = Path("exercises", f"{exercise.module}.py")
    return here if here.is_file() else _exercises_folder() / here.name


def _run(tests: Path, exercise: Exercise, found: Found) -> tuple[list[Outcome], str]:
    """The outcomes in order; or, if the run did not come to its end, what to say about that."""
    with tempfile.TemporaryDirectory(prefix="autograder-check-") as folder:
        module = Path(folder, f"{exercise.module}.py")
        module.write_text(_as_module(found), encoding="utf-8")
        xml = Path(folder, "outcomes.xml")
        root = tests.parents[2]
        command = [sys.executable, "-m", "pytest", str(tests), f"--submission={module}", f"--junitxml={xml}", "-q"]
        command += ["-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={root}"]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *filter(None, [_python_path()])])}
        try:
            run = subprocess.run(
                command, env=environment, capture_output=True, text=True, errors="replace", timeout=SECONDS
            )
        except subprocess.TimeoutExpired:
            return [], f"No answer within {SECONDS} s: is there a loop that never ends?"
        if not xml.exists():
            last = "\n".join((run.stdout + run.stderr).strip().splitlines()[-5:])
            return [], f"The run ended before it could report (exit status {run.returncode}).\n{last}"
        return _outcomes(xml, _titles(tests), folder), ""


def _python_path() -> str:
    return os.environ.get("PYTHONPATH", "")


def _as_module(found: Found) -> str:
    """The file itself, or the cells of a notebook one after the other: a line that fails hides nothing below it."""
    if not found.cells:
        return "".join(cell.text for cell in found.code)
    lines = ["from autograder import jupyter as _jupyter", "globals().update(_jupyter.names())"]
    lines += [f"for _name, _text in {[tuple(cell) for cell in found.code]!r}:"]
    lines += ["    try:", "        exec(compile(_text, _name, 'exec', dont_inherit=True))"]
    lines += ["    except (Exception, SystemExit) as _error:"]
    lines += ["        print(f'{_name} failed: {type(_error).__name__}: {_error}')"]
    lines += ["        _jupyter.go_on(_name, _text, globals())"]
    return "\n".join(lines) + "\n"


def _titles(tests: Path) -> dict[str, str]:
    body = ast.parse(tests.read_text(encoding="utf-8")).body
    functions = [node for node in body if isinstance(node, ast.FunctionDef)]
    return {function.name: " ".join((ast.get_docstring(function) or function.name).split()) for function in functions}


def _outcomes(xml: Path, titles: dict[str, str], folder: str) -> list[Outcome]:
    outcomes = []
    for case in ElementTree.parse(xml).iter("testcase"):
        name = case.get("name", "")
        title = titles.get(name.partition("[")[0], name)
        wrong = next((child for child in case if child.tag in ("failure", "error")), None)
        message = "" if wrong is None else wrong.get("message", "") or "failed"
        setup = _SETUP.fullmatch(message)
        text = (setup.group(1) if setup else message).replace(f"{folder}{os.sep}", "")
        outcomes.append(Outcome(title, text.strip()))
    return outcomes


def _told(outcomes: list[Outcome]) -> list[str]:
    """Lines for each check; a message that several share, such as a syntax error, comes once."""
    lines: list[str] = []
    for index, outcome in enumerate(outcomes):
        lines.append(f"  {'✗' if outcome.message else '✓'} {outcome.title}")
        following = outcomes[index + 1].message if index + 1 < len(outcomes) else ""
        if outcome.message and outcome.message != following:
            lines += [f"      │ {line}" for line in _wrapped(outcome.message)[:12]]
    return [*lines, ""]


def _wrapped(message: str) -> list[str]:
    """The words of a failed assertion, without the values that pytest adds: the check names those that matter."""
    own = re.split(r"\nassert ", message.removeprefix("AssertionError: "), maxsplit=1)[0]
    return [piece for line in own.splitlines() for piece in textwrap.wrap(line, 92, drop_whitespace=False)]

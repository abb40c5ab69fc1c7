"""What somebody handed in at a path: which file is which exercise, read without trusting any of it."""

from __future__ import annotations

import codecs
import io
import itertools
import os
import re
import stat
import tokenize
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from autograder.notebook import Cell, Unreadable, code_cells
from autograder.syllabus import EXERCISES

if TYPE_CHECKING:
    from autograder.grading import Submission, Work
    from autograder.report import Verdict

SIZE_LIMIT = 2 * 1024 * 1024
#: A notebook carries its pictures; its code is held to SIZE_LIMIT.
NOTEBOOK_LIMIT = 20 * 1024 * 1024
#: No file is larger that students get; what is was worked on.
HANDED_OUT_LIMIT = 256 * 1024
SUFFIXES = (".py", ".ipynb")
#: Where the stubs are that students fill.
STUBS = Path(__file__).parents[1] / "exercises"
#: How far below a folder its exercises may lie, and how many folders are looked into.
DEPTH = 3
FOLDERS = 1000

_NUMBER = re.compile(r"(?<![^\W\d_])ex(?:ercise)?[\s_.\-]*0*(\d{1,2})(?!\d)", re.I)
_SAFE_CODECS = re.compile(
    r"ascii|utf-8(-sig)?|iso(8859|2022).*|cp\d+|gb2312|gbk|gb18030|hz|big5.*|shift_jis.*|euc_.*|johab|koi8.*|mac.*"
)


class UsageError(ValueError):
    """The command cannot mean anything; the message says why and what to do."""


@dataclass(frozen=True)
class Found:
    """What a path holds for one exercise: the code in order, or why there is none.

    verdict: what a refusal counts as.  cells: True for a notebook, whose cells may fail one by one.
    """

    number: int
    code: tuple[Cell, ...] = ()
    cells: bool = False
    refused: str | None = None
    verdict: Verdict = "crashed"


def find(path: str, wanted: set[int] | None) -> Submission:
    """The submission at a path: a .py module, a .ipynb notebook, or a folder of them.

    wanted: numbers of the exercises to grade; None for those that the path itself has.
    Raises UsageError if there is nothing at the path, or nothing there tells which exercise it is.
    """
    from autograder.grading import Submission, Work  # brings PyTorch: not for commands that only look
    from autograder.sandbox.loading import Part

    def work(found: Found) -> Work:
        parts = tuple(Part(cell.name, cell.text, may_fail=found.cells) for cell in found.code)
        return Work(EXERCISES[found.number], parts, found.refused, found.verdict)

    founds, notes = look(path, wanted)
    return Submission(path, tuple(work(found) for found in founds), tuple(notes))


def look(path: str, wanted: set[int] | None) -> tuple[list[Found], list[str]]:
    """What a path holds, exercise by exercise, and notes on what was matched, skipped or forgiven."""
    for number in sorted(wanted or ()):
        if number not in EXERCISES:
            raise UsageError(f"there is no exercise {number}: there are {', '.join(map(str, EXERCISES))}")
    try:
        is_folder = not _leads_nowhere(path) and stat.S_ISDIR(os.stat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError, ValueError):
        raise UsageError(f"{path}: there is no such file or folder") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    return _look_in_folder(path, wanted) if is_folder else _look_at_file(path, wanted)


def _leads_nowhere(path: str) -> bool:
    """Whether something was handed in there, but is a link to nothing: no mistyped path."""
    return os.path.islink(path) and not os.path.exists(path)


def exercise_number(name: str) -> int | None:
    """The exercise that a file's name tells: ex02_mlm_loss.py, EX 2.ipynb, ex-02 (1).py, …; None if none or several."""
    stem = unicodedata.normalize("NFKC", os.path.splitext(name)[0])
    numbers = {int(number) for number in _NUMBER.findall(stem)}
    return numbers.pop() if len(numbers) == 1 else None


def _look_at_file(path: str, wanted: set[int] | None) -> tuple[list[Found], list[str]]:
    name = os.path.basename(path)
    number = exercise_number(name)
    notes = []
    if number is None:
        if wanted is None or len(wanted) != 1:
            raise UsageError(
                f"{path}: the name does not tell which exercise this is; "
                f"name it like {EXERCISES[1].module}.py, or give exactly one -e N"
            )
        number = next(iter(wanted))
        notes.append(f"{name} is taken as exercise {number}")
    elif wanted is None and number not in EXERCISES:
        raise UsageError(f"{path}: there is no exercise {number}: there are {', '.join(map(str, EXERCISES))}")
    founds = []
    for asked in sorted(wanted or {number}):
        if asked == number:
            found, more = _read(path, number, os.path.dirname(path) or ".")
            founds.append(found)
            notes += more
        else:
            founds.append(_missing(asked, f"{name} is exercise {number} by its name"))
    return founds, notes


def _look_in_folder(path: str, wanted: set[int] | None) -> tuple[list[Found], list[str]]:
    try:
        claims, ignored = _claimed(os.listdir(path), wanted)
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror})") from None
    elsewhere: list[str] = []
    if not claims or any(number not in claims for number in wanted or ()):
        below, elsewhere = _below(path, wanted)
        claims = {**below, **claims}
    if wanted is None and not claims:
        files = f"files are named like {EXERCISES[1].module}.py or {EXERCISES[1].module}.ipynb"
        if elsewhere:
            files = f"several below it hold some ({_listed(elsewhere)}), and `autograder batch` grades a class"
        raise UsageError(f"{path}: no exercise found in this folder; {files}")
    founds, notes = [], []
    for number in sorted(wanted or claims):
        if number not in claims:
            why = "the folder has no such file"
            if elsewhere:
                why += f"; several folders below it have one ({_listed(elsewhere)}), and only one may be handed in"
            founds.append(_missing(number, why))
            continue
        module = EXERCISES[number].module
        first, *others = _best_first(path, claims[number], number)
        if others or os.path.splitext(first)[0] != module:
            also = f" (there too, not graded: {_listed(others)})" if others else ""
            notes.append(f"exercise {number} is taken from {first}{also}")
        found, more = _read(os.path.join(path, first), number, path)
        founds.append(found)
        notes += more
    if ignored:
        notes.append(f"ignored, because the name does not tell an exercise or the type is another: {_listed(ignored)}")
    return founds, notes


def _claimed(names: Iterable[str], wanted: set[int] | None) -> tuple[dict[int, list[str]], list[str]]:
    """Which files of a folder belong to which exercise, and which look as if they should."""
    claims: dict[int, list[str]] = {}
    ignored = []
    for name in sorted(names):
        number = exercise_number(name)
        is_code = os.path.splitext(name)[1].lower() in SUFFIXES and not name.startswith((".", "__", "test_"))
        if is_code and number in EXERCISES and (wanted is None or number in wanted):
            claims.setdefault(number, []).append(name)
        elif (is_code and number is None) or (not is_code and number in EXERCISES):
            ignored.append(name)
    return claims, ignored


def _below(path: str, wanted: set[int] | None) -> tuple[dict[int, list[str]], list[str]]:
    """Files of exercises in the folders below: who hands in the folder of the course has them in exercises/.

    They are taken from one folder, or each from one that is named as the exercise is, side by side.  What might be the
    work of several people is left, and the folders are named instead.  Where only one of the folders has an exercise
    that is not as it was handed out, the work is there.
    """
    places: dict[int, dict[str, list[str]]] = {}
    for folder, folders, names in itertools.islice(os.walk(path), FOLDERS):
        place = os.path.relpath(folder, path)
        if place.count(os.sep) + 1 >= DEPTH:
            folders.clear()
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__", "test")))
        for number, files in _claimed(names, wanted)[0].items() if folder != path else ():
            places.setdefault(number, {})[place] = [os.path.join(place, name) for name in files]
    sides = set()
    for number, found in places.items():
        courses = [place for place in found if os.path.basename(place) == "exercises"]
        own = [place for place in found if exercise_number(os.path.basename(place)) == number]
        best = next((best for best in (courses, own, list(found)) if len(best) == 1), None)
        if best is None:
            return {}, sorted(found)
        (taken,) = best
        if len(found) > 1:
            worked = [place for place in found if not all(_untouched(path, name, number) for name in found[place])]
            (taken,) = worked if len(worked) == 1 else best
        places[number] = {taken: found[taken]}
        sides.add(os.path.dirname(best[0]) if best == own else best[0])
    if len(sides) > 1:
        return {}, sorted(place for found in places.values() for place in found)
    return {number: files for number, found in places.items() for files in found.values()}, []


def _best_first(folder: str, names: list[str], number: int) -> list[str]:
    """The file to take, then the others: one that can be read, was worked on, has the exact name, is no notebook."""

    def faults(name: str) -> tuple[bool, ...]:
        stem, suffix = os.path.splitext(os.path.basename(name).lower())
        return (
            not os.path.isfile(os.path.join(folder, name)),
            _untouched(folder, name, number),
            stem != EXERCISES[number].module,
            suffix != ".py",
            not stem.startswith("ex"),
        )

    return sorted(names, key=faults) if len(names) > 1 else names


def _untouched(folder: str, name: str, number: int) -> bool:
    """Whether a file below a folder is as it was handed out: the stub, or a notebook without a function written."""
    exercise = EXERCISES[number]
    path, stub = os.path.join(folder, name), STUBS / f"{exercise.module}.py"
    try:
        if not name.lower().endswith(".py"):
            cells, _ = code_cells(decode(_bytes(path, folder, HANDED_OUT_LIMIT), cookies=False))
            return sum(cell.text.count("raise NotImplementedError(") for cell in cells) >= len(exercise.functions)
        if os.path.samefile(path, stub):  # a student fills it there
            return False
        return decode(_bytes(path, folder, HANDED_OUT_LIMIT)).split() == stub.read_text(encoding="utf-8").split()
    except (OSError, Unreadable):
        return False


def _missing(number: int, why: str) -> Found:
    module = EXERCISES[number].module
    text = f"Nothing was handed in for exercise {number} ({module}.py or {module}.ipynb): {why}."
    return Found(number, refused=text, verdict="not_implemented")


def _read(path: str, number: int, root: str) -> tuple[Found, list[str]]:
    """The code in one file.  root: the folder of the submission; nothing outside of it is read."""
    name = os.path.basename(path).encode("utf-8", "replace").decode("utf-8")
    try:
        suffix = os.path.splitext(path)[1].lower()
        if suffix not in SUFFIXES:
            raise Unreadable("it is neither a .py module nor a .ipynb notebook")
        is_notebook = suffix == ".ipynb"
        text = decode(_bytes(path, root, NOTEBOOK_LIMIT if is_notebook else SIZE_LIMIT), cookies=not is_notebook)
        cells, notes = code_cells(text) if is_notebook else ([Cell(name, text)], [])
        if sum(len(cell.text) for cell in cells) > SIZE_LIMIT:
            raise Unreadable(f"its code is longer than {SIZE_LIMIT // 1024**2} MiB")
        return Found(number, tuple(cells), is_notebook), notes
    except Unreadable as problem:
        return Found(number, refused=f"{name} cannot be read: {problem}."), []
    except OSError as error:
        text = f"{name} could not be opened by the grader: {error.strerror or error}."
        return Found(number, refused=text, verdict="grader_error"), []


def _bytes(path: str, root: str, limit: int) -> bytes:
    """What a plain file inside `root` holds.  Raises Unreadable for anything else, OSError if the host refuses."""
    real, real_root = os.path.realpath(path), os.path.realpath(root)
    if not Path(real).is_relative_to(real_root):
        raise Unreadable("it is a link to a file outside of the submission")
    if _leads_nowhere(path):
        raise Unreadable("it is a link to nothing")
    kind = os.lstat(real).st_mode
    if stat.S_ISDIR(kind):
        raise Unreadable("it is a folder")
    if not stat.S_ISREG(kind):
        raise Unreadable("it is not a plain file")
    descriptor = os.open(real, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with open(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Unreadable("it is not a plain file")
        data = file.read(limit + 1)
    if len(data) > limit:
        raise Unreadable(f"it is larger than {limit // 1024**2} MiB")
    return data


def decode(data: bytes, cookies: bool = True) -> str:
    r"""The text of a source file, with \n for every line break.

    cookies: whether the file may name its encoding in its first two lines (PEP 263); else it is UTF-8.
    Raises Unreadable.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise Unreadable("it is saved as UTF-16; save it as UTF-8")
    if (position := data.find(0)) >= 0:
        raise Unreadable(f"it holds a null byte (line {_line(data, position)}); save it as a text file in UTF-8")
    encoding = "utf-8-sig"
    if cookies:
        try:
            encoding, _ = tokenize.detect_encoding(io.BytesIO(data).readline)
        except SyntaxError:
            if _is_utf8(data):
                raise Unreadable("the encoding that its first lines name is not known; save it as UTF-8") from None
            encoding = "utf-8-sig"  # to say in which line it goes wrong
        if not _SAFE_CODECS.fullmatch(codecs.lookup(encoding).name):
            raise Unreadable(f"it is written in the encoding {encoding}; save it as UTF-8")
    try:
        text = data.decode(encoding)
    except UnicodeDecodeError as error:
        line = _line(data, error.start)
        raise Unreadable(
            f"line {line} is not valid {encoding.removesuffix('-sig').upper()}; save it as UTF-8"
        ) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _line(data: bytes, position: int) -> int:
    return data.count(b"\n", 0, position) + 1


def _listed(names: Iterable[str], most: int = 6) -> str:
    names = ["".join(c if c.isprintable() else "\ufffd" for c in name) for name in names]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more

"""Where submissions come from: folders, an nbgrader tree, a table of paths, or the archive a platform hands out."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import os
import re
import stat
import time
import unicodedata
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from autograder.files import CannotWrite
from autograder.submission import NOTEBOOK_LIMIT, SUFFIXES, UsageError, exercise_number

#: An archive may hold so many files, and so many bytes when unpacked.
FILES_LIMIT = 200_000
BYTES_LIMIT = 20 * 1024**3

#: Canvas: "doejane_LATE_1234_56789_ex02_mlm_loss-1.py" (Download Submissions).
_CANVAS = re.compile(r"(?P<who>[^_/]+)_(?:LATE_)?(?P<user>\d+)_(?P<number>\d+)_(?P<file>.+)")
#: Moodle: "Jane Doe_1234_assignsubmission_file_/ex02.py", or without the folder.
_MOODLE = re.compile(r"(?P<who>[^/]+?)_(?P<user>\d+)_assignsubmission_file_?/?(?P<file>.+)")
#: Gradescope: "assignment_1_export/submission_987/ex02.py".
_GRADESCOPE = re.compile(r"(?:[^/]+/)?(?P<who>submission_\d+)/(?P<file>.+)")


@dataclass(frozen=True)
class HandedIn:
    """One submission: its name in reports, and where it lies."""

    name: str
    path: str


def handed_in(path: str, scratch: Path) -> tuple[list[HandedIn], list[str]]:
    """The submissions at a path, in the order of their names, and notes on what was left out.

    path: a folder with a folder or file for each submission; nbgrader's tree submitted/STUDENT/ASSIGNMENT; a CSV file
        with a column `path` and, if wanted, `name`; or a ZIP archive of Canvas, Moodle or Gradescope.
    scratch: a folder to unpack an archive in, used again by the next run.
    Raises UsageError if there is nothing to grade.
    """
    if os.path.isdir(path):
        found, notes = _in_folder(path)
    elif not os.path.isfile(path):
        raise UsageError(f"{path}: there is no such file or folder")
    elif path.lower().endswith(".csv"):
        found, notes = _in_table(path)
    elif zipfile.is_zipfile(path):
        found, notes = _in_archive(path, scratch)
    else:
        raise UsageError(f"{path}: neither a folder, nor a .csv file, nor a ZIP archive")
    if not found:
        raise UsageError(f"{path}: no submission found there")
    return found, notes


def _in_folder(path: str) -> tuple[list[HandedIn], list[str]]:
    found, notes = [], []
    for name in sorted(os.listdir(path)):
        whole = os.path.join(path, name)
        if name.startswith(".") or name == "__pycache__":
            continue
        if os.path.isdir(whole) and (assignments := _assignments(whole)):
            found += [HandedIn(f"{name}/{assignment}", os.path.join(whole, assignment)) for assignment in assignments]
        elif os.path.isdir(whole) or os.path.splitext(name)[1].lower() in SUFFIXES:
            found.append(HandedIn(name, whole))
        else:
            notes.append(f"{whole} was left out: neither a folder nor a .py or .ipynb file")
    return found, notes


def _assignments(student: str) -> list[str]:
    """The assignments of one student in nbgrader's tree: folders named like exercises, and no work beside them."""
    names = [name for name in sorted(os.listdir(student)) if not name.startswith(".")]
    beside = [name for name in names if os.path.splitext(name)[1].lower() in SUFFIXES]
    folders = [name for name in names if os.path.isdir(os.path.join(student, name)) and exercise_number(name)]
    return [] if beside else folders


def _in_table(path: str) -> tuple[list[HandedIn], list[str]]:
    base = os.path.dirname(path)
    try:
        with open(path, encoding="utf-8-sig", newline="") as file:
            rows = list(csv.DictReader(file, strict=True))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UsageError(f"{path}: cannot be read as a CSV file in UTF-8 ({error})") from None
    if not rows or "path" not in rows[0]:
        raise UsageError(f"{path}: the first line must name the columns, and `path` must be one of them")
    found = []
    for number, row in enumerate(rows, 2):
        where = (row["path"] or "").strip()
        if not where:
            raise UsageError(f"{path}, row {number}: the column `path` is empty")
        whole = os.path.join(base, where)
        if not os.path.lexists(whole):
            raise UsageError(f"{path}, row {number}: there is no file or folder {where}")
        found.append(HandedIn((row.get("name") or "").strip() or where, whole))
    return found, []


def _in_archive(path: str, scratch: Path) -> tuple[list[HandedIn], list[str]]:
    """Unpack, a folder a submission.  Nothing is written anywhere but there, whatever the archive says."""
    notes: list[str] = []
    try:
        with open(path, "rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()[:16]
        with zipfile.ZipFile(path) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            if len(entries) > FILES_LIMIT or sum(entry.file_size for entry in entries) > BYTES_LIMIT:
                raise UsageError(f"{path}: the archive unpacks to more than {FILES_LIMIT:,} files or 20 GiB")
            groups = _groups([entry for entry in entries if _is_work(entry, notes)])
            folders = dict(zip(groups, _folders(list(groups)), strict=True))
            for who, files in groups.items():
                _unpack(archive, scratch / digest / folders[who], files, notes)
    except CannotWrite as error:
        raise UsageError(f"{path}: cannot be unpacked: {error}") from None
    except (zipfile.BadZipFile, OSError, NotImplementedError, RuntimeError, EOFError) as error:
        raise UsageError(f"{path}: the archive cannot be read ({error})") from None
    return [HandedIn(who, str(scratch / digest / folders[who])) for who in sorted(groups)], notes


def _is_work(entry: zipfile.ZipInfo, notes: list[str]) -> bool:
    """Whether an entry may be somebody's work; if not, and nobody expects it, a note says why."""
    name = entry.filename.replace("\\", "/")
    parts = PurePosixPath(name).parts
    if stat.S_ISLNK(entry.external_attr >> 16):
        notes.append(f"{_shown(name)} was left out: a link")
    elif name.startswith("/") or ".." in parts or any(":" in part for part in parts[:1]):
        notes.append(f"{_shown(name)} was left out: its path leads out of the archive")
    elif parts[-1].startswith(".") or "__MACOSX" in parts or parts[-1] == "submission_metadata.yml":
        return False
    elif os.path.splitext(name)[1].lower() not in SUFFIXES:
        notes.append(f"{_shown(name)} was left out: neither .py nor .ipynb")
    elif entry.file_size > NOTEBOOK_LIMIT:
        notes.append(f"{_shown(name)} was left out: larger than {NOTEBOOK_LIMIT // 2**20} MiB")
    else:
        return True
    return False


def _groups(entries: Iterable[zipfile.ZipInfo]) -> dict[str, list[tuple[str, zipfile.ZipInfo]]]:
    """Whose work each entry is, and what they called it.

    A platform's names tell.  Else it is the first folder below those that all have in common, whatever is beneath it:
    two students with a folder of the same name stay two.  Files in no such folder are one person's, if no two of them
    are of the same exercise and a folder holds them all; else each is somebody's.
    """
    paths = [(PurePosixPath(entry.filename.replace("\\", "/")).parts, entry) for entry in entries]
    common = 0
    while paths and all(len(parts) > common + 1 and parts[common] == paths[0][0][common] for parts, _ in paths):
        common += 1
    folders = {parts[common] for parts, _ in paths if len(parts) > common + 1}
    numbers = [exercise_number(parts[-1]) for parts, _ in paths if len(parts) == common + 1]
    of_one = common > 0 and not folders and len(set(numbers)) == len(numbers)
    groups: dict[str, list[tuple[str, zipfile.ZipInfo]]] = {}
    for parts, entry in paths:
        who = _named_by_platform("/".join(parts[common:])) or _named_by_platform("/".join(parts))
        if who is None and len(parts) > common + 1:
            who = parts[common]
        elif who is None and of_one:
            who = parts[common - 1]
        elif who is None:
            stem = os.path.splitext(parts[-1])[0]
            who = parts[-1] if stem in folders else stem
        groups.setdefault(who, []).append((_own_name(parts), entry))
    return groups


def _named_by_platform(name: str) -> str | None:
    for pattern in (_MOODLE, _GRADESCOPE, _CANVAS):
        if match := pattern.fullmatch(name):
            return match["who"] if pattern is _GRADESCOPE else f"{match['who']}_{match['user']}"
    return None


def _own_name(parts: tuple[str, ...]) -> str:
    """What the student called a file, without what a platform puts before it."""
    for pattern in (_MOODLE, _CANVAS):
        if match := pattern.fullmatch(parts[-1]):
            return os.path.basename(match["file"])
    return parts[-1]


def _folders(people: list[str]) -> list[str]:
    """A harmless name of a folder for each, and not one of them twice, whatever their case."""
    taken: set[str] = set()
    names = []
    for who in people:
        name = _harmless(who)
        if name.casefold() in taken:
            name = f"{name}-{hashlib.sha256(who.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}"
        taken.add(name.casefold())
        names.append(name)
    return names


def _unpack(
    archive: zipfile.ZipFile, folder: Path, files: Iterable[tuple[str, zipfile.ZipInfo]], notes: list[str]
) -> None:
    there: set[str] = set()
    for file, entry in files:
        with archive.open(entry) as source:
            data = source.read(NOTEBOOK_LIMIT + 1)
        name = _harmless(file)
        if len(data) > NOTEBOOK_LIMIT:
            notes.append(f"{_shown(entry.filename)} was left out: larger than {NOTEBOOK_LIMIT // 2**20} MiB")
        elif name.casefold() in there:
            notes.append(f"{_shown(entry.filename)} was left out: there is another {_shown(name)} of the same person")
        else:
            there.add(name.casefold())
            try:
                folder.mkdir(parents=True, exist_ok=True)
                (folder / name).write_bytes(data)
                _keep_time(folder / name, entry)
            except OSError as error:
                raise CannotWrite(error.errno, error.strerror, str(folder / name)) from None


def _keep_time(file: Path, entry: zipfile.ZipInfo) -> None:
    """The time in the archive, which knows no time zone, is taken for this machine's."""
    with contextlib.suppress(OverflowError, ValueError):
        changed = time.mktime((*entry.date_time, 0, 0, -1))
        os.utime(file, (changed, changed))


def _harmless(name: str) -> str:
    """A file name that is one: no separators, nothing hidden, not too long."""
    clean = re.sub(r"[\x00-\x1f/\\]", "-", unicodedata.normalize("NFC", name)).strip().lstrip(".") or "submission"
    if len(clean.encode("utf-8", "surrogateescape")) <= 150:
        return clean
    stem, suffix = os.path.splitext(clean)
    return stem[:30] + hashlib.sha256(clean.encode("utf-8", "surrogateescape")).hexdigest()[:12] + suffix[:10]


def _shown(name: str) -> str:
    return name if len(name) <= 100 else name[:99] + "…"

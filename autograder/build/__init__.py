"""Everything that is generated from `solutions/`: `build` makes it, `write` writes it, `drift` finds what is stale."""

from __future__ import annotations

from pathlib import Path

from autograder.build.notebook import COURSES, notebook, path_of
from autograder.build.notebook_words import LANGS
from autograder.build.source import BuildError, read
from autograder.build.stub import stub
from autograder.syllabus import SYLLABUS

__all__ = ["BuildError", "build", "drift", "write"]


def build(root: Path) -> dict[Path, str]:
    """The text of every generated file, by its path relative to `root`, the repository.

    Raises BuildError, with file, line and what to do, if a solution cannot be built from.
    """
    built = {}
    for exercise in SYLLABUS:
        source = read(root, exercise)
        built[Path("exercises", f"{exercise.module}.py")] = stub(source)
        built |= {path_of(exercise, lang): notebook(root, source, lang) for lang in LANGS}
    return built


def write(root: Path) -> list[Path]:
    """Write the generated files that are missing or differ; returns their paths relative to `root`."""
    stale = []
    for path, text in build(root).items():
        if _text(root / path) != text:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text, encoding="utf-8", newline="\n")
            stale.append(path)
    return stale


def drift(root: Path) -> list[str]:
    """One line for each generated file that is missing, differs from what `build` gives, or has no source any more."""
    built = build(root)
    lines = []
    for path, text in built.items():
        found = _text(root / path)
        if found is None:
            lines.append(f"{path} is missing: run `autograder build`.")
        elif found != text:
            lines.append(f"{path} differs from what its solution gives: edit the solution and run `autograder build`.")
    generated = [*(root / "exercises").glob("ex[0-9][0-9]_*.py")]
    for course in COURSES.values():
        generated += (root / course / "source").glob("*/*.ipynb")
    for file in sorted(generated):
        if (path := file.relative_to(root)) not in built:
            lines.append(f"{path} is generated from nothing: delete it, or add its exercise to the syllabus.")
    return lines


def _text(file: Path) -> str | None:
    return file.read_text(encoding="utf-8") if file.exists() else None

"""Ready folders for grading where a course already hands in: GitHub Actions, GitLab CI, Gradescope."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from autograder import __version__
from autograder.render import gradescope
from autograder.render.words import Lang
from autograder.submission import UsageError
from autograder.syllabus import Exercise

#: The files of each kit, by their path in its folder: the template of each.
KITS = {
    "github": {"README.md": "README.md.j2", ".github/workflows/grade.yml": "grade.yml.j2"},
    "gitlab": {"README.md": "README.md.j2", ".gitlab-ci.yml": "gitlab-ci.yml.j2"},
    "gradescope": {"README.md": "README.md.j2"},
}
#: What of the course Gradescope's ZIP file holds, below course/: enough to grade, and no solution.
COURSE = ("pyproject.toml", "constraints.txt", "README.md", "LICENSE", "autograder", "exercises")
_LEFT_OUT = ("authors", "build", "bundle", "cikits", "honest", "impostors", "nbgrader", "__pycache__")
_EARLIEST = (1980, 1, 1, 0, 0, 0)


def kit(name: str, root: Path, exercises: Sequence[Exercise], lang: Lang) -> dict[str, bytes]:
    """The files of a kit, by their path in its folder.

    name: one of KITS.  root: the folder of the course.  exercises: what to grade, counting as not implemented what is
    missing.  Raises UsageError if the course cannot be read.
    """
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent / name),
        undefined=StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # shell, YAML and Markdown; nothing in them is anybody else's text
        variable_start_string="«",  # GitHub has {{ }} for its own, and the shell {#
        variable_end_string="»",
        block_start_string="<%",
        block_end_string="%>",
        comment_start_string="<#",
        comment_end_string="#>",
    )

    def filled(template: str) -> bytes:
        given = {"exercises": exercises, "lang": lang, "version": __version__, "options": _options(exercises)}
        return environment.get_template(template).render(given).encode()

    files = {path: filled(template) for path, template in KITS[name].items()}
    if name == "gradescope":
        inside = {
            "setup.sh": filled("setup.sh.j2"),
            "run_autograder": filled("run_autograder.j2"),
            "did_not_finish.json": gradescope.not_finished(lang).encode(),
        }
        files["autograder.zip"] = _archive(inside | _course(root))
    return files


def write(files: dict[str, bytes], folder: Path) -> None:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def _options(exercises: Sequence[Exercise]) -> str:
    return " ".join(f"-e {exercise.number}" for exercise in exercises)


def _course(root: Path) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for name in COURSE:
        paths = [root / name] if (root / name).is_file() else sorted((root / name).rglob("*"))
        for path in paths:
            inside = path.relative_to(root)
            if path.is_file() and not set(inside.parts) & set(_LEFT_OUT):
                found[f"course/{inside.as_posix()}"] = path.read_bytes()
        if not paths:
            raise UsageError(f"{root / name}: what Gradescope needs of the course is not there")
    return found


def _archive(files: dict[str, bytes]) -> bytes:
    """A ZIP file; the same files give the same bytes."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in sorted(files.items()):
            entry = zipfile.ZipInfo(name, _EARLIEST)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # Unix, wherever this runs
            entry.external_attr = (0o755 if name in ("setup.sh", "run_autograder") else 0o644) << 16
            archive.writestr(entry, content)
    return data.getvalue()

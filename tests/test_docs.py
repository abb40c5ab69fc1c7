"""The pages for people: what they show is what the commands print.

A block marked ```` ```console student NAME ```` runs in a copy of what students get, with NAME's file from the sample
class in place of the stub; `stub` leaves the stub.  ```` ```console instructor NAME ```` runs beside NAME's file with
the whole grader.  ```` ```console class three ```` runs in a folder with a class of three and the nbgrader courses, and
there every command must succeed.  Lines after `$ ` are commands, `…` stands for any lines.  Blocks marked otherwise are
not run.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pytest

from autograder.bundle import contents
from autograder.report import Verdict

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
SAMPLES = ROOT / "examples" / "submissions"
BLOCK = re.compile(r"^```console (student|instructor|class) (\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ANY_LINES = "…"
STUDENT_PAGES = [DOCS / "student.md", DOCS / "student.zh.md"]
INSTRUCTOR_PAGES = [DOCS / "instructor.md", DOCS / "instructor.zh.md"]
CLASSES = {
    "three": {
        "s01": "mean_of_sequence_means/ex02_mlm_loss.py",
        "s02": "right/ex02_mlm_loss.py",
        "s03": "syntax_error/ex02_mlm_loss.py",
    }
}
TOOLS = {"autograder": "autograder", "jupytext": "jupytext", "pytest": "pytest", "nbgrader": "nbgrader"}


@dataclass(frozen=True)
class Block:
    """One example: who runs it, on whose file, and the commands with the output that the page shows."""

    page: str
    who: str
    sample: str
    text: str

    @property
    def commands(self) -> list[tuple[str, list[str]]]:
        found: list[tuple[str, list[str]]] = []
        for line in self.text.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line.rstrip())
        return found


def blocks() -> Iterator[Block]:
    for page in sorted(DOCS.glob("*.md")):
        for who, sample, text in BLOCK.findall(page.read_text(encoding="utf-8")):
            yield Block(page.name, who, sample, text)


BLOCKS = [pytest.param(block, id=f"{block.page}-{index}-{block.sample}") for index, block in enumerate(blocks())]


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory):
    """Runs commands in a fresh folder; each series of commands once, however many pages show it."""
    tools = tmp_path_factory.mktemp("bin")
    for name, module in TOOLS.items():
        (tools / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {module} "$@"\n', encoding="utf-8")
        (tools / name).chmod(0o755)

    @cache
    def outputs(who: str, sample: str, commands: tuple[str, ...]) -> list[tuple[str, int]]:
        folder = tmp_path_factory.mktemp(who)
        if who == "student":
            copy_for_students(folder)
        if who == "class":
            hand_in(folder, CLASSES[sample])
        elif sample != "stub":
            for file in (SAMPLES / sample).iterdir():
                shutil.copy(file, folder / "exercises" if who == "student" else folder)
        environment = {
            **os.environ,
            "PATH": os.pathsep.join([str(tools), str(Path(sys.executable).parent), os.environ["PATH"]]),
            "PYTHONPATH": str(folder if who == "student" else ROOT),
            "COLUMNS": "100",
            "OMP_NUM_THREADS": "1",
        }
        done = [
            subprocess.run(
                command,
                shell=True,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                timeout=300,
            )
            for command in commands
        ]
        return [(run.stdout, run.returncode) for run in done]

    return outputs


def hand_in(folder: Path, students: dict[str, str]) -> None:
    """A class, and the nbgrader courses beside it."""
    for student, file in students.items():
        (folder / "class" / student).mkdir(parents=True)
        shutil.copy(SAMPLES / file, folder / "class" / student)
    for course in ("", "zh"):
        here, there = ROOT / "notebooks" / course, folder / "notebooks" / course
        shutil.copytree(here / "source", there / "source")
        shutil.copy(here / "nbgrader_config.py", there)


def copy_for_students(folder: Path) -> None:
    """What `autograder bundle` gives to students."""
    for name, data in for_students().items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)


@cache
def for_students() -> dict[str, bytes]:
    return contents(ROOT)


def pattern(lines: list[str]) -> str:
    """What the output must match: line for line, with any lines where the page leaves some out."""
    return "".join(r"(?:[^\n]*\n)*" if line == ANY_LINES else re.escape(line) + r"[ ]*\n" for line in lines)


@pytest.mark.parametrize("block", BLOCKS)
def test_commands_print_what_the_page_shows(block: Block, run) -> None:
    got = run(block.who, block.sample, tuple(command for command, _ in block.commands))
    for (command, expected), (output, status) in zip(block.commands, got, strict=True):
        whole = output if output.endswith("\n") or not output else output + "\n"
        assert re.fullmatch(pattern(expected), whole), f"{block.page}: `{command}` prints\n{output}"
        if block.who == "class" and command != "autograder doctor":  # whose status tells of this host
            assert status == 0, f"{block.page}: `{command}` ends with {status} and prints\n{output}"


def test_there_are_examples_of_both_kinds() -> None:
    for page in STUDENT_PAGES:
        assert {block.who for block in blocks() if block.page == page.name} == {"student", "instructor"}


def test_a_page_that_shows_something_else_is_noticed() -> None:
    assert re.fullmatch(pattern(["a", "…", "c."]), "a\nb\nb\nc.\n")
    assert re.fullmatch(pattern(["a", "…", "c."]), "a\nc.\n")
    for other in ("a\nb\nc\n", "a\nb\nc.\nd\n", "b\nc.\n", "a\nb\ncx\n"):
        assert not re.fullmatch(pattern(["a", "…", "c."]), other)


@pytest.mark.parametrize("pages", [STUDENT_PAGES, INSTRUCTOR_PAGES], ids=["student", "instructor"])
def test_both_languages_show_the_same_examples(pages: list[Path]) -> None:
    english, chinese = (
        re.findall(r"^```.*?^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL) for page in pages
    )
    assert english == chinese
    assert len(english) > 3


@pytest.mark.parametrize("page", STUDENT_PAGES, ids=lambda page: page.name)
def test_the_two_commands_of_the_installation_can_work(page: Path) -> None:
    """pip is not run here; what it is asked for must be there."""
    (block,) = re.findall(r"^```bash\n(.*?)^```$", page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(block.splitlines()) == 2
    constraints, extra = re.search(r"-c (\S+) -e '\.\[(\w+)\]'", block).groups()
    assert (ROOT / constraints).is_file()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert any(line.startswith("matplotlib") for line in project["optional-dependencies"][extra])
    assert any(line.startswith("jupyter") for line in project["optional-dependencies"][extra])


@pytest.mark.parametrize("page", STUDENT_PAGES, ids=lambda page: page.name)
def test_every_verdict_is_explained(page: Path) -> None:
    rows = re.findall(r"^\| `(\w+)` \|", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert rows == list(Verdict.__args__)


@pytest.mark.parametrize("page", STUDENT_PAGES, ids=lambda page: page.name)
def test_the_limits_are_those_of_the_grader(page: Path) -> None:
    from autograder.limits import Limits

    text = page.read_text(encoding="utf-8")
    assert re.search(rf"\b{Limits().check_cpu:.0f} (?:seconds|秒)", text)
    assert "8 GiB" in text


@pytest.mark.parametrize("page", INSTRUCTOR_PAGES, ids=lambda page: page.name)
def test_the_commands_that_are_not_run_exist(page: Path) -> None:
    """make and nbgrader: the targets are the Makefile's, the commands those of the demo, which other tests run."""
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    demo = (ROOT / "examples" / "class" / "demo.py").read_text(encoding="utf-8")
    text = page.read_text(encoding="utf-8")
    targets = set(re.findall(r"\bmake ([\w-]+)", text))
    assert targets == {"setup", "demo", "check", "nbgrader-demo"}
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    commands = set(re.findall(r"^nbgrader (\w+)", text, re.MULTILINE))
    assert commands == {"autograde", "generate_feedback", "export"}
    for command in commands:
        assert f'"{command}"' in demo, command


@pytest.mark.parametrize("page", STUDENT_PAGES + INSTRUCTOR_PAGES, ids=lambda page: page.name)
def test_files_that_are_named_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    for name in set(re.findall(r"exercises/ex\d\d_\w+\.py", text)):
        assert (ROOT / name).is_file(), name
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (page.parent / link).exists(), link

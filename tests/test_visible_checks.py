"""The visible checks pass on every solution and fail on every stub, from the command line that students use."""

import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from autograder.syllabus import SYLLABUS

ROOT = Path(__file__).parents[1]
MODULES = [exercise.module for exercise in SYLLABUS]


def outcomes(tmp_path: Path, *arguments: str) -> dict[str, list[str]]:
    """For each exercise, what became of its checks."""
    xml = tmp_path / "junit.xml"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={xml}", *arguments]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert xml.exists(), run.stdout + run.stderr
    result: dict[str, list[str]] = {}
    for case in ElementTree.parse(xml).iter("testcase"):
        outcome = next((child.tag for child in case if child.tag in ("failure", "error", "skipped")), "passed")
        message = next((child.get("message", "") for child in case if child.tag == outcome), "")
        name = case.get("classname", "").rpartition(".")[2].removeprefix("test_")
        result.setdefault(name, []).append(f"{outcome} {message}".strip())
    return result


@pytest.fixture(scope="module")
def on_solutions(tmp_path_factory):
    return outcomes(tmp_path_factory.mktemp("solutions"), "exercises/tests", "--submission", "solutions")


@pytest.fixture(scope="module")
def on_stubs(tmp_path_factory):
    return outcomes(tmp_path_factory.mktemp("stubs"), "exercises/tests")


@pytest.mark.parametrize("module", MODULES)
def test_solutions_pass(on_solutions, module):
    assert set(on_solutions[module]) == {"passed"}


@pytest.mark.parametrize("module", MODULES)
def test_stubs_fail_because_nothing_is_written(on_stubs, module):
    assert on_stubs[module]
    for outcome in on_stubs[module]:
        written = ("failure NotImplementedError", 'error failed on setup with "NotImplementedError')
        assert outcome.startswith(written), outcome


def test_one_file_is_checked_by_the_checks_of_its_exercise_only(tmp_path):
    found = outcomes(tmp_path, "exercises/tests", "--submission", "solutions/ex01_input_embeddings.py")
    assert set(found.pop("ex01_input_embeddings")) == {"passed"}
    assert {outcome.split()[0] for checks in found.values() for outcome in checks} == {"skipped"}


@pytest.mark.parametrize(
    ("names", "message"),
    [([], "found: none"), (["ex01_a.py", "ex01_b.py"], "found: ex01_a.py, ex01_b.py"), (None, "no such file")],
    ids=["empty folder", "two files", "nothing there"],
)
def test_a_wrong_submission_path_is_explained(tmp_path, names, message):
    folder = tmp_path / "mine"
    if names is not None:
        folder.mkdir()
    for name in names or ():
        (folder / name).touch()
    found = outcomes(tmp_path, "exercises/tests/test_ex01_input_embeddings.py", "--submission", str(folder))
    assert all(message in outcome for outcome in found["ex01_input_embeddings"]), found


def test_every_visible_check_has_a_title():
    for module in MODULES:
        text = (ROOT / "exercises" / "tests" / f"test_{module}.py").read_text(encoding="utf-8")
        blocks = text.split("\ndef test_")[1:]
        assert 3 <= len(blocks) <= 8
        assert all(block.split("\n")[1].strip().startswith('"""') for block in blocks)

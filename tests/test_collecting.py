"""The hidden checks are collected from their own files, and a grader without them gives no grade."""

from __future__ import annotations

from pathlib import Path

import pytest

from autograder import grading
from autograder.authors.banks import submission
from autograder.grading import Options, grade
from autograder.report import Report
from autograder.syllabus import EXERCISES
from autograder.wire.errors import GraderFault

ROOT = Path(__file__).parents[1]
CHECK = """
import pytest
@pytest.mark.worth("mean_nll", 1.0)
def test_only_one(student):
    student.mean_nll([0.5])
"""


def graded() -> Report:
    right = submission(EXERCISES[2], ROOT / "solutions" / "ex02_mlm_loss.py", "right")
    return grade(right, Options(in_process=True))


@pytest.fixture
def hidden(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the checks; the current folder is another one."""
    folder, here = tmp_path / "hidden", tmp_path / "here"
    folder.mkdir()
    here.mkdir()
    monkeypatch.setattr(grading, "HIDDEN", folder)
    monkeypatch.chdir(here)
    return folder


def test_no_checks_are_no_grade(hidden: Path) -> None:
    (hidden / "test_ex03_copy_shortcut.py").write_text(CHECK)
    with pytest.raises(GraderFault, match="there are no hidden checks of ex02"):
        graded()


def test_checks_that_cannot_be_imported_are_no_grade(hidden: Path) -> None:
    (hidden / "test_ex02_one.py").write_text(CHECK)
    (hidden / "test_ex02_two.py").write_text("import nothing_of_that_name")
    with pytest.raises(GraderFault, match=r"ex02 could not be collected.*nothing_of_that_name"):
        graded()


def test_nothing_else_is_imported(hidden: Path) -> None:
    (hidden / "test_ex02_one.py").write_text(CHECK)
    broken = "raise SystemExit('this file was run')"
    for place in (Path("conftest.py"), Path("test_ex02_here.py"), hidden / "conftest.py", hidden / "is_wrong_test.py"):
        place.write_text(broken)
    (hidden / "impostors").mkdir()
    (hidden / "impostors" / "test_ex02_bank.py").write_text(broken)
    assert [check.id for check in graded().checks] == ["test_only_one"]

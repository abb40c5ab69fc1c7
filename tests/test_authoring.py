"""The examples in docs/authoring.md do what the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from autograder import grading
from autograder.authors.banks import submission
from autograder.grading import Submission, Work, grade
from autograder.sandbox.loading import Part
from autograder.syllabus import EXERCISES

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "authoring.md").read_text(encoding="utf-8")
CHECK, IMPOSTOR = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_example_check_spares_the_reference_and_names_the_impostor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "test_ex02_example.py").write_text(CHECK, encoding="utf-8")
    monkeypatch.setattr(grading, "HIDDEN", tmp_path)
    exercise = EXERCISES[2]
    right = grade(submission(exercise, ROOT / "solutions" / "ex02_mlm_loss.py", "right"))
    assert [check.verdict for check in right.checks] == ["passed"]
    wrong = grade(Submission("wrong", (Work(exercise, (Part("ex02_mlm_loss.py", IMPOSTOR),)),)))
    header = dict(re.findall(r"^# (\w+): (.+)$", IMPOSTOR, re.MULTILINE))
    (check,) = wrong.checks
    assert check.id == header["check"]
    assert (check.verdict, check.misconception) == ("failed", header["misconception"])
    assert check.hint
    assert check.title in PAGE


def test_the_commands_of_the_page_exist() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^    make (\w+)", PAGE, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target

"""`make nbgrader-demo`: the sample class through nbgrader's own commands, from released assignments to feedback."""

from __future__ import annotations

import csv
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_the_sample_class_goes_through_nbgrader(tmp_path: Path) -> None:
    course = tmp_path / "course"
    command = [sys.executable, "examples/class/demo.py", "--course", str(course)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines()[-1] == "nbgrader demo ok"
    with open(course / "grades.csv", encoding="utf-8", newline="") as file:
        students = {row["student_id"] for row in csv.DictReader(file)}
    assert len(students) == 8
    for student in students:
        assert list((course / "feedback" / student).rglob("*.html")), student

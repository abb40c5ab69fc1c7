"""The script for machines with a GPU: it is tried here on the CPU, and what it says of grades is right."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import gpu_report

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "benchmarks" / "gpu.sh"


def run(*arguments: str, python: str = sys.executable) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHON": python, "CUDA_VISIBLE_DEVICES": ""}
    return subprocess.run([SCRIPT, *arguments], capture_output=True, text=True, env=environment, check=False)


def test_shellcheck_has_nothing_to_say() -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")
    done = subprocess.run([shellcheck, SCRIPT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.slow
def test_a_dry_run_grades_and_compares_on_the_cpu(tmp_path: Path) -> None:
    done = run("--dry-run", "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "| ex02 | 2 | 2 | cpu |" in done.stdout
    assert "All have full points." in done.stdout
    assert "# ex10: synthetic with tiny" in done.stdout
    assert "| full | 8 | dynamic | 1 |" in done.stdout
    assert (tmp_path / "report.md").read_text(encoding="utf-8") == done.stdout


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["--frobnicate"], 2, "--frobnicate means nothing here"),
        (["--out"], 2, "--out needs a value"),
        (["--encoder", "tiny", "grade"], 1, "no CUDA device here; --dry-run"),
    ],
)
def test_what_cannot_be_done_is_said(tmp_path: Path, arguments: list[str], status: int, said: str) -> None:
    out = [] if arguments == ["--out"] else ["--out", str(tmp_path)]
    done = run(*out, *arguments)
    assert done.returncode == status
    assert said in done.stderr


def test_missing_packages_are_named_with_the_command_that_fetches_them(tmp_path: Path) -> None:
    bare = tmp_path / "python"
    bare.write_text(f'#!/bin/sh\nexec {sys.executable} -S "$@"\n', encoding="utf-8")  # -S: without site-packages
    bare.chmod(0o755)
    done = run("--dry-run", "--out", str(tmp_path / "out"), python=str(bare))
    assert done.returncode == 1
    assert "this machine lacks: torch numpy" in done.stderr
    assert "pip download --dest FOLDER -c constraints.txt torch numpy" in done.stderr
    assert "scikit-learn" in done.stderr


def report(points: float, verdict: str, device: str = "cuda") -> dict[str, Any]:
    check = {"id": "the_check", "verdict": verdict, "message": "two\nlines", "seconds": 1.5}
    function = {"checks": [check, {**check, "verdict": "passed"}]}
    exercise = {"id": "ex08", "points": points, "max_points": 10, "functions": [function]}
    return {"submission": "zoe", "device": device, "exercises": [exercise]}


@pytest.mark.parametrize(
    ("reports", "status", "said"),
    [
        ([report(10, "passed")], 0, "All have full points."),
        ([report(10, "passed"), report(7.5, "failed")], 1, "7.5 of 10 points (1 failed); the_check: two lines"),
        ([report(10, "passed", "cpu")], 1, "zoe: graded on cpu, not on cuda"),
        ([], 1, "nothing was graded"),
    ],
)
def test_a_lost_point_or_another_device_is_no_success(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], reports: list[dict[str, Any]], status: int, said: str
) -> None:
    path = tmp_path / "grades.jsonl"
    path.write_text("".join(json.dumps(one) + "\n" for one in reports), encoding="utf-8")
    assert gpu_report.main([str(path), "--device", "cuda"]) == status
    printed = capsys.readouterr().out
    assert said in printed
    assert ("All have full points." in printed) == (status == 0)

"""The soak in small, and that it would notice what it looks for."""

from __future__ import annotations

import ast
import contextlib
import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from autograder.authors import banks
from benchmarks import soak_check, soak_class
from benchmarks.soak_run import Sample

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_kills_of_each_kind_change_no_result_and_leave_nothing(tmp_path: Path) -> None:
    table = tmp_path / "soak.md"
    command = [sys.executable, "-m", "benchmarks.soak", "--quick", "--out", str(table)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    text = table.read_text(encoding="utf-8")
    assert "| submissions with exactly one result | 40 of 40 |" in text
    assert "| results that differ from the undisturbed run's | 0 |" in text
    assert "| processes left | 0 |" in text
    assert "| files left in the temporary folder or OUT | 0 |" in text
    killed = next(line for line in text.splitlines() if line.startswith("| killed |"))
    assert all(kind in killed for kind in ("command", "zygote", "worker")), killed


def test_the_class_is_the_same_for_the_same_seed(tmp_path: Path) -> None:
    def contents(folder: Path) -> dict[str, bytes]:
        return {
            os.fsdecode(os.path.relpath(os.path.join(place, name), folder)): Path(place, name).read_bytes()
            for place, _, names in os.walk(folder)
            for name in names
            if name.endswith(".py") and Path(place, name).is_file() and not Path(place, name).is_symlink()
        }

    kinds = [soak_class.make_class(tmp_path / name, 60, seed, [1, 2]) for name, seed in (("a", 1), ("b", 1), ("c", 2))]
    assert kinds[0] == kinds[1]
    assert set(kinds[0]) == set(soak_class.SHARES)
    assert contents(tmp_path / "a") == contents(tmp_path / "b") != contents(tmp_path / "c")
    assert len(list((tmp_path / "a").iterdir())) == 60
    assert len(set(contents(tmp_path / "a").values())) > 30


def test_renamed_variables_change_nothing_else() -> None:
    text = (
        "def f(a, b=2):\n    total = a + b\n    for part in range(3):\n        total += part\n"
        "    def g(total_=1):\n        return total_ + total\n    return g()\n"
    )
    namespaces: list[dict] = [{}, {}]
    for code, namespace in zip((text, soak_class.renamed(text, "_7")), namespaces, strict=True):
        exec(code, namespace)
    assert "total_7" in soak_class.renamed(text, "_7")
    assert namespaces[0]["f"](5) == namespaces[1]["f"](5) == 11


def test_every_bank_submission_can_be_renamed() -> None:
    for entry in random.Random(0).sample(banks.impostors({1, 2, 3, 4, 5}), 40):
        text = soak_class.renamed(entry.path.read_text(encoding="utf-8"), "_7")
        assert compile(text, entry.name, "exec")
        assert [node.name for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]


def test_another_verdict_is_a_difference_and_other_seconds_are_none(tmp_path: Path) -> None:
    record = {"submission": "a", "checks": [{"verdict": "passed", "seconds": 0.1, "message": "within 9 s"}]}
    for name, verdict, seconds in (("one", "passed", 0.1), ("two", "passed", 7.0), ("three", "failed", 0.1)):
        (tmp_path / name).mkdir()
        record["checks"] = [{"verdict": verdict, "seconds": seconds, "message": f"within {seconds * 10:.0f} s"}]
        (tmp_path / name / "a.json").write_text(json.dumps(record))
    one, two, three = (soak_check.results(tmp_path / name) for name in ("one", "two", "three"))
    assert soak_check.different(one, two) == []
    assert soak_check.different(one, three) == ["a.json"]
    assert soak_check.different(one, {}) == ["a.json"]


def test_what_is_missing_or_left_is_noticed(tmp_path: Path) -> None:
    submissions, out = tmp_path / "class", tmp_path / "out"
    for name in ("a", "b"):
        (submissions / name).mkdir(parents=True)
    (out / ".store" / "ab").mkdir(parents=True)
    (out / "a.json").write_text("{}")
    (out / ".b.json.12.tmp").write_text("{")
    (out / ".store" / "lock").write_text("")
    (out / ".store" / "ab" / ".x.json.12.tmp").write_text("{")
    assert soak_check.wrong_files(submissions, out) == [
        "no result: b.json",
        "left in OUT: .b.json.12.tmp",
        "left in OUT/.store: .x.json.12.tmp",
    ]


def test_a_process_that_goes_on_is_noticed(tmp_path: Path) -> None:
    with subprocess.Popen(["sleep", "60"], env={"TMPDIR": str(tmp_path), "PATH": os.environ["PATH"]}) as process:
        assert soak_check.left_processes(tmp_path) == [str(process.pid)]
        process.kill()
    assert soak_check.left_processes(tmp_path) == []


def test_a_process_that_has_hardly_begun_is_noticed(tmp_path: Path) -> None:
    """While execve is at work, a process has neither a command line nor an environment; on a busy machine, for long."""
    environment = {"TMPDIR": str(tmp_path), "PATH": os.environ["PATH"]}
    with contextlib.ExitStack() as ending:
        for _ in range(3 * (os.cpu_count() or 1)):
            busy = ending.enter_context(subprocess.Popen(["sh", "-c", "while :; do :; done"]))
            ending.callback(busy.kill)
        for _ in range(20):
            with subprocess.Popen(["sleep", "60"], env=environment) as process:
                known = soak_check.started_with(str(process.pid))
                process.kill()
            assert os.fsencode(tmp_path) in known
    assert soak_check.started_with(str(process.pid)) == b""


def test_growth_is_told_from_noise() -> None:
    rng = random.Random(0)

    def samples(per_submission: float) -> list[Sample]:
        sizes = [(done, 400e6 + per_submission * done + rng.choice([0, 0, 0, 90e6])) for done in range(0, 2000, 5)]
        return [Sample(1, done, int(size), int(size), 20) for done, size in sizes]

    flat = soak_check.growth(samples(0), "rss", 1)
    leaking = soak_check.growth(samples(40e3), "rss", 1)
    assert flat is not None
    assert leaking is not None
    assert flat < soak_check.BOUNDS["rss"] < leaking
    assert soak_check.growth(samples(0)[:10], "rss", 1) is None
    assert soak_check.growth(samples(0), "descriptors", 1) == 0

"""Killed processes, full disks, folders that cannot be written: no wrong verdict, nothing half written."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import below

ROOT = Path(__file__).parents[2]
PATHS = [str(ROOT / "examples" / "submissions" / name) for name in ("right", "stub", "mean_over_all_positions")]
COMMAND = [sys.executable, "-m", "autograder", "grade", *PATHS, "-e", "2", "--format", "json"]
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}
#: Kills of each kind: a few in every test run, 54 in all by `make attacks`.
ROUNDS = int(os.environ.get("FAULT_ROUNDS", "3"))


def bare(output: str) -> list[str]:
    return [re.sub(r'"seconds": ?[0-9.e-]+', "", line) for line in output.splitlines()]


def run(*extra: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*COMMAND, *extra], capture_output=True, text=True, env=ENVIRONMENT, cwd=ROOT, check=False)


@pytest.fixture(scope="module")
def undisturbed() -> tuple[list[str], float]:
    started = time.monotonic()
    done = run()
    assert done.returncode == 0, done.stderr
    return bare(done.stdout), time.monotonic() - started


def victims(pid: int, kind: str) -> list[int]:
    """Grader, zygote or worker among the processes of one command."""
    family = below(pid)
    if kind == "grader":
        return family[:1]
    return family[1:3] if kind == "zygote" else family[3:]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["worker", "zygote", "grader"])
def test_a_kill_at_any_moment_makes_no_verdict_wrong(
    kind: str, undisturbed: tuple[list[str], float], tmp_path: Path
) -> None:
    expected, seconds = undisturbed
    rng = random.Random(f"{kind} 2026")
    hits = 0
    for number in range(ROUNDS):
        out = tmp_path / str(number)
        process = subprocess.Popen(
            [*COMMAND, "--out", str(out)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=ENVIRONMENT,
            cwd=ROOT,
        )
        time.sleep(rng.uniform(0.1, 0.7) * seconds)
        while not victims(process.pid, kind) and process.poll() is None:
            time.sleep(0.005)
        family = below(process.pid)
        for victim in victims(process.pid, kind)[:1]:
            try:
                os.kill(victim, signal.SIGKILL)
                hits += 1
            except ProcessLookupError:
                continue
        output, _ = process.communicate(timeout=300)
        for line, right in zip(bare(output), expected, strict=False):
            assert line == right or '"grader_error"' in line
        if kind != "grader" and process.returncode == 0:
            assert bare(output) == expected
        for file in out.glob("*.json") if out.exists() else []:
            json.loads(file.read_text(encoding="utf-8"))
        deadline = time.monotonic() + 20
        while any(Path(f"/proc/{pid}").exists() for pid in family) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not [pid for pid in family if Path(f"/proc/{pid}").exists()], "a process outlived its grader"
    assert hits >= max(1, ROUNDS // 3)
    assert bare(run().stdout) == expected


def test_a_full_disk_is_a_clear_error(tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root can mount a small disk to fill")
    disk = tmp_path / "disk"
    disk.mkdir()
    script = f"mount -t tmpfs -o size=8k tmpfs {disk} && exec {' '.join(COMMAND)} --out {disk}/out"
    done = subprocess.run(
        ["unshare", "-m", "sh", "-c", script], capture_output=True, text=True, env=ENVIRONMENT, cwd=ROOT, check=False
    )
    assert done.returncode in (2, 3), done.stderr
    assert "Traceback" not in done.stderr
    assert "No space left" in done.stderr


@pytest.mark.parametrize("place", ["/proc/out", "/dev/null/out", "/dev/full"])
def test_a_folder_that_cannot_be_written_is_a_usage_error(place: str) -> None:
    done = run("--out", place)
    assert done.returncode == 2
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert place in done.stderr

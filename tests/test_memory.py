"""What a grading process does not need it gives back."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

from autograder import memory
from autograder.grading import Options, Submission, Work, grade_all
from autograder.report import Report
from autograder.syllabus import EXERCISES

CODE = """
from autograder.memory import give_back
blocks = [bytearray(100_000) for _ in range(3000)]  # below the size from which each has pages of its own
kept = blocks[::100]
del blocks
def held():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])
before = held()
give_back()
print(before - held())
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="malloc_trim is glibc's")
def test_memory_between_blocks_in_use_is_given_back() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert int(done.stdout) * 4096 > 200e6


def test_a_long_run_gives_back_now_and_then(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[int] = []
    done: list[Report] = []
    monkeypatch.setattr(memory, "EVERY", 2)
    monkeypatch.setattr(memory, "give_back", lambda: called.append(len(done)))
    work = Work(EXERCISES[1], (), refused="It cannot be read.")
    grade_all([Submission(str(number), (work,)) for number in range(5)], Options(), done.append)
    assert called == [2, 4]

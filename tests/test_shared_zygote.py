"""One zygote for several grading processes: each has its own workers, and can do without it when it is gone."""

from __future__ import annotations

import contextlib
import os
import select
import signal
from collections.abc import Iterator

import pytest
import torch

from autograder.grading import Work
from autograder.limits import Limits
from autograder.sandbox.loading import Part
from autograder.syllabus import EXERCISES
from autograder.wire.classroom import Classrooms, RemoteClassroom
from autograder.wire.remote import RemoteStudent
from autograder.wire.zygote_process import Lease

WORK = Work(EXERCISES[2], (Part("student.py", "def mean_nll(p): return 2 * p\n"),))


@pytest.fixture
def owner() -> Iterator[RemoteClassroom]:
    with RemoteClassroom("auto", torch.device("cpu")) as room:
        yield room


def guest(lease: Lease) -> RemoteClassroom:
    return RemoteClassroom("auto", torch.device("cpu"), lease=lease)


@contextlib.contextmanager
def opened(room: RemoteClassroom) -> Iterator[RemoteStudent]:
    with room.open(WORK) as student:
        student.begin_check("mean_nll")
        yield student


def has_ended(student: RemoteStudent, within: float = 5.0) -> bool:
    assert student._worker is not None
    return bool(select.select([student._worker.pidfd], [], [], within)[0])


def test_both_have_workers_of_one_zygote(owner: RemoteClassroom) -> None:
    with guest(owner.lend()) as other, opened(owner) as ours, opened(other) as theirs:
        assert ours.mean_nll(1) == 2
        assert theirs.mean_nll(2) == 4
        assert other._process is None
        assert (other.level, other.kind) == (owner.level, owner.kind)
        assert other._slot != owner._slot  # so their workers have different users


def test_who_leaves_takes_only_its_own_workers_along(owner: RemoteClassroom) -> None:
    other = guest(owner.lend())
    with other, opened(owner) as ours:
        theirs = RemoteStudent(other, EXERCISES[2], WORK.parts)
        theirs.load()
        other._control.close()
        assert has_ended(theirs)
        assert not has_ended(ours, within=0.2)
        assert ours.mean_nll(3) == 6
    with guest(owner.lend()) as another, opened(another) as student:
        assert student.mean_nll(4) == 8


def test_with_its_owner_it_ends_and_whoever_used_it_starts_another() -> None:
    with RemoteClassroom("auto", torch.device("cpu")) as owner:
        other = guest(owner.lend())
        other.__enter__()
        theirs = RemoteStudent(other, EXERCISES[2], WORK.parts)
        theirs.load()
    try:
        assert has_ended(theirs)
        theirs.close()
        with opened(other) as student:
            assert student.mean_nll(5) == 10
        assert other._process is not None
        folder = other._folder
        assert folder.is_dir()
    finally:
        other.__exit__()
    assert not folder.exists()


def test_one_that_was_killed_is_replaced(owner: RemoteClassroom) -> None:
    lease = owner.lend()
    assert owner._process is not None
    os.kill(owner._process.pid, signal.SIGKILL)
    owner._process.wait()
    with guest(lease) as other, opened(other) as student:
        assert student.mean_nll(6) == 12


def test_classrooms_lend_the_families_that_are_asked_for() -> None:
    settings = ("auto", torch.device("cpu"), 0, Limits())
    with Classrooms(*settings) as classrooms:
        leases = classrooms.lend({"torch"})
        assert set(leases) == {"torch"}
        with Classrooms(*settings, leases) as others, others.open(WORK) as student:
            student.begin_check("mean_nll")
            assert student.mean_nll(7) == 14
            assert others.room("torch")._process is None

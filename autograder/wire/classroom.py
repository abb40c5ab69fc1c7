"""What submissions are opened in: a zygote for each family of exercises, and the student's side of each."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator
from types import TracebackType
from typing import Any

import torch

from autograder.limits import Limits
from autograder.syllabus import Family
from autograder.wire.errors import Interrupted
from autograder.wire.precedents import Precedents
from autograder.wire.remote import RemoteStudent
from autograder.wire.zygote_process import Lease, Zygote

StudentMaker = Callable[..., RemoteStudent]


class RemoteClassroom(Zygote):
    """A zygote in which submissions are opened.

    precedents: how their checks ended, also those of other classrooms.  student: makes their sides.
    """

    def __init__(
        self,
        *settings: Any,
        student: StudentMaker = RemoteStudent,
        precedents: Precedents[Any] | None = None,
        **more: Any,
    ) -> None:
        super().__init__(*settings, **more)
        self._precedents = Precedents() if precedents is None else precedents
        self._student = student

    @contextlib.contextmanager
    def open(self, work: Any) -> Iterator[RemoteStudent]:
        """The student's side for one exercise; its worker ends with the context.

        Raises Interrupted if the submission cannot be loaded.
        """
        student = self._student(self, work.exercise, work.parts, self._precedents)
        try:
            try:
                student.load()
            except Interrupted as interruption:
                if interruption.verdict != "grader_error":
                    raise
                student.close()  # a fault of ours may be one of the moment
                student.begin_check("", again=True)
                student.load()
            yield student
        except Interrupted as interruption:
            interruption.conduct = tuple(student.conduct)
            raise
        finally:
            student.close()


#: What the workers of a family have at hand beside PyTorch and the kit.
PRELOAD: dict[Family, list[str]] = {
    "torch": [],
    "transformers": [
        "transformers.models.bert.modeling_bert",
        "sklearn.linear_model",
        "sklearn.feature_extraction.text",
        "sklearn.pipeline",
        "sklearn.metrics",
    ],
}


Leases = dict[Family, Lease]


class Classrooms:
    """A classroom for each family of exercises, made when the first submission needs it.  A context manager.

    leases: zygotes of another process's to use.  student: makes the students' sides.
    """

    def __init__(
        self,
        sandbox: str,
        device: torch.device,
        seed: int,
        limits: Limits,
        leases: Leases | None = None,
        student: StudentMaker = RemoteStudent,
    ) -> None:
        self._leases = leases or {}
        self._student = student
        self._precedents: Precedents[Any] = Precedents()
        self._sandbox = sandbox
        self._device = device
        self._seed = seed
        self._limits = limits
        self._rooms: dict[Family, RemoteClassroom] = {}

    def __enter__(self) -> Classrooms:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        for room in self._rooms.values():
            room.__exit__()

    @property
    def level(self) -> str:
        """The walls in words; those of all families are the same, for they are the host's."""
        rooms = [*self._rooms.values()] or [self.room("torch")]
        return rooms[0].level

    def room(self, family: Family) -> RemoteClassroom:
        if family not in self._rooms:
            settings = self._sandbox, self._device, self._seed, self._limits
            room = RemoteClassroom(
                *settings,
                student=self._student,
                precedents=self._precedents,
                preload=PRELOAD[family],
                lease=self._leases.pop(family, None),
            )
            room.__enter__()
            self._rooms[family] = room
        return self._rooms[family]

    def lend(self, families: Iterable[Family]) -> Leases:
        """The zygotes of these families, for another process."""
        return {family: self.room(family).lend() for family in families}

    def open(self, work: Any) -> contextlib.AbstractContextManager[RemoteStudent]:
        """The student's side for one exercise.  Raises Interrupted if the submission cannot be loaded."""
        return self.room(work.exercise.family).open(work)

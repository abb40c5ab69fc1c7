"""Noting what student code tries that no exercise needs: for the instructor, never a verdict.  Self-witnessed.

Python tells audit hooks about such events before they happen (PEP 578).  The walls refuse them in any case.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from types import FrameType

from autograder.sandbox.calling import is_library

LIMIT = 20
_EVENTS = {
    "os.fork": "tried to start a process",
    "os.forkpty": "tried to start a process",
    "os.exec": "tried to run another program",
    "os.posix_spawn": "tried to run another program",
    "os.system": "tried to run another program",
    "subprocess.Popen": "tried to run another program",
    "socket.__new__": "tried to open a network connection",
    "os.kill": "tried to signal a process",
    "os.killpg": "tried to signal a process",
    "signal.pthread_kill": "tried to signal a process",
    "sys.settrace": "installed a trace function",
    "sys.setprofile": "installed a profile function",
    "sys._current_frames": "looked at the frames of other threads",
    "gc.get_objects": "searched the objects of its process",
    "gc.get_referrers": "searched the objects of its process",
    "gc.get_referents": "searched the objects of its process",
    "ctypes.dlopen": "called into the C library",
    "ctypes.dlsym": "called into the C library",
    "resource.setrlimit": "tried to change its limits",
    "resource.prlimit": "tried to change its limits",
    "os.setxattr": "tried to change files of the grader",
    "os.chmod": "changed the mode of a file",
    "os.symlink": "made a link to a file",
    "os.link": "made a link to a file",
}
#: What the kit's own `Meter` opens for a submission that measures its memory.
_METERS = frozenset({"/proc/self/status", "/proc/self/clear_refs"})
#: What libraries run to learn about fonts and the machine: matplotlib, platform, ctypes.util.
_ASKED_BY_LIBRARIES = frozenset({"fc-list", "uname", "lsb_release", "ldconfig"})
_IMPORTLIB = "<frozen importlib"
_FORBIDDEN_MODULES = ("autograder.", "solutions")


class Conduct:
    """Notes, each once, while `active`."""

    def __init__(self, visible: Sequence[str]) -> None:
        self.active = False
        self._visible = tuple(visible)
        self._notes: dict[str, None] = {}

    def watch(self) -> None:
        """Install the hook, for good."""
        sys.addaudithook(self._event)

    def take(self) -> list[str]:
        """The notes since the last call."""
        notes, self._notes = list(self._notes), {}
        return notes

    def _event(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self.active:
            return
        if event == "open" or event in ("os.listdir", "os.scandir"):
            self._file(arguments[0])
        elif event == "import":
            name = str(arguments[0])
            if name.startswith(_FORBIDDEN_MODULES) and name not in sys.modules:
                self._note(f"tried to import {name[:80]}")
        elif event in _EVENTS and not (event == "subprocess.Popen" and _asks_for_a_library(arguments[0])):
            self._note(_EVENTS[event])

    def _file(self, path: object) -> None:
        if not isinstance(path, str | bytes):
            return
        self.active = False
        try:
            whole = os.path.abspath(os.fsdecode(path))
        finally:
            self.active = True
        if not (whole.startswith(self._visible) or whole in _METERS or "fonts" in whole.split("/")):
            self._note(f"tried to open {whole[:100]}")

    def _note(self, note: str) -> None:
        if note not in self._notes and len(self._notes) < LIMIT and not _while_a_library_loads():
            self._notes[note] = None


def _asks_for_a_library(program: object) -> bool:
    return type(program) is str and os.path.basename(program) in _ASKED_BY_LIBRARIES


def _while_a_library_loads() -> bool:
    """Whether it is a module of a library that does it while it is imported: requests tries whether there is IPv6."""
    frame: FrameType | None = sys._getframe(2)
    inside = False  # of a library; inmost first: what reads a module's own file is importlib
    while frame is not None and is_library(file := frame.f_code.co_filename):
        importing = file.startswith(_IMPORTLIB)
        if inside and importing:
            return True
        inside = inside or not (importing or file == __file__)
        frame = frame.f_back
    return False

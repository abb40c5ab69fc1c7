"""The warm process that workers are forked from: exec'd with an empty environment, confined before any student code.

It has PyTorch and the kit in memory and nothing else: no test, no solution, no report.  It obeys the socket that it was
started with, and those that came through it; nothing else can reach it.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import select
import signal
import socket
import sys
import tempfile
import time
from dataclasses import dataclass
from typing import Any

from autograder.sandbox import confine, pages, seccomp, syscalls
from autograder.sandbox.confine import View, Walls

NO_NAMESPACES = 3
#: Large pages save each worker some 4 ms and cost as much as so many of them save: they come when they would have paid.
LARGE_PAGES_FROM = 60


@dataclass
class Settings:
    """How to run.  mode: "auto", "strict" or "off".  namespaces: whether to try them.  new_root: an empty folder.

    preload: modules that every worker is to have at hand.
    """

    control: int
    mode: str
    namespaces: bool
    new_root: str
    scratch: str
    view: View
    memory_bytes: int | None
    cpu_seconds: int
    preload: list[str]


def main(text: str) -> None:
    """Entry point, in a fresh interpreter: `text` is the settings as JSON."""
    raw = json.loads(text)
    settings = Settings(**{**raw, "view": View(**raw["view"])})
    control = socket.socket(fileno=settings.control)
    for caught in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # workers are forked with what is set here
        signal.signal(caught, signal.SIG_DFL)
    walls = Walls(scratch=settings.scratch)
    if settings.namespaces:
        try:
            confine.enter_namespaces(settings.view, settings.new_root)
        except OSError as error:
            control.send(json.dumps(["no namespaces", str(error)]).encode())
            os._exit(NO_NAMESPACES)
        walls.namespaces = True
        walls.scratch = confine.SCRATCH
        _supervise(control)
    os.environ.clear()
    os.environ.update(_environment(walls.scratch))
    _warm_up(settings.preload)
    if os.getuid() == 0 and settings.mode != "off":
        walls.uid = walls.namespaces or confine.open_to_everybody(settings.view.readable)
        if not walls.uid:
            walls.missing.append("unprivileged user (the Python installation is readable by root only)")
    _Zygote(control, settings, walls).serve()


def _environment(scratch: str) -> dict[str, str]:
    threads = {f"{name}_NUM_THREADS": "1" for name in ("OMP", "OPENBLAS", "MKL", "NUMEXPR")}
    # no compiler runs in a worker: torch.compile then returns the function as it is
    offline = {
        "TORCHDYNAMO_DISABLE": "1",
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "TRANSFORMERS_OFFLINE": "1",
    }
    return {**threads, **offline, "HOME": scratch, "TMPDIR": scratch, "LANG": "C.UTF-8", "TZ": "UTC"}


def _supervise(control: socket.socket) -> None:
    """Fork once more, into the new pid namespace; this process only waits, and everything ends with its child."""
    child = os.fork()
    if child == 0:
        syscalls.die_with_parent()
        return
    control.close()
    with contextlib.suppress(ValueError):
        sys.stdout.close()
    while True:
        with contextlib.suppress(InterruptedError):
            _, status = os.waitpid(child, 0)
            os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _warm_up(preload: list[str]) -> None:
    import importlib

    importlib.import_module("torch")
    pages.fill_gaps()  # what is ours lies together, too
    from autograder.sandbox import dataloader, offlimits, torch_setup, warming, worker

    torch_setup.set_up()
    dataloader.load_in_this_process()
    warming.common_calls()
    worker.warm_up()
    offlimits.prepared()
    for name in preload:
        importlib.import_module(name)
    tempfile.tempdir = None  # a library may have asked: every worker has a folder of its own


@dataclass
class _Child:
    """A worker.  control: the socket on which it was asked for."""

    pid: int
    serial: int
    control: socket.socket


class _Zygote:
    def __init__(self, control: socket.socket, settings: Settings, walls: Walls) -> None:
        self._control = control
        self._controls = {control.fileno(): control}
        self._settings = settings
        self._walls = walls
        self._readable = confine.readable_paths(settings.view)
        self._memory: list[tuple[int, int]] = []
        self._workers = 0
        self._children: dict[int, _Child] = {}  # by pidfd
        self._poll = select.poll()
        self._own_pids = os.open("/proc/self/ns/pid", os.O_RDONLY) if os.path.exists("/proc/self/ns/pid") else -1
        if walls.namespaces and self._own_pids < 0:
            walls.missing.append("a pid namespace for every worker")

    def serve(self) -> None:
        self._memory = pages.ranges()
        if self._walls.namespaces and not self._settings.view.cuda:
            confine.leave_kernel_views()
        seccomp.filter_for(1)  # known before any fork: a worker is the first process of its pid namespace
        pages.forget_everything()
        pages.fill_gaps()
        self._announce()
        self._poll.register(self._control, select.POLLIN)
        while True:
            for descriptor, _ in self._poll.poll():
                if descriptor in self._controls:
                    self._obey(self._controls[descriptor])
                elif descriptor in self._children:
                    self._reap(descriptor)

    def _obey(self, control: socket.socket) -> None:
        """Do what a message asks for: a worker, or to obey another socket as well."""
        try:
            message, descriptors, _, _ = socket.recv_fds(control, 4096, 2)
        except ConnectionError:
            message, descriptors = b"", []
        if not message:
            return self._leave(control)
        request = json.loads(message)
        if request.get("join"):
            (descriptor,) = descriptors
            self._controls[descriptor] = socket.socket(fileno=descriptor)
            self._poll.register(descriptor, select.POLLIN)
            return
        self._spawn(request, descriptors, control)
        self._workers += 1
        if self._workers == LARGE_PAGES_FROM:
            pages.enlarge(self._memory)

    def _leave(self, control: socket.socket) -> None:
        """Whoever asked on that socket is gone, or wants its workers gone; if it is the first, so are we."""
        if control is self._control:
            self._end()
        for pidfd, child in self._children.items():
            if child.control is control:
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        self._poll.unregister(control)
        del self._controls[control.fileno()]
        control.close()

    def _announce(self) -> None:
        """Try all the walls in a child, and say which stand.  A child that is killed meanwhile says nothing: again."""
        stands = b""
        for _ in range(3):
            stands = stands or self._try_walls()
        walls = self._walls
        if stands:
            walls.landlock, walls.seccomp = json.loads(stands)
        for name, stand in (("Landlock", walls.landlock), ("seccomp", walls.seccomp)):
            if not stand and self._settings.mode != "off":
                walls.missing.append(name)
        self._control.send(json.dumps(["ready", walls.level, walls.missing, walls.namespaces]).encode())

    def _try_walls(self) -> bytes:
        """Which walls a child could build, as JSON; empty if it could not say."""
        read, write = os.pipe()
        pid = self._fork()
        if pid == 0:
            status = 1
            with contextlib.suppress(BaseException):
                walls = self._wall_in(0, self._settings.scratch)
                os.write(write, json.dumps([walls.landlock, walls.seccomp]).encode())
                status = 0
            os._exit(status)
        os.close(write)
        stands = b""
        while piece := os.read(read, 4096):
            stands += piece
        os.close(read)
        os.waitpid(pid, 0)
        return stands

    def _spawn(self, request: dict[str, Any], descriptors: list[int], control: socket.socket) -> None:
        """Fork a worker on the descriptors [channel, arena] that came with the request; answer with a pidfd."""
        serial, slot, seed = request["serial"], request["slot"], request["seed"]
        from autograder.sandbox import offlimits

        offlimits.guard(request["off_limits"])
        try:
            pid = self._fork()
        except OSError as error:
            _tell(control, ["failed", serial, str(error)])
            for descriptor in descriptors:
                os.close(descriptor)
            return
        if pid == 0:
            self._become_worker(descriptors, slot, seed, request["scratch"])
        for descriptor in descriptors:
            os.close(descriptor)
        pidfd = os.pidfd_open(pid)
        self._children[pidfd] = _Child(pid, serial, control)
        self._poll.register(pidfd, select.POLLIN)
        _tell(control, ["spawned", serial, pid], [pidfd])

    def _fork(self) -> int:
        """fork(2); with namespaces, into a new pid namespace, without a second fork: the next child goes there, and
        then children belong here again (unshare(2), setns(2), pid_namespaces(7))."""
        nested = self._walls.namespaces and self._own_pids >= 0
        if nested:
            syscalls.unshare(syscalls.CLONE_NEWPID)
        pid = os.fork()
        if pid != 0 and nested:
            syscalls.setns(self._own_pids, syscalls.CLONE_NEWPID)
        return pid

    def _become_worker(self, descriptors: list[int], slot: int, seed: int, scratch: str) -> None:
        from autograder.sandbox import offlimits, worker

        status = 70
        try:
            os.setsid()
            syscalls.die_with_parent()
            channel, arena = (os.dup2(d, 10 + i, inheritable=False) for i, d in enumerate(descriptors))
            null = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(null, number)
            os.closerange(3, 10)
            os.closerange(12, 4096)
            walls = self._wall_in(slot, scratch)
            if not walls.namespaces:  # else all have the same
                os.environ.update(_environment(walls.scratch))
            offlimits.seal()
            random.seed(seed)
            worker.seed(seed)
            visible = [*self._readable, walls.scratch, "/dev/"]
            worker.serve(socket.socket(fileno=channel), arena, visible)
            status = 0
        finally:
            os._exit(status)

    def _wall_in(self, slot: int, scratch: str) -> Walls:
        walls = Walls(**vars(self._walls))
        settings = self._settings
        if walls.namespaces:
            confine.own_scratch(walls, slot)
        else:
            walls.scratch = scratch
        if walls.uid:
            confine.become_nobody(slot)
        os.chdir(walls.scratch)
        confine.limit(settings.memory_bytes, settings.cpu_seconds)
        if settings.mode == "off":
            return walls
        confine.lock_in(settings.view, self._readable, walls)
        return walls

    def _reap(self, pidfd: int) -> None:
        child = self._children.pop(pidfd)
        self._poll.unregister(pidfd)
        _, status = os.waitpid(child.pid, 0)
        os.close(pidfd)
        _tell(child.control, ["ended", child.serial, os.waitstatus_to_exitcode(status)])

    def _end(self) -> None:
        """The grader is gone, or wants us gone: end everything."""
        for pidfd in self._children:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        deadline = time.monotonic() + 5
        for child in self._children.values():
            while time.monotonic() < deadline and os.waitpid(child.pid, os.WNOHANG)[0] == 0:
                time.sleep(0.001)
        os._exit(0)


def _tell(control: socket.socket, what: list[Any], descriptors: list[int] | None = None) -> None:
    """Say something to whoever asked; it may be gone, which is noticed elsewhere."""
    with contextlib.suppress(OSError):
        socket.send_fds(control, [json.dumps(what).encode()], descriptors or [])

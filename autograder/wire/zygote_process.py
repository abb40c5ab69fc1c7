"""The process that workers are made from, and one worker, both from outside."""

from __future__ import annotations

import contextlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import sysconfig
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

import exercises.kit
from autograder.limits import Limits
from autograder.sandbox.confine import View
from autograder.wire import frames
from autograder.wire.arena import Arena
from autograder.wire.errors import GraderFault
from autograder.wire.scratch import ScratchFolder

PACKAGE = Path(__file__).parents[1]
#: What the worker is made of: nothing here knows a test, a solution or a grade.
RUNTIME = [
    "jupyter.py",
    "wire/__init__.py",
    "wire/arena.py",
    "wire/codec.py",
    "wire/errors.py",
    "wire/frames.py",
    "sandbox/__init__.py",
    "sandbox/calling.py",
    "sandbox/cells.py",
    "sandbox/conduct.py",
    "sandbox/confine.py",
    "sandbox/dataloader.py",
    "sandbox/devices.py",
    "sandbox/landlock.py",
    "sandbox/loading.py",
    "sandbox/offlimits.py",
    "sandbox/pages.py",
    "sandbox/seccomp.py",
    "sandbox/syscalls.py",
    "sandbox/torch_setup.py",
    "sandbox/warming.py",
    "sandbox/worker.py",
    "sandbox/zygote.py",
    *(f"sandbox/fixtures/{path.name}" for path in sorted((PACKAGE / "sandbox" / "fixtures").glob("*.py"))),
]
MEMORY_BYTES = 8 * 1024**3
#: So many graders may use workers side by side that no two have the same user.
SLOTS = 4096
START_SECONDS = 120
SEND_SECONDS = 20


@dataclass
class Lease:
    """A zygote of another process's, to be used by one more.

    control: a socket that it obeys.  folder: what its workers are made of.  slot: sets these workers apart.
    """

    control: socket.socket
    folder: Path
    slot: int
    kind: str
    missing: list[str]
    namespaces: bool


class Zygote:
    """A zygote and what it needs.  A context manager; `spawn` gives a worker.

    level: the walls in words, for reports.  kind: "full", "partial" or "bare".  missing: what the host does not offer.
    preload: modules that every worker is to have at hand.
    namespaces: False to do without them, as on a host that forbids them.
    sandbox: "auto" takes the strongest walls the host offers, "strict" refuses less than Landlock and seccomp, "off"
    builds none but resource limits.
    lease: one that is there already; where it has ended, another is started.
    Raises GraderFault if no zygote can be had.
    """

    def __init__(
        self,
        sandbox: str,
        device: torch.device,
        seed: int = 0,
        limits: Limits = Limits(),  # noqa: B008 — frozen
        namespaces: bool = True,
        preload: Sequence[str] = (),
        lease: Lease | None = None,
    ) -> None:
        self._preload = list(preload)
        self._lease = lease
        self._leases = 0
        self._scratch: ScratchFolder | None = None
        self.sandbox = sandbox
        self._wants_namespaces = namespaces and sandbox != "off"
        self.device = device
        self.seed = seed
        self.limits = limits
        self.level = self.kind = ""
        self.missing: list[str] = []
        self._serial = 0
        self._namespaces = False
        self._process: subprocess.Popen[bytes] | None = None
        self._ended: dict[int, int] = {}

    def __enter__(self) -> Zygote:
        if self._lease is not None:
            self._use(self._lease)
            return self
        self._own()
        return self

    def _own(self) -> None:
        self._slot = os.getpid() % SLOTS
        self._scratch = ScratchFolder()
        self._folder = self._scratch.path
        try:
            self._stage()
            self._start()
        except BaseException:
            self.__exit__()
            raise

    def _use(self, lease: Lease) -> None:
        self._control, self._folder, self._slot = lease.control, lease.folder, lease.slot
        self._control.settimeout(START_SECONDS)
        self.kind, self.missing, self._namespaces = lease.kind, lease.missing, lease.namespaces
        self.level = _level(self.kind, self.missing)

    def lend(self) -> Lease:
        """What another process needs to have workers from this zygote, for as long as this process keeps it."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        socket.send_fds(self._control, [json.dumps({"join": True}).encode()], [theirs.fileno()])
        theirs.close()
        self._leases += 1
        return Lease(ours, self._folder, (self._slot + self._leases) % SLOTS, self.kind, self.missing, self._namespaces)

    def __exit__(self, *_: object) -> None:
        self._stop()
        if self._scratch is not None:
            self._scratch.remove()

    # -- the zygote -------------------------------------------------------------------------------------------------
    def _stage(self) -> None:
        """Copy what the worker is made of into a folder of its own, the only part of this project that it sees."""
        runtime = self._folder / "runtime"
        for name in RUNTIME:
            target = runtime / "autograder" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(PACKAGE / name, target)
        (runtime / "autograder" / "__init__.py").touch()
        kit = Path(exercises.kit.__file__).parent
        shutil.copytree(kit, runtime / "exercises" / "kit", ignore=shutil.ignore_patterns("__pycache__"))
        (runtime / "exercises" / "__init__.py").touch()
        for folder in ("root", "scratch"):
            (self._folder / folder).mkdir()
        (self._folder / "scratch").chmod(0o1777)

    def _start(self) -> None:
        try:
            self._launch(self._wants_namespaces)
        except _NoNamespaces as refusal:
            self._stop()
            self._launch(False)
            self.missing.insert(0, f"namespaces ({refusal})")
        if self.sandbox == "strict" and self.kind == "bare":
            raise GraderFault(
                f"--sandbox strict: this host offers no more than resource limits (missing: {', '.join(self.missing)})"
            )
        self.level = _level(self.kind, self.missing)

    def _launch(self, namespaces: bool) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        cuda = self.device.type == "cuda"
        settings = {
            "control": theirs.fileno(),
            "mode": self.sandbox,
            "namespaces": namespaces,
            "new_root": str(self._folder / "root"),
            "scratch": str(self._folder / "scratch"),
            "view": asdict(self._view(cuda)),
            "memory_bytes": None if cuda else MEMORY_BYTES,
            "cpu_seconds": self.limits.worker_cpu,
            "preload": self._preload,
        }
        paths = [str(self._folder / "runtime"), *_package_folders()]
        code = (
            f"import gc, sys; gc.disable(); "
            f"sys.path[:0] = {paths[:1]!r}; sys.path += {paths[1:]!r}; sys.dont_write_bytecode = True; "
            f"from autograder.sandbox.zygote import main; main(sys.argv[1])"
        )
        environment = {
            "PYTHONHASHSEED": "0",
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "MKL_NUM_THREADS": "1",
        }
        for name in ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "LD_LIBRARY_PATH"):
            if name in os.environ:
                environment[name] = os.environ[name]
        self._process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", code, json.dumps(settings)],
            env=environment,
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL if not os.environ.get("AUTOGRADER_DEBUG") else None,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
        theirs.close()
        self._control = ours
        self._control.settimeout(START_SECONDS)
        try:
            message = self._control.recv(65536)
        except TimeoutError:
            raise GraderFault(f"the worker process did not start within {START_SECONDS} s") from None
        if not message:
            raise GraderFault(f"the worker process did not start (exit status {self._process.wait()})")
        kind, *rest = json.loads(message)
        if kind == "no namespaces":
            raise _NoNamespaces(rest[0])
        self.kind, self.missing, self._namespaces = rest

    def _view(self, cuda: bool) -> View:
        packages = _package_folders()
        standard = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
        if sys.base_prefix not in ("/usr", "/usr/local"):
            standard.add(sys.base_prefix)
        else:
            standard.add(os.path.join(sys.base_prefix, "lib"))
        system = ["/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache"]
        readable = [
            p for p in [*sorted(standard), *packages, *system, str(self._folder / "runtime")] if os.path.exists(p)
        ]
        return View(readable, packages, cuda)

    def _stop(self) -> None:
        if self._lease is not None:
            self._control.close()
            self._lease = None
        if self._process is None:
            return
        self._control.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process = None

    # -- workers ----------------------------------------------------------------------------------------------------
    def spawn(self, off_limits: bool = False) -> Worker:
        """A new worker; with a new zygote if the old one is gone.

        off_limits: whether the library's own softmax and cross-entropy are to refuse in it.
        """
        for attempt in (1, 2):
            arena = Arena()
            ours, theirs = socket.socketpair()
            self._serial += 1
            try:
                scratch = self._folder / "scratch" / f"{self._slot}-{self._serial}"
                if not self._namespaces:  # with namespaces every worker mounts its own
                    scratch.mkdir(mode=0o777)
                    scratch.chmod(0o777)
                request: dict[str, Any] = {"serial": self._serial, "slot": self._slot, "seed": self.seed + 1}
                request |= {"scratch": str(scratch), "off_limits": off_limits}
                socket.send_fds(self._control, [json.dumps(request).encode()], [theirs.fileno(), arena.descriptor])
                pidfd = self._answer(self._serial)
                return Worker(self, self._serial, ours, arena, pidfd, scratch)
            except OSError as error:
                ours.close()
                arena.close()
                if attempt == 2:
                    raise GraderFault(f"no worker can be started: {error}") from error
                self._stop()
                if self._scratch is None:  # it was another process's
                    self._own()
                else:
                    self._start()
            finally:
                theirs.close()
        raise AssertionError("unreachable")

    def _answer(self, serial: int) -> int:
        while True:
            message, descriptors, _, _ = socket.recv_fds(self._control, 65536, 1)
            if not message:
                raise ConnectionError("the zygote is gone")
            kind, number, *rest = json.loads(message)
            if kind == "ended":
                self._ended[number] = rest[0]
            elif kind == "failed" and number == serial:
                raise OSError(rest[0])
            elif kind == "spawned" and number == serial:
                return descriptors[0]

    def exit_status(self, serial: int) -> int | None:
        """How a worker that is gone ended: exit status, or minus the signal's number; None if the zygote is gone."""
        self._control.settimeout(10)
        try:
            while serial not in self._ended:
                message = self._control.recv(65536)
                if not message:
                    return None
                kind, number, *rest = json.loads(message)
                if kind == "ended":
                    self._ended[number] = rest[0]
        except OSError:
            return None
        finally:
            with contextlib.suppress(OSError):
                self._control.settimeout(START_SECONDS)
        return self._ended.pop(serial)


def _level(kind: str, missing: Sequence[str]) -> str:
    """The walls in words."""
    return kind + (f" (missing: {', '.join(missing)})" if missing else "")


class _NoNamespaces(Exception):
    """The host does not let this user make namespaces."""


def _package_folders() -> list[str]:
    """The site-packages folders of what workers import."""
    import hypothesis
    import msgpack
    import pytest

    modules = (torch, np, msgpack, pytest, hypothesis)
    folders = {str(Path(module.__file__).parents[1]) for module in modules if module.__file__}
    return sorted(folders)


class Worker:
    """One worker, from outside."""

    def __init__(
        self,
        zygote: Zygote,
        serial: int,
        channel: socket.socket,
        arena: Arena,
        pidfd: int,
        scratch: Path,
    ) -> None:
        self._zygote = zygote
        self.serial = serial
        self.channel = channel
        self.reader = frames.Reader(channel)
        self.arena = arena
        self.pidfd = pidfd
        self._scratch = scratch
        self._poll = select.poll()
        self._poll.register(channel, select.POLLIN)
        self._poll.register(pidfd, select.POLLIN)
        self._clock = self._cpu_clock()

    def _cpu_clock(self) -> int | None:
        """The clock of the worker's CPU time (clock_getcpuclockid(3)), or None if it is gone already."""
        with open(f"/proc/self/fdinfo/{self.pidfd}") as file:
            pid = next((int(line.split()[1]) for line in file if line.startswith("Pid:")), -1)
        return None if pid <= 0 else (~pid << 3) | 2

    def cpu(self) -> float:
        """CPU seconds used so far."""
        if self._clock is None:
            return 0.0
        try:
            return time.clock_gettime(self._clock)
        except OSError:
            return 0.0

    def wait(self, timeout: float) -> bool:
        """Whether there is something to read within `timeout` seconds.  Raises frames.Closed if the worker is gone."""
        ready = dict(self._poll.poll(timeout * 1000))
        if self.channel.fileno() in ready:
            return True
        if self.pidfd in ready:
            raise frames.Closed
        return False

    def ended(self) -> bool:
        """Whether the process is gone; a process that ends closes its channel a moment before."""
        return bool(select.select([self.pidfd], [], [], 1.0)[0])

    def send(self, *messages: bytes) -> None:
        """Send messages.  Raises frames.Closed if they are not read, whole, within `SEND_SECONDS`."""
        rest = memoryview(frames.framed(*messages))
        try:
            rest = self._sent(rest)
            if rest:
                self._send_slowly(rest, time.monotonic() + SEND_SECONDS)
        except ConnectionError as error:
            raise frames.Closed from error

    def _send_slowly(self, rest: memoryview, deadline: float) -> None:
        writable = select.poll()
        writable.register(self.channel, select.POLLOUT)
        while rest:
            left = deadline - time.monotonic()
            if left <= 0 or not writable.poll(left * 1000):
                raise frames.Closed
            rest = self._sent(rest)

    def _sent(self, rest: memoryview) -> memoryview:
        """Send what can be sent now; what is left."""
        try:
            return rest[self.channel.send(rest, socket.MSG_DONTWAIT) :]
        except BlockingIOError:
            return rest

    def close(self) -> int | None:
        """End the worker; how it ended."""
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
        status = self._zygote.exit_status(self.serial)
        self.channel.close()
        os.close(self.pidfd)
        self.arena.close()
        shutil.rmtree(self._scratch, ignore_errors=True)
        return status

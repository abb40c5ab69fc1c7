"""The grader's end of the wire: a zygote, a worker for each submission, and the student's functions across both."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch.autograd.function import once_differentiable

import exercises.kit
from autograder.limits import Limits
from autograder.sandbox.confine import View
from autograder.syllabus import Exercise
from autograder.wire import frames
from autograder.wire.arena import Arena
from autograder.wire.codec import Decoder, Encoder, Remote, WireError
from autograder.wire.errors import GraderFault, Interrupted, Raised, remote_error
from autograder.wire.proxy import Call, Function, Student, frozen

PACKAGE = Path(__file__).parents[1]
#: What the worker is made of: nothing here knows a test, a solution or a grade.
RUNTIME = [
    "wire/__init__.py",
    "wire/arena.py",
    "wire/codec.py",
    "wire/errors.py",
    "wire/frames.py",
    "sandbox/__init__.py",
    "sandbox/calling.py",
    "sandbox/conduct.py",
    "sandbox/confine.py",
    "sandbox/devices.py",
    "sandbox/landlock.py",
    "sandbox/loading.py",
    "sandbox/offlimits.py",
    "sandbox/seccomp.py",
    "sandbox/syscalls.py",
    "sandbox/worker.py",
    "sandbox/zygote.py",
]
MEMORY_BYTES = 8 * 1024**3
START_SECONDS = 120
SEND_SECONDS = 60


class RemoteClassroom:
    """A zygote and what it needs.  A context manager; `open` gives the student's side for one exercise.

    level: the walls in words, for reports.  kind: "full", "partial" or "bare".  missing: what the host does not offer.
    namespaces: False to do without them, as on a host that forbids them.
    sandbox: "auto" takes the strongest walls the host offers, "strict" refuses less than Landlock and seccomp, "off"
    builds none but resource limits.
    Raises GraderFault if no zygote can be had.
    """

    def __init__(
        self,
        sandbox: str,
        device: torch.device,
        seed: int = 0,
        limits: Limits = Limits(),  # noqa: B008 — frozen
        namespaces: bool = True,
    ) -> None:
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

    def __enter__(self) -> RemoteClassroom:
        self._folder = Path(tempfile.mkdtemp(prefix="autograder-"))
        self._folder.chmod(0o755)
        try:
            self._stage()
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._stop()
        shutil.rmtree(self._folder, ignore_errors=True)

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
        self.level = self.kind + (f" (missing: {', '.join(self.missing)})" if self.missing else "")

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
        }
        paths = [str(self._folder / "runtime"), *_package_folders()]
        code = (
            f"import sys; sys.path[:0] = {paths[:1]!r}; sys.path += {paths[1:]!r}; sys.dont_write_bytecode = True; "
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
    @contextlib.contextmanager
    def open(self, work: Any) -> Iterator[RemoteStudent]:
        """The student's side for one exercise; its worker ends with the context.

        Raises Interrupted if the submission cannot be loaded.
        """
        student = RemoteStudent(self, work.exercise, work.parts)
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

    def spawn(self) -> Worker:
        """A new worker; with a new zygote if the old one is gone."""
        for attempt in (1, 2):
            arena = Arena()
            ours, theirs = socket.socketpair()
            self._serial += 1
            try:
                scratch = self._folder / "scratch" / str(self._serial)
                if not self._namespaces:  # with namespaces every worker mounts its own
                    scratch.mkdir(mode=0o777)
                    scratch.chmod(0o777)
                request: dict[str, Any] = {"serial": self._serial, "slot": os.getpid() % 4096, "seed": self.seed + 1}
                request["scratch"] = str(scratch)
                socket.send_fds(self._control, [json.dumps(request).encode()], [theirs.fileno(), arena.descriptor])
                pidfd = self._answer(self._serial)
                return Worker(self, self._serial, ours, arena, pidfd, scratch)
            except OSError as error:
                ours.close()
                arena.close()
                if attempt == 2:
                    raise GraderFault(f"no worker can be started: {error}") from error
                self._stop()
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


class _NoNamespaces(Exception):
    """The host does not let this user make namespaces."""


def _package_folders() -> list[str]:
    """The site-packages folders that PyTorch, NumPy and msgpack come from."""
    import msgpack

    folders = {str(Path(module.__file__).parents[1]) for module in (torch, np, msgpack) if module.__file__}
    return sorted(folders)


class Worker:
    """One worker, from outside."""

    def __init__(
        self,
        classroom: RemoteClassroom,
        serial: int,
        channel: socket.socket,
        arena: Arena,
        pidfd: int,
        scratch: Path,
    ) -> None:
        self._classroom = classroom
        self.serial = serial
        self.channel = channel
        self.reader = frames.Reader(channel)
        self.arena = arena
        self.pidfd = pidfd
        self._scratch = scratch
        # a worker that does not read must not hold the grader up (socket(7), SO_SNDTIMEO)
        channel.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, struct.pack("ll", SEND_SECONDS, 0))
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

    def send(self, message: bytes) -> None:
        try:
            frames.send(self.channel, message)
        except BlockingIOError as error:
            raise frames.Closed from error

    def close(self) -> int | None:
        """End the worker; how it ended."""
        with contextlib.suppress(OSError):
            signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
        status = self._classroom.exit_status(self.serial)
        self.channel.close()
        os.close(self.pidfd)
        self.arena.close()
        shutil.rmtree(self._scratch, ignore_errors=True)
        return status


class RemoteStudent(Student):
    """The student's functions, each call a message to the worker and back.  A worker that ends is replaced."""

    def __init__(self, classroom: RemoteClassroom, exercise: Exercise, parts: Sequence[Any]) -> None:
        super().__init__(exercise)
        self._classroom = classroom
        self._limits = classroom.limits
        self._parts = [[part.name, part.text, part.may_fail] for part in parts]
        self._worker: Worker | None = None
        self._failed_cells: list[list[str]] = []
        self._trap: list[str] | None = None
        self._replaced: dict[str, Callable[..., Any]] = {}
        self._checked = ""
        self._again = False
        self._cpu_left = {f.name: self._limits.function_cpu for f in exercise.functions}
        self._wall_left = {f.name: self._limits.function_wall for f in exercise.functions}
        self._exercise_cpu = 0.0
        self._cpu_start = 0.0
        self._cpu_limit = self._limits.load_cpu
        self._wall_used = 0.0
        self._wall_limit = self._limits.check_wall

    # -- budget -----------------------------------------------------------------------------------------------------
    def begin_check(self, function: str, again: bool = False) -> None:
        self._again = again
        if not function:
            return
        self._checked = function
        limits = self._limits
        self._cpu_limit = min(limits.check_cpu, self._cpu_left[function], limits.exercise_cpu - self._exercise_cpu)
        self._wall_limit = min(limits.check_wall, self._wall_left[function])
        self._wall_used = 0.0
        self._cpu_start = self._worker.cpu() if self._worker is not None else 0.0

    def end_check(self) -> None:
        if self._worker is None:
            return
        self._exercise_cpu += max(0.0, self._worker.cpu() - self._cpu_start)
        self._cpu_limit, self._wall_limit, self._wall_used = 5.0, 20.0, 0.0
        self._cpu_start = self._worker.cpu()
        if self._worker.arena.used:
            with contextlib.suppress(Interrupted):
                self._exchange("end")
                self._worker.arena.reset()

    def _pause(self) -> None:
        """Wait for the worker to say something; end it when its time is up."""
        worker = self._worker
        assert worker is not None
        step = 0.02
        while True:
            started = time.monotonic()
            ready = worker.wait(step)
            self._wall_used += time.monotonic() - started
            if ready:
                return
            used = worker.cpu() - self._cpu_start
            if used > self._cpu_limit or self._wall_used > self._wall_limit:
                if self._checked:
                    self._cpu_left[self._checked] -= used
                    self._wall_left[self._checked] -= self._wall_used
                self._exercise_cpu += used
                self._drop()
                spent = f"{used:.0f} s of computing" if used > self._cpu_limit else f"{self._wall_used:.0f} s"
                raise Interrupted("timeout", f"{self.last.text or 'Loading the file'}\ngave no answer within {spent}.")
            step = min(step * 1.5, 0.2)

    # -- the worker -------------------------------------------------------------------------------------------------
    def load(self) -> None:
        """Start a worker and load the submission in it.  Raises Interrupted if it cannot be loaded."""
        try:
            self._worker = self._classroom.spawn()
        except GraderFault as fault:  # through Hypothesis, which would take an Exception for the submission's
            raise Interrupted("grader_error", f"The grader failed, not the submission: {fault}.") from fault
        checked, saved = self._checked, (self._cpu_limit, self._wall_limit, self._wall_used)
        self._checked = ""
        self._cpu_start, self._cpu_limit = 0.0, self._limits.load_cpu
        self._wall_used, self._wall_limit = 0.0, self._limits.check_wall
        kind, *rest = self._exchange("load", self.exercise.module, self._parts, self.exercise.off_limits)
        if kind != "loaded" or len(rest) != 3:
            self._drop()
            raise Interrupted("crashed", "The file could not be loaded: the process answered out of turn.")
        problem, self._failed_cells, conduct = rest
        self._note_conduct(conduct)
        if problem is not None:
            self._drop()
            raise Interrupted("crashed", f"The file could not be loaded: {problem}")
        if self._replaced:
            self._swap(self._replaced)
        self._checked, (self._cpu_limit, self._wall_limit, self._wall_used) = checked, saved
        self._cpu_start = self._worker.cpu()

    def close(self) -> None:
        self._drop()

    def _drop(self) -> int | None:
        worker, self._worker = self._worker, None
        return None if worker is None else worker.close()

    def _exchange(self, kind: str, *values: Any) -> list[Any]:
        """One request of plain values and its reply."""
        identity = secrets.token_bytes(16)
        return self._reply(identity, Encoder().pack([kind, identity, *values]), Decoder())

    def _reply(self, identity: bytes, message: bytes, decoder: Decoder) -> list[Any]:
        """Send a request and wait for its reply, answering what the worker asks in between."""
        worker = self._worker
        assert worker is not None
        try:
            worker.send(message)
            while True:
                frame = decoder.unpack(worker.reader.receive(self._pause))
                if len(frame) < 2 or not isinstance(frame[0], str) or frame[1] != identity:
                    self._drop()
                    self._note_conduct(["answered what nobody asked"])
                    raise Interrupted("crashed", f"{self.last.text}\nanswered what nobody asked, and was ended.")
                kind, _, *rest = frame
                if kind != "ask":
                    return [kind, *rest]
                self._answer(rest)
        except frames.Closed:
            raise self._gone() from None
        except WireError as error:
            self._drop()
            self._note_conduct(["sent bytes that are no message"])
            raise Interrupted("failed", f"{self.last.text}\nreturned {error}.") from None

    def _gone(self) -> Interrupted:
        """What to say of a worker that is not heard any more."""
        closed = self._worker is not None and not self._worker.ended()
        status = self._drop()
        where = self.last.text or "Loading the file"
        if closed:
            self._note_conduct(["closed its channel to the grader"])
            return Interrupted("crashed", f"{where}\nclosed its channel to the grader.")
        if status is None:
            return Interrupted("grader_error", "The process that workers are made from has ended.")
        if status == -signal.SIGKILL and not self._again:
            # The kernel short of memory, or somebody outside: if the submission is the cause, it happens again.
            return Interrupted("grader_error", "The worker was killed from outside.")
        if status == -signal.SIGXCPU:
            return Interrupted("timeout", f"{where}\nused up all the computing time there is.")
        if status < 0:
            with contextlib.suppress(ValueError):
                return Interrupted("crashed", f"{where}\nended the process by {signal.Signals(-status).name}.")
        return Interrupted("crashed", f"{where}\nended the process (exit status {status}).")

    def _answer(self, rest: list[Any]) -> None:
        """Run a function of the grader's for the worker."""
        number, args, kwargs = rest
        functions = list(self._replaced.values())
        worker = self._worker
        assert worker is not None
        if type(number) is not int or not 0 <= number < len(functions) or type(args) is not list:
            raise WireError("a question that cannot be answered")
        if type(kwargs) is not dict or not all(type(name) is str for name in kwargs):
            raise WireError("a question that cannot be answered")
        generators = [v if isinstance(v, torch.Generator) else None for v in (*args, *kwargs.values())]
        try:
            value = functions[number](*args, **kwargs)
        except Exception as error:
            name = type(error).__name__
            message = Encoder().pack(["raise", name, name, str(error)[:500]])
        else:
            message = Encoder().pack(["answer", value, generators])
        worker.send(message)

    # -- calls ------------------------------------------------------------------------------------------------------
    def perform(self, function: Function, call: Call) -> Any:
        if self._cpu_limit <= 0.1 or self._wall_limit <= 0.1:
            raise Interrupted("timeout", f"Not run: earlier checks of `{self._checked}` used up all its time.")
        if self._worker is None:
            self.load()
        worker = self._worker
        assert worker is not None
        identity = secrets.token_bytes(16)
        inputs: list[torch.Tensor] = []
        stored: list[tuple[str, list[int], np.ndarray]] = []
        name = ""

        def store(data: np.ndarray) -> list[int] | None:
            place = worker.arena.store(data)
            if place is not None:
                stored.append((name, place, data))
            return place

        def track(tensor: torch.Tensor) -> int:
            inputs.append(tensor)
            return len(inputs) - 1

        encoder = Encoder(store=store, track=track, keep_strides=True)
        names = call.names
        encoded = []
        for name, value in zip(names, call.values, strict=True):  # noqa: B007 — read by store
            encoded.append(encoder.encode(value))
        positional = len(call.args)
        keywords = [[key, item] for key, item in zip(call.kwargs, encoded[positional:], strict=True)]
        message = encoder.seal(
            [
                "call",
                identity,
                function.name,
                ["l", encoded[:positional]],
                ["d", keywords],
                self._trap is not None,
            ]
        )
        graph = _Graph(self, worker, identity, inputs)
        kind, *rest = self._reply(identity, message, Decoder(attach=graph.attach if inputs else None))
        if kind == "missing":
            failed = "".join(f"\n{cell} failed: {problem}" for cell, problem in self._failed_cells[:3])
            raise Interrupted("not_implemented", f"There is no function `{function.name}`.{failed}")
        if kind == "bad":
            raise Interrupted("failed", f"{call.text}\nreturned {rest[0]}.")
        try:
            if kind == "raised":
                *description, lines, moved, after, faults, conduct = rest
                type_name, base, text, explicit = description
                raised = Raised(type_name, base, text, explicit is True, tuple((int(n), str(t)) for n, t in lines))
            else:
                value, moved, after, faults, conduct = rest
                raised = None
            self._note_conduct(conduct)
            self._note(function, call, stored, [str(m) for m in moved], list(after))
            if self._trap is not None:
                self._trap += [str(fault) for fault in faults]
        except (ValueError, TypeError) as error:
            self._drop()
            raise Interrupted("crashed", f"{call.text}\nanswered what nobody asked, and was ended.") from error
        if raised is not None:
            raise remote_error(raised)
        return value

    def _note(
        self,
        function: Function,
        call: Call,
        stored: list[tuple[str, list[int], np.ndarray]],
        moved: list[str],
        after: list[Any],
    ) -> None:
        """Compare the arguments with what they were: tensors in shared memory, lists as they were sent back."""
        assert self._worker is not None
        witness = self._witnesses[function.name]
        changed = [name for name, place, data in stored if not self._worker.arena.holds(place, data)]
        for name, value, now in zip(call.names, call.values, after, strict=False):
            if isinstance(value, torch.Generator):
                if isinstance(now, torch.Generator) and now.device == value.device:
                    value.set_state(now.get_state())
            elif (isinstance(value, list | dict) or isinstance(now, torch.Tensor)) and frozen(now) != frozen(value):
                changed.append(name)
        witness.mutated += [(call.text, name) for name in changed]
        witness.moved += [(call.text, name) for name in moved]

    def _note_conduct(self, notes: list[str]) -> None:
        """Keep what the submission tried, for the instructor."""
        for note in notes[:20]:
            if len(self.conduct) < 20:
                self.conduct[str(note)[:200]] = None

    def gradient(self, worker: Worker, identity: bytes, numbers: list[int], weights: list[torch.Tensor]) -> list[Any]:
        """The backward pass of an earlier call, run where its graph is."""
        if worker is not self._worker:
            raise Interrupted("crashed", f"{self.last.text}\nended before its gradient was asked for.")
        kind, *rest = self._exchange("grad", identity, numbers, weights)
        if kind == "raised":
            type_name, base, text, *_ = rest
            raise remote_error(Raised(type_name, base, text))
        if kind != "value" or not isinstance(rest[0], list):
            raise Interrupted("failed", f"{self.last.text}\nhas a gradient that cannot be read.")
        return rest[0]

    # -- settings ---------------------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def replacing(self, **functions: Callable[..., Any]) -> Iterator[None]:
        if self._worker is None:
            self.load()
        self._replaced = functions
        self._swap(functions)
        try:
            yield
        finally:
            self._replaced = {}
            if self._worker is not None:
                with contextlib.suppress(Interrupted):
                    self._swap({})

    def _swap(self, functions: dict[str, Callable[..., Any]]) -> None:
        self._exchange("swap", {name: Remote(number, "grader") for number, name in enumerate(functions)})

    @contextlib.contextmanager
    def device_trap(self) -> Iterator[list[str]]:
        self._trap = []
        try:
            yield self._trap
        finally:
            self._trap = None


class _Graph:
    """Ties the outputs of one call to its inputs: their gradient is computed by the worker, which kept the graph."""

    def __init__(self, student: RemoteStudent, worker: Worker, identity: bytes, inputs: list[torch.Tensor]) -> None:
        self._student = student
        self._worker = worker
        self._identity = identity
        self._inputs = inputs

    def attach(self, output: torch.Tensor, number: int) -> torch.Tensor:
        if not output.is_floating_point() or number < 0:
            return output
        return _Backward.apply(self, number, output, *self._inputs)

    def gradients(self, number: int, weight: torch.Tensor) -> list[torch.Tensor | None]:
        found = self._student.gradient(self._worker, self._identity, [number], [weight])
        result: list[torch.Tensor | None] = []
        for given, gradient in zip(self._inputs, found, strict=False):
            if gradient is None:
                result.append(None)
            elif isinstance(gradient, torch.Tensor) and gradient.shape == given.shape and gradient.dtype == given.dtype:
                result.append(gradient)
            else:
                raise Interrupted("failed", f"{self._student.last.text}\nhas a gradient of the wrong shape.")
        if len(result) != len(self._inputs):
            raise Interrupted("failed", f"{self._student.last.text}\nhas a gradient that cannot be read.")
        return result


class _Backward(torch.autograd.Function):
    """The node in the grader's graph that stands for the student's function."""

    @staticmethod
    def forward(ctx: Any, graph: _Graph, number: int, output: torch.Tensor, *inputs: torch.Tensor) -> torch.Tensor:
        ctx.graph, ctx.number = graph, number
        return output.detach()

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, weight: torch.Tensor) -> Any:
        return (None, None, None, *ctx.graph.gradients(ctx.number, weight))

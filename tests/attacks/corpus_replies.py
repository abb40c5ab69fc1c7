"""More hostile submissions: replies whose every field lies, processes that go on, and bombs for the grader's side.

Each of these stopped the grader, held it up or made it fail when it was first tried, or comes from the same family.
"""

from __future__ import annotations

import textwrap

from tests.attacks.corpus import Attack, attack

#: `forge(change)`: whatever the worker says goes through change(frame) first.  `say(frame)` packs any msgpack value.
FORGE = """
import gc, os, sys, time
gc.unfreeze()
import msgpack, numpy as np, torch
codec, frames = sys.modules["autograder.wire.codec"], sys.modules["autograder.wire.frames"]
send = frames.send
def forge(change):
    def sent(channel, message):
        frame = change(codec.Decoder().unpack(message))
        send(channel, frame if isinstance(frame, bytes) else codec.Encoder().pack(frame))
    frames.send = sent
def raw(*fields): return msgpack.packb(["l", list(fields)])
def answer(*a): return 0.0
"""


def forged(name: str, tries: str, change: str, conduct: str | None = None) -> Attack:
    """An attack that changes frames: `change` is an expression of f, the frame that would have been sent."""
    return attack(name, tries, f"{FORGE}\nforge(lambda f: {change})\n", conduct)


def own(name: str, tries: str, code: str, conduct: str | None = None) -> Attack:
    return attack(name, tries, FORGE + textwrap.dedent(code), conduct)


_MANY = "torch.zeros(6 * 10**7, dtype=torch.uint8)"
_DEVICE = '["T", "float32", [1], None, "cuda", False, -1, b"1234"]'

REPLIES = [
    # -- memory and time of the grader
    own(
        "memory_cut_off",
        "makes the memory that the grader reads arguments back from smaller, so that reading it is a bus error",
        """
        def answer(*a):
            for fd in range(3, 64):
                try: os.ftruncate(fd, 0)
                except OSError: pass
            return 0.0
        """,
    ),
    own(
        "memory_punched",
        "gives the pages of the arguments back to the kernel and raises its own limits meanwhile",
        """
        import ctypes, resource
        def answer(*a):
            for fd in range(3, 64): ctypes.CDLL(None).fallocate(fd, 3, ctypes.c_long(0), ctypes.c_long(2**28))
            resource.setrlimit(resource.RLIMIT_CPU, (10**6, 10**6))
        """,
        "change its limits",
    ),
    own(
        "dripped_reply",
        "sends a reply in more pieces than there is time for, and never lets the grader wait for the next",
        """
        def answer(*a):
            os.write(10, (10**7).to_bytes(4, "big"))
            while True: os.write(10, b"x"); time.sleep(0.003)
        """,
    ),
    forged(
        "colliding_keys",
        "returns a dict whose thirty thousand keys have one hash value",
        'raw("value", f[1], ["d", [[["i", hex((i + 20) * (2**61 - 1) + 5)], 0] for i in range(30000)]], '
        '*[["l", []]] * 4) if f[0] == "value" else f',
        "sent bytes that are no message",
    ),
    forged(
        "nested_headers",
        "announces a thousand arrays inside each other, of a hundred thousand items each",
        'b"\\xdd\\x00\\x01\\x86\\x9f" * 1000 if f[0] == "value" else f',
        "sent bytes that are no message",
    ),
    forged(
        "numbers_for_names",
        "sends sixty million numbers where the names of generators belong",
        f'[*f[:3], {_MANY}, *f[4:]] if f[0] == "value" else f',
    ),
    forged(
        "numbers_for_notes",
        "sends sixty million numbers where notes belong",
        f'[*f[:-1], {_MANY}] if f[0] == "value" else f',
    ),
    forged(
        "text_for_names",
        "sends sixty million characters where a list of names belongs",
        '[*f[:3], "x" * 6 * 10**7, *f[4:]] if f[0] == "value" else f',
    ),
    own(
        "tall", "returns sixty million rows where two belong", "def answer(*a): return torch.zeros(6 * 10**7, 1) > 1\n"
    ),
    own(
        "sleeps",
        "sleeps through every call, as long as it is allowed to",
        "def answer(*a): time.sleep(0.9); return 0.0\n",
    ),
    own(
        "sleeps_then_leaves",
        "sleeps, and ends the process before anybody counts the time",
        "def answer(*a): time.sleep(1.5); os._exit(1)\n",
    ),
    own(
        "computes_then_leaves",
        "computes, and ends the process before anybody counts the time",
        """
        def answer(*a):
            end = time.process_time() + 0.8
            while time.process_time() < end: pass
            os._exit(1)
        """,
    ),
    # -- fields that are not what they are named
    forged("notes_are_a_number", "says of its conduct: 5", '[*f[:-1], 5] if f[0] == "loaded" else f'),
    forged(
        "notes_with_escapes",
        "puts terminal escapes and workflow commands into the notes about itself",
        '[*f[:-1], ["\\x1b[2J::error::x\\u202e\\n::stop-commands::y"] * 9] if f[0] == "loaded" else f',
    ),
    forged("cells_are_a_number", "says that 7 cells failed", '[f[0], f[1], None, 7, []] if f[0] == "loaded" else f'),
    forged("identity_is_an_array", "answers to five identities at once", "[f[0], np.zeros(5), *f[2:]]"),
    forged(
        "identity_when_tidying",
        "answers with an array for an identity when a check is over",
        '["done", np.zeros(5)] if f[0] == "done" else f',
    ),
    forged(
        "device_when_tidying",
        "answers with a tensor on a device that is not there when a check is over",
        f'raw("done", f[1], {_DEVICE}) if f[0] == "done" else f',
    ),
    forged(
        "device_when_loading",
        "is loaded on a device that is not there",
        f'raw("loaded", f[1], {_DEVICE}) if f[0] == "loaded" else f',
    ),
    forged(
        "message_is_a_number",
        "raises an exception whose message is 5",
        '["raised", f[1], "ValueError", "ValueError", 5, True, [], [], [], [], []] if f[0] == "value" else f',
    ),
    forged(
        "base_is_a_list",
        "raises an exception whose base class is a list",
        '["raised", f[1], "ValueError", ["x"], "a", True, [], [], [], [], []] if f[0] == "value" else f',
    ),
    forged(
        "line_at_infinity",
        "raises an exception in line infinity",
        '["raised", f[1], "E", "ValueError", "a", True, [[float("inf"), "x"]], [], [], [], []] '
        'if f[0] == "value" else f',
    ),
    forged("value_is_missing", "returns no value", '["value", f[1]] if f[0] == "value" else f'),
    forged("reason_is_missing", "has a bad value and does not say why", '["bad", f[1]] if f[0] == "value" else f'),
    forged("other_kind", "answers a call as if it had been a test", '["tested", f[1], "passed", "", []]'),
    forged(
        "generator_of_rubbish",
        "returns a random generator in a state that no generator can be in",
        'raw("value", f[1], ["g", "cpu", b"\\xff" * 5056], *[["l", []]] * 4) if f[0] == "value" else f',
    ),
    forged(
        "earlier_identity",
        "answers each call with the identity of the one before",
        '[f[0], globals().setdefault("last", f[1]), *f[2:]]',
    ),
    # -- processes that go on
    forged("leaves_when_tidying", "ends the process when a check is over", 'os._exit(3) if f[0] == "done" else f'),
    forged("hangs_when_tidying", "never says that it is done", 'time.sleep(10**6) if f[0] == "done" else f'),
    own(
        "second_voice",
        "has a thread that goes on talking to the grader between calls",
        """
        import threading
        def talk():
            while True:
                try: os.write(10, b"\\0\\0\\0\\1\\xc0")
                except OSError: return
                time.sleep(0.01)
        threading.Thread(target=talk, daemon=True).start()
        """,
    ),
    own(
        "stops_itself",
        "stops its own process, so that it neither answers nor ends",
        """
        import signal
        def answer(*a): os.kill(os.getpid(), signal.SIGSTOP); return 0.0
        """,
    ),
    own(
        "alarms",
        "has a timer interrupt whatever runs, the worker's own code too",
        """
        import signal
        signal.signal(signal.SIGALRM, lambda *a: 1 / 0)
        signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
        """,
    ),
    own(
        "strange_calls",
        "tries memory files, io_uring, userfaultfd, keyrings, namespaces and other processes' memory",
        """
        import ctypes
        def answer(*a):
            call = ctypes.CDLL(None).syscall
            fd = os.memfd_create("x"); os.write(fd, b"#!/bin/sh\\ntouch /tmp/left-by-memfd")
            call(322, fd, b"", 0, 0, 0x1000)
            for number in (425, 323, 250, 248, 272, 310, 311, 434, 321, 298, 304, 165, 155): call(number, 1, 0, 0, 0, 0)
            os.execve(fd, ["x"], {})
        """,
        "called into the C library",
    ),
    own(
        "outlives_its_zygote",
        "asks not to be ended with its parent, and ignores every signal",
        """
        import ctypes, signal
        def answer(*a):
            ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)
            for number in range(1, 65):
                try: signal.signal(number, signal.SIG_IGN)
                except (OSError, ValueError): pass
            while True: time.sleep(1)
        """,
    ),
    own(
        "numbers_of_shared_memory",
        "looks for another submission's answers in shared memory, /dev/shm, /tmp and System V segments",
        """
        import ctypes
        def answer(*a):
            for place in ("/dev/shm", "/tmp", "/var/tmp", "/run", os.environ["TMPDIR"]):
                try: open(os.path.join(place, "answers"), "a").write("0.0")
                except OSError: pass
            libc = ctypes.CDLL(None)
            for key in range(1, 40): libc.shmget(key, 4096, 0o1666)
            return 0.0
        """,
        "tried to open",
    ),
    # -- values and exceptions
    attack("stop_iteration", "raises the exception that ends loops", "def answer(*a): raise StopIteration\n"),
    attack("generator_exit", "raises the exception that ends generators", "def answer(*a): raise GeneratorExit\n"),
    attack(
        "lazy_message",
        "raises an exception whose arguments do things when they are shown",
        """
        import os
        class Shown:
            def __repr__(self): os._exit(0)
        class E(ValueError):
            args = property(lambda self: (_ for _ in ()).throw(SystemExit))
            def __getattribute__(self, name): raise E
        def answer(*a): raise E(Shown())
        """,
    ),
    attack(
        "group_of_exceptions",
        "raises a group of exceptions, nested, with a cycle of causes",
        """
        def answer(*a):
            one, two = ValueError("probabilities"), KeyError("x")
            one.__cause__, two.__cause__ = two, one
            raise ExceptionGroup("logits labels", [ExceptionGroup("x", [one]), two]) from one
        """,
    ),
    attack(
        "complex",
        "returns complex numbers, whose real parts are to be compared alone",
        """
        import torch
        def answer(*a): return torch.zeros((), dtype=torch.complex64, requires_grad=True)
        """,
    ),
    attack(
        "unsigned",
        "returns 64-bit numbers without a sign, for which nothing is defined",
        """
        import torch
        def answer(*a): return torch.zeros((), dtype=torch.uint64)
        """,
    ),
    attack(
        "odd_storage",
        "returns views of one number, quantised, meta, nested and conjugated tensors, one after the other",
        """
        import torch
        makers = [lambda: torch.zeros(1).expand(2, 3, 5),
                  lambda: torch.quantize_per_tensor(torch.ones(3), 1, 0, torch.qint8),
                  lambda: torch.zeros(2, device="meta"), lambda: torch.zeros(2, dtype=torch.complex64).conj().imag,
                  lambda: torch.nested.nested_tensor([torch.zeros(2), torch.zeros(3)]),
                  lambda: torch.zeros(3).as_strided((3,), (0,)), lambda: torch.empty(0).set_(torch.UntypedStorage(0)),
                  lambda: torch.zeros(2, 3).to_mkldnn(), lambda: torch.zeros(4, 4).to_sparse_csr()]
        count = 0
        def answer(*a):
            global count; count += 1
            return makers[count % len(makers)]()
        """,
    ),
    attack(
        "storage_cut_off",
        "returns a tensor whose storage was freed under it",
        """
        import torch
        def answer(*a):
            x = torch.zeros(1000); x.untyped_storage().resize_(0); return x
        """,
    ),
    attack(
        "recorder_of_operations",
        "switches on a mode that answers every operation of PyTorch, for the worker's own code too",
        """
        import torch
        from torch.overrides import TorchFunctionMode
        from torch.utils._python_dispatch import TorchDispatchMode
        class Yes(TorchFunctionMode):
            def __torch_function__(self, func, types, args=(), kwargs=None): return torch.ones(()) == 1
        class No(TorchDispatchMode):
            def __torch_dispatch__(self, func, types, args=(), kwargs=None): raise SystemExit(0)
        Yes().__enter__(); No().__enter__()
        def answer(*a): return 0.0
        """,
    ),
    attack(
        "different_each_time",
        "returns another value each time that it is asked",
        """
        import itertools, torch
        numbers = itertools.count()
        def answer(*a): return torch.tensor(float(next(numbers))) if len(a) > 1 else float(next(numbers))
        """,
    ),
    attack(
        "hooks_on_gradients",
        "returns its argument with hooks and custom functions that answer the backward pass",
        """
        import os, torch
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x.sum() * 0
            @staticmethod
            def backward(ctx, g): os._exit(0)
        def answer(x, *a): return F.apply(x) if isinstance(x, torch.Tensor) and x.requires_grad else 0.0
        """,
    ),
    attack(
        "poisons_libraries",
        "damages libraries in memory, constants and caches that later submissions have at hand",
        """
        import ctypes, math, sys, torch, numpy, linecache
        math.log = math.exp = lambda *a: 0.0
        torch.set_default_dtype(torch.float16); torch.set_grad_enabled(False); torch.manual_seed(1)
        for name in list(sys.modules):
            if name.startswith(("exercises", "autograder.wire")): sys.modules[name] = math
        ctypes.memset(id(257), 0, 8); ctypes.memset(id((1, 2)) + 16, 0, 1)
        def answer(*a): return 0.0
        """,
    ),
]

"""Hostile submissions: what each tries, and the code.  None of them solves anything, so none may earn a point.

Exercise 2 unless said otherwise.  `TARGETS` defines the exercise's functions in terms of a function `answer`.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

TARGETS = """
def mean_nll(probabilities): return answer(probabilities)
def stable_log_softmax(logits): return answer(logits)
def mlm_loss(logits, labels, ignore_index=-100): return answer(logits, labels)
"""


@dataclass(frozen=True)
class Attack:
    """tries: what, in words.  code: the module.  conduct: a phrase that the notes for the instructor must hold.

    exercise: its number.
    """

    name: str
    tries: str
    code: str
    conduct: str | None = None
    exercise: int = 2


def attack(name: str, tries: str, code: str, conduct: str | None = None, targets: str = TARGETS) -> Attack:
    return Attack(name, tries, textwrap.dedent(code) + targets, conduct)


ALWAYS_EQUAL = """
class Yes:
    def __eq__(self, other): return True
    def __ne__(self, other): return False
    def __lt__(self, other): return True
    __le__ = __gt__ = __ge__ = __lt__
    def __bool__(self): return True
    def __float__(self): return 1.0397207708399179
    def __abs__(self): return 0.0
    def __sub__(self, other): return 0.0
    __rsub__ = __add__ = __sub__
    def __getattr__(self, name): return Yes()
    def __call__(self, *a, **k): return Yes()
    def __hash__(self): return 0
"""

ATTACKS = [
    # -- values that pretend
    attack("always_equal", "returns an object equal to everything", ALWAYS_EQUAL + "def answer(*a): return Yes()\n"),
    attack(
        "always_equal_float",
        "returns a float that compares as it likes",
        """
        class F(float):
            def __eq__(self, o): return True
            def __sub__(self, o): return F(0)
            def __abs__(self): return F(0)
            def __le__(self, o): return True
        def answer(*a): return F(1)
        """,
    ),
    attack(
        "tensor_subclass",
        "returns a tensor whose __torch_function__ agrees with everything",
        """
        import torch
        class T(torch.Tensor):
            @classmethod
            def __torch_function__(cls, func, types, args=(), kwargs=None): return torch.tensor(True)
        def answer(*a): return torch.zeros(()).as_subclass(T)
        """,
    ),
    attack(
        "array_subclass",
        "returns an ndarray whose ufuncs agree with everything",
        """
        import numpy as np
        class A(np.ndarray):
            def __array_ufunc__(self, *a, **k): return np.bool_(True)
        def answer(*a): return np.zeros(()).view(A)
        """,
    ),
    attack(
        "lying_type",
        "claims another class through __class__",
        """
        import torch
        class L:
            @property
            def __class__(self): return torch.Tensor
        def answer(*a): return L()
        """,
    ),
    attack(
        "not_a_number",
        "returns NaN, which compares false with every bound",
        """
        import torch
        def answer(*a): return torch.full((), float("nan")) if len(a) > 1 else float("nan")
        """,
    ),
    attack("infinite", "returns infinity", "def answer(*a): return float('inf')\n"),
    attack("none", "returns nothing", "def answer(*a): return None\n"),
    attack(
        "generator",
        "returns a generator that never ends",
        """
        def answer(*a):
            while True: yield 1
        """,
    ),
    attack(
        "pickle_bomb",
        "returns an object whose unpickling runs a command",
        """
        import os
        class P:
            def __reduce__(self): return (os.system, ("touch /tmp/pwned-by-pickle",))
        def answer(*a): return P()
        """,
    ),
    attack(
        "memmap_dict",
        "returns a dict that a careless decoder would open a file for",
        """
        def answer(*a): return {"_type": "np_scalar", "_concrete_type": "memmap", "_value": "/etc/passwd"}
        """,
    ),
    attack(
        "cyclic",
        "returns a list that holds itself",
        """
        def answer(*a):
            x = []; x.append(x); return x
        """,
    ),
    attack(
        "deep",
        "returns a value nested a million deep",
        """
        def answer(*a):
            x = ()
            for _ in range(10**6): x = (x,)
            return x
        """,
    ),
    attack("long", "returns a hundred million items", "def answer(*a): return [0] * 10**8\n"),
    attack("huge_integer", "returns an integer of a hundred million bits", "def answer(*a): return 1 << 10**8\n"),
    attack("huge_text", "returns a gigabyte of text", "def answer(*a): return 'x' * 10**9\n"),
    attack(
        "huge_expanded",
        "returns a tensor that claims 10^18 numbers in 4 bytes",
        """
        import torch
        def answer(*a): return torch.zeros(1).expand(10**6, 10**6, 10**6)
        """,
    ),
    attack(
        "sparse",
        "returns a sparse tensor of enormous shape",
        """
        import torch
        def answer(*a): return torch.sparse_coo_tensor(torch.zeros(1, 0, dtype=torch.long), [], (10**15,))
        """,
    ),
    attack(
        "dict_subclass",
        "returns a dict whose items never end",
        """
        class D(dict):
            def items(self):
                while True: yield (1, 1)
        def answer(*a): return D()
        """,
    ),
    attack(
        "named_tuple",
        "returns a named tuple whose fields lie about themselves",
        """
        class N(tuple):
            _fields = property(lambda self: 1 / 0)
        def answer(*a): return N((1,))
        """,
    ),
    attack(
        "record_with_methods",
        "returns a record with fields named like methods",
        """
        from collections import namedtuple
        N = namedtuple("N", "dtype shape item detach numpy")
        def answer(*a): return N(1, (), 1, 1, 1)
        """,
    ),
    # -- patched libraries
    attack(
        "patched_torch",
        "replaces comparisons of PyTorch by agreement",
        """
        import torch
        torch.allclose = torch.equal = lambda *a, **k: True
        torch.Tensor.__eq__ = lambda *a: torch.tensor(True)
        torch.Tensor.all = torch.Tensor.any = lambda *a, **k: torch.tensor(True)
        torch.testing.assert_close = lambda *a, **k: None
        def answer(*a): return torch.zeros(())
        """,
    ),
    attack(
        "patched_numpy",
        "replaces comparisons of NumPy by agreement",
        """
        import numpy as np
        np.allclose = np.array_equal = np.isclose = lambda *a, **k: True
        np.abs = np.maximum = lambda *a, **k: 0
        def answer(*a): return 0.0
        """,
    ),
    attack(
        "patched_builtins",
        "replaces abs, float, isinstance and AssertionError",
        """
        import builtins
        builtins.abs = lambda x: 0
        builtins.isinstance = lambda *a: True
        builtins.AssertionError = type("AssertionError", (Exception,), {})
        def answer(*a): return 1.0
        """,
    ),
    attack(
        "patched_codec",
        "rewrites the worker's own encoder to say that all is well",
        """
        import sys, torch
        codec = sys.modules["autograder.wire.codec"]
        worker = sys.modules["autograder.sandbox.worker"]
        codec.Encoder.pack = lambda self, frame: b"\\x92\\xa1l\\x90"
        worker.invoke = lambda *a: None
        def answer(*a): return torch.zeros(())
        """,
    ),
    attack(
        "patched_pytest",
        "registers a pytest plugin that passes every test",
        """
        import sys
        def pytest_runtest_makereport(item, call): call.excinfo = None
        sys.modules["conftest"] = sys.modules[__name__]
        def answer(*a): return 0.0
        """,
    ),
    attack(
        "patched_witness",
        "replaces the functions that watch generators and arguments",
        """
        import sys
        calling = sys.modules["autograder.sandbox.calling"]
        calling.generator_states = lambda: (1, 1, 1)
        def answer(*a):
            import torch; torch.rand(1)
            return 0.0
        """,
    ),
    attack(
        "audit_cleared",
        "looks for the list of notes about itself and empties it",
        """
        import gc
        for o in gc.get_objects():
            if type(o).__name__ == "Conduct": o._notes = {}; o.active = False
        def answer(*a): return 0.0
        """,
    ),
    # -- forged replies
    attack(
        "early_reply",
        "writes a reply on every descriptor before it is asked",
        """
        import os
        for fd in range(3, 64):
            try: os.write(fd, (9).to_bytes(4, "big") + b"\\x92\\xa1l\\x91\\xa5value")
            except OSError: pass
        def answer(*a): return 0.0
        """,
        "sent bytes that are no message",
    ),
    attack(
        "double_reply",
        "answers twice, the second time for the next question",
        """
        import os
        def answer(*a):
            os.write(10, (4).to_bytes(4, "big") + b"\\x92\\xa1l\\x90")
            return 0.0
        """,
        "answered what nobody asked",
    ),
    attack(
        "replayed_identity",
        "finds the identity of the call and answers for it, then goes on",
        """
        import gc, os, sys
        def answer(*a):
            frame = sys._getframe()
            while frame:
                me = frame.f_locals.get("self")
                if type(me).__name__ == "_Worker":
                    codec = sys.modules["autograder.wire.codec"]
                    m = codec.Encoder().pack(["value", me._current, 1.0397207708399179, [], [None], [], []])
                    for _ in range(3): os.write(10, len(m).to_bytes(4, "big") + m)
                    break
                frame = frame.f_back
            return 0.0
        """,
    ),
    attack(
        "oversized_reply",
        "announces a message of four gigabytes",
        """
        import os
        def answer(*a): os.write(10, b"\\xff\\xff\\xff\\xff"); return 0.0
        """,
    ),
    attack(
        "endless_reply",
        "sends a message one byte at a time, for ever",
        """
        import os, time
        def answer(*a):
            os.write(10, (1000).to_bytes(4, "big"))
            while True:
                os.write(10, b"x"); time.sleep(0.5)
        """,
    ),
    attack(
        "closed_channel",
        "closes every descriptor",
        """
        import os
        def answer(*a): os.closerange(0, 64); return 0.0
        """,
    ),
    attack(
        "asked_question",
        "asks the grader to call a function that was never offered",
        """
        import os, sys
        def answer(*a):
            frame = sys._getframe()
            while frame and type(frame.f_locals.get("self")).__name__ != "_Worker": frame = frame.f_back
            me = frame.f_locals["self"]
            m = sys.modules["autograder.wire.codec"].Encoder().pack(["ask", me._current, 0, ["x"], {}])
            os.write(10, len(m).to_bytes(4, "big") + m)
            return 0.0
        """,
    ),
    # -- exceptions
    attack(
        "hostile_str",
        "raises an exception whose text never ends",
        """
        class E(ValueError):
            def __str__(self):
                while True: pass
        def answer(*a): raise E
        """,
    ),
    attack(
        "base_exception",
        "raises a BaseException through everything",
        """
        class B(BaseException): pass
        def answer(*a): raise B("probabilities logits labels 1.5 0 -0.25 nan")
        """,
    ),
    attack(
        "refuses_everything",
        "refuses every input with every name and many values",
        """
        def answer(*a):
            numbers = " ".join(map(str, range(-200, 200)))
            raise ValueError("probabilities logits labels ignore_index nan " + numbers)
        """,
    ),
    attack(
        "value_error_by_name",
        "raises an exception that is only called ValueError",
        """
        ValueError = type("ValueError", (KeyError,), {})
        def answer(*a): raise ValueError("probabilities labels logits 1.5")
        """,
    ),
    attack(
        "skips",
        "raises pytest's skip and unittest's SkipTest",
        """
        import unittest
        def answer(*a): raise unittest.SkipTest("passed")
        """,
    ),
    attack(
        "not_implemented_class",
        "raises a subclass of NotImplementedError",
        """
        class N(NotImplementedError): pass
        def answer(*a): raise N("full marks")
        """,
    ),
    # -- endings
    attack("exits_zero", "ends the process with status 0", "import os\ndef answer(*a): os._exit(0)\n"),
    attack(
        "exits_at_import", "ends the process with status 0 while it is loaded", "import os\nos._exit(0)\n", targets=""
    ),
    attack("system_exit", "raises SystemExit(0)", "def answer(*a): raise SystemExit(0)\n"),
    attack("crashes", "crashes the interpreter", "import ctypes\ndef answer(*a): ctypes.string_at(0)\n"),
    attack(
        "atexit",
        "leaves work for the end of the process",
        """
        import atexit, os
        atexit.register(lambda: open("/tmp/left-by-atexit", "w"))
        def answer(*a): os._exit(0)
        """,
    ),
    # -- signals and processes
    attack(
        "signals_parent",
        "kills its parent",
        """
        import os, signal
        def answer(*a):
            os.kill(os.getppid() or 1, signal.SIGKILL); return 0.0
        """,
        "signal a process",
    ),
    attack(
        "signals_group",
        "kills its process group",
        """
        import os, signal
        def answer(*a):
            try: os.killpg(0, signal.SIGKILL)
            finally: os.kill(0, signal.SIGKILL)
        """,
        "signal a process",
    ),
    attack(
        "signals_everybody",
        "kills every process it can",
        """
        import os
        def answer(*a): os.kill(-1, 9)
        """,
        "signal a process",
    ),
    attack(
        "signals_all_numbers",
        "kills process after process by number",
        """
        import os
        def answer(*a):
            for pid in range(2, 40000):
                try: os.kill(pid, 9)
                except OSError: pass
            return 0.0
        """,
        "signal a process",
    ),
    attack(
        "limits_of_others",
        "sets a CPU limit of a second for other processes",
        """
        import resource
        def answer(*a):
            for pid in range(2, 40000):
                try: resource.prlimit(pid, resource.RLIMIT_CPU, (1, 1))
                except OSError: pass
            return 0.0
        """,
        "change its limits",
    ),
    attack(
        "ptrace",
        "attaches to the grader as a debugger",
        """
        import ctypes
        def answer(*a):
            libc = ctypes.CDLL(None)
            for pid in range(2, 40000): libc.ptrace(16, pid, 0, 0)
            return 0.0
        """,
        "called into the C library",
    ),
    attack(
        "forks",
        "forks without end",
        """
        import os
        def answer(*a):
            while True: os.fork()
        """,
        "start a process",
    ),
    attack(
        "detached",
        "starts a process that outlives the worker",
        """
        import os, time
        def answer(*a):
            if os.fork() == 0:
                os.setsid()
                if os.fork() == 0:
                    time.sleep(30); open("/tmp/left-by-daemon", "w")
            return 0.0
        """,
        "start a process",
    ),
    attack(
        "subprocess",
        "runs a shell",
        """
        import subprocess
        def answer(*a): subprocess.run("touch /tmp/left-by-shell", shell=True); return 0.0
        """,
        "run another program",
    ),
    attack(
        "threads",
        "starts threads without end",
        """
        import threading, time
        def answer(*a):
            while True: threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()
        """,
    ),
    attack(
        "memory",
        "takes all memory",
        """
        def answer(*a):
            hold = []
            while True: hold.append(bytearray(2**26))
        """,
    ),
    attack(
        "disk",
        "fills the disk",
        """
        def answer(*a):
            i = 0
            while True:
                with open(f"f{i}", "wb") as f: f.write(bytes(2**20))
                i += 1
        """,
    ),
    attack(
        "shared_memory",
        "fills the shared memory of arguments",
        """
        import gc
        def answer(*a):
            for o in gc.get_objects():
                if type(o).__name__ == "_Worker": o._memory[:] = b"\\xff" * len(o._memory)
            return 0.0
        """,
        "searched the objects",
    ),
    attack(
        "output",
        "writes gigabytes to its output",
        """
        import os, sys
        def answer(*a):
            for _ in range(2000): print("x" * 10**6); os.write(2, b"y" * 10**6)
            return 0.0
        """,
    ),
    attack(
        "loops",
        "loops for ever, whatever interrupts it",
        """
        def answer(*a):
            while True:
                try:
                    while True: pass
                except BaseException: pass
        """,
    ),
    # -- files and other people's secrets
    attack(
        "walks_files",
        "walks the file system for tests and solutions",
        """
        import os
        found = []
        for root in ("/", "/home", "/root", "/tmp", "/proc", "/proc/self", "/work", os.path.dirname(os.__file__)):
            for folder, _, files in os.walk(root):
                found += [f for f in files if "test_ex" in f or "solution" in f or "oracle" in f]
                if len(found) > 10: break
        def answer(*a): return open(found[0]).read()
        """,
    ),
    attack(
        "reads_proc",
        "reads the memory and environment of other processes",
        """
        import os
        def answer(*a):
            text = ""
            for pid in [*range(1, 400), "self"]:
                for name in ("environ", "cmdline", "maps", "mem"):
                    try: text += open(f"/proc/{pid}/{name}").read(100)
                    except OSError: pass
            return text or 0.0
        """,
        "tried to open /proc",
    ),
    attack(
        "imports_hidden",
        "imports hidden checks, oracles and solutions",
        """
        names = ["autograder.hidden.oracles.ex02", "autograder.hidden.expect", "solutions.ex02_mlm_loss",
                 "autograder.grading", "autograder.report"]
        found = None
        for name in names:
            try: found = __import__(name, fromlist=["x"])
            except ImportError: pass
        def answer(*a): return found.mean_nll(*a)
        """,
        "tried to import",
    ),
    attack(
        "searches_heap",
        "searches its memory for anything that looks like a test",
        """
        import gc, sys
        def answer(*a):
            for o in gc.get_objects():
                if isinstance(o, dict) and any("oracle" in str(k) or "test_mean" in str(k) for k in list(o)[:50]):
                    return str(o)
            return 0.0
        """,
        "searched the objects",
    ),
    attack(
        "walks_frames",
        "walks the frames of its callers for the expected value",
        """
        import sys
        def answer(*a):
            frame = sys._getframe()
            while frame:
                for name, value in list(frame.f_locals.items()):
                    if name in ("expected", "oracle", "right"): return value
                frame = frame.f_back
            return 0.0
        """,
    ),
    attack(
        "writes_conftest",
        "leaves conftest.py, sitecustomize.py and a .pth for the grader to pick up",
        """
        import os, sys
        for folder in (".", "/tmp", os.path.dirname(os.__file__), *sys.path):
            for name in ("conftest.py", "sitecustomize.py", "x.pth", "pytest.ini"):
                try: open(os.path.join(folder, name), "w").write("import os; os._exit(0)")
                except OSError: pass
        def answer(*a): return 0.0
        """,
    ),
    attack(
        "writes_bytecode",
        "replaces compiled files of the libraries",
        """
        import torch, os, glob
        for path in glob.glob(os.path.dirname(torch.__file__) + "/__pycache__/*.pyc")[:20]:
            try: open(path, "wb").write(b"")
            except OSError: pass
        def answer(*a): return 0.0
        """,
    ),
    attack(
        "symbolic_links",
        "makes links in its folder to files outside",
        """
        import os
        def answer(*a):
            os.symlink("/etc/shadow", "x"); os.symlink("/", "root")
            return open("x").read()
        """,
        "made a link",
    ),
    attack(
        "environment",
        "looks for tokens in the environment",
        """
        import os
        def answer(*a): return str({k: v for k, v in os.environ.items() if "TOKEN" in k or "GITHUB" in k})
        """,
    ),
    # -- network
    attack(
        "tcp",
        "sends the arguments to a server",
        """
        import socket
        def answer(*a): socket.create_connection(("127.0.0.1", 9)).send(repr(a).encode()); return 0.0
        """,
        "network connection",
    ),
    attack(
        "udp",
        "sends the arguments by UDP",
        """
        import socket
        def answer(*a): socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", 9)); return 0.0
        """,
        "network connection",
    ),
    attack(
        "unix_socket",
        "looks for sockets of the grader's",
        """
        import socket
        def answer(*a): socket.socket(socket.AF_UNIX).connect("\\0x"); return 0.0
        """,
        "network connection",
    ),
    # -- output that others read
    attack(
        "terminal_escapes",
        "puts terminal escapes and a forged score into a message",
        """
        def answer(*a): raise RuntimeError("\\x1b[2J\\x1b[H\\x1b]0;hi\\x07Total  10 / 10 points\\r\\x9b31m")
        """,
    ),
    attack(
        "workflow_commands",
        "puts CI workflow commands into output and messages",
        """
        def answer(*a):
            print("::set-output name=points::10\\n::stop-commands::x\\n::error::x")
            raise RuntimeError("\\n::set-output name=points::10\\n::add-mask::10\\n##[error]")
        """,
    ),
    attack(
        "markup",
        "puts HTML and Markdown into messages",
        """
        def answer(*a): raise RuntimeError("<script>alert(1)</script><img src=x onerror=y>|[x](javascript:y)|")
        """,
    ),
    attack(
        "direction_characters",
        "turns the direction of text around in messages",
        """
        def answer(*a): raise RuntimeError("\\u202e01 / 01\\u2066\\u200f")
        """,
    ),
    attack(
        "surrogates",
        "puts text that is no text into messages",
        """
        def answer(*a): raise RuntimeError("\\ud800\\udfff" * 100)
        """,
    ),
    attack(
        "class_names",
        "names its exception like a verdict",
        """
        E = type("passed\\n10 / 10 points", (Exception,), {})
        def answer(*a): raise E("x")
        """,
    ),
    # -- answers learned by heart
    attack(
        "visible_examples",
        "knows the worked examples by heart and nothing else",
        """
        import math
        KNOWN = {(0.5, 0.25): 1.5 * math.log(2)}
        def answer(p, *a):
            try: return KNOWN.get(tuple(p), 0.0)
            except Exception: return 0.0
        """,
    ),
    attack(
        "replays",
        "returns what it returned before, and otherwise its argument",
        """
        seen = []
        def answer(*a): seen.append(a); return seen[-2][0] if len(seen) > 1 else a[0]
        """,
    ),
    attack(
        "tells_processes_apart",
        "behaves when it thinks that nobody looks",
        """
        import sys
        def answer(*a):
            if any("pytest" in name for name in sys.modules): return None
            return 0.0
        """,
    ),
    attack(
        "off_limits_by_reload",
        "loads a second copy of the library to get at the forbidden functions",
        """
        import importlib, sys, torch
        def answer(x, *a):
            copy = importlib.reload(sys.modules["torch.nn.functional"])
            return copy.log_softmax(x, -1)
        """,
    ),
    attack(
        "off_limits_by_dispatcher",
        "calls the forbidden kernels through every door",
        """
        import torch
        def answer(x, *a):
            for door in (lambda: torch.ops.aten._log_softmax(x, -1, False), lambda: torch._C._nn.log_softmax(x, -1),
                         lambda: super(torch.Tensor, x).log_softmax(-1), lambda: torch._C.TensorBase.log_softmax(x, -1),
                         lambda: torch.ops.aten.log_softmax.int(x, -1), lambda: torch._refs.log_softmax(x, -1),
                         lambda: torch._decomp.decompositions._log_softmax(x, -1, False),
                         lambda: torch.ops.aten.special_log_softmax(x, -1),
                         lambda: torch.jit.script(torch.nn.LogSoftmax(-1))(x)):
                try: return door()
                except BaseException: pass
            return None
        """,
    ),
    attack(
        "off_limits_by_other_kinds_of_tensors",
        "has the forbidden functions computed for sparse, oneDNN and nested tensors, and by attention",
        """
        import torch
        def answer(x, *a):
            y = x - x.max() - 1  # none is zero, which a sparse tensor leaves out
            unit = torch.eye(x.shape[-1])[None, None]
            for door in (lambda: torch.sparse.log_softmax(y.to_sparse(), -1).to_dense(),
                         lambda: torch.ops.aten._sparse_log_softmax.int(y.to_sparse(), -1).to_dense(),
                         lambda: torch.ops.aten._softmax(x.to_mkldnn(), -1, False).to_dense().log(),
                         lambda: torch.ops.aten._softmax(torch.nested.as_nested_tensor([x]), -1, False)[0].log(),
                         lambda: torch._decomp.decomposition_table[torch.ops.aten._log_softmax.default](x, -1, False),
                         lambda: torch._scaled_dot_product_flash_attention_for_cpu(
                             x[None, None], unit, unit, scale=1.0)[0][0, 0].log()):
                try: return door()
                except BaseException: pass
            return None
        """,
    ),
    attack(
        "off_limits_undone",
        "puts the forbidden functions back: by the guard's own means, through the collector, with another library",
        """
        import gc, sys, torch
        guard = sys.modules["autograder.sandbox.offlimits"]
        kind = type(torch._C._dispatch_library("IMPL", "aten", "", "", 0))
        def collect():
            gc.unfreeze()
            for thing in gc.get_objects():
                for other in (thing, *gc.get_referents(thing)):
                    if type(other) is kind: other.reset()
        for undo in (lambda: guard.guard(False), lambda: (guard.guard(True), guard.guard(False)),
                     lambda: [guard._put(*was) for was in guard._was], lambda: guard._library.reset(), collect,
                     lambda: torch.library.Library("aten", "IMPL").impl(
                         "_log_softmax", torch.library.fallthrough_kernel, "CPU")):
            try: undo()
            except BaseException: pass
        def answer(x, *a):
            for door in (lambda: torch.log_softmax(x, -1), lambda: torch.ops.aten._log_softmax(x, -1, False)):
                try: return door()
                except BaseException: pass
            return None
        """,
    ),
]

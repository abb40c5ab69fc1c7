"""Calls across the boundary: they look like local calls, and whatever the other side does has a verdict."""

from __future__ import annotations

import contextlib
import os
import signal
import tempfile
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from autograder.grading import Work
from autograder.limits import Limits
from autograder.sandbox.loading import Part
from autograder.syllabus import EXERCISES
from autograder.wire.classroom import RemoteClassroom
from autograder.wire.errors import Interrupted, RemoteError
from autograder.wire.remote import RemoteStudent

QUICK = Limits(load_cpu=2, check_cpu=1, check_wall=6, function_cpu=1.5, function_wall=8, exercise_cpu=20)


@pytest.fixture(scope="module")
def room() -> Iterator[RemoteClassroom]:
    with RemoteClassroom("auto", torch.device("cpu"), limits=QUICK) as classroom:
        yield classroom


@contextlib.contextmanager
def opened(room: RemoteClassroom, code: str, number: int = 2) -> Iterator[RemoteStudent]:
    work = Work(EXERCISES[number], (Part("student.py", textwrap.dedent(code)),))
    with room.open(work) as student:
        student.begin_check(EXERCISES[number].functions[0].name)
        yield student


def verdict(room: RemoteClassroom, code: str, call: Any = None) -> tuple[str, str]:
    try:
        with opened(room, code) as student:
            (call or (lambda s: s.mean_nll([0.5])))(student)
    except Interrupted as interruption:
        return interruption.verdict, interruption.message
    return "value", ""


def test_arguments_and_results_are_ordinary_values(room: RemoteClassroom) -> None:
    with opened(room, "def mean_nll(*a, **k): return a, k") as student:
        x, y = torch.arange(6.0).reshape(2, 3).t(), np.arange(4)[::-1]
        (a, b, c), keywords = student.mean_nll(x, y, [1, (2.0, None)], flag=True)
        assert torch.equal(a, x)
        assert np.array_equal(b, y)
        assert c == [1, (2.0, None)]
        assert keywords == {"flag": True}


def test_the_student_sees_strides_and_writable_memory(room: RemoteClassroom) -> None:
    with opened(room, "def mean_nll(x, y): return x.stride(), y.strides, y.flags.writeable") as student:
        x, y = torch.zeros(2, 3).t(), np.zeros((4, 3))[::-2]
        assert student.mean_nll(x, y) == (x.stride(), y.strides, True)


def test_gradients_cross_the_boundary(room: RemoteClassroom) -> None:
    code = "def mean_nll(x, w): return (x * w).sum(-1), x.exp()"
    with opened(room, code) as student:
        x = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
        w = torch.randn(3, dtype=torch.float64, requires_grad=True)
        a, b = student.mean_nll(x, w)
        (a.pow(2).sum() + (2 * b).sum()).backward()
        got = x.grad.clone(), w.grad.clone()
        x.grad = w.grad = None
        ((x * w).sum(-1).pow(2).sum() + (2 * x.exp()).sum()).backward()
        assert torch.allclose(got[0], x.grad)
        assert torch.allclose(got[1], w.grad)


def test_gradients_of_several_calls_stay_apart(room: RemoteClassroom) -> None:
    with opened(room, "def mean_nll(x): return x * x") as student:
        xs = [torch.tensor([float(i)], requires_grad=True) for i in range(5)]
        total = sum(student.mean_nll(x) for x in xs)
        total.sum().backward()
        assert [x.grad.item() for x in xs] == [0, 2, 4, 6, 8]


def test_a_worker_forgets_what_was_asked_in_a_check_that_is_over(room: RemoteClassroom) -> None:
    code = """
        import gc, weakref
        seen = []
        def mean_nll(x):
            gc.collect()
            alive = sum(one() is not None for one in seen)
            seen.append(weakref.ref(x))
            return alive, x * 2
    """
    x = torch.ones(3, requires_grad=True)
    with opened(room, code) as student:
        assert [student.mean_nll(x)[0] for _ in range(3)] == [0, 1, 2]  # a gradient may still be asked for
        student.end_check()
        student.begin_check("mean_nll")
        assert [student.mean_nll(x)[0] for _ in range(2)] == [0, 1]


def test_a_detached_result_is_detached_here_too(room: RemoteClassroom) -> None:
    with opened(room, "def mean_nll(x): return x.detach() * 2") as student:
        assert not student.mean_nll(torch.ones(2, requires_grad=True)).requires_grad


def test_an_error_in_the_backward_pass_is_the_students(room: RemoteClassroom) -> None:
    code = """
        import torch
        class F(torch.autograd.Function):
            @staticmethod
            def forward(ctx, x): return x * 2
            @staticmethod
            def backward(ctx, g): raise RuntimeError("no way back")
        def mean_nll(x): return F.apply(x)
    """
    with opened(room, code) as student, pytest.raises(RemoteError, match="no way back"):
        student.mean_nll(torch.ones(2, requires_grad=True)).sum().backward()


def test_value_errors_arrive_as_value_errors(room: RemoteClassroom) -> None:
    code = """
        class Mine(ValueError):
            def __init__(self, a, b): super().__init__(a); self.b = b
        def mean_nll(p): raise Mine("概率 p=3", object())
    """
    with opened(room, code) as student, pytest.raises(ValueError, match="概率 p=3") as caught:
        student.mean_nll([3.0])
    raised = caught.value.raised
    assert (raised.type_name, raised.base, raised.explicit) == ("Mine", "ValueError", True)
    assert raised.lines[-1][1].startswith("def mean_nll(p): raise Mine(")


EXPLICIT = {
    "raise": ("raise ValueError('p')", True),
    "raise from": ("try: int('x')\n    except ValueError as e: raise ValueError('p') from e", True),
    "in a helper": ("check(p)", True),
    "through torch._check_value": ("torch._check_value(False, lambda: 'p')", True),
    "thrown into a generator": ("(_ for _ in ()).throw(ValueError('p'))", True),
    "in a generator": ("list(check(p) for _ in [1])", True),
    "int() in a generator": ("list(int('p') for _ in [1])", False),
    "compiled at run time": ("exec('raise ValueError(1)')", True),
    "inside with and finally": ("with open('/dev/null'):\n        try: check(p)\n        finally: pass", True),
    "int()": ("int('p')", False),
    "NumPy in C": ("np.zeros(2) + np.zeros(3)", False),
    "NumPy in Python": ("np.stack([])", False),
    "math": ("math.log(-1)", False),
    "a distribution": ("torch.distributions.Categorical(logits=torch.tensor(float('nan')))", False),
    "unpacking": ("a, b = [1]", False),
}


@pytest.mark.parametrize(("body", "explicit"), EXPLICIT.values(), ids=EXPLICIT)
def test_only_a_raise_of_the_students_own_is_explicit(room: RemoteClassroom, body: str, explicit: bool) -> None:
    code = f"import math, torch, numpy as np\ndef check(p): raise ValueError('p')\ndef mean_nll(p):\n    {body}\n"
    with opened(room, code) as student, pytest.raises(ValueError) as caught:
        student.mean_nll([3.0])
    assert caught.value.raised.explicit is explicit


HOSTILE_EXCEPTIONS = {
    "str raises": "class E(ValueError):\n    def __str__(self): raise SystemExit\ndef mean_nll(p): raise E",
    "str is not a str": "class E(ValueError):\n    def __str__(self): return 3\ndef mean_nll(p): raise E",
    "str is huge": "def mean_nll(p): raise ValueError('x' * 10**8)",
    "a lying metaclass": (
        "class M(type):\n    __name__ = property(lambda s: 1/0)\n    def mro(cls): return [cls, *super().mro()[1:]]\n"
        "class E(ValueError, metaclass=M): pass\ndef mean_nll(p): raise E('x')"
    ),
    "an exception group": "def mean_nll(p): raise ExceptionGroup('g', [ValueError('x')])",
    "SystemExit": "def mean_nll(p): raise SystemExit(0)",
    "KeyboardInterrupt": "def mean_nll(p): raise KeyboardInterrupt",
    "a BaseException of its own": "class B(BaseException): pass\ndef mean_nll(p): raise B('x')",
    "GeneratorExit": "def mean_nll(p): raise GeneratorExit",
}


@pytest.mark.parametrize("code", HOSTILE_EXCEPTIONS.values(), ids=HOSTILE_EXCEPTIONS)
def test_exceptions_are_described_whatever_they_are(room: RemoteClassroom, code: str) -> None:
    with opened(room, code) as student:
        with pytest.raises(RemoteError) as caught:
            student.mean_nll([0.5])
        assert isinstance(caught.value, Exception)
        assert len(caught.value.raised.message) <= 2000
        with pytest.raises(RemoteError):  # the worker lives on
            student.mean_nll([0.5])


def test_mutated_arguments_are_witnessed_from_outside(room: RemoteClassroom) -> None:
    code = """
        def mean_nll(p): p[0] = 9.0
        def stable_log_softmax(x): x[..., 0] += 1; return x
        def mlm_loss(a, b): b.add_(1); return a
    """
    with opened(room, code) as student:
        student.mean_nll([0.5])
        student.mean_nll(np.array([0.5, 0.25])[::-1])
        student.stable_log_softmax(torch.zeros(2, 3).t())
        student.mlm_loss(torch.zeros(2), torch.zeros(3, dtype=torch.int64))
        assert [name for _, name in student.witness("mean_nll").mutated] == ["probabilities", "probabilities"]
        assert [name for _, name in student.witness("stable_log_softmax").mutated] == ["logits"]
        assert [name for _, name in student.witness("mlm_loss").mutated] == ["labels"]


@pytest.mark.parametrize(
    "argument", [[1.0, 2.0], [(1, 2), 3], [torch.zeros(2), 3], [2**70, 3], {"a": 1}, {"a": (1,)}, [[1], [2, 3]]]
)
def test_a_changed_list_or_dict_is_noticed_whatever_is_in_it(room: RemoteClassroom, argument: Any) -> None:
    code = """
        def mean_nll(x):
            key = "a" if isinstance(x, dict) else -1
            x[key] = True if x[key] == 1 else 99
        def mlm_loss(x, y): return 0
    """
    with opened(room, code) as student:
        student.mlm_loss(argument, argument)
        assert student.witness("mlm_loss").mutated == []
        student.mean_nll(argument)
        assert [name for _, name in student.witness("mean_nll").mutated] == ["probabilities"]


def test_a_function_that_behaves_is_not_accused(room: RemoteClassroom) -> None:
    code = "import torch\ndef mean_nll(p, x): return (x.clone() + 1, torch.rand(1, generator=torch.Generator()))"
    with opened(room, code) as student:
        x = torch.tensor([float("nan"), 0.0])
        student.mean_nll([0.5], x)
        assert student.witness("mean_nll").mutated == []
        assert student.witness("mean_nll").moved == []


@pytest.mark.parametrize(
    ("code", "generator"),
    [
        ("import torch\ndef mean_nll(p): torch.rand(1)", "torch"),
        ("import torch\ndef mean_nll(p): torch.manual_seed(0)", "torch"),
        ("import numpy as np\ndef mean_nll(p): np.random.rand()", "numpy"),
        ("import random\ndef mean_nll(p): random.random()", "random"),
    ],
)
def test_global_generators_are_watched(room: RemoteClassroom, code: str, generator: str) -> None:
    with opened(room, code) as student:
        student.mean_nll([0.5])
        assert [name for _, name in student.witness("mean_nll").moved] == [generator]


def test_a_generator_argument_moves_here_as_it_moved_there(room: RemoteClassroom) -> None:
    with opened(room, "import torch\ndef mean_nll(n, generator=None): return torch.rand(n, generator=generator)") as s:
        here, there = torch.Generator().manual_seed(7), torch.Generator().manual_seed(7)
        for _ in range(3):
            assert torch.equal(s.mean_nll(4, generator=there), torch.rand(4, generator=here))


def test_functions_of_the_graders_can_stand_in_for_the_students(room: RemoteClassroom) -> None:
    code = """
        import torch
        def stable_log_softmax(x, key): raise NotImplementedError
        def mean_nll(x, generator=None): return stable_log_softmax(x, key=generator) + 1
    """
    seen = []

    def stand_in(x: torch.Tensor, key: torch.Generator) -> torch.Tensor:
        seen.append(x)
        return x * 2 + torch.rand(1, generator=key)

    with opened(room, code) as student:
        here, there = torch.Generator().manual_seed(7), torch.Generator().manual_seed(7)
        with student.replacing(stable_log_softmax=stand_in):
            for _ in range(2):
                got = student.mean_nll(torch.ones(2), generator=there)
                assert torch.equal(got, torch.ones(2) * 2 + torch.rand(1, generator=here) + 1)
        assert len(seen) == 2
        with pytest.raises(NotImplementedError):
            student.mean_nll(torch.ones(2))


def test_a_stand_in_that_raises_raises_in_the_students_code(room: RemoteClassroom) -> None:
    code = """
        def mean_nll(x):
            try: return stable_log_softmax(x)
            except ValueError as e: return str(e)
        def stable_log_softmax(x): return 0
    """

    def stand_in(x: Any) -> Any:
        raise ValueError("not like this")

    with opened(room, code) as student, student.replacing(stable_log_softmax=stand_in):
        assert "not like this" in student.mean_nll(1)


VERDICTS = {
    "no such function": ("x = 1", "not_implemented"),
    "a name that is no function": ("mean_nll = 3", "not_implemented"),
    "syntax error": ("def mean_nll(:", "crashed"),
    "error at import": ("1 / 0", "crashed"),
    "exit at import": ("import os; os._exit(0)", "crashed"),
    "SystemExit at import": ("raise SystemExit", "crashed"),
    "exit in a call": ("import os\ndef mean_nll(p): os._exit(0)", "crashed"),
    "segmentation fault": ("import ctypes\ndef mean_nll(p): ctypes.string_at(0)", "crashed"),
    "abort": ("import os\ndef mean_nll(p): os.abort()", "crashed"),
    "endless loop": ("def mean_nll(p):\n    while True: pass", "timeout"),
    "endless loop at import": ("while True: pass", "timeout"),
    "loop that swallows everything": (
        "def mean_nll(p):\n    while True:\n        try:\n            while True: pass\n"
        "        except BaseException: pass",
        "timeout",
    ),
    "sleep": ("import time\ndef mean_nll(p): time.sleep(1000)", "timeout"),
    "deadlock": ("import threading\ndef mean_nll(p): l = threading.Lock(); l.acquire(); l.acquire()", "timeout"),
    "endless str of an exception": (
        "class E(Exception):\n    def __str__(self):\n        while True: pass\ndef mean_nll(p): raise E",
        "timeout",
    ),
    "an object equal to everything": (
        "class Y:\n    def __eq__(self, o): return True\ndef mean_nll(p): return Y()",
        "failed",
    ),
    "a float that is none": ("class F(float): pass\ndef mean_nll(p): return F(1)", "failed"),
    "a result too large": ("def mean_nll(p): return b'x' * (80 * 2**20)", "failed"),
    "a result too deep": ("def mean_nll(p):\n    x = []\n    for _ in range(10**5): x = [x]\n    return x", "failed"),
    "a module": ("import sys\ndef mean_nll(p): return sys", "failed"),
}


@pytest.mark.parametrize(("code", "expected"), VERDICTS.values(), ids=VERDICTS)
def test_every_ending_has_its_verdict(room: RemoteClassroom, code: str, expected: str) -> None:
    got, message = verdict(room, code)
    assert got == expected, message
    assert message
    assert "Traceback" not in message


def test_memory_is_limited(room: RemoteClassroom) -> None:
    code = "import torch\ndef mean_nll(p): return torch.empty(30 * 2**30, dtype=torch.uint8)"
    with opened(room, code) as student, pytest.raises(RemoteError, match="can't allocate memory"):
        student.mean_nll([0.5])
    with opened(room, "def mean_nll(p): return bytearray(30 * 2**30)") as student, pytest.raises(MemoryError):
        student.mean_nll([0.5])


def test_a_worker_that_ended_is_replaced(room: RemoteClassroom) -> None:
    code = "import os\ndef mean_nll(p): os._exit(3)\ndef mlm_loss(x, y): return x"
    with opened(room, code) as student:
        for _ in range(2):
            with pytest.raises(Interrupted, match="exit status 3"):
                student.mean_nll([0.5])
        assert student.mlm_loss(1, 2) == 1


def test_a_function_that_always_runs_out_of_time_stops_costing_time(room: RemoteClassroom) -> None:
    code = "def mean_nll(p):\n    while True: pass\ndef mlm_loss(x, y): return x"
    with opened(room, code) as student:
        started = time.monotonic()
        for _ in range(10):
            student.begin_check("mean_nll")
            with pytest.raises(Interrupted) as caught:
                student.mean_nll([0.5])
            assert caught.value.verdict == "timeout"
        assert time.monotonic() - started < 20
        student.begin_check("mlm_loss")
        assert student.mlm_loss(1, 2) == 1


FORGERIES = {
    "an early reply": (
        "import os\nfor fd in range(3, 64):\n    try: os.write(fd, b'\\0\\0\\0\\1\\x90')\n    except OSError: pass\n"
    ),
    "a length without a message": "import os\nos.write(10, b'\\xff\\xff\\xff\\xff')\n",
    "noise": "import os\nos.write(10, os.urandom(4096))\n",
    "a closed channel": "import os\nos.close(10)\n",
    "a channel at its end": "import socket, os\nsocket.socket(fileno=os.dup(10)).shutdown(2)\n",
}


@pytest.mark.parametrize("code", FORGERIES.values(), ids=FORGERIES)
def test_frames_that_nobody_asked_for_end_the_worker_with_the_students_verdict(
    room: RemoteClassroom, code: str
) -> None:
    body = textwrap.indent(code, "    ")
    for where in (code + "def mean_nll(p): return 1.0397", f"def mean_nll(p):\n{body}    return 1.0397"):
        got, message = verdict(room, where)
        assert got in ("crashed", "failed", "timeout"), message


def test_output_is_swallowed_and_capped(room: RemoteClassroom) -> None:
    code = """
        import sys, os
        print("x" * 10**7)
        def mean_nll(p):
            print("y" * 10**7); sys.stderr.write("z" * 10**7); os.write(1, b"w" * 10**6); return 1.0
    """
    with opened(room, code) as student:
        assert student.mean_nll([0.5]) == 1.0


HABITS = {
    "output is told its encoding": "sys.stdout.reconfigure(encoding='utf-8'); sys.stderr.reconfigure(errors='replace')",
    "output is wrapped": "sys.stdout = io.TextIOWrapper(sys.stdout.buffer, encoding='utf-8'); print('ü')",
    "output is taken apart": "sys.stdout = codecs.getwriter('utf-8')(sys.stdout.detach()); print('ü')",
    "bytes are printed": "sys.stdout.buffer.write(bytes([255])); sys.stdout.flush(); sys.stdout.buffer.flush()",
    "tracebacks of crashes": "faulthandler.enable()",
    "asks where it runs": "platform.processor(); shutil.get_terminal_size(); sys.stdout.encoding.lower()",
    "the first output": "print('x', flush=True, file=sys.__stdout__)",
    "plots": "import matplotlib.pyplot as plt; plt.style.use('ggplot'); plt.plot([1, 2]); plt.show()",
    "libraries that look around": "import psutil, requests",
    "files of its own": "open('a.txt', 'w').write('x'); tempfile.mkdtemp(); logging.basicConfig(filename='a')",
}


@pytest.mark.parametrize("habit", HABITS.values(), ids=HABITS)
def test_habits_at_the_top_of_a_file_cost_nothing_and_are_no_conduct(room: RemoteClassroom, habit: str) -> None:
    """`faulthandler.enable()` and `sys.stdout.reconfigure` cost all points; matplotlib's look for fonts was noted."""
    top = "import codecs, faulthandler, io, logging, platform, shutil, sys, tempfile"
    with opened(room, f"{top}\n{habit}\ndef mean_nll(p):\n    {habit}\n    return 1.0\n") as student:
        assert student.mean_nll([0.5]) == 1.0
        assert student.mean_nll([0.5]) == 1.0
        assert not student.conduct


def test_what_a_module_of_its_own_does_while_it_is_imported_is_conduct(room: RemoteClassroom) -> None:
    code = """
        import os, sys
        with open("own.py", "w") as file: file.write("import subprocess; subprocess.run(['id'])")
        sys.path.insert(0, os.getcwd())
        def mean_nll(p):
            try: import own
            except OSError: return 1.0
    """
    with opened(room, code) as student:
        assert student.mean_nll([0.5]) == 1.0
        assert list(student.conduct) == ["tried to run another program"]


def test_a_loader_with_processes_of_its_own_loads_without_them(room: RemoteClassroom) -> None:
    """Where no process can be started it failed, with a FileNotFoundError, and with it all that trains by it."""
    code = """
        import torch
        from torch.utils.data import DataLoader, TensorDataset
        def mean_nll(x):
            options = dict(num_workers=2, persistent_workers=True, prefetch_factor=4, timeout=5)
            loader = DataLoader(TensorDataset(x), batch_size=2, shuffle=True, **options)
            return [sorted(float(v) for batch, in loader for v in batch) for _ in range(2)], loader.num_workers
    """
    with opened(room, code) as student:
        assert student.mean_nll(torch.arange(3.0)) == ([[0.0, 1.0, 2.0]] * 2, 2)


def test_compiled_and_scripted_functions_are_functions(room: RemoteClassroom) -> None:
    code = """
        import torch
        @torch.compile
        def mean_nll(x): return x * 2
        @torch.jit.script
        def stable_log_softmax(x): return x * 3
    """
    with opened(room, code) as student:
        assert student.mean_nll(torch.ones(1)).item() == 2
        assert student.stable_log_softmax(torch.ones(1)).item() == 3


def test_a_worker_killed_from_outside_is_a_fault_of_ours_once(room: RemoteClassroom) -> None:
    """A kernel short of memory kills too: only what happens twice is the submission's doing."""
    with opened(room, "import time\ndef mean_nll(p): time.sleep(1); return 1.0") as student:
        for again, verdict in ((False, "grader_error"), (True, "crashed")):
            student.begin_check("mean_nll", again)
            if student._worker is None:
                student.load()
            threading.Timer(0.3, signal.pidfd_send_signal, (student._worker.pidfd, signal.SIGKILL)).start()
            with pytest.raises(Interrupted) as caught:
                student.mean_nll([0.5])
            assert caught.value.verdict == verdict


def test_a_zygote_that_died_is_replaced(room: RemoteClassroom) -> None:
    with RemoteClassroom("auto", torch.device("cpu"), limits=QUICK) as other:
        other._process.kill()
        other._process.wait()
        assert verdict(other, "def mean_nll(p): return 1.0") == ("value", "")


def test_a_zygote_that_dies_under_a_call_is_a_fault_of_ours() -> None:
    with RemoteClassroom("auto", torch.device("cpu"), limits=QUICK) as other:
        work = Work(EXERCISES[2], (Part("student.py", "def mean_nll(p): return 1.0"),))
        with other.open(work) as student:
            student.begin_check("mean_nll")
            other._process.kill()
            other._process.wait()
            time.sleep(2)  # its workers go with it, a moment later
            with pytest.raises(Interrupted) as caught:
                student.mean_nll([0.5])
            assert caught.value.verdict == "grader_error"


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def counts() -> tuple[int, list[str]]:
        return len(os.listdir("/proc/self/fd")), os.listdir(tmp_path)

    before = counts()
    with RemoteClassroom("auto", torch.device("cpu"), limits=QUICK) as other:
        for code in ("def mean_nll(p): return 1.0", "import os\ndef mean_nll(p): os._exit(1)", "1/0"):
            verdict(other, code)
        pid = other._process.pid
    assert counts() == before
    assert not os.path.exists(f"/proc/{pid}")


def test_replies_do_not_depend_on_the_machine_or_the_hour(room: RemoteClassroom) -> None:
    code = "import torch, random\ndef mean_nll(p): return torch.rand(1).item(), random.random(), hash('x')"
    values = []
    for _ in range(2):
        with opened(room, code) as student:
            values.append(student.mean_nll([0.5]))
    assert values[0] == values[1]

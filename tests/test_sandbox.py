"""What a worker can reach: each probe is student code that tries something and says how far it came."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

import autograder
from autograder.grading import Work
from autograder.limits import Limits
from autograder.sandbox import confine
from autograder.sandbox.loading import Part
from autograder.syllabus import EXERCISES
from autograder.wire.classroom import RemoteClassroom
from autograder.wire.errors import GraderFault, Interrupted

ROOT = Path(autograder.__file__).parents[1]
LIMITS = Limits(load_cpu=5, check_cpu=5, check_wall=15)

PRELUDE = """
import errno, gc, os, resource, signal, socket, struct, sys, threading, ctypes
def tried(action):
    try: return ["done", repr(action())[:200]]
    except BaseException as error: return ["refused", type(error).__name__ + ": " + str(error)[:100]]
"""

#: name: the expression that `embedding_sum` evaluates; exercise 1, where nothing is off limits
PROBES = {
    "read a file of the grader's": "open(secret).read()",
    "list the folder of the grader's": "os.listdir(os.path.dirname(secret))",
    "read the hidden checks": "open(root + '/autograder/hidden/expect.py').read()",
    "import the hidden checks": "__import__('autograder.hidden.expect')",
    "import the solutions": "__import__('solutions.ex01_input_embeddings')",
    "import the grader": "__import__('autograder.grading')",
    "read the password file": "open('/etc/passwd').read()",
    "look at the grader's process": "os.listdir(f'/proc/{pid}')",
    "read its own process": "open('/proc/self/environ').read()",
    "write beside the kit": "open(os.path.dirname(sys.modules['exercises.kit'].__file__) + '/x.py', 'w')",
    "write into site-packages": "open(os.path.dirname(sys.modules['torch'].__file__) + '/x.py', 'w')",
    "write to shared memory": "open('/dev/shm/x', 'w')",
    "write to /tmp": "open('/tmp/x', 'w')",
    "make a symbolic link out and read it": "(os.symlink(secret, 'link'), open('link').read())",
    "TCP": "socket.create_connection(('127.0.0.1', port), 2)",
    "UDP": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', port))",
    "IPv6": "socket.socket(socket.AF_INET6)",
    "an abstract Unix socket": "socket.socket(socket.AF_UNIX).connect('\\0' + 'grader-test')",
    "netlink": "socket.socket(socket.AF_NETLINK)",
    "fork": "os.fork()",
    "run a program": "os.execv(sys.executable, ['python'])",
    "a subprocess": "__import__('subprocess').run(['/bin/true'])",
    "signal the grader": "os.kill(pid, 0)",
    "signal the parent": "os.kill(os.getppid(), 0) if os.getppid() else 1 / 0",
    "signal its group": "os.kill(0, signal.SIGCONT)",
    "signal everybody": "os.kill(-1, signal.SIGCONT)",
    "have the kernel signal the grader": "__import__('fcntl').fcntl(10, 8, pid)",
    "have the kernel signal the grader's group": "__import__('fcntl').ioctl(10, 0x8901, struct.pack('i', -pid))",
    "outlive the process it was forked from": "syscall(157, 1, 0, 0, 0, 0)",
    "trace the grader": "syscall(101, 16, pid, 0, 0)",
    "read the grader's memory": "syscall(310, pid, 0, 0, 0, 0, 0)",
    "a new namespace": "syscall(272, 0x10000000)",
    "mount": "syscall(165, b'none', b'/scratch', b'tmpfs', 0, 0)",
    "io_uring": "syscall(425, 1, ctypes.create_string_buffer(120))",
    "bpf": "syscall(321, 0, 0, 0)",
    "another's limits": "resource.prlimit(pid, resource.RLIMIT_CPU, (1, 1))",
    "a file of 40 MB": "open('big', 'wb').write(bytes(40 * 2**20))",
    "a raised limit": "resource.setrlimit(resource.RLIMIT_CPU, (10**6, 10**6))",
    "100 descriptors": "[os.open('/dev/null', 0) for _ in range(100)]",
    "become root": "os.setuid(0)",
    "see that a file of the grader's exists": "os.stat(secret)",
    "fill 150 MB of disk": "[open(f'f{i}', 'wb').write(bytes(10 * 2**20)) for i in range(15)]",
}
#: what a host without namespaces cannot refuse
ONLY_FULL = {"see that a file of the grader's exists", "fill 150 MB of disk"}
ALLOWED = {
    "scratch files": "(open('x', 'w').write('y'), open('x').read(), os.remove('x'))",
    "threads": "[t.start() or t.join() for t in [threading.Thread(target=len, args=('x',)) for _ in range(4)]]",
    "two threads of PyTorch": "(torch.set_num_threads(2), torch.randn(300, 300) @ torch.randn(300, 300))[1].shape",
    "autograd": "torch.randn(3, requires_grad=True).exp().sum().backward()",
    "a layer": "torch.nn.TransformerEncoderLayer(8, 2)(torch.randn(1, 3, 8)).sum().backward()",
    "late imports": "__import__('statistics').mean([1, 2])",
    "late imports of PyTorch": "__import__('torch.optim.swa_utils')",
    "temporary files": "__import__('tempfile').TemporaryFile().write(b'x')",
    "the kit": "__import__('exercises.kit').kit.Vocabulary(9, 1, 2, 3, 4, 5).special_ids.tolist()",
    "signal itself": "os.kill(os.getpid(), 0)",
}


def probe_code(probes: dict[str, str]) -> str:
    branches = "\n".join(
        f"    if name == {name!r}: return tried(lambda: {expression})" for name, expression in probes.items()
    )
    return (
        PRELUDE
        + textwrap.dedent("""
            import torch
            def syscall(number, *arguments):
                libc = ctypes.CDLL(None, use_errno=True)
                if libc.syscall(number, *arguments) < 0: raise OSError(ctypes.get_errno(), "refused")
                return "done"
        """)
        + f"def embedding_sum(name, secret, root, pid, port):\n{branches}\n"
    )


@contextlib.contextmanager
def listening() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind("\0grader-test")
        abstract.listen()
        yield server.getsockname()[1]


def run_probes(room: RemoteClassroom, probes: dict[str, str], secret: Path) -> dict[str, str]:
    found = {}
    work = Work(EXERCISES[1], (Part("student.py", probe_code(probes)),))
    with listening() as port, room.open(work) as student:
        for name in probes:
            student.begin_check("embedding_sum")
            try:
                outcome, detail = student.embedding_sum(name, str(secret), str(ROOT), os.getpid(), port)
            except Interrupted as ended:
                outcome, detail = "refused", ended.message
            if outcome == "done":
                found[name] = detail
    return found


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    path = tmp_path / "secret.txt"
    path.write_text("the right answers")
    return path


def test_full_confinement_refuses_everything(secret: Path) -> None:
    with RemoteClassroom("auto", torch.device("cpu"), limits=LIMITS) as room:
        if not room.level.startswith("full"):
            pytest.skip(f"this host offers no more than: {room.level}")
        assert room.level == "full"
        assert run_probes(room, PROBES, secret) == {}
        assert set(run_probes(room, ALLOWED, secret)) == set(ALLOWED)


def test_partial_confinement_refuses_nearly_everything(secret: Path) -> None:
    """Landlock and seccomp without namespaces, as on a host that forbids them."""
    with RemoteClassroom("auto", torch.device("cpu"), limits=LIMITS, namespaces=False) as room:
        if not room.level.startswith("partial"):
            pytest.skip(f"this host offers no more than: {room.level}")
        assert set(run_probes(room, PROBES, secret)) - ONLY_FULL <= ({"become root"} if os.getuid() == 0 else set())
        assert set(run_probes(room, ALLOWED, secret)) == set(ALLOWED)


#: layer: (namespaces, file of the worker, what is taken out, what is put there, a probe that then gets through)
LAYERS = {
    "namespaces": (False, "", "", "", "see that a file of the grader's exists"),
    "Landlock": (
        False,
        "landlock.py",
        "        syscalls.landlock_restrict(ruleset)\n",
        "        pass\n",
        "read a file of the grader's",
    ),
    "seccomp": (True, "confine.py", "        syscalls.install_filter(program)\n", "        pass\n", "fork"),
    "limits": (
        True,
        "confine.py",
        "        resource.setrlimit(kind, (value, value))\n",
        "        pass\n",
        "100 descriptors",
    ),
    "user id": (True, "confine.py", "    os.setresuid(uid, uid, uid)\n", "    pass\n", "become root"),
}


@pytest.mark.parametrize("layer", LAYERS)
def test_without_any_one_layer_something_gets_through(
    layer: str, secret: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each layer is needed, and the probes notice when it is gone."""
    namespaces, name, old, new, probe = LAYERS[layer]
    if layer == "user id" and os.getuid() != 0:
        pytest.skip("only root has another user id to give")
    stage = RemoteClassroom._stage

    def stage_without(room: RemoteClassroom) -> None:
        stage(room)
        if name:
            file = room._folder / "runtime" / "autograder" / "sandbox" / name
            text = file.read_text()
            assert text.count(old) == 1
            file.write_text(text.replace(old, new))

    monkeypatch.setattr(RemoteClassroom, "_stage", stage_without)
    with RemoteClassroom("auto", torch.device("cpu"), limits=LIMITS, namespaces=namespaces) as room:
        if not room.level.startswith("full" if namespaces else "partial"):
            pytest.skip(f"this host offers no more than: {room.level}")
        assert probe in run_probes(room, {probe: PROBES[probe]}, secret)


def test_bare_means_bare_and_says_so(secret: Path) -> None:
    """Without walls the probes get through: the probes themselves work."""
    with RemoteClassroom("off", torch.device("cpu"), limits=LIMITS) as room:
        assert room.level == "bare"
        names = {"read a file of the grader's", "see that a file of the grader's exists", "TCP", "UDP"}
        found = run_probes(room, {name: PROBES[name] for name in sorted(names)}, secret)
        assert set(found) == names


def test_strict_refuses_a_bare_host(monkeypatch: pytest.MonkeyPatch) -> None:
    room = RemoteClassroom("strict", torch.device("cpu"), limits=LIMITS)
    monkeypatch.setattr(
        RemoteClassroom,
        "_launch",
        lambda self, _: (
            setattr(self, "kind", "bare"),
            setattr(self, "missing", ["Landlock"]),
            setattr(self, "_namespaces", False),
        ),
    )
    with pytest.raises(GraderFault, match=r"--sandbox strict.*Landlock"), room:
        pass


UNPRIVILEGED = """
set -e
python_home="$1"; scratch="$2"; shift 2
mkdir -p "$scratch/home"
case "$python_home" in /root/*)
    mount --bind /root "$scratch/home"; mount -t tmpfs -o mode=755 tmpfs /root
    mkdir -p "$python_home"; mount --bind "$scratch/home/${python_home#/root/}" "$python_home";;
esac
exec setpriv --reuid 54321 --regid 54321 --clear-groups --no-new-privs "$@"
"""


#: The layers that anybody has, and not only root.
OF_EVERYBODY = [layer for layer in LAYERS if layer != "user id"]


def test_an_unprivileged_user_gets_full_confinement_too(tmp_path: Path) -> None:
    """Run the first test of this file, and those of the layers, again as a user without rights, where root is."""
    if os.getuid() != 0:
        pytest.skip("these tests already run as an unprivileged user")
    if shutil.which("setpriv") is None or shutil.which("unshare") is None:
        pytest.skip("util-linux is not installed")
    tmp_path.chmod(0o755)
    for folder in list(tmp_path.parents)[:2]:
        folder.chmod(0o755)
    targets = [f"{__file__}::test_full_confinement_refuses_everything"]
    targets += [f"{__file__}::test_without_any_one_layer_something_gets_through[{layer}]" for layer in OF_EVERYBODY]
    pytest_call = [sys.executable, "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "-c", os.devnull, *targets]
    home = tmp_path / "own"
    home.mkdir(mode=0o777)
    home.chmod(0o777)
    done = subprocess.run(
        ["unshare", "-m", "bash", "-c", UNPRIVILEGED, "bash", sys.base_prefix, str(tmp_path), *pytest_call],
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "TMPDIR": str(home),
            "PYTHONPATH": str(ROOT),
            "PYTHONDONTWRITEBYTECODE": "1",
            "OMP_NUM_THREADS": "1",
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert f"{len(targets)} passed" in done.stdout, done.stdout + done.stderr


def test_installed_packages_of_ours_are_left_out_of_the_view(tmp_path: Path) -> None:
    """A wheel puts solutions and hidden checks into site-packages: the worker may read all else there."""
    site = tmp_path / "lib" / "site-packages"
    for name in ("solutions", "autograder", "exercises", "torch"):
        (site / name).mkdir(parents=True)
    view = confine.View([str(tmp_path / "lib")], [str(site)])
    assert confine.readable_paths(view) == [str(site / "torch")]


def test_no_submission_sees_what_an_earlier_one_left() -> None:
    leave = "def mean_nll(p): open('left', 'w').write('x'); return 1"
    look = "import os\ndef mean_nll(p): return [os.listdir('.'), os.listdir(os.environ['TMPDIR'])]"
    for namespaces in (True, False):
        with RemoteClassroom("auto", torch.device("cpu"), limits=LIMITS, namespaces=namespaces) as room:
            for code, expected in ((leave, 1), (look, [[], []])):
                with room.open(Work(EXERCISES[2], (Part("student.py", code),))) as student:
                    student.begin_check("mean_nll")
                    assert student.mean_nll([0.5]) == expected


def test_the_environment_of_a_worker_is_scrubbed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "geheim-4711")
    code = """
        import os, gc, ctypes
        def mean_nll(p):
            found = [repr(o) for o in gc.get_objects() if isinstance(o, dict) and 'geh' + 'eim' in repr(o)[:10**5]]
            return dict(os.environ), found
    """
    work = Work(EXERCISES[2], (Part("student.py", textwrap.dedent(code)),))
    with RemoteClassroom("auto", torch.device("cpu"), limits=LIMITS) as room, room.open(work) as student:
        student.begin_check("mean_nll")
        environment, found = student.mean_nll([0.5])
    assert "GITHUB_TOKEN" not in environment
    assert found == []
    assert "geheim" not in repr(environment)
    assert len(environment) < 20


def test_a_host_that_forbids_user_namespaces_is_not_waited_for() -> None:
    """The helper that writes the id maps held its own pipe open, and start-up hung where the namespace was refused."""
    if shutil.which("unshare") is None:
        pytest.skip("util-linux is not installed")
    script = 'echo 0 > /proc/sys/user/max_user_namespaces && exec "$@"'
    done = subprocess.run(
        ["unshare", "-Ur", "sh", "-c", script, "sh", sys.executable, "-m", "autograder", "doctor"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "missing: namespaces" in done.stdout, done.stdout + done.stderr


def test_what_is_off_limits_in_one_exercise_is_put_back_for_the_next_to_the_last_name():
    code = """
        import torch
        from autograder.sandbox import offlimits
        names, kernels = offlimits.prepared()
        def state():
            held = [(vars(h) if isinstance(h, type) else h).get(name, "nothing") for h, name, _ in names]
            tables = [torch._C._dispatch_dump(f"aten::{name}") for name, _, _ in kernels]
            return [*map(id, held)], tables
        x = torch.randn(3, 4)
        right, before = torch.log_softmax(x, -1), state()
        for turn in range(3):
            offlimits.guard(True)
            offlimits.guard(True)
            now = state()
            print(not any(a == b for was, new in zip(before, now) for a, b in zip(was, new)))
            offlimits.guard(False)
            offlimits.guard(False)
            print(state() == before and torch.equal(torch.log_softmax(x, -1), right))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True"] * 6
    assert done.stderr == ""

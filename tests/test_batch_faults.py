"""What may go wrong around a batch: nothing that is graded gets lost, and nothing that failed becomes a zero."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any

import pytest
from processes import below, heeds_ctrl_c

from autograder import pool
from autograder.batch import cluster
from autograder.batch import run as batch_run
from autograder.batch.sources import HandedIn, handed_in
from autograder.batch.store import STORE, alone_in, grader_hash
from autograder.cli import main
from autograder.files import CannotWrite
from autograder.grading import Options, Submission, Work
from autograder.report import Check, ExerciseReport, FunctionReport, Report
from autograder.submission import UsageError
from autograder.syllabus import EXERCISES
from autograder.wire import scratch

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "examples" / "submissions"
CODE = "def mean_nll(probabilities):\n    return 1.0\n"
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1"}


def made_up(submission: Submission) -> Report:
    check = Check("test_a", "A.", "passed", 200, 200, "", "", 0.1)
    return Report(
        submission.name, (ExerciseReport("ex02", "E", (FunctionReport("f", (check,)),)),), "full", "cpu", 0, "0"
    )


def submissions(*names: str, note: str = "") -> list[Submission]:
    return [Submission(name, (Work(EXERCISES[1], ()),), (note,)) for name in names]


def a_class(folder: Path, *names: str) -> list[HandedIn]:
    for name in names:
        (folder / name).mkdir(parents=True)
        (folder / name / "ex02.py").write_text(f"{CODE}# {name}\n")
    return handed_in(str(folder), folder)[0]


# -- one at a time -----------------------------------------------------------------------------------------------------
def failing(monkeypatch: pytest.MonkeyPatch, faults: dict[str, int]) -> list[str]:
    """Grading that raises so many times at the submission of that name; what was begun."""
    begun: list[str] = []

    def grade_all(given: Iterable[Submission], _: Options, on_report: Callable[[Report], None]) -> None:
        for submission in given:
            begun.append(submission.name)
            if begun.count(submission.name) <= faults.get(submission.name, 0):
                raise RuntimeError("no zygote")
            on_report(made_up(submission))

    monkeypatch.setattr(pool, "grade_all", grade_all)
    return begun


def test_a_fault_of_the_grader_is_tried_again_and_costs_no_other_submission(monkeypatch: pytest.MonkeyPatch) -> None:
    """All submissions after it were marked as not graded."""
    begun = failing(monkeypatch, {"b": 1, "c": 9})
    reports: list[Report] = []
    pool.grade_in_order(submissions("a", "b", "c", "d"), Options(device="cpu"), 1, reports.append)
    assert begun == ["a", "b", "b", "c", "c", "d"]
    assert [report.submission for report in reports] == ["a", "b", "c", "d"]
    assert [report.needs_attention for report in reports] == [False, False, True, False]
    assert reports[2].checks[0].message == "RuntimeError: no zygote"
    assert reports[2].checks[0].verdict == "grader_error"


def test_a_grader_that_only_fails_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [f"s{number}" for number in range(30)]
    begun = failing(monkeypatch, dict.fromkeys(names, 9))
    reports: list[Report] = []
    pool.grade_in_order(submissions(*names), Options(device="cpu"), 1, reports.append)
    assert [report.submission for report in reports] == names
    assert all(report.needs_attention for report in reports)
    assert len(begun) == pool.FAULTS_IN_A_ROW + 1


def test_what_cannot_take_a_report_is_no_fault_of_grading(monkeypatch: pytest.MonkeyPatch) -> None:
    """A full disk made the grader's fault of all that was left, and was tried again for each."""
    failing(monkeypatch, {})
    taken: list[str] = []

    def emit(report: Report) -> None:
        taken.append(report.submission)
        raise CannotWrite(28, "No space left on device", "a.json")

    with pytest.raises(CannotWrite, match=r"a\.json: cannot be written \(No space left on device\)"):
        pool.grade_in_order(submissions("a", "b"), Options(device="cpu"), 1, emit)
    assert taken == ["a"]


# -- several at a time -------------------------------------------------------------------------------------------------
def waits(connection: Any, _: Options, leases: Any) -> None:
    """In the place of grading: "slow" ends once the file is there that its note names; "fault" fails until then."""
    while (submission := connection.recv()) is not None:
        if submission.name == "slow":
            deadline = time.monotonic() + 30
            while not os.path.exists(submission.notes[0]) and time.monotonic() < deadline:
                time.sleep(0.02)
        if submission.name == "fault" and not os.path.exists(submission.notes[0]):
            Path(submission.notes[0]).touch()
            connection.send("GraderFault: no zygote")
            return
        connection.send(made_up(submission))


def test_a_slow_submission_does_not_hold_the_results_of_others_back(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Results were stored in order: all that was graded behind a slow one was lost if the batch was killed."""
    monkeypatch.setattr(pool, "grade_what_comes", waits)
    order: list[int] = []

    def emit(index: int, _: Report) -> None:
        order.append(index)
        if len(order) == 3:
            (tmp_path / "done").touch()

    slow = submissions("slow", "b", "c", "d", note=str(tmp_path / "done"))
    pool.grade_as_they_finish(slow, Options(device="cpu", in_process=True), 2, emit)
    assert order == [1, 2, 3, 0]


def test_a_process_that_fails_is_replaced_and_its_submission_tried_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(pool, "grade_what_comes", waits)
    reports: dict[int, Report] = {}
    descriptors = len(os.listdir("/proc/self/fd"))
    names = ("fault", "b", "c", "d")
    some = submissions(*names, note=str(tmp_path / "failed"))
    pool.grade_as_they_finish(some, Options(device="cpu", in_process=True), 2, reports.__setitem__)
    assert [reports[index].submission for index in range(4)] == list(names)
    assert not any(report.needs_attention for report in reports.values())
    assert len(os.listdir("/proc/self/fd")) <= descriptors + 2  # multiprocessing keeps two processes of its own


def test_a_process_that_cannot_be_forked_is_started_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What grading processes are forked from was killed just when one was asked for, and the command ended."""
    monkeypatch.setattr(pool, "grade_what_comes", waits)
    original, failures = ForkServerProcess.start, [EOFError("unexpected EOF"), ConnectionResetError()]

    def start(process: ForkServerProcess) -> None:
        if failures:
            raise failures.pop()
        original(process)

    monkeypatch.setattr(ForkServerProcess, "start", start)
    reports: dict[int, Report] = {}
    some = submissions("a", "b", "c", note=str(tmp_path / "none"))
    pool.grade_as_they_finish(some, Options(device="cpu", in_process=True), 2, reports.__setitem__)
    assert sorted(reports) == [0, 1, 2]
    assert not failures


def test_when_none_can_be_started_all_that_is_left_needs_attention(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(process: ForkServerProcess) -> None:
        raise EOFError("unexpected EOF")

    monkeypatch.setattr(ForkServerProcess, "start", start)
    reports: dict[int, Report] = {}
    some = submissions("a", "b")
    pool.grade_as_they_finish(some, Options(device="cpu", in_process=True), 2, reports.__setitem__)
    assert sorted(reports) == [0, 1]
    assert all(report.needs_attention for report in reports.values())
    message = reports[0].checks[0].message
    assert message == "no grading process can be started: EOFError: unexpected EOF"


# -- the folder of results ---------------------------------------------------------------------------------------------
def run_in(out: Path, found: list[HandedIn], engine: Callable[..., None]) -> batch_run.Summary:
    return batch_run.run(found, None, Options(device="cpu"), out, engine, lambda *_: None)


def in_reverse(given: Any, emit: Callable[[int, Report], None]) -> None:
    for index in reversed(range(len(given))):
        emit(index, made_up(given[index]))


def test_results_may_come_in_any_order(tmp_path: Path) -> None:
    found = a_class(tmp_path / "class", "a", "b", "c")
    run_in(tmp_path / "out", found, in_reverse)
    for name in ("a", "b", "c"):
        assert f'"submission": "{name}"' in (tmp_path / "out" / f"{name}.json").read_text()
    again = run_in(tmp_path / "out", found, lambda *_: pytest.fail("something was graded again"))
    assert again.from_store == 3


def test_two_runs_do_not_write_into_one_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    a_class(tmp_path / "class", "a")
    with alone_in(tmp_path / "out"):
        assert main(["batch", str(tmp_path / "class"), "--out", str(tmp_path / "out"), "--device", "cpu"]) == 2
    assert "another run of `autograder batch` is writing there" in capsys.readouterr().err


def test_what_a_killed_run_left_half_written_is_cleared_away(tmp_path: Path) -> None:
    out = tmp_path / "out"
    (out / STORE / "ab").mkdir(parents=True)
    for file in (out / ".a.json.12.tmp", out / STORE / "ab" / ".abc.json.12.tmp"):
        file.write_text("{")
    (out / ".mine.tmp").write_text("not of ours")
    with alone_in(out):
        pass
    assert sorted(path.name for path in out.rglob("*") if path.is_file()) == [".mine.tmp", "lock"]


@pytest.mark.parametrize("place", ["/proc/out", "/dev/null/out", "/dev/full"])
def test_a_folder_that_cannot_be_made_is_a_usage_error(
    tmp_path: Path, place: str, capsys: pytest.CaptureFixture[str]
) -> None:
    a_class(tmp_path / "class", "a")
    assert main(["batch", str(tmp_path / "class"), "--out", place]) == 2
    assert place in capsys.readouterr().err


def on_a_disk(disk: Path, options: str, prepare: str, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command with a small file system mounted at a folder, where that is possible."""
    disk.mkdir()
    script = f'mount -t tmpfs -o {options} tmpfs "$0" && {prepare} && exec "$@"'
    return subprocess.run(
        ["unshare", "-m", "sh", "-c", script, str(disk), *command],
        capture_output=True,
        text=True,
        env=ENVIRONMENT,
        cwd=ROOT,
        check=False,
    )


needs_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can mount a small disk: run it as root")


@needs_root
@pytest.mark.slow
def test_a_full_disk_ends_the_batch_with_a_clear_error_and_keeps_what_is_there(tmp_path: Path) -> None:
    a_class(tmp_path / "class", *(f"s{number}" for number in range(12)))
    disk = tmp_path / "disk"
    command = [sys.executable, "-m", "autograder", "batch", str(tmp_path / "class"), "--out", f"{disk}/out", "-e", "1"]
    done = on_a_disk(disk, "size=96k", "true", *command, "--device", "cpu")
    assert done.returncode == 3, done.stderr
    assert "Traceback" not in done.stderr
    assert "No space left on device" in done.stderr
    assert "of 12 submissions have their result" in done.stderr
    assert "the same command goes on" in done.stderr


@needs_root
def test_a_folder_on_a_read_only_disk_is_a_usage_error_before_anything_is_graded(tmp_path: Path) -> None:
    a_class(tmp_path / "class", "a")
    disk = tmp_path / "disk"
    command = [sys.executable, "-m", "autograder", "batch", str(tmp_path / "class"), "--out", f"{disk}/out"]
    done = on_a_disk(disk, "size=96k", 'mkdir "$0/out" && mount -o remount,ro "$0"', *command)
    assert done.returncode == 2, done.stderr
    assert done.stderr.splitlines()[-1].startswith(f"autograder: --out {disk}/out: nothing can be written there")


# -- what is killed or interrupted -------------------------------------------------------------------------------------
@contextlib.contextmanager
def looping_batch(tmp_path: Path, processes: int, temporary: str = "tmp") -> Iterator[subprocess.Popen[str]]:
    """A batch of two jobs that grade something that never ends, as soon as it consists of so many processes.

    It leads a process group of its own, as it does where it is called in a terminal.
    """
    for name in ("a", "b"):
        shutil.copytree(SAMPLES / "infinite_loop", tmp_path / "class" / name)
        with open(next((tmp_path / "class" / name).glob("*.py")), "a") as file:
            file.write(f"\n# {name}\n")
    (tmp_path / temporary).mkdir()
    command = [sys.executable, "-m", "autograder", "batch", str(tmp_path / "class"), "--out", str(tmp_path / "out")]
    command += ["--device", "cpu"] + (["--jobs", "2"] if pool.cores() > 1 else [])
    environment = {**ENVIRONMENT, "TMPDIR": str(tmp_path / temporary)}
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=heeds_ctrl_c,
    )
    try:
        deadline = time.monotonic() + 120
        while len(below(process.pid)) < processes and time.monotonic() < deadline:
            time.sleep(0.02)
        yield process
    finally:
        process.kill()
        process.wait()


ALL = 7 if pool.cores() > 1 else 3
"""The command, its zygote, two of multiprocessing, those that grade, one worker at least."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("processes", "temporary"),
    [(3, "tmp"), (5, "tmp"), (ALL, "tmp"), (5, "too-long-for-the-name-of-a-socket" * 3)],
)
def test_ctrl_c_says_how_far_it_got_and_leaves_nothing(tmp_path: Path, processes: int, temporary: str) -> None:
    """A terminal sends it to every process of the command, some of which are still loading PyTorch."""
    with looping_batch(tmp_path, processes, temporary) as process:
        time.sleep(0.5)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert (process.returncode, out) == (130, "")
    assert "autograder: interrupted: 0 of 2 submissions have their result" in err
    assert "Traceback" not in err
    assert list((tmp_path / temporary).iterdir()) == []


@pytest.mark.slow
def test_grading_processes_end_with_the_batch_that_was_killed(tmp_path: Path) -> None:
    """They went on until their submission was graded, beside those of the batch that was started again."""
    with looping_batch(tmp_path, ALL) as process:
        family = below(process.pid)[1:]
        process.kill()
        process.communicate(timeout=60)
    deadline = time.monotonic() + 20
    while alive := [pid for pid in family if Path(f"/proc/{pid}").exists()]:
        assert time.monotonic() < deadline, f"processes outlived the batch: {alive}"
        time.sleep(0.05)


def test_what_a_killed_process_left_in_the_temporary_folder_is_removed_by_the_next(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    code = (
        "import os, signal; from autograder.wire.scratch import ScratchFolder; folder = ScratchFolder()\n"
        "(folder.path / 'runtime').mkdir(); print(folder.path, flush=True); os.kill(os.getpid(), signal.SIGKILL)"
    )
    environment = {**ENVIRONMENT, "TMPDIR": str(tmp_path)}
    abandoned = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment, cwd=ROOT, check=False
    ).stdout.strip()
    assert os.path.isdir(os.path.join(abandoned, "runtime"))
    stranger = tmp_path / f"{scratch.PREFIX}of-another-program"
    stranger.mkdir()
    (stranger / "file").touch()
    one, two = scratch.ScratchFolder(), scratch.ScratchFolder()
    assert sorted(tmp_path.iterdir()) == sorted([one.path, two.path, stranger])
    one.remove()
    two.remove()
    assert list(tmp_path.iterdir()) == [stranger]


def test_what_cannot_be_removed_yet_is_removed_later(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its lock was removed with the first that could be, and without it nobody removed the rest."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = scratch.ScratchFolder()
    (folder.path / "a file").touch()
    (folder.path / "a link").symlink_to(tmp_path)
    (folder.path / "scratch" / "1-1").mkdir(parents=True)
    rmdir = os.rmdir

    def busy(path: str, **more: Any) -> None:  # as while somebody makes files in it
        if path in ("scratch", "1-1"):
            raise OSError(errno.ENOTEMPTY, "Directory not empty")
        rmdir(path, **more)

    with monkeypatch.context() as patched:
        patched.setattr(os, "rmdir", busy)
        folder.remove()
    assert [path.name for path in folder.path.iterdir() if path.is_dir()] == ["scratch"]
    scratch.ScratchFolder().remove()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_was_abandoned_meanwhile_is_removed_in_the_end(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Of a grading process that is killed when all is nearly graded: nobody came after it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    first, killed = scratch.ScratchFolder(), scratch.ScratchFolder()
    os.close(killed._descriptor)
    first.remove()
    assert list(tmp_path.iterdir()) == []


def test_a_folder_is_not_to_be_had_before_it_is_locked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    flock = fcntl.flock

    def meanwhile(descriptor: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", flock)
        scratch.remove_abandoned()
        flock(descriptor, operation)

    monkeypatch.setattr(fcntl, "flock", meanwhile)
    folder = scratch.ScratchFolder()
    assert folder.path.is_dir()
    scratch.remove_abandoned()
    assert folder.path.is_dir()
    folder.remove()


# -- the cluster -------------------------------------------------------------------------------------
def test_a_worker_with_another_version_of_the_grader_grades_nothing() -> None:
    with pytest.raises(UsageError, match="another version of the grader"):
        cluster._grade_there(submissions("a")[0], Options(device="cpu"), grader_hash() + "0")


@pytest.mark.slow
def test_a_scheduler_that_is_lost_stops_the_run_and_makes_no_report(tmp_path: Path) -> None:
    """What was on its way was reported as not graded, and then the run ended with a traceback."""
    file = tmp_path / "scheduler.json"
    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--host", "127.0.0.1"]
    with subprocess.Popen(
        [*command, "--no-dashboard", "--scheduler-file", str(file)], stderr=subprocess.DEVNULL
    ) as scheduler:
        deadline = time.monotonic() + 60
        while not file.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        address = json.loads(file.read_text())["address"]
        told: list[str] = []

        def tell(text: str) -> None:
            told.append(text)
            scheduler.kill()

        with pytest.raises(batch_run.Stopped, match="the scheduler is gone"):
            cluster.grade_on(
                address, submissions("a", "b"), Options(device="cpu"), lambda *_: pytest.fail("a report"), tell
            )
    assert told == ["the cluster has no workers yet: waiting for the first"]

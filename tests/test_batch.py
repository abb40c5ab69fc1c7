"""A batch: submissions from wherever they come, nothing run twice, nothing lost when something is killed."""

from __future__ import annotations

import contextlib
import csv
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import msgspec
import pytest

from autograder.batch import run as batch_run
from autograder.batch.sources import handed_in
from autograder.batch.store import Store, key
from autograder.cli import main
from autograder.grading import Options
from autograder.pool import not_graded
from autograder.render import jsonlines
from autograder.report import Check, ExerciseReport, FunctionReport, Report
from autograder.submission import UsageError, find

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "examples" / "submissions"
CODE = "def mean_nll(probabilities):\n    return 1.0\n"


def names(found: list) -> list[str]:
    return [one.name for one in found]


# -- where submissions come from ---------------------------------------------------------------------------------------
def test_a_folder_of_folders_and_files(tmp_path: Path) -> None:
    (tmp_path / "ann").mkdir()
    (tmp_path / "ann" / "ex02.py").write_text(CODE)
    (tmp_path / "ex02_bob.py").write_text(CODE)
    (tmp_path / "roster.xlsx").write_text("")
    (tmp_path / ".git").mkdir()
    found, notes = handed_in(str(tmp_path), tmp_path / "scratch")
    assert names(found) == ["ann", "ex02_bob.py"]
    assert len(notes) == 1
    assert "roster.xlsx was left out" in notes[0]


def test_nbgraders_tree(tmp_path: Path) -> None:
    for student, exercise in (("s01", "ex01"), ("s01", "ex02"), ("s02", "ex02")):
        folder = tmp_path / student / exercise
        folder.mkdir(parents=True)
        (folder / f"{exercise}_x.ipynb").write_text("{}")
        (folder / "timestamp.txt").write_text("2026-01-01")
    found, notes = handed_in(str(tmp_path), tmp_path / "scratch")
    assert names(found) == ["s01/ex01", "s01/ex02", "s02/ex02"]
    assert not notes


def test_a_table_of_paths(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    table = tmp_path / "class.csv"
    with open(table, "w", encoding="utf-8-sig", newline="") as file:
        csv.writer(file).writerows([["name", "path"], ["Müller, Ann", "a"], ["", "a"]])
    assert names(handed_in(str(table), tmp_path)[0]) == ["Müller, Ann", "a"]
    table.write_text("name,path\nx,nowhere\n")
    with pytest.raises(UsageError, match="row 2: there is no file or folder nowhere"):
        handed_in(str(table), tmp_path)
    table.write_text("student,file\nx,a\n")
    with pytest.raises(UsageError, match="`path` must be one of them"):
        handed_in(str(table), tmp_path)


ARCHIVES = {
    "Canvas": {
        "doejane_1234_567_ex02_mlm_loss-1.py": "doejane_1234",
        "roebob_LATE_99_568_ex02.py": "roebob_99",
        "roebob_LATE_99_569_ex03.py": "roebob_99",
    },
    "Moodle": {
        "Jane Doe_77_assignsubmission_file_/ex02.py": "Jane Doe_77",
        "Bob_78_assignsubmission_file_ex02.py": "Bob_78",
    },
    "Gradescope": {
        "assignment_5_export/submission_41/ex02.py": "submission_41",
        "assignment_5_export/submission_42/ex02.ipynb": "submission_42",
    },
    "somebody's own": {"ann/ex02.py": "ann", "ex02_zoe.py": "ex02_zoe"},
    "Canvas, in a folder": {
        "class/doejane_1234_567_ex02.py": "doejane_1234",
        "class/roebob_99_568_ex02.py": "roebob_99",
    },
    "folders in folders": {"class/ann/src/ex02.py": "ann", "class/bob/src/ex02.py": "bob"},
    "nbgrader's tree": {"submitted/s01/ex02/ex02.ipynb": "s01", "submitted/s02/ex02/ex02.ipynb": "s02"},
    "files in a folder": {"class/ex02_ann.py": "ex02_ann", "class/ex02_bob.py": "ex02_bob"},
    "one student's folder": {"ann/ex01.py": "ann", "ann/ex02.py": "ann"},
}


@pytest.mark.parametrize("platform", ARCHIVES)
def test_archives_of_platforms(tmp_path: Path, platform: str) -> None:
    archive = tmp_path / "class.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for name in ARCHIVES[platform]:
            file.writestr(name, CODE)
    found, notes = handed_in(str(archive), tmp_path / "scratch")
    assert names(found) == sorted(set(ARCHIVES[platform].values()))
    assert not notes
    for one in found:
        files = [name for name, who in ARCHIVES[platform].items() if who == one.name]
        numbers = [work.exercise.number for work in find(one.path, None).works]
        assert numbers == [int(re.findall(r"ex(\d\d)", name)[-1]) for name in files]


def test_no_file_of_one_student_takes_the_place_of_anothers(tmp_path: Path) -> None:
    """Folders whose names come out alike were one, and so was a folder of the same name in two students' folders."""
    archive = tmp_path / "class.zip"
    mine = {
        "ann/ex02.py": "# of ann",
        "ANN/ex02.py": "# of ANN",
        ".ann/ex02.py": "# of .ann",
        "bob/src/ex02.py": "# of bob",
        "eve/src/ex02.py": "# of eve",
        "eve/ex02.py": "# of eve, too",
        "ann.py": "# a file",
    }
    with zipfile.ZipFile(archive, "w") as file:
        for name, text in mine.items():
            file.writestr(name, text)
    found, notes = handed_in(str(archive), tmp_path / "scratch")
    assert names(found) == [".ann", "ANN", "ann", "ann.py", "bob", "eve"]
    assert len({one.path.casefold() for one in found}) == len(found)
    texts = {one.name: [path.read_text() for path in Path(one.path).iterdir()] for one in found}
    assert texts["ann"] == ["# of ann"]
    assert texts["ANN"] == ["# of ANN"]
    assert texts[".ann"] == ["# of .ann"]
    assert texts["bob"] == ["# of bob"]
    assert texts["eve"] == ["# of eve"]
    assert notes == ["eve/ex02.py was left out: there is another ex02.py of the same person"]


def test_a_hostile_archive_writes_nothing_but_submissions(tmp_path: Path) -> None:
    archive, scratch = tmp_path / "class.zip", tmp_path / "deep" / "scratch"
    link = zipfile.ZipInfo("ann/ex03.py")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("ann/ex02.py", CODE)
        file.writestr("../../evil.py", CODE)
        file.writestr("/etc/evil.py", CODE)
        file.writestr("ann\\..\\..\\evil.py", CODE)
        file.writestr(link, "/etc/passwd")
        file.writestr("bomb/ex02.py", b"\0" * (30 * 2**20))
        file.writestr("ann/run.sh", "rm")
    found, notes = handed_in(str(archive), scratch)
    assert names(found) == ["ann"]
    assert len(notes) == 6
    written = [path for path in tmp_path.rglob("*") if path.is_file() and path != archive]
    assert [path.name for path in written] == ["ex02.py"]
    assert not any(path.is_symlink() for path in tmp_path.rglob("*"))


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("nothing.zip", b"PK\x05\x06" + b"\0" * 18, "no submission found"),
        ("class.txt", b"hello", "neither a folder"),
        ("class.csv", b"\xff\xfe\x00", "cannot be read as a CSV"),
    ],
)
def test_what_holds_no_submissions_is_a_plain_error(tmp_path: Path, name: str, content: bytes, why: str) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(UsageError, match=why):
        handed_in(str(tmp_path / name), tmp_path / "scratch")
    with pytest.raises(UsageError, match="no such file"):
        handed_in(str(tmp_path / "gone"), tmp_path / "scratch")


# -- the store ---------------------------------------------------------------------------------------------------------
def made_up(submission, verdict: str = "passed") -> Report:
    points = 200 if verdict == "passed" else 0
    check = Check("test_a", "A.", verdict, points, 200, "", "", 0.1)
    exercises = tuple(ExerciseReport("ex02", "E", (FunctionReport("f", (check,)),)) for _ in submission.works)
    return Report(submission.name, exercises, "full", "cpu", 0, "0")


def test_the_key_is_that_of_the_content_not_of_the_place(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ex02.py").write_text(CODE if name != "c" else CODE + "#")
    one, same, other = (find(str(tmp_path / name), None) for name in ("a", "b", "c"))
    assert key(one, Options(device="cpu")) == key(same, Options(device="cpu"))
    assert key(one, Options(device="cpu")) != key(other, Options(device="cpu"))
    assert key(one, Options(device="cpu")) != key(one, Options(device="cpu", seed=1))
    assert key(one, Options(device="cpu")) != key(one, Options(device="cpu", sandbox="strict"))


def test_a_result_that_needs_attention_is_not_kept(tmp_path: Path) -> None:
    submission = find(str(SAMPLES / "stub"), None)
    store = Store(tmp_path)
    store.put("ab12", not_graded(submission, Options(device="cpu"), "why"))
    assert store.get("ab12") is None
    store.put("ab12", made_up(submission))
    assert store.get("ab12") == made_up(submission)
    next(tmp_path.rglob("*.json")).write_text("{half")
    assert store.get("ab12") is None


def test_only_what_is_new_is_graded_again(tmp_path: Path) -> None:
    graded: list[str] = []
    folder = tmp_path / "class"
    for name in ("a", "b", "same as a"):
        (folder / name).mkdir(parents=True)
        (folder / name / "ex02.py").write_text(CODE + ("" if name != "b" else "# b"))
    (folder / "empty").mkdir()

    def engine(submissions, emit) -> None:
        for index, submission in enumerate(submissions):
            graded.append(submission.name)
            verdict = "grader_error" if submission.name == "b" and len(graded) < 3 else "passed"
            emit(index, made_up(submission, verdict))

    def once() -> batch_run.Summary:
        found, _ = handed_in(str(folder), tmp_path)
        return batch_run.run(found, None, Options(device="cpu"), tmp_path / "out", engine, lambda *_: None)

    (tmp_path / "out").mkdir()
    summary = once()
    assert graded == ["a", "b", "empty"]
    assert summary.from_store == 1
    assert summary.attention == ["b"]
    assert "need attention" in summary.text
    once()
    assert graded[3:] == ["b"]
    summary = once()
    assert graded[4:] == []
    assert summary.from_store == 4
    reports = {path.stem: jsonlines.read(path.read_text()) for path in (tmp_path / "out").glob("*.json")}
    assert len(reports) == 4
    assert {report.submission for report in reports.values()} == {"a", "b", "empty", "same as a"}


def test_a_file_that_changes_meanwhile_is_stored_as_what_was_graded(tmp_path: Path) -> None:
    """The key was that of the file as it was first looked at."""
    file = tmp_path / "class" / "ex02_a.py"
    file.parent.mkdir()
    file.write_text(CODE)
    out = tmp_path / "out"
    out.mkdir()

    def engine(submissions, emit) -> None:
        file.write_text(CODE + "# later")
        emit(0, made_up(submissions[0]))

    found, _ = handed_in(str(file.parent), tmp_path)
    batch_run.run(found, None, Options(device="cpu"), out, engine, lambda *_: None)
    store = Store(out / ".store")
    assert store.get(key(batch_run.read(found[0], None), Options(device="cpu"))) is not None
    file.write_text(CODE)
    assert store.get(key(batch_run.read(found[0], None), Options(device="cpu"))) is None


# -- for real ----------------------------------------------------------------------------------------------------------
@pytest.fixture
def small_class(tmp_path: Path) -> Path:
    for name in ("right_but_unusual", "mean_over_all_positions", "ends_the_process", "stub", "copy_loss_overflows"):
        shutil.copytree(SAMPLES / name, tmp_path / "class" / name)
    return tmp_path / "class"


def verdicts(out: Path) -> dict[str, list[tuple[str, str, int, str]]]:
    """Everything of every stored report but the seconds."""
    found = {}
    for path in sorted(out.glob("*.json")):
        report = jsonlines.read(path.read_text())
        found[report.submission] = [(c.id, c.verdict, c.points, c.message) for c in report.checks]
    return found


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "autograder", "batch", *map(str, arguments)]


@pytest.mark.slow
def test_a_killed_batch_goes_on_where_it_stopped(small_class: Path, tmp_path: Path) -> None:
    undisturbed, out = tmp_path / "undisturbed", tmp_path / "out"
    assert main(["batch", str(small_class), "--out", str(undisturbed), "--device", "cpu"]) == 0
    process = subprocess.Popen(
        command(small_class, "--out", out, "--device", "cpu"), stdout=subprocess.DEVNULL, start_new_session=True
    )
    deadline = time.monotonic() + 120
    while len(list(out.glob("*.json"))) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    there = {path.name: path.read_text() for path in out.glob("*.json")}
    assert 2 <= len(there) < 5
    assert main(["batch", str(small_class), "--out", str(out), "--device", "cpu"]) == 0
    assert verdicts(out) == verdicts(undisturbed)
    for name, text in there.items():
        assert (out / name).read_text() == text


@pytest.mark.slow
def test_a_cluster_gives_the_same_results_also_when_a_worker_is_killed(small_class: Path, tmp_path: Path) -> None:
    import distributed

    here, there = tmp_path / "here", tmp_path / "there"
    assert main(["batch", str(small_class), "--out", str(here), "--device", "cpu"]) == 0
    with distributed.LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, host="127.0.0.1"
    ) as cluster:
        process = subprocess.Popen(
            command(small_class, "--out", there, "--device", "cpu", "--scheduler", cluster.scheduler_address),
            stdout=subprocess.PIPE,
            text=True,
        )
        deadline = time.monotonic() + 120
        while not list(there.glob("*.json")) and time.monotonic() < deadline and process.poll() is None:
            time.sleep(0.02)
        victim = next(iter(cluster.workers.values())).pid
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim, signal.SIGKILL)
        output, _ = process.communicate(timeout=240)
        assert process.returncode == 0, output
    assert verdicts(there) == verdicts(here)


def test_a_scheduler_that_is_not_there_is_a_usage_error(
    small_class: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ["batch", str(small_class), "--out", str(tmp_path / "out"), "--scheduler", "no-such-scheme://x"]
    assert main(arguments) == 2
    assert "there is no scheduler" in capsys.readouterr().err
    assert main([*arguments, "--jobs", "2"]) == 2


def test_the_summary_is_of_all(tmp_path: Path) -> None:
    summary = batch_run.Summary(submissions=2)
    for report in (made_up(find(str(SAMPLES / "stub"), {2})), made_up(find(str(SAMPLES / "stub"), {2}), "failed")):
        summary.add(msgspec.structs.replace(report))
    assert "Mean 1.00 points of at most 2; 1 with full marks." in summary.text
    assert "1 passed, 1 failed" in summary.text

"""The command itself among hostile files: what lies beside a submission is neither run nor believed."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from autograder.grading import grade
from autograder.render import jsonlines
from tests.attacks.corpus import ATTACKS
from tests.attacks.corpus_replies import REPLIES
from tests.attacks.test_attacks import bystander
from tests.attacks.traces import left_by

ROOT = Path(__file__).parents[2]
SOLUTION = ROOT / "solutions" / "ex02_mlm_loss.py"
STUB = (ROOT / "exercises" / "ex02_mlm_loss.py").read_text(encoding="utf-8")
#: Modules that the grader, Python itself or their children import: here they would tell on whoever runs them.
SHADOWS = (
    *("sitecustomize", "usercustomize", "conftest", "torch", "numpy", "pytest", "hypothesis", "msgpack", "msgspec"),
    *("autograder", "exercises", "solutions", "multiprocessing", "struct", "pickle", "socket", "json", "random"),
    *("secrets", "signal", "fcntl", "mmap", "readline", "encodings"),
)
SETTINGS = {
    "pytest.ini": "[pytest]\naddopts = -p conftest\npython_files = *\n",
    "tox.ini": "[pytest]\naddopts = -p conftest\n",
    "setup.cfg": "[tool:pytest]\naddopts = -p conftest\n",
    "pyproject.toml": "[tool.pytest.ini_options]\naddopts = '-p conftest'\n",
    "evil.pth": "import conftest\n",
    "pyvenv.cfg": "home = .\n",
    ".pdbrc": "import conftest\n",
}
#: Attacks of all families that do not burn the time of a whole grading.
QUICK = (
    *("always_equal", "patched_codec", "early_reply", "replayed_identity", "closed_channel", "exits_zero", "detached"),
    *("exits_at_import", "signals_group", "walks_files", "imports_hidden", "writes_conftest", "symbolic_links"),
    *("workflow_commands", "terminal_escapes", "memory_cut_off", "notes_are_a_number", "notes_with_escapes"),
    *("identity_is_an_array", "identity_when_tidying", "device_when_loading", "stop_iteration", "strange_calls"),
    "poisons_libraries",
)
LINKS = ("link to the solution", "link to a bystander", "link through a folder")
NAMES = ["new\nline", "\x1b[2J\x1b[31mansi", "::error file=x::y", "$(touch left)", "; touch left", "‮txt", "<b>bold<b>"]


@dataclass(frozen=True)
class Run:
    """One run of the command.  stored: the JSON files in OUT by the path that was graded."""

    arguments: list[str]
    out: Path
    marks: Path
    status: int
    stdout: str
    stderr: str

    def stored(self, name: str) -> Any:
        (found,) = [r for r in map(_read, self.out.iterdir()) if os.path.basename(r["submission"]) == name]
        return found


def _read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def beside(folder: Path, marks: Path) -> None:
    """Everything that somebody's tools might pick up, each leaving a mark when it is run."""
    for name in SHADOWS:
        code = f"import os; open({str(marks / name)!r}, 'w').close(); os._exit(0)\n"
        if name in ("torch", "multiprocessing", "autograder", "exercises", "encodings"):
            (folder / name).mkdir()
            (folder / name / "__init__.py").write_text(code)
        else:
            (folder / f"{name}.py").write_text(code)
    for name, text in SETTINGS.items():
        (folder / name).write_text(text)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """`autograder grade DIR/*`, from within DIR, with two grading processes."""
    base = tmp_path_factory.mktemp("command")
    handed_in, marks, out = base / "handed in", base / "marks", base / "out"
    temporary = base / "temporary"
    for folder in (handed_in, marks, temporary):
        folder.mkdir()

    def student(name: str, code: str | None = None) -> Path:
        folder = handed_in / name
        folder.mkdir()
        if code is not None:
            (folder / SOLUTION.name).write_text(code, encoding="utf-8")
        return folder

    for name in ("a bystander", "zz bystander"):
        student(name, SOLUTION.read_text(encoding="utf-8"))
    beside(student("with company", STUB), marks)
    beside(handed_in, marks)
    (student("link to the solution") / SOLUTION.name).symlink_to(SOLUTION)
    (student("link to a bystander") / SOLUTION.name).symlink_to(f"../a bystander/{SOLUTION.name}")
    nested = student("link through a folder")
    (nested / "there").symlink_to(SOLUTION.parent)
    (nested / SOLUTION.name).symlink_to(f"there/{SOLUTION.name}")
    for name in NAMES:
        student(name, STUB)
    for attack in [*ATTACKS, *REPLIES]:
        if attack.name in QUICK:
            student(attack.name, attack.code)
    arguments = [str(path) for path in sorted(handed_in.iterdir()) if path.is_dir()]
    arguments.append(f"{handed_in}/a bystander/../../handed in/with company/../::error file=x::y")
    command = [str(Path(sys.executable).with_name("autograder")), "grade", *arguments, "-e", "2", "--jobs", "2"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "GITHUB_ACTIONS": "true", "SECRET_TOKEN": "geheim-4711"}
    environment["TMPDIR"] = str(temporary)
    done = subprocess.run(
        [*command, "--verbose", "--out", str(out)],
        capture_output=True,
        text=True,
        errors="surrogateescape",
        env=environment,
        cwd=handed_in,
        check=False,
    )
    assert left_by(temporary) == []
    return Run(arguments, out, marks, done.returncode, done.stdout, done.stderr)


def test_it_ends_well(run: Run) -> None:
    assert run.status == 0, run.stderr
    assert "Traceback" not in run.stdout + run.stderr
    assert "geheim-4711" not in run.stdout + run.stderr


def test_nothing_beside_a_submission_was_run(run: Run) -> None:
    """`--jobs 2` had Python import `multiprocessing` from the current folder, outside of all walls."""
    assert sorted(path.name for path in run.marks.iterdir()) == []


@pytest.mark.parametrize("name", ["a bystander", "zz bystander"])
def test_a_bystander_gets_what_it_gets_alone(run: Run, name: str) -> None:
    alone = json.loads(jsonlines.stored(grade(bystander())))
    stored = run.stored(name)
    for report in (alone, stored):
        del report["submission"]
    seconds = re.compile(r'"seconds": [0-9.e-]+')
    assert seconds.sub("", json.dumps(stored)) == seconds.sub("", json.dumps(alone))
    assert stored["points"] == stored["max_points"] == 10


def test_everybody_has_one_report(run: Run) -> None:
    reports = [_read(path) for path in run.out.iterdir()]
    assert sorted(report["submission"] for report in reports) == sorted(run.arguments)
    found = {os.path.basename(report["submission"]): report["points"] for report in reports if report["points"]}
    assert found == {"a bystander": 10, "zz bystander": 10}


@pytest.mark.parametrize("name", ["with company", *LINKS, *NAMES[:2], *NAMES[3:], *QUICK])
def test_a_hostile_folder_earns_nothing(run: Run, name: str) -> None:
    report = run.stored(name)
    checks = [check for e in report["exercises"] for f in e["functions"] for check in f["checks"]]
    assert report["points"] == 0
    assert {check["verdict"] for check in checks} & {"passed", "grader_error"} == set()


@pytest.mark.parametrize("name", LINKS)
def test_a_link_out_of_the_submission_is_not_followed(run: Run, name: str) -> None:
    text = json.dumps(run.stored(name))
    assert "it is a link to a file outside of the submission" in text


def test_results_lie_in_the_folder_for_them_under_harmless_names(run: Run) -> None:
    names = os.listdir(run.out)
    assert all(re.fullmatch(r"[\w.-]+\.json", name, re.ASCII) for name in names), names
    assert all((run.out / name).is_file() and not (run.out / name).is_symlink() for name in names)
    assert sorted(os.listdir(run.out.parent)) == ["handed in", "marks", "out", "temporary"]
    assert not (run.out.parent / "handed in" / "left").exists()


def test_what_it_prints_is_inert(run: Run) -> None:
    for text in (run.stdout, run.stderr):
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", text)
        assert not re.search(r"^\s*(::|##\[)", text, re.MULTILINE)

"""The kits for GitHub, GitLab and Gradescope: linted, and every shell step run here as the platform would.

Stand-ins are what fetches: checking out, cloning, making the environment.  The grader is the real one, between its real
walls, and so are the submissions.
"""

from __future__ import annotations

import base64
import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from autograder.cli import main
from autograder.render import jsonlines
from autograder.report import Report
from autograder.syllabus import SYLLABUS

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "examples" / "submissions"
SCRIPTS = Path(sys.executable).parent  # where pip puts the linters
SECRET = "the-deploy-token"

HOSTILE = """
import os, sys
print("::error title=own::printed\\n::set-output name=ex02::printed\\n::stop-commands::x")
sys.stderr.write("::error::printed too\\n")
for path in PATHS:
    try:
        open(path, "a").write("ex02=ZmFrZQ==\\n")
    except Exception:
        pass

def mean_nll(probabilities):
    raise ValueError("\\n::error title=own::raised\\n::stop-commands::y\\n\\x1b[0Ksection_start:1:own\\r<script>]]>")

def stable_log_softmax(logits):
    return "\\n::warning::returned\\n"

def mlm_loss(logits, labels, ignore_index=-100):
    os._exit(0)
"""


def made(folder: Path, platform: str, *options: str) -> Path:
    assert main(["ci", platform, "--out", str(folder), *options]) == 0
    return folder


def with_files(folder: Path, *sources: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for source in sources:
        shutil.copy(source, folder)
    return folder


def right(folder: Path) -> None:
    with_files(
        folder / "exercises", SAMPLES / "right" / "ex02_mlm_loss.py", SAMPLES / "right" / "ex03_copy_shortcut.py"
    )


def wrong(folder: Path) -> None:
    with_files(folder / "exercises", SAMPLES / "mean_of_sequence_means" / "ex02_mlm_loss.py")


def hostile(folder: Path) -> None:
    """Text of the student's wherever it can stand: printed, raised, returned, and in a file's name."""
    with_files(folder / "exercises")
    paths = [str(folder.parent.parent / "temp" / name) for name in ("output-grade", "output-report", "summary")]
    (folder / "exercises" / "ex02_mlm_loss.py").write_text(HOSTILE.replace("PATHS", repr(paths)), encoding="utf-8")
    (folder / "exercises" / "mine\n::error title=own::named\n.py").touch()
    for name in ("venv.py", "pip.py", "json.py", "sitecustomize.py"):  # what a Python started there would import
        for place in (folder, folder / "exercises"):
            (place / name).write_text("raise SystemExit('imported from the submission')", encoding="utf-8")


def linked_to_solutions(folder: Path) -> None:
    """The folder of the work is a link to right answers outside of the repository."""
    (folder / "exercises").symlink_to(ROOT / "solutions")


def stand_ins(folder: Path, course: Path) -> Path:
    """A folder of programs that stand in for Python, where it makes an environment, and for git, where it clones.

    course: where the environment's `autograder` is imported from.
    """
    folder.mkdir()
    grader = folder / "autograder"
    command = f"{shlex.quote(sys.executable)} -P -m autograder"
    grader.write_text(
        f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(course))} OMP_NUM_THREADS=1 exec {command} "$@"\n', encoding="utf-8"
    )
    pip = folder / "pip"  # installs nothing, but sees that what it is asked for is there
    pip.write_text(
        '#!/bin/sh\nwhile [ "$1" != -c ]; do shift; done\n[ -f "$2" ] && [ "$3" = -e ] && [ -f "$4/pyproject.toml" ]\n',
        encoding="utf-8",
    )
    python = f"""#!/bin/sh
case "$*" in
  "-I -c import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))") ;;
  "-I -m venv "*) mkdir -p "$4/bin"; cp {shlex.quote(str(pip))} {shlex.quote(str(grader))} "$4/bin" ;;
  *) echo "not expected: python $*" >&2; exit 9 ;;
esac
"""
    names = ("solutions", "pyproject.toml", "constraints.txt")
    git = f"""#!/bin/sh
for last; do :; done
case "$*" in *https://grader:{SECRET}@gitlab.example/group/course.git*) ;; *) exit 9 ;; esac
mkdir -p "$last/.git"
cp -r {" ".join(shlex.quote(str(ROOT / name)) for name in names)} "$last"
"""
    for name, text in {"python": python, "python3": python, "python3.13": python, "git": git}.items():
        (folder / name).write_text(text, encoding="utf-8")
    for program in folder.iterdir():
        program.chmod(0o755)
    return folder


def shell_environment(programs: Path, **more: str) -> dict[str, str]:
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    return {"PATH": path, "HOME": os.environ.get("HOME", "/"), **more}


def stored(folder: Path) -> Report:
    (path,) = folder.glob("*.json")
    return jsonlines.read(path.read_text(encoding="utf-8"))


def lint(*command: str) -> subprocess.CompletedProcess[str]:
    program = SCRIPTS / command[0]
    assert program.exists(), f"{command[0]} is not installed: pip install -e '.[dev]'"
    path = f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [str(program), *command[1:]], capture_output=True, text=True, env={**os.environ, "PATH": path}
    )


# GitHub


@dataclass
class Job:
    """What a job of GitHub's came to.

    ran: the exit status of every step that was not skipped.  commands: those that its runner would have obeyed.
    """

    temp: Path
    outputs: dict[str, str] = field(default_factory=dict)
    ran: dict[str, int] = field(default_factory=dict)
    logs: dict[str, str] = field(default_factory=dict)
    commands: list[str] = field(default_factory=list)
    summary: str = ""

    @property
    def succeeded(self) -> bool:
        return not any(self.ran.values())


def obeyed(log: str) -> list[str]:
    """The workflow commands that a runner obeys in a log."""
    found, stopped = [], ""
    for line in re.split(r"[\r\n]+", log):
        line = line.strip()
        if stopped:
            stopped = "" if line == f"::{stopped}::" else stopped
        elif line.startswith("::stop-commands::"):
            stopped = line.removeprefix("::stop-commands::")
        elif line.startswith("::") or "##[" in line:
            found.append(line)
    assert not stopped, "the runner would obey nothing any more"
    return found


def run_job(workflow: dict[str, Any], folder: Path, hand_in: Callable[[Path], None]) -> Job:
    """Run the steps of the job `grade`, as far as they are shell, with a runner's environment."""
    workspace, temp = folder / "work space", folder / "temp"
    temp.mkdir()
    job = Job(temp)
    (temp / "summary").touch()
    programs = stand_ins(folder / "bin", ROOT)
    for step in workflow["jobs"]["grade"]["steps"]:
        if not holds(step.get("if", "success()"), job):
            continue
        if "uses" in step:
            job.ran[step["name"]] = 0
            if step["uses"].startswith("actions/checkout@"):
                check_out(workspace / step["with"]["path"], hand_in)
            continue
        id_ = step.get("id", f"step-{len(job.ran)}")
        (temp / f"script-{id_}").write_text(step["run"], encoding="utf-8")
        output = temp / f"output-{id_}"
        output.touch()
        environment = shell_environment(
            programs,
            GITHUB_WORKSPACE=str(workspace),
            GITHUB_OUTPUT=str(output),
            GITHUB_STEP_SUMMARY=str(temp / "summary"),
            RUNNER_TEMP=str(temp),
            **workflow["env"],
            **{key: filled(value, job) for key, value in step.get("env", {}).items()},
        )
        done = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", str(temp / f"script-{id_}")],
            cwd=workspace,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            timeout=300,
        )
        job.ran[step["name"]], job.logs[step["name"]] = done.returncode, done.stdout
        job.commands += obeyed(done.stdout)
        for line in output.read_text(encoding="utf-8").splitlines():
            key, value = line.split("=", 1)
            job.outputs[f"{id_}.{key}"] = value
    job.summary = (temp / "summary").read_text(encoding="utf-8")
    return job


def check_out(place: Path, hand_in: Callable[[Path], None]) -> None:
    place.mkdir(parents=True)
    if place.name == "submission":
        hand_in(place)
    else:
        with_files(place, ROOT / "pyproject.toml", ROOT / "constraints.txt")


def filled(text: str, job: Job) -> str:
    return re.sub(r"\$\{\{ steps\.(\w+)\.outputs\.(\w+) \}\}", lambda m: job.outputs.get(f"{m[1]}.{m[2]}", ""), text)


def holds(condition: str, job: Job) -> bool:
    """What a step's condition comes to; as GitHub does, success() is added unless the condition asks for a status."""
    text = condition.removeprefix("${{").removesuffix("}}").strip()
    asks = "cancelled()" in text
    for part, value in {
        "!cancelled()": True,
        "success()": job.succeeded,
        "steps.grade.outputs.status != ''": "grade.status" in job.outputs,
        "steps.report.conclusion == 'success'": job.ran.get("Report") == 0,
    }.items():
        text = text.replace(part, str(value))
    assert re.fullmatch(r"(True|False)( && (True|False))*", text), condition
    return "False" not in text and (asks or job.succeeded)


@pytest.fixture(scope="module")
def workflow_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("kit"), "github", "-e", "2", "-e", "3") / ".github" / "workflows" / "grade.yml"


@pytest.fixture(scope="module")
def workflow(workflow_file: Path) -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load(workflow_file.read_text(encoding="utf-8"))
    return found


def findings(path: Path) -> list[dict[str, Any]]:
    """Of jactionlint, which has actionlint's checks and some of security, with shellcheck for the steps."""
    done = lint("jactionlint", "--format", "json", str(path))
    assert "shellcheck was not found" not in done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("options", [(), ("-e", "2", "--lang", "zh")], ids=["all exercises", "one, in Chinese"])
def test_the_workflow_has_no_finding_but_two(tmp_path: Path, options: tuple[str, ...]) -> None:
    """A deploy key is the narrowest that reads one other repository; GitHub Classroom's reporter follows its tag."""
    path = made(tmp_path, "github", *options) / ".github" / "workflows" / "grade.yml"
    assert sorted(found["id"] for found in findings(path)) == ["checkout-static-credentials", "unpinned-uses"]


@pytest.mark.parametrize(
    ("before", "after"), [("steps.grade.outputs", "steps.grades.outputs"), ('exit "$STATUS"', "exit $STATUS")]
)
def test_a_faulty_workflow_has_findings(tmp_path: Path, workflow_file: Path, before: str, after: str) -> None:
    text = workflow_file.read_text(encoding="utf-8")
    assert before in text
    (tmp_path / "grade.yml").write_text(text.replace(before, after), encoding="utf-8")
    assert len(findings(tmp_path / "grade.yml")) > 2


def test_the_workflow_may_do_little(workflow: dict[str, Any]) -> None:
    assert workflow["permissions"] == {"contents": "read"}
    assert set(workflow[True]) == {"push", "workflow_dispatch"}  # YAML reads the key `on` as true
    grade, reporter = workflow["jobs"]["grade"], workflow["jobs"]["run-autograding-tests"]
    assert "permissions" not in grade
    assert reporter["permissions"] == {"actions": "read", "checks": "write", "contents": "read"}
    assert "secrets" not in json.dumps(reporter)
    checkouts = [step["with"] for step in grade["steps"] if step.get("uses", "").startswith("actions/checkout@")]
    assert [step["persist-credentials"] for step in checkouts] == [False, False]
    assert json.dumps(workflow).count("secrets.") == 1
    for step in grade["steps"]:
        if "uses" in step:
            assert re.search(r"@[0-9a-f]{40}$", step["uses"])
        else:  # nothing of anybody else's is pasted into a script
            assert "${{" not in step["run"]


def test_the_reporter_gets_what_the_grader_gives(workflow: dict[str, Any]) -> None:
    (step,) = workflow["jobs"]["run-autograding-tests"]["steps"]
    runners = step["with"]["runners"].split(",")
    assert runners == ["ex02", "ex03"] == list(workflow["jobs"]["grade"]["outputs"])
    assert step["env"] == {f"{name.upper()}_RESULTS": f"${{{{ needs.grade.outputs.{name} }}}}" for name in runners}


def test_github_grades_a_right_submission(workflow: dict[str, Any], tmp_path: Path) -> None:
    job = run_job(workflow, tmp_path, right)
    assert job.succeeded, job.logs
    assert job.commands == []
    assert "submission/exercises" in job.summary
    assert str(tmp_path) not in job.summary
    assert stored(job.temp / "results").points == 2000
    for name in ("ex02", "ex03"):
        record = json.loads(base64.b64decode(job.outputs[f"report.{name}"]))
        assert (record["status"], sum(test["score"] for test in record["tests"])) == ("pass", 10)
    assert "Keep the report" in job.ran
    assert (job.temp / "results" / "report.html").is_file()


def test_github_grades_a_wrong_submission(workflow: dict[str, Any], tmp_path: Path) -> None:
    """Also: what is missing, here exercise 3, counts as not implemented, and points lost do not fail the run."""
    job = run_job(workflow, tmp_path, wrong)
    assert job.succeeded, job.logs
    assert "The mean of the sequences' means" in job.summary
    assert 0 < stored(job.temp / "results").points < 1000
    assert job.commands
    assert all(command.startswith("::error file=exercises/ex0") for command in job.commands), job.commands


def test_github_obeys_nothing_that_a_student_says(workflow: dict[str, Any], tmp_path: Path) -> None:
    job = run_job(workflow, tmp_path, hostile)
    assert job.succeeded, job.logs
    assert stored(job.temp / "results").points < 200
    assert "::error title=own" in job.logs["Grade"], "the submission did not get to say it"
    for command in job.commands:
        assert re.match(r"::(error file=exercises/ex0[23]_\w+\.py,|notice )title=", command), command
        assert not re.search(r"title=own|printed", command.partition("::")[2].partition("::")[0])
    record = json.loads(base64.b64decode(job.outputs["report.ex02"]))
    assert sum(test["score"] for test in record["tests"]) < 2
    assert "ZmFrZQ" not in job.summary
    assert set(job.outputs) == {"grade.status", "report.ex02", "report.ex03"}
    assert "imported from the submission" not in "".join(job.logs.values())


def test_github_does_not_follow_a_link_to_the_solutions(workflow: dict[str, Any], tmp_path: Path) -> None:
    job = run_job(workflow, tmp_path, linked_to_solutions)
    assert not job.succeeded
    assert "a link to a place outside" in job.logs["Grade"]
    assert job.outputs == {}
    assert not list(job.temp.glob("results/*"))


def test_github_says_that_there_is_no_folder(workflow: dict[str, Any], tmp_path: Path) -> None:
    job = run_job(workflow, tmp_path, lambda folder: None)
    assert not job.succeeded
    assert "no such file or folder" in job.logs["Grade"]
    assert "Nothing was graded" in job.commands[0]
    assert "Keep the report" not in job.ran


# GitLab


@pytest.fixture(scope="module")
def pipeline_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("kit"), "gitlab", "-e", "2", "-e", "3") / ".gitlab-ci.yml"


def run_pipeline(
    pipeline_file: Path, folder: Path, hand_in: Callable[[Path], None], shell: str = "bash"
) -> tuple[subprocess.CompletedProcess[str], Path]:
    """Run the job's script in one shell, as GitLab's runner does; what it came to, and the folder of the report."""
    job = yaml.safe_load(pipeline_file.read_text(encoding="utf-8"))["grade"]
    project = folder / "builds" / "a project"
    project.mkdir(parents=True)
    hand_in(project)
    (folder / "temp").mkdir()
    environment = shell_environment(
        stand_ins(folder / "bin", ROOT),
        TMPDIR=str(folder / "temp"),
        CI_PROJECT_DIR=str(project),
        CI_SERVER_HOST="gitlab.example",
        COURSE_PROJECT="group/course",
        COURSE_REF="v1",
        COURSE_USER="grader",
        COURSE_TOKEN=SECRET,
        **job["variables"],
    )
    script = "set -e\n" + "\n".join(job["script"])
    done = subprocess.run(
        [shell, "-c", script], cwd=project, env=environment, capture_output=True, text=True, timeout=300
    )
    return done, project / "grade-report"


def test_the_pipeline_is_valid(pipeline_file: Path, tmp_path: Path) -> None:
    """By GitLab's schema, and its script by shellcheck."""
    check = ("check-jsonschema", "--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci")
    assert lint(*check, str(pipeline_file)).returncode == 0
    broken = tmp_path / ".gitlab-ci.yml"
    broken.write_text(pipeline_file.read_text(encoding="utf-8").replace("when: always", "when: whenever"))
    assert lint(*check, str(broken)).returncode == 1
    job = yaml.safe_load(pipeline_file.read_text(encoding="utf-8"))["grade"]
    assert job["artifacts"]["when"] == "always"
    assert job["artifacts"]["reports"]["junit"] == "grade-report/junit.xml"
    (tmp_path / "script.sh").write_text("#!/bin/sh\n" + "\n".join(job["script"]), encoding="utf-8")
    done = lint("shellcheck", str(tmp_path / "script.sh"))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("shell", ["bash", "sh"])
def test_gitlab_grades(pipeline_file: Path, tmp_path: Path, shell: str) -> None:
    done, report = run_pipeline(pipeline_file, tmp_path, right, shell)
    assert done.returncode == 0, done.stderr
    cases = list(ET.parse(report / "junit.xml").iter("testcase"))
    assert len(cases) > 50
    assert all(len(case) == 0 for case in cases)
    assert stored(report).points == 2000
    assert (report / "report.html").is_file()
    assert SECRET not in done.stdout + done.stderr


def test_gitlab_shows_no_result_that_was_handed_in(pipeline_file: Path, tmp_path: Path) -> None:
    def with_a_report(folder: Path) -> None:
        hostile(folder)
        (folder / "grade-report").mkdir()
        (folder / "grade-report" / "junit.xml").write_text("<testsuites/>", encoding="utf-8")
        (folder / "grade-report" / "more.xml").touch()

    done, report = run_pipeline(pipeline_file, tmp_path, with_a_report)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in report.iterdir() if path.suffix != ".json") == ["junit.xml", "report.html"]
    failed = [case for case in ET.parse(report / "junit.xml").iter("testcase") if case.find("failure") is not None]
    assert len(failed) > 10
    assert stored(report).points < 200
    assert "\x1b" not in done.stdout + done.stderr
    assert "imported from the submission" not in done.stdout + done.stderr


def test_gitlab_does_not_follow_links(pipeline_file: Path, tmp_path: Path) -> None:
    def with_links(folder: Path) -> None:
        linked_to_solutions(folder)
        (tmp_path / "kept").mkdir()
        (tmp_path / "kept" / "file").touch()
        (folder / "grade-report").symlink_to(tmp_path / "kept")

    done, report = run_pipeline(pipeline_file, tmp_path, with_links)
    assert done.returncode == 2
    assert "a link to a place outside" in done.stdout
    assert not list(report.iterdir())
    assert (tmp_path / "kept" / "file").exists()


# Gradescope


@dataclass(frozen=True)
class Container:
    """Where Gradescope has unpacked the ZIP file and run setup.sh."""

    root: Path
    environment: dict[str, str]

    def command(self) -> list[str]:
        return ["bash", str(self.root / "source" / "run_autograder")]

    def grade(self, *files: Path) -> dict[str, Any]:
        self.hand_in(*files)
        done = subprocess.run(self.command(), env=self.environment, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
        return self.results()

    def hand_in(self, *files: Path) -> None:
        for name in ("submission", "results"):
            shutil.rmtree(self.root / name, ignore_errors=True)
        with_files(self.root / "submission", *files)

    def results(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.root / "results" / "results.json").read_text(encoding="utf-8"))
        assert isinstance(found["score"], int | float)
        assert found["visibility"] in ("visible", "hidden")
        assert all(test["status"] in ("passed", "failed") for test in found["tests"])
        return found


@pytest.fixture(scope="module")
def container(tmp_path_factory: pytest.TempPathFactory) -> Container:
    """Built once.  The grader that runs is the one in the ZIP file."""
    folder = tmp_path_factory.mktemp("gradescope")
    made(folder / "kit", "gradescope", "-e", "2")
    root = folder / "autograder"
    with zipfile.ZipFile(folder / "kit" / "autograder.zip") as archive:
        archive.extractall(root / "source")
    programs = stand_ins(folder / "bin", root / "source" / "course")
    environment = shell_environment(programs, AUTOGRADER_ROOT=str(root))
    setup = ["bash", str(root / "source" / "setup.sh")]
    done = subprocess.run(setup, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "sandbox" in done.stdout
    return Container(root, environment)


def test_gradescope_scripts_have_no_finding(container: Container) -> None:
    for name in ("setup.sh", "run_autograder"):
        done = lint("shellcheck", str(container.root / "source" / name))
        assert done.returncode == 0, done.stdout


def test_the_zip_file_holds_the_grader_and_no_solution(tmp_path: Path) -> None:
    paths = [made(tmp_path / name, "gradescope", "-e", "2") / "autograder.zip" for name in ("a", "b")]
    assert paths[0].read_bytes() == paths[1].read_bytes()
    with zipfile.ZipFile(paths[0]) as archive:
        names = archive.namelist()
        modes = {entry.filename: entry.external_attr >> 16 for entry in archive.infolist()}
    assert modes["setup.sh"] == modes["run_autograder"] == 0o755
    for part in ("solutions/", "honest/", "impostors/", "__pycache__", "notebooks/", "/authors/"):
        assert not [name for name in names if part in name]
    assert [name for name in names if name.startswith("course/autograder/hidden/test_ex02")]
    assert "course/exercises/kit/data/tiny/model.safetensors" in names


def test_gradescope_grades(container: Container) -> None:
    right = container.grade(SAMPLES / "right" / "ex02_mlm_loss.py")
    assert (right["score"], right["visibility"]) == (10, "visible")
    wrong = container.grade(SAMPLES / "mean_of_sequence_means" / "ex02_mlm_loss.py")
    assert 0 < wrong["score"] < 10
    assert wrong["score"] == pytest.approx(sum(test["score"] for test in wrong["tests"]))
    hostile = container.grade(SAMPLES / "reads_the_tests" / "ex02_mlm_loss.py")
    assert hostile["score"] == 0
    nothing = container.grade()
    assert nothing["score"] == 0
    assert "Nothing was handed in" in json.dumps(nothing)


@pytest.mark.parametrize("grader", [None, "#!/bin/sh\nexit 2\n"], ids=["not there", "ends at once"])
def test_gradescope_has_a_valid_file_when_the_grader_fails(
    container: Container, tmp_path: Path, grader: str | None
) -> None:
    root = tmp_path / "autograder"
    shutil.copytree(container.root / "source", root / "source", ignore=shutil.ignore_patterns("course"))
    (root / "venv" / "bin").mkdir(parents=True)
    if grader is not None:
        (root / "venv" / "bin" / "autograder").write_text(grader, encoding="utf-8")
        (root / "venv" / "bin" / "autograder").chmod(0o755)
    found = Container(root, {**container.environment, "AUTOGRADER_ROOT": str(root)})
    results = found.grade(SAMPLES / "right" / "ex02_mlm_loss.py")
    assert results["extra_data"] == {"status": "not_finished"}
    assert results["visibility"] == "hidden"


def test_gradescope_has_a_valid_file_when_it_is_stopped(container: Container) -> None:
    container.hand_in(SAMPLES / "right" / "ex02_mlm_loss.py")
    run = subprocess.Popen(
        container.command(),
        env=container.environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        deadline = time.monotonic() + 30
        while not (container.root / "results" / "results.json").exists() and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.3)
    finally:
        os.killpg(run.pid, signal.SIGKILL)
        run.wait()
    assert container.results()["extra_data"] == {"status": "not_finished"}


# All


@pytest.mark.parametrize("platform", ["github", "gitlab", "gradescope"])
def test_a_kit_says_what_to_do(platform: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = made(tmp_path, platform)
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert str(folder / "README.md") in capsys.readouterr().out
    assert re.findall(r"^(\d)\. ", readme, re.MULTILINE) == ["1", "2", "3"]
    assert "## What is trusted" in readme
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".zip"]
    everything = "".join(path.read_text(encoding="utf-8") for path in files)
    assert not re.search(r"[«»]|<%|%>", everything)
    for exercise in SYLLABUS:
        assert f"-e {exercise.number}" in everything
    for in_github, in_gitlab in re.findall(r"(?:vars|secrets)\.(\w+)|\$(COURSE_\w+)", everything):
        assert f"`{in_github or in_gitlab}`" in readme


def test_a_folder_that_cannot_be_made_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").touch()
    assert main(["ci", "gitlab", "--out", str(tmp_path / "file")]) == 2
    assert "cannot be made" in capsys.readouterr().err

"""The command: its exit statuses, what it prints where, and whole runs over the sample class."""

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from processes import heeds_ctrl_c

from autograder import __version__, pool
from autograder.cli import main
from autograder.files import file_stems, write_atomically
from autograder.grading import Options, Submission, Work
from autograder.render import jsonlines
from autograder.report import Check, ExerciseReport, FunctionReport, Report
from autograder.syllabus import EXERCISES, SYLLABUS
from autograder.wire.errors import GraderFault

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "examples" / "submissions"


def made_up(submission, verdict="passed", points=700):
    """A report that nobody had to grade for."""
    functions = (
        FunctionReport("f", (Check("test_f", "Title", verdict, points, 1000, "message", "", 0.1),)),
        FunctionReport("g", ()),
    )
    exercises = tuple(ExerciseReport(w.exercise.id, w.exercise.title, functions) for w in submission.works)
    return Report(submission.name, exercises, "full", "cpu", 0, __version__, submission.notes)


@pytest.fixture
def instead_of_grading(monkeypatch):
    """Replace grading by a function Submission -> Report, which may raise."""

    def install(grade=made_up):
        def grade_all(submissions, options, on_report):
            for submission in submissions:
                on_report(grade(submission))

        monkeypatch.setattr(pool, "grade_all", grade_all)

    install()
    return install


@pytest.fixture
def class_of_three(tmp_path):
    for name in ("zoe", "adam", "mia"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ex02_mlm_loss.py").touch()
    return [str(tmp_path / name) for name in ("zoe", "adam", "mia")]


# -- exit statuses -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "required: COMMAND"),
        (["grade"], "required: PATH"),
        (["grade", "x", "-e", "99"], "there is no exercise 99: there are 1, 2"),
        (["grade", "x", "-e", "two"], "there is no exercise two"),
        (["grade", "x", "--jobs", "0"], "0 is not a whole number from 1"),
        (["grade", "x", "--seed", "-1"], "argument --seed"),
        (["grade", "x", "--seed", "4294967296"], "not a whole number from 0 to 4294967295"),
        (["grade", "x", "--min-score", "nan"], "nan is not a number of points"),
        (["grade", "x", "--min-score", "A"], "A is not a number of points"),
        (["grade", "x", "--format", "xml"], "invalid choice: 'xml'"),
        (["check", "0"], "there is no exercise 0"),
    ],
)
def test_a_command_that_makes_no_sense_exits_with_2(capsys, arguments, message):
    with pytest.raises(SystemExit) as ending:
        main(arguments)
    assert ending.value.code == 2
    printed = capsys.readouterr()
    assert message in " ".join(printed.err.split())
    assert printed.out == ""


def test_one_missing_path_stops_everything_before_anything_is_graded(
    class_of_three, instead_of_grading, capsys, tmp_path
):
    instead_of_grading(lambda submission: pytest.fail("graded"))
    missing = str(tmp_path / "nobody")
    assert main(["grade", *class_of_three, missing]) == 2
    printed = capsys.readouterr()
    assert printed.err == f"autograder: {missing}: there is no such file or folder\n"
    assert printed.out == ""


def test_cuda_without_cuda_is_a_usage_error(class_of_three, capsys, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert main(["grade", *class_of_three, "--device", "cuda"]) == 2
    assert "--device cuda: PyTorch sees no CUDA device here" in capsys.readouterr().err


@pytest.mark.parametrize(("least", "status"), [("7", 0), ("7.00", 0), ("7.01", 1), ("0", 0), ("1e3", 1), ("-1", 0)])
def test_min_score_is_in_points_and_holds_for_each_submission(class_of_three, instead_of_grading, least, status):
    assert main(["grade", *class_of_three, f"--min-score={least}"]) == status
    instead_of_grading(lambda s: made_up(s, points=1000 if "adam" in s.name else 701))
    assert main(["grade", *class_of_three, "--min-score", "7.01"]) == 0


def test_a_fault_of_the_grader_exits_with_3_and_is_no_zero(class_of_three, instead_of_grading, capsys):
    instead_of_grading(lambda s: made_up(s, "grader_error", 0) if "adam" in s.name else made_up(s, points=100))
    assert main(["grade", *class_of_three, "--min-score", "5"]) == 3
    printed = capsys.readouterr()
    assert f"{class_of_three[1]}: the grader itself failed: message" in printed.err
    assert "grader error" in printed.out


def test_when_grading_breaks_on_one_the_others_are_graded(class_of_three, instead_of_grading, capsys):
    def grade(submission):
        if "adam" in submission.name:
            raise GraderFault("no zygote")
        return made_up(submission)

    instead_of_grading(grade)
    assert main(["grade", *class_of_three, "--format", "json"]) == 3
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["submission"] for line in lines] == class_of_three
    assert [(line["points"], line["max_points"]) for line in lines] == [(7, 10), (0, 10), (7, 10)]
    checks = [check for function in lines[1]["exercises"][0]["functions"] for check in function["checks"]]
    assert {check["verdict"] for check in checks} == {"grader_error"}
    assert {check["message"] for check in checks} == {"GraderFault: no zygote"}


def test_ctrl_c_keeps_what_is_graded(class_of_three, instead_of_grading, capsys, tmp_path):
    def grade(submission):
        if "mia" in submission.name:
            raise KeyboardInterrupt
        return made_up(submission)

    instead_of_grading(grade)
    assert main(["grade", *class_of_three, "--out", str(tmp_path / "out")]) == 130
    printed = capsys.readouterr()
    assert printed.err == "autograder: interrupted\n"
    assert "adam" in printed.out
    assert len(list((tmp_path / "out").iterdir())) == 2


# -- what is printed where ---------------------------------------------------------------------------------------------


def test_json_is_alone_on_standard_output_one_line_a_path_in_their_order(class_of_three, instead_of_grading, capsys):
    def grade(submission):
        print("a check that prints")
        return made_up(submission)

    instead_of_grading(grade)
    paths = [*class_of_three, class_of_three[0]]
    assert main(["grade", *paths, "--format", "json"]) == 0
    printed = capsys.readouterr()
    assert [json.loads(line)["submission"] for line in printed.out.splitlines()] == paths
    assert printed.err.count("a check that prints\n") == 4
    assert printed.err.endswith("autograder: GPU checks were not run: everything was graded on the CPU.\n")


def test_notes_go_to_standard_error_beside_json(tmp_path, instead_of_grading, capsys):
    (tmp_path / "EX 2.py").touch()
    main(["grade", str(tmp_path), "--format", "json"])
    printed = capsys.readouterr()
    assert f"autograder: {tmp_path}: exercise 2 is taken from EX 2.py\n" in printed.err
    assert "taken from" not in printed.out


def test_one_path_gives_a_report_and_several_give_a_table(class_of_three, instead_of_grading, capsys):
    main(["grade", class_of_three[0]])
    assert capsys.readouterr().out.startswith(f"Submission  {class_of_three[0]}\n")
    main(["grade", *class_of_three])
    text = capsys.readouterr().out
    assert re.findall(r"│ (zoe|adam|mia) ", text) == ["zoe", "adam", "mia"]
    assert "Submission  " not in text
    main(["grade", *class_of_three, "-v"])
    assert capsys.readouterr().out.count("Submission  ") == 3


def test_hostile_names_are_inert_on_both_streams(tmp_path, instead_of_grading, capsys):
    name = "ex02\x1b[2J\n::error::x\u202e\udcff.py"
    (tmp_path / name).touch()
    path = str(tmp_path / name)
    assert main(["grade", path, path]) == 0
    assert main(["grade", path]) == 0
    assert main(["grade", path + "x"]) == 2
    printed = capsys.readouterr()
    for text in printed:
        assert not set(text) & set("\x1b\u202e\udcff")
        assert not re.search(r"^\s*::", text, re.M)
    assert main(["grade", path, "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)["submission"] == path


@pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}, {}])
def test_colour_is_for_terminals_that_want_it(class_of_three, instead_of_grading, monkeypatch, variables):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    for name in ("NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    for stream, coloured in ((Terminal(), not variables), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stdout", stream)
        main(["grade", class_of_three[0]])
        assert ("\x1b[" in stream.getvalue()) == coloured


# -- --out -------------------------------------------------------------------------------------------------------------


def test_out_holds_one_file_a_path_beside_what_is_printed(class_of_three, instead_of_grading, capsys, tmp_path):
    folder = tmp_path / "new" / "folder"
    main(["grade", *class_of_three, *class_of_three, "--format", "json", "--out", str(folder)])
    lines = capsys.readouterr().out.splitlines(keepends=True)
    files = [file.read_text() for file in sorted(folder.iterdir())]
    assert len(files) == 6
    assert all(text.count("\n") == 1 for text in files)
    kept = [jsonlines.line(jsonlines.read(text)) + "\n" for text in files]  # what is stored has more in it
    assert sorted(kept) == sorted(lines)
    assert all(file.name.endswith(".json") for file in folder.iterdir())


def test_out_in_the_way_of_a_file_is_a_usage_error(class_of_three, instead_of_grading, capsys, tmp_path):
    (tmp_path / "file").touch()
    assert main(["grade", *class_of_three, "--out", str(tmp_path / "file")]) == 2
    assert "the folder cannot be made" in capsys.readouterr().err


def test_file_names_are_safe_and_unique():
    paths = ["a/b.py", "a-b.py", "a/b.py", "A-B.PY", "../../etc/passwd", "..", "/", "中文", "-rf", ".hidden", "x" * 400]
    paths += ["a\nb", "a b", "a\udcffb", "a-b.py-2", "CON"]
    names = file_stems(paths)
    assert len({name.casefold() for name in names}) == len(paths)
    for name in names:
        assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name), name
        assert len(name) < 130
    assert names[0] == "a-b.py"
    assert file_stems(paths) == names


def test_a_file_is_there_as_a_whole_or_not_at_all(tmp_path, monkeypatch):
    target = tmp_path / "a.json"
    write_atomically(target, "old")

    def fail(*_):
        raise OSError("disk full")

    for step in ("fsync", "replace"):
        with monkeypatch.context() as patch:
            patch.setattr(os, step, fail)
            with pytest.raises(OSError, match="disk full"):
                write_atomically(target, "new")
        assert target.read_text() == "old"
        assert list(tmp_path.iterdir()) == [target]
    write_atomically(target, "new")
    assert target.read_text() == "new"


# -- the pool ----------------------------------------------------------------------------------------------------------


def pretend(connection, options, leases):
    """Runs in a process of the pool in the place of grading: what the submission is called is what happens."""
    while (submission := connection.recv()) is not None:
        if submission.name == "killed":
            os.kill(os.getpid(), signal.SIGKILL)
        if submission.name == "dies once" and not os.path.exists(submission.notes[0]):
            open(submission.notes[0], "w").close()
            os.kill(os.getpid(), signal.SIGKILL)
        if submission.name == "slow":
            time.sleep(1)
        if submission.name == "fault":
            connection.send("GraderFault: no zygote")
            return
        connection.send(made_up(submission))


def pooled(monkeypatch, *names, notes=()):
    monkeypatch.setattr(pool, "grade_what_comes", pretend)
    submissions = [Submission(name, (Work(EXERCISES[1], ()),), notes) for name in names]
    reports = []
    pool.grade_in_order(submissions, Options(device="cpu", in_process=True), 2, reports.append)
    assert [report.submission for report in reports] == list(names)
    return reports


def test_reports_come_in_order_and_what_kills_two_processes_needs_attention(monkeypatch):
    reports = pooled(monkeypatch, "slow", "b", "killed", "c", "d")
    assert [report.needs_attention for report in reports] == [False, False, True, False, False]
    assert "the grading process ended (exit status -9)" in reports[2].checks[0].message
    assert reports[2].max_points == 1000


def test_a_process_that_dies_once_costs_nothing(monkeypatch, tmp_path):
    reports = pooled(monkeypatch, "dies once", "b", "c", notes=(str(tmp_path / "died"),))
    assert not any(report.needs_attention for report in reports)
    assert (tmp_path / "died").exists()


def test_when_no_process_is_left_the_rest_needs_attention(monkeypatch):
    monkeypatch.setattr(pool, "FAULTS_IN_A_ROW", 0)
    reports = pooled(monkeypatch, "killed", "fault", "c", "d")
    assert all(report.needs_attention for report in reports)
    assert reports[1].checks[0].message == "GraderFault: no zygote"
    assert reports[3].checks[0].message


def test_more_jobs_than_cores_are_not_started(class_of_three, instead_of_grading, monkeypatch, capsys):
    monkeypatch.setattr(pool, "cores", lambda: 1)
    assert main(["grade", *class_of_three, "--jobs", "64"]) == 0
    assert "--jobs 64: this machine has 1 cores, so 1 jobs" in capsys.readouterr().err


# -- other commands ----------------------------------------------------------------------------------------------------


def test_commands_that_only_tell_do_not_load_pytorch():
    code = (
        "import sys; from autograder.cli import main\n"
        "for argv in (['--version'], ['--help'], ['grade', '--help'], ['syllabus'], ['syllabus', '--format=json']):\n"
        "    try: main(argv)\n"
        "    except SystemExit as end: assert end.code == 0\n"
        "assert not {'torch', 'numpy', 'pytest', 'rich'} & sys.modules.keys()"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 0, run.stderr
    assert run.stdout.startswith(f"autograder {__version__}\n")


def test_syllabus_tells_the_table(capsys):
    assert main(["syllabus", "--format", "json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert [entry["id"] for entry in record] == [exercise.id for exercise in SYLLABUS]
    assert all(sum(f["points"] for f in entry["functions"]) == entry["points"] == 10 for entry in record)
    assert main(["syllabus"]) == 0
    text = capsys.readouterr().out
    assert all(f"{f.name}({', '.join(f.parameters)})" in text for e in SYLLABUS for f in e.functions)


def test_build_check_says_what_is_stale(capsys, monkeypatch):
    monkeypatch.setattr("autograder.build.drift", lambda root: ["exercises/ex01.py is missing"])
    assert main(["build", "--check"]) == 1
    assert capsys.readouterr().out == "exercises/ex01.py is missing\n"
    monkeypatch.setattr("autograder.build.drift", lambda root: [])
    assert main(["build", "--check"]) == 0


def test_check_tells_what_passed_and_how_many_checks_come_later(capsys, tmp_path):
    (tmp_path / "mine.py").write_text(
        (SAMPLES / "mean_over_all_positions" / "ex02_mlm_loss.py").read_text(encoding="utf-8"), encoding="utf-8"
    )
    assert main(["check", "2", str(tmp_path / "mine.py")]) == 1
    text = capsys.readouterr().out
    assert "  ✓ Probabilities 0.5 and 0.25 have the mean NLL 1.5 ln 2.\n" in text
    assert (
        "  ✗ Two targets in one sequence and none in the other: the denominator is 2.\n      │ mlm_loss is 0." in text
    )
    assert re.search(r"^5 of 6 visible checks passed\. \d\d more checks, which are not shown here, decide", text, re.M)


def test_check_takes_a_notebook_and_survives_a_file_that_ends_the_process(capsys, tmp_path, monkeypatch):
    assert main(["check", "5", str(SAMPLES / "notebook")]) == 0
    assert "skipped `%%time`" in capsys.readouterr().out
    (tmp_path / "ex01.py").write_text("import os\nos._exit(0)\n")
    monkeypatch.setattr("autograder.visible.HIDDEN", tmp_path)  # as in a student's copy of the course
    assert main(["check", "1", str(tmp_path)]) == 1
    assert "The run ended before it could report (exit status 0)." in capsys.readouterr().out


@pytest.mark.parametrize(("path", "status"), [("nowhere.py", 2), ("ex01.txt", 1)])
def test_check_of_nothing_that_can_be_read_is_explained(capsys, tmp_path, path, status):
    (tmp_path / "ex01.txt").touch()
    assert main(["check", "1", str(tmp_path / path)]) == status
    printed = capsys.readouterr()
    assert "no such file" in printed.err or "neither a .py module nor a .ipynb notebook" in printed.out


# -- whole runs --------------------------------------------------------------------------------------------------------


def graded(*arguments):
    """Exit status and reports of a real run."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        status = main(["grade", *map(str, arguments), "--format", "json"])
    return status, [json.loads(line) for line in out.getvalue().splitlines()]


def verdicts(report):
    return {c["verdict"] for e in report["exercises"] for f in e["functions"] for c in f["checks"]}


def misconceptions(report):
    messages = [c["message"] for e in report["exercises"] for f in e["functions"] for c in f["checks"] if c["hint"]]
    return {message.rpartition("\n")[2].partition(":")[0] for message in messages}


@pytest.fixture(scope="module")
def sample_class():
    names = ["right_but_unusual", "stub", "mean_over_all_positions", "syntax_error", "ends_the_process"]
    names += ["reads_the_tests", "always_equal", "notebook"]
    status, reports = graded(*(SAMPLES / name for name in names))
    assert status == 0
    return dict(zip(names, reports, strict=True))


def test_right_work_has_all_points_however_unusual(sample_class):
    for name in ("right_but_unusual", "notebook"):
        assert sample_class[name]["points"] == sample_class[name]["max_points"] > 0, sample_class[name]
        assert verdicts(sample_class[name]) == {"passed"}


def test_a_stub_is_not_implemented(sample_class):
    assert sample_class["stub"]["points"] == 0
    assert verdicts(sample_class["stub"]) == {"not_implemented"}


def test_one_wrong_function_costs_only_its_own_points(sample_class):
    for name in ("mean_over_all_positions", "ends_the_process"):
        whole = [f["name"] for f in sample_class[name]["exercises"][0]["functions"] if f["points"] == f["max_points"]]
        assert len(whole) == 2, name
    assert "crashed" in verdicts(sample_class["ends_the_process"])
    assert misconceptions(sample_class["mean_over_all_positions"])


def test_a_file_that_cannot_be_loaded_is_a_crash_that_names_the_line(sample_class):
    assert verdicts(sample_class["syntax_error"]) == {"crashed"}
    check = sample_class["syntax_error"]["exercises"][0]["functions"][0]["checks"][0]
    assert "SyntaxError" in check["message"]
    assert "line 14" in check["message"]


@pytest.mark.parametrize("name", ["reads_the_tests", "always_equal"])
def test_hostile_work_gets_nothing(sample_class, name):
    assert sample_class[name]["points"] == 0
    assert "grader_error" not in verdicts(sample_class[name])


def test_a_missing_exercise_and_a_refused_file_have_reports(tmp_path):
    (tmp_path / "ex02.py").write_bytes(b"\0")
    status, (report,) = graded(tmp_path, "-e", 2, "-e", 3, "--min-score", "1")
    assert status == 1
    assert [exercise["id"] for exercise in report["exercises"]] == ["ex02", "ex03"]
    by_exercise = [verdicts({"exercises": [exercise]}) for exercise in report["exercises"]]
    assert by_exercise == [{"crashed"}, {"not_implemented"}]
    assert report["max_points"] == 20


def test_ctrl_c_ends_everything_that_was_started(tmp_path):
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    command = [sys.executable, "-m", "autograder", "grade", str(SAMPLES / "infinite_loop"), "--format", "json"]
    run = subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heeds_ctrl_c,
    )
    deadline = time.monotonic() + 60
    while not list(tmp_path.glob("autograder-zygote-*/runtime")) and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(2)
    run.send_signal(signal.SIGINT)
    out, err = run.communicate(timeout=60)
    assert (run.returncode, out) == (130, "")
    assert err.rstrip().endswith("autograder: interrupted")
    assert "Traceback" not in err
    assert list(tmp_path.iterdir()) == []

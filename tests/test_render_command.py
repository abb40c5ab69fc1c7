"""`autograder grade --format …` and `autograder render`: documents, languages, files and refusals."""

import csv
import glob
import io
import json
import re
import shlex
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from autograder import pool
from autograder.cli import main
from autograder.render import jsonlines
from autograder.render.formats import FORMATS, STORED_ONLY
from autograder.report import Check, ExerciseReport, FunctionReport, Report

ROOT = Path(__file__).parents[1]


def graded(submission):
    check = Check("test_f", "Title", "failed", 0, 1000, "中文 message", "", 0.1, "off-limits")
    if "fault" in submission.name:
        check = Check("test_f", "Title", "grader_error", 0, 1000, "no zygote", "", 0.1)
    exercises = tuple(
        ExerciseReport(work.exercise.id, work.exercise.title, (FunctionReport("mlm_loss", (check,)),))
        for work in submission.works
    )
    return Report(submission.name, exercises, "full", "cpu", 0, "0.1.0", ("a note",))


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Three submissions, graded without work; the grader fails at the third."""

    def grade_all(submissions, options, on_report):
        for submission in submissions:
            on_report(graded(submission))

    monkeypatch.setattr(pool, "grade_all", grade_all)
    for name in ("s01", "s02", "fault"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "ex02_mlm_loss.py").touch()
    return [str(tmp_path / name) for name in ("s01", "s02", "fault")]


@pytest.fixture
def results(folders, tmp_path, capsys):
    assert main(["grade", *folders[:2], "--out", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    return sorted(map(str, (tmp_path / "out").iterdir()))


def test_what_out_holds_reads_back_whole(folders, results):
    for path, folder in zip(results, folders, strict=False):
        report = jsonlines.read(Path(path).read_text(encoding="utf-8"))
        assert (report.submission, report.notes, report.checks[0].misconception) == (folder, ("a note",), "off-limits")


@pytest.mark.parametrize("name", [name for name in FORMATS if name not in ("json", *STORED_ONLY)])
def test_grading_and_rendering_give_the_same_document(folders, tmp_path, capsys, name):
    chosen = folders[:1] if FORMATS[name].single else folders[:2]
    assert main(["grade", *chosen, "--format", name, "--lang", "zh", "--out", str(tmp_path / "out")]) == 0
    document = capsys.readouterr().out
    assert len(document) > 80
    stored = sorted(map(str, (tmp_path / "out").iterdir()))
    assert main(["render", *stored, "--format", name, "--lang", "zh"]) == 0
    assert capsys.readouterr().out == document


def test_json_lines_can_be_rendered_and_come_out_as_they_were(folders, tmp_path, capsys):
    main(["grade", *folders[:2], "--format", "json"])
    lines = capsys.readouterr().out
    (tmp_path / "class.jsonl").write_text(lines, encoding="utf-8")
    assert main(["render", str(tmp_path / "class.jsonl"), "--format", "json"]) == 0
    assert capsys.readouterr().out == lines
    assert main(["render", str(tmp_path / "class.jsonl")]) == 0
    assert "│ s02 " in capsys.readouterr().out


def test_a_document_of_what_the_grader_failed_at_exits_with_3(folders, capsys):
    assert main(["grade", *folders, "--format", "csv"]) == 3
    printed = capsys.readouterr()
    rows = list(csv.DictReader(io.StringIO(printed.out)))
    assert [row["score"] for row in rows] == ["0", "0", ""]
    assert "fault: the grader itself failed: no zygote" in printed.err


def test_a_document_is_written_to_a_file_as_a_whole(results, tmp_path, capsys):
    out = tmp_path / "report.xml"
    assert main(["render", *results, "--format", "junit", "--out", str(out)]) == 0
    assert capsys.readouterr().out == ""
    assert ET.parse(out).getroot().get("tests") == "2"
    assert main(["render", *results, "--format", "canvas", "--out", str(tmp_path / "canvas.csv")]) == 0
    assert (tmp_path / "canvas.csv").read_bytes().count(b"\r\n") == 4


def test_documents_are_utf_8_whatever_the_terminal_is(results, monkeypatch):
    stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    monkeypatch.setattr("sys.stdout", stream)
    assert main(["render", results[0], "--format", "html", "--lang", "zh"]) == 0
    assert "评分报告" in stream.buffer.getvalue().decode("utf-8")


def test_the_file_for_gradescope_before_grading(tmp_path, capsys):
    out = tmp_path / "results.json"
    assert main(["render", "--format", "gradescope", "--unfinished", "--out", str(out)]) == 0
    assert json.loads(out.read_text())["extra_data"] == {"status": "not_finished"}


def test_rendering_says_what_is_no_grade(folders, tmp_path, capsys):
    main(["grade", folders[2], "--out", str(tmp_path / "out")])
    capsys.readouterr()
    (path,) = (tmp_path / "out").iterdir()
    assert main(["render", str(path), "--format", "html", "--out", str(tmp_path / "x.html")]) == 0
    assert "the grader itself failed: this is not a grade yet" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "there is no result to render"),
        (["RESULTS", "--format", "gradescope"], "takes one submission at a time; here are 2"),
        (["RESULTS", "--format", "classroom"], "takes one submission at a time; here are 2"),
        (["RESULTS", "--lang", "zh"], "the format terminal is in English only"),
        (["RESULTS", "RESULTS", "--format", "moodle"], "two results have ex02 of s01"),
        (["RESULTS", "--unfinished"], "--unfinished goes with --format gradescope"),
        (["nowhere.json"], "nowhere.json: cannot be read (No such file or directory)"),
        ([str(ROOT / "README.md")], "README.md: not a result of `autograder grade` (Expecting value"),
        (["RESULTS", "--format", "html", "--out", "/nowhere/at/all.html"], "cannot be written"),
    ],
)
def test_what_cannot_be_rendered_is_explained(results, capsys, arguments, message):
    given = [path for argument in arguments for path in (results if argument == "RESULTS" else [argument])]
    assert main(["render", *given]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert message in printed.err
    assert printed.err.count("\n") == 1


def test_grading_refuses_before_it_grades(folders, monkeypatch, capsys):
    monkeypatch.setattr(pool, "grade_all", lambda *_: pytest.fail("graded"))
    assert main(["grade", *folders, "--format", "gradescope"]) == 2
    assert main(["grade", *folders, "--lang", "zh"]) == 2
    assert capsys.readouterr().out == ""


# -- docs/formats.md ---------------------------------------------------------------------------------------------------

PAGE = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
COMMANDS = [line.strip() for line in PAGE.splitlines() if line.startswith("    autograder render ")]


def test_the_page_lists_every_format_and_how_many_reports_it_takes():
    rows = dict(re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| ([^|]+) \|", PAGE, re.M))
    takes = {name: count for names, count in rows.items() for name in re.findall(r"\w+", names)}
    assert takes.keys() - {"terminal"} == FORMATS.keys()
    for name, form in FORMATS.items():
        assert form.single == (takes[name] == "one")
        assert ("`render` only" in takes[name]) == (name in STORED_ONLY)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_commands_of_the_page_work(folders, tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    main(["grade", folders[0], "--out", "results"])
    capsys.readouterr()
    words = shlex.split(command.replace("/autograder/results/", "").partition(" >")[0])
    arguments = [path for word in words[1:] for path in (sorted(glob.glob(word)) if "*" in word else [word])]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    written = Path(words[words.index("--out") + 1]).read_text(encoding="utf-8") if "--out" in words else printed
    assert len(written) > 80


def test_the_page_shows_commands():
    assert len(COMMANDS) >= 9

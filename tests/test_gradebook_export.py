"""`autograder export`: the gradebook's own totals, in files that no spreadsheet and no platform misreads."""

from __future__ import annotations

import csv
import io
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from made_results import exercise, result, store
from nbgrader import api
from postgresql_server import empty, server
from sqlalchemy import create_engine, text

from autograder.cli import main
from autograder.nbgrader.database import opened
from autograder.syllabus import EXERCISES


@pytest.fixture(scope="module")
def running() -> Iterator[str]:
    with server() as (address, _):
        yield address


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of either kind with nothing in it."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/gradebook.db"
    return empty(str(request.getfixturevalue("running")))


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/gradebook.db"


def export(url: str, kind: str, capsys, *more: str) -> tuple[list[list[str]], str]:
    """The rows of the file, and what was said."""
    capsys.readouterr()
    assert main(["export", "--db", url, "--format", kind, *more]) == 0
    said = capsys.readouterr()
    return list(csv.reader(io.StringIO(said.out, newline=""), strict=True)), said.err


def score(url: str, kind: str, who: str, capsys) -> list[str]:
    rows, _ = export(url, kind, capsys)
    first = rows[0].index("Section" if kind == "canvas" else "Email address") + 1
    (found,) = [row[first:] for row in rows[1:] if row[3 if kind == "canvas" else 0] == who]
    return found


def a_class(url: str, folder: Path, size: int = 12) -> None:
    """Scores of all kinds: automatic, manual, extra credit, penalties, unmarked answers, faults, nothing handed in."""
    chance = random.Random(7)
    results = []
    for number in range(size):
        done = [2, 5] if number % 3 else [1, 2]
        points = [[chance.randrange(0, f.points + 1) for f in EXERCISES[n].functions] for n in done]
        fault = "grader_error" if number == 4 else "failed"
        parts = [exercise(n, *p, verdict=fault) for n, p in zip(done, points, strict=True)]
        results.append(result(f"s{number:02}", *parts))
    main(["gradebook", str(store(folder, *results)), "--db", url])
    with api.Gradebook(url) as gradebook:
        gradebook.add_student("nobody", last_name="Absent")
        for assignment in gradebook.assignments:
            for submission in gradebook.assignment_submissions(assignment.name):
                for notebook in submission.notebooks:
                    if chance.random() < 0.5:
                        notebook.late_submission_penalty = round(chance.random() * 3, 2)
                    for grade in notebook.grades:
                        if chance.random() < 0.3:
                            grade.manual_score, grade.needs_manual_grade = round(chance.random() * 2, 3), False
                        if chance.random() < 0.2:
                            grade.extra_credit = 0.5
        gradebook.db.commit()


def test_totals_are_the_gradebooks_own(url: str, tmp_path: Path, capsys) -> None:
    a_class(url, tmp_path / "results")
    (header, *rows), _ = export(url, "csv", capsys)
    canvas, said = export(url, "canvas", capsys)
    moodle, _ = export(url, "moodle", capsys)
    names = [title.split()[0] for title in canvas[0][5:]]
    assert names == [title.split()[0] for title in moodle[0][2:]] == ["ex01", "ex02", "ex05"]
    seen = dict.fromkeys(("graded", "needs manual grade", "needs attention", "missing"), 0)
    with api.Gradebook(url) as gradebook:
        for row in rows:
            entry = dict(zip(header, row, strict=True))
            name, who = entry["assignment"], entry["student_id"]
            seen[entry["status"]] += 1
            in_canvas = next(row for row in canvas[2:] if row[3] == who)[5 + names.index(name)]
            in_moodle = next(row for row in moodle[1:] if row[0] == who)[2 + names.index(name)]
            assert float(entry["max_score"]) == gradebook.find_assignment(name).max_score
            if entry["status"] == "missing":
                with pytest.raises(api.MissingEntry):
                    gradebook.find_submission(name, who)
                assert (entry["score"], in_canvas, in_moodle) == ("0.0", "", "-")
                continue
            submission = gradebook.find_submission(name, who)
            if entry["status"] == "needs attention":
                assert any(
                    g.auto_score is None and g.cell.cell_type == "code" for n in submission.notebooks for g in n.grades
                )
                assert (entry["raw_score"], entry["score"], in_canvas, in_moodle) == ("", "", "", "-")
                continue
            penalty = submission.late_submission_penalty
            assert float(entry["raw_score"]) == pytest.approx(submission.score, abs=1e-9)
            assert float(entry["late_submission_penalty"]) == pytest.approx(penalty, abs=1e-9)
            own = max(0.0, submission.score - penalty)
            assert float(entry["score"]) == pytest.approx(own, abs=0.00501)
            assert (entry["status"] == "needs manual grade") == submission.needs_manual_grade
            if submission.needs_manual_grade:
                assert (in_canvas, in_moodle) == ("", "-")
            else:
                assert float(in_canvas) == float(in_moodle) == float(entry["score"])
    assert all(seen.values()), seen
    assert f"{seen['needs manual grade'] + seen['needs attention']} grades are not finished" in said


def test_nbgraders_own_export_reads_the_same(url: str, tmp_path: Path, capsys) -> None:
    """As a command of its own, with nbgrader's own exporter."""
    a_class(url, tmp_path / "results", size=6)
    (header, *rows), _ = export(url, "csv", capsys)
    ours = {(row[0], row[3]): dict(zip(header, row, strict=True)) for row in rows}
    done = subprocess.run(
        [
            *(sys.executable, "-m", "nbgrader", "export", "--exporter", "nbgrader.plugins.CsvExportPlugin"),
            *("--to", "theirs.csv", f"--CourseDirectory.db_url={url}"),
        ],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    with open(tmp_path / "theirs.csv", encoding="utf-8", newline="") as file:
        theirs = {(row["assignment"], row["student_id"]): row for row in csv.DictReader(file)}
    assert set(theirs) == set(ours)
    compared = [key for key in theirs if ours[key]["status"] != "needs attention"]
    assert len(compared) > 10
    for key in compared:
        assert float(theirs[key]["score"]) == pytest.approx(float(ours[key]["score"]), abs=0.00501)
        assert float(theirs[key]["raw_score"]) == pytest.approx(float(ours[key]["raw_score"]), abs=1e-9)


def test_the_files_as_they_stand(sqlite: str, tmp_path: Path, capsys) -> None:
    results = store(
        tmp_path / "results", result("zoe", exercise(2, 200, 300, 430)), result("b@example.org", exercise(2, 0, 0, 0))
    )
    main(["gradebook", str(results), "--db", sqlite])
    with api.Gradebook(sqlite) as gradebook:
        gradebook.update_or_create_student("zoe", last_name="Zett", first_name="Zoe", email="z@x.org", lms_user_id="77")
        gradebook.find_submission_notebook("ex02_mlm_loss", "ex02", "zoe").late_submission_penalty = 1.05
        gradebook.db.commit()
    capsys.readouterr()
    out = tmp_path / "canvas.csv"
    assert main(["export", "--db", sqlite, "--format", "canvas", "--out", str(out)]) == 0
    assert out.read_bytes().decode() == (
        "Student,ID,SIS User ID,SIS Login ID,Section,ex02 The masked-language-model loss\r\n"
        "    Points Possible,,,,,10\r\n"
        "b@example.org,,,b@example.org,,0\r\n"
        '"Zett, Zoe",77,,zoe,,8.25\r\n'
    )
    assert main(["export", "--db", sqlite, "--format", "moodle", "--lang", "zh", "--out", str(out)]) == 0
    assert out.read_bytes().decode() == (
        "Username,Email address,ex02 掩码语言模型损失\r\nb@example.org,b@example.org,0\r\nzoe,z@x.org,8.25\r\n"
    )


HOSTILE = ["a, b", 'the "best"', "=HYPERLINK(1)", "+1", "@sum", "-2", "＝1", "é 中文", "x" * 128, "Points Possible"]


@pytest.mark.parametrize("kind", ["canvas", "moodle", "csv"])
def test_nothing_is_computed_and_no_row_breaks(kind: str, sqlite: str, tmp_path: Path, capsys) -> None:
    main(["gradebook", str(store(tmp_path / "r", *(result(name, exercise(2)) for name in HOSTILE))), "--db", sqlite])
    with api.Gradebook(sqlite) as gradebook:
        gradebook.add_student("odd", last_name="=cmd|' /C calc'!A0", first_name="a\nb\t\x00", email="\t=1")
        gradebook.add_assignment("=other,\n1")
    rows, _ = export(sqlite, kind, capsys)
    assert len({len(row) for row in rows}) == 1
    cells = [cell for row in rows for cell in row]
    assert not [cell for cell in cells if cell.startswith(("=", "+", "@", "-", "＝", "\t", "\r")) and cell != "-"]
    assert not [cell for cell in cells if "\x00" in cell]
    column = {"canvas": 3, "moodle": 0, "csv": 3}[kind]
    shown = [name if name[0] not in "=+@-＝" else f"'{name}" for name in HOSTILE]
    assert {row[column] for row in rows} >= set(shown)
    if kind == "canvas":
        assert [row[0].strip() for row in rows].count("Points Possible") == 1


def test_names_that_would_look_the_same_are_refused(sqlite: str, capsys) -> None:
    with opened(sqlite, writes=True), api.Gradebook(sqlite) as gradebook:
        gradebook.add_student("a\x01b")
        gradebook.add_student("a\x02b")
    for kind in ("canvas", "moodle"):
        assert main(["export", "--db", sqlite, "--format", kind]) == 2
        assert "two names in the gradebook are both written as a�b" in capsys.readouterr().err


def test_a_score_that_is_no_number_is_no_grade(running: str, tmp_path: Path, capsys) -> None:
    """SQLite has no NaN; PostgreSQL keeps one."""
    url = empty(running)
    main(["gradebook", str(store(tmp_path / "r", result("zoe", exercise(2)), result("bob", exercise(2)))), "--db", url])
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(
            text(
                "UPDATE grade SET manual_score = 'NaN' WHERE notebook_id IN (SELECT n.id FROM submitted_notebook n "
                "JOIN submitted_assignment a ON n.assignment_id = a.id WHERE a.student_id = 'zoe')"
            )
        )
    engine.dispose()
    assert score(url, "canvas", "zoe", capsys) == [""]
    assert score(url, "moodle", "zoe", capsys) == ["-"]
    assert score(url, "moodle", "bob", capsys) == ["10"]
    rows, _ = export(url, "csv", capsys)
    assert [row[-1] for row in rows[1:]] == ["graded", "needs attention"]


def test_nothing_is_made_where_there_is_no_gradebook(tmp_path: Path, capsys, running: str) -> None:
    path = tmp_path / "none.db"
    assert main(["export", "--db", f"sqlite:///{path}", "--format", "csv"]) == 2
    assert "there is no gradebook there" in capsys.readouterr().err
    assert not path.exists()
    assert main(["export", "--db", empty(running), "--format", "csv"]) == 2
    assert "the database is empty" in capsys.readouterr().err


def test_a_file_that_cannot_be_written(sqlite: str, tmp_path: Path, capsys) -> None:
    main(["gradebook", str(store(tmp_path / "r", result("zoe", exercise(2)))), "--db", sqlite])
    capsys.readouterr()
    assert main(["export", "--db", sqlite, "--format", "csv", "--out", str(tmp_path / "no" / "x.csv")]) == 2
    assert "cannot be written" in capsys.readouterr().err

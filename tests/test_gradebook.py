"""`autograder gradebook`: results into nbgrader's gradebook, SQLite and PostgreSQL, whatever happens meanwhile."""

from __future__ import annotations

import datetime
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from made_results import exercise, result, store
from nbgrader import api
from nbgrader.converters import GenerateAssignment
from postgresql_server import PASSWORD, empty, server
from sqlalchemy import create_engine, event, select, text
from test_nbgrader import new_course

from autograder.cli import main
from autograder.nbgrader import database
from autograder.nbgrader.database import opened
from autograder.nbgrader.recording import record, record_assignment
from autograder.render import jsonlines
from autograder.report import ExerciseReport
from autograder.syllabus import EXERCISES

ROOT = Path(__file__).parents[1]
TABLES = list(api.Base.metadata.sorted_tables)


# -- what the tests are made of ----------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def running() -> Iterator[str]:
    with server() as (address, _):
        yield address


@pytest.fixture
def postgresql(running: str) -> str:
    """A database of PostgreSQL with nothing in it."""
    return empty(running)


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A database of either kind with nothing in it."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/gradebook.db"
    return str(request.getfixturevalue("postgresql"))


def run(folder: Path, url: str, *more: str) -> int:
    return main(["gradebook", str(folder), "--db", url, *more])


def dump(url: str) -> dict[str, list[tuple[Any, ...]]]:
    """Everything in the database."""
    engine = create_engine(url)
    with engine.connect() as connection:
        found = {table.name: sorted(map(repr, connection.execute(select(table)))) for table in TABLES}
    engine.dispose()
    return found


def grades(url: str, student: str, assignment: str = "ex02") -> dict[str, tuple[Any, Any, Any, bool]]:
    """By cell: automatic score, manual score, extra credit, and whether a person has to look at it."""
    with api.Gradebook(url) as gradebook:
        submission = gradebook.find_submission(assignment, student)
        return {
            grade.name.partition("-")[2]: (
                grade.auto_score,
                grade.manual_score,
                grade.extra_credit,
                grade.needs_manual_grade,
            )
            for notebook in submission.notebooks
            for grade in notebook.grades
        }


def students(url: str) -> set[str]:
    with api.Gradebook(url) as gradebook:
        return {student.id for student in gradebook.students}


# -- what is written ---------------------------------------------------------------------------------------------------
def test_scores_are_those_of_the_results_and_written_once(url: str, tmp_path: Path, capsys) -> None:
    folder = store(
        tmp_path / "results",
        result("class/zoe", exercise(1, 150, 0), exercise(2, 200, 300, 430)),
        result("bob/ex02", exercise(2, 0, 0, 0)),
        result("bob/ex05", exercise(5)),
    )
    assert run(folder, url) == 0
    assert "2 students, 2 of them new: 11 scores written" in capsys.readouterr().out
    assert grades(url, "zoe") == {
        "mean_nll": (2.0, None, None, False),
        "stable_log_softmax": (3.0, None, None, False),
        "mlm_loss": (4.3, None, None, False),
    }
    of_first = grades(url, "zoe", "ex01")
    assert of_first["written"] == (None, None, None, True)  # a person marks it
    assert [of_first[name][0] for name in ("embedding_sum", "input_embeddings", "another_decomposition")] == [1.5, 0, 3]
    assert {score for score, *_ in grades(url, "bob").values()} == {0.0}
    assert {score for score, *_ in grades(url, "bob", "ex05").values()} == {7.0, 3.0}
    before = dump(url)
    assert run(folder, url) == 0
    assert "0 of them new: 0 scores written" in capsys.readouterr().out
    assert dump(url) == before


def test_what_people_entered_stays(url: str, tmp_path: Path, capsys) -> None:
    folder = tmp_path / "results"
    run(store(folder, result("zoe", exercise(1, 100, 200, 300))), url)
    with api.Gradebook(url) as gradebook:
        gradebook.update_or_create_student("zoe", last_name="Zett", email="zoe@example.org")
        place = ("ex01_input_embeddings", "ex01", "zoe")
        grade = gradebook.find_grade("ex01-input_embeddings", *place)
        grade.manual_score, grade.needs_manual_grade = 3.5, False
        gradebook.find_grade("ex01-embedding_sum", *place).extra_credit = 0.25
        written = gradebook.find_grade("ex01-written", *place)
        written.manual_score, written.needs_manual_grade = 4.0, False
        gradebook.find_comment("ex01-embedding_sum-solution", *place).manual_comment = "Well done"
        notebook = gradebook.find_submission_notebook(*place)
        notebook.late_submission_penalty, notebook.flagged = 0.75, True
        submission = gradebook.find_submission("ex01", "zoe")
        submission.timestamp = datetime.datetime(2026, 3, 1, 11)
        submission.extension = datetime.timedelta(days=1)
        gradebook.db.commit()
    before = dump(url)
    capsys.readouterr()
    assert run(folder, url) == 0
    assert dump(url) == before  # what a person has confirmed is not asked for again

    assert run(store(folder, result("zoe", exercise(1, 300, 250, 300))), url) == 0
    after = dump(url)
    assert grades(url, "zoe", "ex01") == {
        "embedding_sum": (3.0, None, 0.25, False),
        "input_embeddings": (2.5, 3.5, None, True),  # to be looked at again: the automatic one has moved
        "another_decomposition": (3.0, None, None, False),
        "written": (None, 4.0, None, False),
    }
    unchanged = [name for name in after if name != "grade"]
    assert {name: after[name] for name in unchanged} == {name: before[name] for name in unchanged}
    assert "ex01 of zoe: the late penalty of 0.75 points stays" in capsys.readouterr().err


def test_what_needs_attention_has_no_score(url: str, tmp_path: Path, capsys) -> None:
    """An older score was for other work or by another grader: it goes too.  It is never a zero."""
    folder = tmp_path / "results"
    run(store(folder, result("zoe", exercise(2)), result("bob", exercise(2))), url)
    broken = result("zoe", exercise(2, 200, 300, 0, verdict="grader_error"))
    capsys.readouterr()
    assert (
        run(
            store(folder, broken, result("bob", exercise(2)), result("new", exercise(2, 0, verdict="grader_error"))),
            url,
        )
        == 3
    )
    said = capsys.readouterr()
    assert "zoe: needs attention" in said.err
    assert "new: needs attention" in said.err
    assert "2 results were left out" in said.out
    for who in ("zoe", "new"):
        assert set(grades(url, who).values()) == {(None, None, None, True)}
    assert {score for score, *_ in grades(url, "bob").values()} == {2.0, 3.0, 5.0}
    assert run(store(folder, result("zoe", exercise(2))), url) == 3  # r002 is still there
    assert {score for score, *_ in grades(url, "zoe").values()} == {2.0, 3.0, 5.0}


def test_a_student_graded_by_hand_is_not_asked_for_again(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/gradebook.db"
    folder = store(tmp_path / "results", result("zoe", exercise(2, 0, verdict="grader_error")))
    run(folder, url)
    with api.Gradebook(url) as gradebook:
        for name in ("mean_nll", "stable_log_softmax", "mlm_loss"):
            grade = gradebook.find_grade(f"ex02-{name}", "ex02_mlm_loss", "ex02", "zoe")
            grade.manual_score, grade.needs_manual_grade = 1.0, False
        gradebook.db.commit()
    before = dump(url)
    run(folder, url)
    assert dump(url) == before


# -- the assignment ----------------------------------------------------------------------------------------------------
def cells(url: str, number: int) -> dict[str, list[tuple[Any, ...]]]:
    """What the gradebook knows of an assignment, but for the ids that it makes up."""
    with api.Gradebook(url) as gradebook:
        assignment = gradebook.find_assignment(EXERCISES[number].id)
        (notebook,) = assignment.notebooks
        return {
            "names": [(assignment.course_id, assignment.name, assignment.duedate, notebook.name, notebook.kernelspec)],
            "grades": sorted((cell.name, cell.max_score, cell.cell_type) for cell in notebook.grade_cells),
            "solutions": sorted((cell.name,) for cell in notebook.solution_cells),
            "sources": sorted(
                (cell.name, cell.cell_type, cell.locked, cell.source, cell.checksum) for cell in notebook.source_cells
            ),
        }


@pytest.mark.parametrize(("lang", "numbers"), [("en", (1, 7)), ("zh", (1,))])
def test_an_assignment_is_recorded_as_nbgrader_would(lang: Any, numbers: tuple[int, ...], tmp_path: Path) -> None:
    """So that nbgrader's own steps go on with it, also when students are in it already."""
    course = new_course(tmp_path / "course", lang)
    theirs = f"sqlite:///{course.folder}/gradebook.db"
    ours = f"sqlite:///{tmp_path}/ours.db"
    for number in numbers:
        course.run(GenerateAssignment, EXERCISES[number].id)
        with opened(ours, writes=True) as engine:
            assert record_assignment(engine, EXERCISES[number], lang)
            assert not record_assignment(engine, EXERCISES[number], lang)
        assert cells(ours, number) == cells(theirs, number)
    with opened(ours, writes=True) as engine:
        record(engine, "zoe", [result("zoe", exercise(1))])
    before = dump(ours)
    course.config.CourseDirectory.db_url = ours
    course.run(GenerateAssignment, "ex01", force=True)
    assert {**dump(ours), "course": []} == {**before, "course": []}  # nbgrader adds its "default_course"


def test_an_assignment_of_another_version_is_refused_for_that_student_only(url: str, tmp_path: Path, capsys) -> None:
    folder = store(
        tmp_path / "results",
        result("ann", exercise(5), exercise(2, worth=900)),
        result("bob", exercise(2)),
        result("cy", ExerciseReport("ex02", "", exercise(2).functions[:2])),
        result("dee", ExerciseReport("ex99", "", ())),
    )
    assert run(folder, url) == 3
    said = capsys.readouterr().err
    assert "ann: ex02-mean_nll is worth 2 in the gradebook and 9 in the result" in said
    assert "cy: ex02 has other functions in the gradebook than in the result (ex02-mlm_loss)" in said
    assert "dee: this course has no exercise ex99" in said
    assert students(url) == {"bob"}


def test_without_the_notebooks_nbgrader_makes_the_assignment(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setattr("autograder.nbgrader.assignments.__file__", str(tmp_path / "a" / "b" / "c.py"))
    monkeypatch.chdir(tmp_path)
    assert run(store(tmp_path / "results", result("zoe", exercise(2))), "sqlite:///x.db") == 2
    assert "`nbgrader generate_assignment ex02` first" in capsys.readouterr().err


# -- when something fails in the middle --------------------------------------------------------------------------------
def fail_at_grade(url: str, number: int) -> None:
    """From now on the database itself refuses that many grades and more."""
    engine = create_engine(url)
    with engine.begin() as connection:
        if engine.dialect.name == "sqlite":
            connection.execute(
                text(
                    f"CREATE TRIGGER full BEFORE INSERT ON grade WHEN (SELECT count(*) FROM grade) >= {number} "
                    "BEGIN SELECT RAISE(ABORT, 'no room left'); END"
                )
            )
        else:
            connection.execute(
                text(
                    "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN "
                    f"IF (SELECT count(*) FROM grade) >= {number} THEN RAISE EXCEPTION 'no room left'; END IF; "
                    "RETURN NEW; END $$"
                )
            )
            connection.execute(
                text('CREATE TRIGGER "full" BEFORE INSERT ON grade FOR EACH ROW EXECUTE FUNCTION refuse()')
            )
    engine.dispose()


def repair(url: str) -> None:
    engine = create_engine(url)
    with engine.begin() as connection:
        where = "" if engine.dialect.name == "sqlite" else " ON grade"
        connection.execute(text(f'DROP TRIGGER "full"{where}'))
    engine.dispose()


def test_a_failure_in_the_middle_of_a_student_leaves_nothing_of_it(url: str, tmp_path: Path, capsys) -> None:
    results = [result(who, exercise(2), exercise(5), exercise(4)) for who in ("ann", "bob", "cy")]
    folder = store(tmp_path / "results", *results)
    run(store(tmp_path / "first", results[0]), url)
    complete = dump(url)
    fail_at_grade(url, 12)  # ann has 8, and of bob's 8 the first 4 would fit
    capsys.readouterr()
    assert run(folder, url) == 2
    said = capsys.readouterr().err
    assert "bob: the database refused (no room left" in said
    assert "Nothing of this student was written; 1 students before are" in said
    assert dump(url) == complete
    repair(url)
    assert run(folder, url) == 0
    assert students(url) == {"ann", "bob", "cy"}
    assert sum(len(grades(url, who, name)) for who in students(url) for name in ("ex02", "ex04", "ex05")) == 24


KILLED = """
import os, signal, sys
from sqlalchemy import Engine, event
from autograder.cli import main
seen = 0
@event.listens_for(Engine, "after_cursor_execute")
def _(connection, cursor, statement, parameters, context, many):
    global seen
    if statement.startswith("INSERT INTO comment"):
        seen += 1
        if seen == 3:
            os.kill(os.getpid(), signal.SIGKILL)
main(["gradebook", *sys.argv[1:]])
"""


def test_killed_in_the_middle_of_a_student(url: str, tmp_path: Path) -> None:
    folder = store(tmp_path / "results", *(result(who, exercise(2), exercise(5)) for who in ("ann", "bob", "cy")))
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(folder), "--db", url],
        env={**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert students(url) == {"ann"}  # whose two exercises took two of those statements
    assert {score for score, *_ in grades(url, "ann", "ex05").values()} == {7.0, 3.0}
    assert run(folder, url) == 0
    assert students(url) == {"ann", "bob", "cy"}


def test_two_writers_at_once(url: str) -> None:
    """They make tables, assignments and students at the same time: all of a student is of one of them."""
    names = [f"s{number}" for number in range(12)]
    start = threading.Barrier(2, timeout=60)
    failures: list[BaseException] = []

    def write(points: int, order: list[str]) -> None:
        try:
            start.wait()
            with opened(url, writes=True) as engine:
                for number in (2, 5):
                    record_assignment(engine, EXERCISES[number], "en")
                start.wait()
                for who in order:
                    record(
                        engine, who, [result(who, exercise(2, *[points] * 3)), result(who, exercise(5, *[points] * 2))]
                    )
        except BaseException as error:
            failures.append(error)
            start.abort()

    writers = [threading.Thread(target=write, args=(points, names)) for points in (100, 200)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(120)
    assert not failures
    assert students(url) == set(names)
    for who in names:
        scores = {score for name in ("ex02", "ex05") for score, *_ in grades(url, who, name).values()}
        assert scores in ({1.0}, {2.0})
        assert len(grades(url, who)) == 3


def test_a_score_that_a_person_gives_meanwhile_is_not_lost(postgresql: str, tmp_path: Path) -> None:
    """Given between our reading and our writing.  SQLite lets nobody else write then."""
    url = postgresql
    run(store(tmp_path / "results", result("zoe", exercise(2))), url)
    meddled = []
    with opened(url, writes=True) as engine:

        @event.listens_for(engine, "after_cursor_execute")
        def _(connection: Any, cursor: Any, statement: str, *_: Any) -> None:
            if statement.startswith("SELECT") and "FROM grade" in statement and not meddled:
                meddled.append(statement)
                other = create_engine(url)
                with other.begin() as theirs:
                    theirs.execute(text("UPDATE grade SET manual_score = 1.25"))
                other.dispose()

        record(engine, "zoe", [result("zoe", exercise(2, 0, 0, 0))])
    assert meddled
    assert {(automatic, manual) for automatic, manual, *_ in grades(url, "zoe").values()} == {(0.0, 1.25)}


# -- errors for people -------------------------------------------------------------------------------------------------
def refusal(capsys, folder: Path, url: str, command: str = "gradebook") -> str:
    arguments = [str(folder)] if command == "gradebook" else ["--format", "csv"]
    assert main([command, *arguments, "--db", url]) == 2
    said = capsys.readouterr()
    assert not said.out
    assert "Traceback" not in said.err
    assert PASSWORD not in said.err
    return said.err


@pytest.fixture
def one(tmp_path: Path) -> Path:
    return store(tmp_path / "results", result("zoe", exercise(2)))


def test_a_locked_gradebook(one: Path, tmp_path: Path, capsys, monkeypatch) -> None:
    url = f"sqlite:///{tmp_path}/gradebook.db"
    run(one, url)
    before = dump(url)
    capsys.readouterr()
    monkeypatch.setattr(database, "LOCK_SECONDS", 0.2)
    holder = sqlite3.connect(tmp_path / "gradebook.db", isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    assert "another program holds the gradebook locked" in refusal(capsys, one, url)
    holder.execute("ROLLBACK")
    holder.close()
    assert dump(url) == before


def test_a_locked_row_of_postgresql(one: Path, postgresql: str, capsys, monkeypatch) -> None:
    url = postgresql
    run(one, url)
    capsys.readouterr()
    monkeypatch.setattr(database, "LOCK_SECONDS", 0.2)
    engine = create_engine(url)
    with engine.begin() as holder:
        holder.execute(text("SELECT id FROM student FOR UPDATE"))
        said = refusal(capsys, one, url)
    engine.dispose()
    assert "zoe: another program holds the gradebook locked" in said


def test_no_such_server_or_wrong_password(one: Path, running: str, capsys) -> None:
    said = refusal(capsys, one, f"postgresql+psycopg://grader:{PASSWORD}@127.0.0.1:1/x?connect_timeout=2")
    assert "postgresql+psycopg://grader:***@127.0.0.1:1/x" in said
    assert "it cannot be reached" in said
    said = refusal(capsys, one, f"postgresql+psycopg://x{running}/postgres")
    assert "password authentication failed" in said
    assert "does not exist" in refusal(capsys, one, f"postgresql+psycopg://{running}/nowhere")


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("gradebook.db", "--db takes the URL of a database"),
        ("sqlite:////nowhere/at/all.db", "the file cannot be opened"),
        ("nonsense://x", "SQLAlchemy knows no database of that kind"),
        ("mysql+mysqldb://me@localhost/x", "its driver is not installed"),
    ],
)
def test_urls_that_lead_nowhere(url: str, why: str, one: Path, capsys) -> None:
    assert why in refusal(capsys, one, url)


def test_what_is_no_gradebook_is_left_alone(one: Path, tmp_path: Path, capsys) -> None:
    path = tmp_path / "x.db"
    url = f"sqlite:///{path}"
    path.write_bytes(b"no database" * 100)
    assert "no SQLite database" in refusal(capsys, one, url)
    path.unlink()
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE orders (id INTEGER)")
    before = path.read_bytes()
    assert "holds other tables, and no gradebook" in refusal(capsys, one, url)
    assert "holds other tables, and no gradebook" in refusal(capsys, one, url, "export")
    assert path.read_bytes() == before


def test_a_gradebook_of_another_nbgrader(url: str, one: Path, capsys) -> None:
    run(one, url)
    engine = create_engine(url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '50a4d84c131a'"))
    capsys.readouterr()
    for command in ("gradebook", "export"):
        assert "its schema is 50a4d84c131a" in refusal(capsys, one, url, command)
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE alembic_version"))
    engine.dispose()
    assert "run `nbgrader db upgrade`" in refusal(capsys, one, url)


def test_a_gradebook_that_nbgrader_made(one: Path, tmp_path: Path, monkeypatch) -> None:
    """Its own tables, made by its own code, are those that are expected."""
    # nbgrader calls alembic by name
    monkeypatch.setenv("PATH", os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]))
    url = f"sqlite:///{tmp_path}/gradebook.db"
    with api.Gradebook(url) as gradebook:
        gradebook.add_student("zoe", first_name="Zoe")
    assert run(one, url) == 0
    with api.Gradebook(url) as gradebook:
        assert gradebook.find_student("zoe").first_name == "Zoe"
        assert gradebook.find_student("zoe").score == 10.0


def test_without_nbgrader(one: Path, capsys, monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "nbgrader", None)
    assert "needs nbgrader: pip install" in refusal(capsys, one, "sqlite:///x.db")


def test_there_is_no_result(tmp_path: Path, capsys) -> None:
    assert "cannot be read" in refusal(capsys, tmp_path / "nowhere", "sqlite:///x.db")
    assert "there is no result there" in refusal(capsys, tmp_path, "sqlite:///x.db")
    assert not Path("x.db").exists()


# -- whose is it -------------------------------------------------------------------------------------------------------
def test_files_that_are_no_results_stop_nobody(url: str, tmp_path: Path, capsys) -> None:
    folder = store(tmp_path / "results", result("zoe", exercise(2)), result("nan", exercise(2)))
    (folder / "r001.json").write_text((folder / "r001.json").read_text().replace('"points": 2', '"points": NaN'))
    (folder / "r002.json").write_text('{"submission": "half')
    (folder / "r003.json").write_bytes(b"\xff\xfe")
    (folder / "r004.json").mkdir()
    os.mkfifo(folder / "r005.json")
    (folder / "r006.json").write_text(jsonlines.stored(result("none", notes=("no file of an exercise",))))
    assert run(folder, url) == 3
    said = capsys.readouterr()
    for name, why in {
        "r001.json": "NaN is no number",
        "r002.json": "not a result",
        "r003.json": "not text in UTF-8",
        "r004.json": "not a file",
        "r005.json": "not a file",
    }.items():
        assert any(name in line and why in line for line in said.err.splitlines())
    assert "none: nothing was graded (no file of an exercise)" in said.err
    assert "6 results were left out" in said.out
    assert students(url) == {"zoe"}


def test_two_results_of_one_exercise_of_a_student(url: str, tmp_path: Path, capsys) -> None:
    folder = store(
        tmp_path / "results",
        result("monday/zoe", exercise(2), exercise(5)),
        result("sunday/zoe", exercise(2, 0)),
        result("zoe/ex04", exercise(4)),
        result("bob", exercise(2)),
        result("twice", exercise(2), exercise(2)),
    )
    assert run(folder, url) == 3
    said = capsys.readouterr()
    assert "r000.json: ex02 of zoe is in r001.json too: keep the one that counts" in said.err
    assert "r001.json: ex02 of zoe is in r000.json too" in said.err
    assert "r004.json: ex02 of twice is in it twice too" in said.err
    assert "3 results were left out" in said.out
    assert students(url) == {"zoe", "bob"}
    with api.Gradebook(url) as gradebook:
        assert [submission.name for submission in gradebook.student_submissions("zoe")] == ["ex04"]


HOSTILE = ["a, b", 'the "best"', "=HYPERLINK(1)", "é 中文 🙂", "x" * 128, "'; DROP TABLE student; --", "a\nb", "%s {0}"]


def test_hostile_names(url: str, tmp_path: Path, capsys) -> None:
    """What can be shown is a name like any other.  What cannot, or is too long, needs a table."""
    bad = ["a\udcff", "a\udcfe", "x" * 129, "a\x00b", "a\x1b[31m", "a\u202eb"]
    folder = store(tmp_path / "results", *(result(name, exercise(2)) for name in [*HOSTILE, *bad]))
    assert run(folder, url) == 3
    said = capsys.readouterr()
    assert f"{len(bad)} results were left out" in said.out
    assert "\x1b" not in said.err
    assert students(url) == {" ".join(name.split()) for name in HOSTILE}
    table = tmp_path / "students.csv"
    table.write_text(
        "\ufeffsubmission,student_id\n" + f'{"x" * 129},long\n"a, b",ab\nzoe,"=1+1"\nelsewhere/ex02,p17\n',
        encoding="utf-8",
    )
    more = [result("class/zoe/ex02.py", exercise(2)), result("elsewhere/ex02", exercise(2)), result("no", exercise(2))]
    shutil.rmtree(folder)
    folder = store(folder, result("x" * 129, exercise(2)), result("a, b", exercise(2)), *more)
    assert run(folder, url, "--students", str(table)) == 3
    assert "no: the table of students does not name it" in capsys.readouterr().err
    assert students(url) >= {"long", "ab", "=1+1", "p17"}
    assert "no" not in students(url)


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ("who,id\na,b\n", "it names who, id"),
        ("", "it names none"),
        ("submission,student_id\na,\n", "row 2: `submission` or `student_id` is empty"),
        ("submission,student_id\na\n", "row 2: `submission` or `student_id` is empty"),
        ("submission,student_id\na,x\na,y\n", "row 3: a has two student ids"),
        ("submission,student_id\na," + "x" * 129, "row 2: a student id is one line"),
        ('submission,student_id\na,"x', "cannot be read as a CSV file"),
        (b"submission,student_id\na,\xff\n", "cannot be read as a CSV file"),
    ],
)
def test_a_table_of_students_that_is_none(table: str | bytes, why: str, one: Path, tmp_path: Path, capsys) -> None:
    path = tmp_path / "students.csv"
    path.write_bytes(table if isinstance(table, bytes) else table.encode())
    assert run(one, "sqlite:///x.db", "--students", str(path)) == 2
    assert why in capsys.readouterr().err


def test_the_server_of_these_tests_leaves_nothing_behind() -> None:
    with server() as (_, pid):
        folder = Path(os.readlink(f"/proc/{pid}/cwd"))
        assert folder.is_dir()
        assert os.stat(f"/proc/{pid}").st_uid != 0
        children = [entry.name for entry in Path("/proc").iterdir() if _parent(entry) == pid]
        assert children
    assert not any(Path("/proc", name).exists() for name in [str(pid), *children])
    assert not folder.exists()
    assert not folder.parent.exists()


def _parent(process: Path) -> int | None:
    if not process.name.isdigit():
        return None
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except (OSError, ValueError):
        return None

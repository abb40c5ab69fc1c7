"""The course in nbgrader itself: its commands, its gradebook, its feedback."""

from __future__ import annotations

import copy
import csv
import html
import json
import logging
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import nbformat
import pytest
import torch
from attacks.test_leaks import leaked
from nbgrader.api import Gradebook
from nbgrader.converters import Autograde, GenerateAssignment, GenerateFeedback
from nbgrader.converters.base import NbGraderException
from nbgrader.coursedir import CourseDirectory
from nbgrader.preprocessors import ClearSolutions
from traitlets.config import Application, Config
from traitlets.config.loader import PyFileConfigLoader

from autograder.build.notebook import COURSES, path_of
from autograder.grading import Options, Submission, Work, grade_all, grade_in
from autograder.limits import Limits
from autograder.nbgrader import preprocessors
from autograder.nbgrader.from_module import fill
from autograder.nbgrader.outputs import ShownStudent
from autograder.nbgrader.process import Graded, GradingFailed, Output
from autograder.nbgrader.repair import grade_id
from autograder.nbgrader.scheme import marking_scheme
from autograder.nbgrader_plugin import configure
from autograder.render.words import Lang
from autograder.report import Check, ExerciseReport, FunctionReport, Report
from autograder.sandbox.loading import Part
from autograder.submission import exercise_number, find
from autograder.syllabus import EXERCISES, SYLLABUS
from autograder.wire.classroom import Classrooms, RemoteClassroom
from autograder.wire.errors import Interrupted

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples" / "submissions"
DUE = "2026-03-01 12:00:00 UTC"


class Course:
    """A copy of a course's folder, and nbgrader's steps in it, without the start-up of a command each time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        loader = PyFileConfigLoader("nbgrader_config.py", path=str(folder))
        self.config: Config = loader.load_config()
        self.config.CourseDirectory.root = str(folder)

    def run(self, step: Any, assignment: str, **settings: Any) -> list[str]:
        """What the step logged.  Raises NbGraderException if it did not succeed for everybody."""
        app = Application(config=self.config)
        lines: list[str] = []
        handler = logging.Handler()
        handler.emit = lambda record: lines.append(record.getMessage())
        app.log.addHandler(handler)
        coursedir = CourseDirectory(parent=app, assignment_id=assignment)
        here = os.getcwd()
        try:
            step(coursedir=coursedir, parent=app, **settings).start()
        except NbGraderException as error:
            error.lines = lines
            raise
        finally:
            app.log.removeHandler(handler)
            os.chdir(here)
        return lines

    def gradebook(self) -> Gradebook:
        return Gradebook(f"sqlite:///{self.folder}/gradebook.db")

    def released(self, number: int) -> Any:
        exercise = EXERCISES[number]
        path = self.folder / "release" / exercise.id / f"{exercise.module}.ipynb"
        if not path.exists():
            self.run(GenerateAssignment, exercise.id)
        return nbformat.read(path, as_version=4)

    def hand_in(self, student: str, number: int, notebook: Any, name: str = "", timestamp: str = "") -> Path:
        exercise = EXERCISES[number]
        folder = self.folder / "submitted" / student / exercise.id
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / (name or f"{exercise.module}.ipynb")
        if isinstance(notebook, str):
            path.write_text(notebook, encoding="utf-8")
        else:
            nbformat.write(notebook, path)
        if timestamp:
            (folder / "timestamp.txt").write_text(timestamp, encoding="utf-8")
        return path

    def scores(self, student: str, number: int) -> dict[str, float | None]:
        exercise = EXERCISES[number]
        with self.gradebook() as gradebook:
            notebook = gradebook.find_submission_notebook(exercise.module, exercise.id, student)
            return {grade.name.partition("-")[2]: grade.auto_score for grade in notebook.grades}

    def graded(self, student: str, number: int) -> Any:
        exercise = EXERCISES[number]
        return nbformat.read(self.folder / "autograded" / student / exercise.id / f"{exercise.module}.ipynb", 4)

    def feedback(self, student: str, number: int) -> str:
        exercise = EXERCISES[number]
        path = self.folder / "feedback" / student / exercise.id / f"{exercise.module}.html"
        return path.read_text(encoding="utf-8")


def new_course(folder: Path, lang: str = "en") -> Course:
    shutil.copytree(
        ROOT / "notebooks", folder, ignore=shutil.ignore_patterns("release", "submitted", "autograded", "*.db")
    )
    return Course(folder if lang == "en" else folder / "zh")


@pytest.fixture(scope="module", autouse=True)
def _no_process_stays() -> Iterator[None]:
    yield
    from autograder.nbgrader import process

    for running in process._PROCESSES.values():
        running.close()


def right(course: Course, number: int = 3) -> Any:
    return fill(course.released(number), (EXAMPLES / "right" / f"{EXERCISES[number].module}.py").read_text("utf-8"))


def cell(notebook: Any, name: str) -> Any:
    (found,) = [cell for cell in notebook.cells if grade_id(cell).partition("-")[2] == name]
    return found


# -- one class with everything that students do to notebooks --------------------------------------------------------
def _untouched(notebook: Any) -> None:
    pass


def _copied(notebook: Any) -> None:
    notebook.cells += [copy.deepcopy(cell(notebook, "copy_loss")), copy.deepcopy(cell(notebook, "copy_logits-check"))]


def _without_grade_cells(notebook: Any) -> None:
    notebook.cells = [c for c in notebook.cells if not c.metadata.get("nbgrader", {}).get("locked")]


def _without_metadata(notebook: Any) -> None:
    for each in notebook.cells:
        each.metadata = {}


def _reversed_order(notebook: Any) -> None:
    graded = [c for c in notebook.cells if c.metadata.get("nbgrader", {}).get("locked")]
    notebook.cells = graded + [c for c in notebook.cells if c not in graded]


def _markdown(notebook: Any) -> None:
    cell(notebook, "copy_loss-solution").cell_type = "markdown"
    for name in ("outputs", "execution_count"):
        cell(notebook, "copy_loss-solution").pop(name, None)


def _in_the_wrong_cell(notebook: Any) -> None:
    cell(notebook, "copy_loss-check").source = cell(notebook, "copy_loss-solution").source
    cell(notebook, "copy_loss-solution").source = "pass"


def _worth_more(notebook: Any) -> None:
    cell(notebook, "copy_loss").metadata.nbgrader.points = 1000
    cell(notebook, "copy_loss").metadata.nbgrader.schema_version = 99


def _chatty(notebook: Any) -> None:
    text = (
        "import sys, warnings\nwarnings.warn('careful')\nprint('10.0', file=sys.stderr)\nprint('x' * 200_000)\n"
        "import matplotlib.pyplot as plt\n%matplotlib inline\n!pip install everything\nplt.plot([1, 2])\n40 + 2"
    )
    notebook.cells.append(nbformat.v4.new_code_cell(text))
    notebook.cells.append(nbformat.v4.new_code_cell("raise RuntimeError('<b>scratch</b>')"))


FULL_MARKS: dict[str, Callable[[Any], None]] = {
    "untouched": _untouched,
    "copied cells": _copied,
    "grade cells deleted": _without_grade_cells,
    "all metadata gone": _without_metadata,
    "grade cells moved": _reversed_order,
    "solution turned into markdown": _markdown,
    "code in a locked cell": _in_the_wrong_cell,
    "points raised": _worth_more,
    "chatty": _chatty,
}
NOT_JSON = '{"cells": [{"cell_type": "code", '
EVIL = "1. Well: <script>alert('formgrader')</script>\n2. <img src=x onerror=alert(2)>"


@pytest.fixture(scope="module")
def classroom(tmp_path_factory) -> Course:
    """A class whose submissions were all graded in one run."""
    course = new_course(tmp_path_factory.mktemp("nbgrader") / "course")
    with course.gradebook() as gradebook:
        gradebook.add_assignment("ex03", duedate=DUE)
    course.released(3)
    for name, accident in FULL_MARKS.items():
        notebook = right(course)
        accident(notebook)
        course.hand_in(f"full {name}", 3, notebook)
    course.hand_in("a broken file", 3, NOT_JSON)
    course.hand_in("b renamed", 3, right(course), name="my ex3 最终版 (2).ipynb")
    course.hand_in("late", 3, right(course), timestamp="2026-03-02 18:00:00 UTC")
    old = right(course)
    course.hand_in("old format", 3, nbformat.writes(nbformat.convert(old, 3), version=3))
    wrong = fill(course.released(3), (EXAMPLES / "copy_loss_overflows" / "ex03_copy_shortcut.py").read_text("utf-8"))
    cell(wrong, "written").source = EVIL
    course.hand_in("wrong", 3, wrong)
    course.lines = course.run(Autograde, "ex03")
    course.run(GenerateFeedback, "ex03")
    return course


MOST = {function.name: function.points / 100 for function in EXERCISES[3].functions}


@pytest.mark.parametrize("name", FULL_MARKS)
def test_a_repaired_notebook_gets_what_its_code_deserves(classroom, name):
    scores = classroom.scores(f"full {name}", 3)
    assert {key: value for key, value in scores.items() if key != "written"} == MOST
    graded = classroom.graded(f"full {name}", 3)
    ids = [grade_id(c) for c in graded.cells if c.metadata.get("nbgrader", {}).get("grade")]
    released = [grade_id(c) for c in classroom.released(3).cells if c.metadata.get("nbgrader", {}).get("grade")]
    assert ids == released


def test_every_grade_cell_ends_with_one_plain_float_and_nothing_on_stderr(classroom):
    for path in (classroom.folder / "autograded").glob("*/ex03/*.ipynb"):
        for each in nbformat.read(path, 4).cells:
            if each.cell_type == "code" and each.metadata.get("nbgrader", {}).get("grade"):
                assert [output.output_type for output in each.outputs] == ["display_data", "execute_result"]
                text = each.outputs[1].data["text/plain"]
                assert re.fullmatch(r"\d+\.\d{1,2}", text)
                assert 0 <= float(text) <= each.metadata.nbgrader.points


def test_what_is_no_notebook_gets_nothing_and_stops_nobody(classroom):
    scores = classroom.scores("a broken file", 3)
    assert {key: value for key, value in scores.items() if key != "written"} == dict.fromkeys(MOST, 0.0)
    assert scores["written"] is None  # a person looks at it
    assert "cannot be read" in classroom.feedback("a broken file", 3)


def test_a_renamed_notebook_is_matched_and_the_feedback_says_so(classroom):
    scores = classroom.scores("b renamed", 3)
    assert {key: value for key, value in scores.items() if key != "written"} == MOST
    assert "my ex3 最终版 (2).ipynb" in classroom.feedback("b renamed", 3)


def test_a_notebook_of_an_older_format_is_read(classroom):
    scores = classroom.scores("old format", 3)
    assert {key: value for key, value in scores.items() if key != "written"} == MOST


def test_outputs_are_kept_and_capped(classroom):
    *_, chatty, failing = [c for c in classroom.graded("full chatty", 3).cells if c.cell_type == "code"]
    by_name = {output.get("name", output.output_type): output for output in chatty.outputs}
    assert 60_000 < len(by_name["stdout"].text) < 70_000
    assert "more characters" in by_name["stdout"].text
    assert "10.0" in by_name["stderr"].text
    assert by_name["execute_result"].data["text/plain"] == "42"
    assert by_name["display_data"].data["image/png"].startswith("iVBOR")
    assert failing.outputs[0].ename == "RuntimeError"
    page = classroom.feedback("full chatty", 3)
    assert "<b>scratch</b>" not in page
    assert "data:image/png;base64,iVBOR" in page


def test_a_cell_that_hangs_or_ends_its_process_costs_the_outputs_from_there_on():
    shown: list[Output] = []
    student = partial(ShownStudent, shown=shown)
    room = RemoteClassroom("auto", torch.device("cpu"), limits=Limits(load_cpu=1.0), student=student)
    endings = {"while True: pass": "timeout", "import os; os._exit(0)": "crashed"}
    with room:
        for text, ending in endings.items():
            shown.clear()
            parts = tuple(Part(f"cell {i}", code, True) for i, code in enumerate(["print('before')", text, "print(1)"]))
            with pytest.raises(Interrupted) as interrupted, room.open(Work(EXERCISES[3], parts)):
                pass
            assert interrupted.value.verdict == ending
            first, last = shown
            assert (first.stdout, first.ended) == ("before\n", "")
            assert (last.stdout, last.ended) == ("", ending)


_SHOWN = """
import os, warnings
warnings.simplefilter("error")  # is over when the notebook is loaded
def copy_loss(*given, quiet=copy_loss):
    warnings.warn("slow")
    return quiet(*given)
class Shown:
    def __repr__(self):
        {}
Shown()
"""


@pytest.mark.parametrize(
    ("way", "ends"), [("return 'x'", False), ("1 / 0", False), ("os._exit(0)", True), ("while True: pass", True)]
)
def test_showing_what_cells_put_out_costs_no_points(way: str, ends: bool) -> None:
    solution = (ROOT / "solutions" / "ex03_copy_shortcut.py").read_text(encoding="utf-8")
    texts = [solution, _SHOWN.format(way)]
    parts = tuple(Part(f"cell {i}", text, True) for i, text in enumerate(texts))
    shown: list[Output] = []
    reports: list[Report] = []
    student = partial(ShownStudent, shown=shown)
    options = Options()
    with Classrooms("auto", torch.device("cpu"), 0, Limits(load_cpu=3.0), student=student) as rooms:
        grade_in(rooms, [Submission("one", (Work(EXERCISES[3], parts),))], options, reports.append)
    assert reports[0].points == reports[0].max_points
    assert [bool(output.ended) for output in shown] == [False, ends]


def test_an_untouched_written_answer_is_nbgraders_zero_and_another_waits_for_a_person(classroom):
    assert classroom.scores("full untouched", 3)["written"] == 0
    assert classroom.scores("wrong", 3)["written"] is None


def test_feedback_explains_the_misconception(classroom):
    page = classroom.feedback("wrong", 3)
    assert 'lang="en"' in page
    assert "not graded by a person yet" in page
    entry = next(
        check for function in _report(classroom.graded("wrong", 3)) for check in function["checks"] if check["hint"]
    )
    assert entry["hint"].split("`")[0] in page.replace("&#x27;", "'")


def _report(graded: Any) -> list[dict[str, Any]]:
    return graded.metadata["autograder"]["report"]["exercises"][0]["functions"]


def test_a_students_prose_runs_nothing_in_the_instructors_browser(classroom):
    for text in (classroom.feedback("wrong", 3), json.dumps(classroom.graded("wrong", 3))):
        assert "<script>alert(" not in text
        assert "<img src=x" not in text


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for inner in value.values() if isinstance(value, dict) else value:
            yield from _strings(inner)


def test_nothing_that_students_get_holds_hidden_text(classroom):
    own = "".join(file.read_text("utf-8") for file in EXAMPLES.glob("*/ex03*.py"))
    notebooks = [*classroom.folder.glob("release/**/*.ipynb"), *classroom.folder.glob("autograded/**/*.ipynb")]
    pages = [*classroom.folder.glob("feedback/**/*.html")]
    assert len(pages) == len(notebooks) - 1 > 10
    for path in [*notebooks, *pages]:
        if path.suffix == ".ipynb":
            text = "\n".join(_strings(nbformat.read(path, 4)))
        else:
            text = html.unescape(re.sub(r"<[^>]+>", "", path.read_text("utf-8")))
        assert [line for line in leaked(text) if line not in own] == [], path
        assert "BEGIN SOLUTION" not in text
        assert "Traceback (most recent" not in text


def test_model_answers_are_not_released(classroom):
    released = "\n".join(c.source for c in classroom.released(3).cells)
    source = nbformat.read(classroom.folder / "source" / "ex03" / "ex03_copy_shortcut.ipynb", 4)
    answer = cell(source, "written").source
    assert "Model answer" in answer
    assert "Marking" in answer
    assert "Model answer" not in released
    for line in answer.splitlines():
        assert len(line) < 40 or line not in released


# -- grading again ----------------------------------------------------------------------------------------------------
def test_late_work_loses_its_share_once_and_points_of_a_person_stay(classroom):
    def look() -> tuple[float, float]:
        with classroom.gradebook() as gradebook:
            submission = gradebook.find_submission("ex03", "late")
            return submission.score, submission.late_submission_penalty

    assert look() == (10.0, 2.5)  # 30 hours: a quarter, by the table in nbgrader_config.py
    with classroom.gradebook() as gradebook:
        grade = gradebook.find_grade("ex03-written", "ex03_copy_shortcut", "ex03", "late")
        grade.manual_score, grade.needs_manual_grade = 3.0, False
        grade = gradebook.find_grade("ex03-copy_loss", "ex03_copy_shortcut", "ex03", "late")
        grade.manual_score = 1.0
        gradebook.db.commit()
    classroom.config.CourseDirectory.student_id = "late"
    try:
        classroom.run(Autograde, "ex03", force=True)
    finally:
        del classroom.config.CourseDirectory["student_id"]
    assert look() == (11.0, 2.75)
    assert classroom.scores("late", 3)["copy_loss"] == 3.0


def _fault(where: Any) -> Graded:
    exercise = EXERCISES[3]
    functions = tuple(
        FunctionReport(
            function.name,
            (Check("test_x", "Title", "grader_error", 0, function.points, "the disk is full", "", 0.0),)
            if function.name == "copy_loss"
            else (Check("test_x", "Title", "passed", function.points, function.points, "", "", 0.0),),
        )
        for function in exercise.functions
    )
    report = Report(where.name, (ExerciseReport(exercise.id, exercise.title, functions),), "none", "cpu", 0, "0")
    return Graded(report, [])


@pytest.mark.parametrize("failure", ["in one check", "of the whole process"])
def test_a_fault_of_the_grader_leaves_no_score_and_the_others_go_on(tmp_path, monkeypatch, failure):
    course = new_course(tmp_path / "course")
    for student in ("a", "b", "c"):
        course.hand_in(student, 3, course.released(3))

    class Process:
        """Grades everybody but b, or fails on b."""

        def grade(self, task: Any) -> Graded:
            if task.name.startswith("b/"):
                if failure == "of the whole process":
                    raise GradingFailed("the grading process ended")
                return _fault(task)
            fine = _fault(task)
            functions = tuple(
                FunctionReport(
                    f.name, tuple(Check("t", "T", "passed", c.max_points, c.max_points, "", "", 0.0) for c in f.checks)
                )
                for f in fine.report.exercises[0].functions
            )
            exercise = ExerciseReport("ex03", "", functions)
            return Graded(Report(task.name, (exercise,), "none", "cpu", 0, "0"), [])

    monkeypatch.setattr(preprocessors, "grading_process", lambda sandbox: Process())
    with pytest.raises(NbGraderException) as raised:
        course.run(Autograde, "ex03")
    assert any("NEEDS ATTENTION" in line and "b, ex03" in line for line in raised.value.lines)
    assert course.scores("a", 3)["copy_loss"] == course.scores("c", 3)["copy_loss"] == 3.0
    assert set(course.scores("b", 3).values()) == {None}
    (path,) = _export(course)
    rows = {row["student_id"]: row for row in csv.DictReader(path.read_text("utf-8").splitlines())}
    assert (rows["b"]["status"], rows["b"]["score"]) == ("needs attention", "")
    assert rows["a"]["score"] == "10.0"


def _export(course: Course) -> list[Path]:
    from autograder.nbgrader.gradebook import GradebookCsv

    path = course.folder / "grades.csv"
    with course.gradebook() as gradebook:
        GradebookCsv(to=str(path)).export(gradebook)
    return [path]


def test_the_csv_is_quoted_and_computes_nothing(tmp_path):
    course = new_course(tmp_path / "course")
    course.released(3)
    with course.gradebook() as gradebook:
        gradebook.add_student("s,1", last_name='O"Neil, x', first_name="=1+1", email="@sum")
    (path,) = _export(course)
    (row,) = csv.DictReader(path.read_text("utf-8").splitlines())
    assert (row["student_id"], row["last_name"], row["first_name"]) == ("s,1", 'O"Neil, x', "'=1+1")
    assert row["status"] == "missing"


# -- the same work as .py and as a notebook ---------------------------------------------------------------------------
def _examples() -> list[tuple[str, int, Path]]:
    """All but the loop that never ends: that costs a minute of computing, and is no matter of notebooks."""
    paths = [path for path in sorted(EXAMPLES.glob("*/*")) if path.suffix in (".py", ".ipynb")]
    paths = [path for path in paths if path.parent.name != "infinite_loop"]
    found = [
        (f"{path.parent.name} {exercise_number(path.name)}", exercise_number(path.name) or 0, path) for path in paths
    ]
    return [(name, number, path) for name, number, path in found if number in EXERCISES]


@pytest.mark.slow
def test_the_same_work_gets_the_same_points_as_module_and_as_notebook(tmp_path):
    course = new_course(tmp_path / "course")
    examples = _examples()
    assert len(examples) > 15
    for name, number, path in examples:
        if path.suffix == ".ipynb":
            course.released(number)
            course.hand_in(name, number, path.read_text("utf-8"), name=path.name)
        else:
            course.hand_in(name, number, fill(course.released(number), path.read_text("utf-8")))
    for number in sorted({number for _, number, _ in examples}):
        course.run(Autograde, EXERCISES[number].id)
    reports: list[Report] = []
    grade_all([find(str(path), None) for _, _, path in examples], Options(), reports.append)
    for (name, number, _), report in zip(examples, reports, strict=True):
        expected = {function.name: function.points / 100 for function in report.exercises[0].functions}
        scores = course.scores(name, number)
        assert {key: value for key, value in scores.items() if key != "written"} == expected, name


# -- the Chinese course, and the commands ----------------------------------------------------------------------------
def test_the_chinese_course_speaks_chinese(tmp_path):
    course = new_course(tmp_path / "course", "zh")
    assert course.config.CourseDirectory.course_id == "bert-zh"
    path = EXAMPLES / "copy_loss_overflows" / "ex03_copy_shortcut.py"
    course.hand_in("s01", 3, fill(course.released(3), path.read_text("utf-8")))
    course.run(Autograde, "ex03")
    course.run(GenerateFeedback, "ex03")
    page = course.feedback("s01", 3)
    assert 'lang="zh-Hans"' in page
    for word in ("复制捷径", "得分", "你的代码", "未作答", "未通过"):
        assert word in page
    for word in ("Score", "Your code", "Student's answer", "No response", "checks passed"):
        assert word not in page


def test_the_plain_commands_work_in_the_folder_of_the_course(tmp_path):
    course = new_course(tmp_path / "course")

    def nbgrader(*arguments: str, ok: bool = True) -> str:
        run = subprocess.run(
            [sys.executable, "-m", "nbgrader", *arguments], cwd=course.folder, capture_output=True, text=True
        )
        assert (run.returncode == 0) is ok, run.stdout + run.stderr
        return run.stdout + run.stderr

    nbgrader("generate_assignment", "ex03")
    course.hand_in("s01", 3, right(course))
    nbgrader("autograde", "ex03")
    nbgrader("generate_feedback", "ex03")
    nbgrader("export")
    assert "s01" in (course.folder / "grades.csv").read_text("utf-8")
    assert "10.0 / 14.0" in course.feedback("s01", 3)
    assert "Success" in nbgrader("validate", "source/ex03/ex03_copy_shortcut.ipynb")
    assert "VALIDATION FAILED" in nbgrader("validate", "release/ex03/ex03_copy_shortcut.ipynb")


def test_configuring_loads_no_torch():
    code = "import sys; from traitlets.config import Config; from autograder.nbgrader_plugin import configure; "
    code += "configure(Config(), 'en'); import autograder.nbgrader.preprocessors; print('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert run.stdout.strip() == "False", run.stderr


@pytest.mark.parametrize("lang", ["en", "zh"])
@pytest.mark.parametrize("exercise", SYLLABUS, ids=lambda exercise: exercise.id)
def test_a_release_holds_no_answer(exercise, lang):
    config = Config()
    configure(config, lang)
    source = nbformat.read(ROOT / path_of(exercise, lang), as_version=4)
    released, _ = ClearSolutions(config=config).preprocess(source, {})
    text = "\n".join(each.source for each in released.cells)
    assert "raise NotImplementedError(" in text
    assert "BEGIN SOLUTION" not in text
    assert leaked(text) == []


@pytest.mark.parametrize(("lang", "said"), [("en", "Restating the question counts nothing"), ("zh", "**参考答案**")])
def test_formgrader_finds_the_marking_scheme_in_the_folder_of_the_course(
    lang: Lang, said: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(ROOT / COURSES[lang])
    place = "ex01", "ex01_input_embeddings"
    cells = nbformat.read(Path("source", place[0], f"{place[1]}.ipynb"), as_version=4).cells
    schemes = {cell.id: text for cell in cells if (text := marking_scheme(cell, *place))}
    assert list(schemes) == ["ex01-written"]
    assert said in schemes["ex01-written"]
    assert "SOLUTION" not in schemes["ex01-written"]
    written = next(cell for cell in cells if cell.id == "ex01-written")
    assert marking_scheme(written, "ex02", "ex02_mlm_loss") == ""
    monkeypatch.chdir(tmp_path)
    assert marking_scheme(written, *place) == ""

"""nbgrader's steps, as this course takes them: repair, grade in a confined process, save the scores all at once."""

from __future__ import annotations

import base64
import os
from functools import cache
from pathlib import Path
from typing import Any

import nbformat
import nbgrader.api
from nbformat import NotebookNode
from nbformat.v4 import new_output
from nbgrader import utils
from nbgrader.api import Gradebook
from nbgrader.preprocessors import NbGraderPreprocessor
from traitlets import Enum, List, Unicode

from autograder.nbgrader.feedback import function_html, function_text
from autograder.nbgrader.process import GradingFailed, Output, Task, grading_process
from autograder.nbgrader.reading import exercise_of
from autograder.nbgrader.repair import repair
from autograder.nbgrader.words import say
from autograder.notebook import plain_python
from autograder.render import jsonlines
from autograder.render.words import LANGUAGES
from autograder.report import FunctionReport
from autograder.syllabus import Exercise

# nbgrader opens the gradebook nine times a student, and an engine of its own would compile every statement anew
nbgrader.api.create_engine = cache(nbgrader.api.create_engine)


class NeedsAttention(Exception):
    """The grader itself failed: the submission has no grade yet."""


class CoursePreprocessor(NbGraderPreprocessor):
    """What all of them know: the language of the course."""

    #: nbconvert configures it for every preprocessor, and nbgrader's own base takes the setting away
    display_data_priority = List(Unicode(), config=True)
    lang = Enum(LANGUAGES, "en", help="The language of feedback: en or zh.").tag(config=True)


class RepairCells(CoursePreprocessor):
    """The first step: put a submitted notebook right, so that nothing in it can stop or mislead what follows."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        released = self._released(resources["nbgrader"]["assignment"], resources["nbgrader"]["notebook"])
        found = resources.get("autograder", {})
        cells, notes = repair(nb.cells, released.cells, self.lang)
        if found.get("renamed"):
            notes.insert(0, say("renamed", self.lang, name=found["renamed"]))
        if found.get("refused"):
            notes = [found["refused"]]
        for note in notes:
            self.log.info("%s: %s", resources["nbgrader"]["student"], note)
        nb.cells = cells
        nb.metadata = nbformat.from_dict(
            {**released.metadata, "autograder": {"notes": notes, "refused": found.get("refused")}}
        )
        nb.nbformat, nb.nbformat_minor = released.nbformat, released.nbformat_minor
        return nb, resources

    def _released(self, assignment: str, notebook: str) -> NotebookNode:
        coursedir = self.parent.parent.coursedir  # exporter, converter
        folder = Path(coursedir.format_path(coursedir.release_directory, ".", assignment))
        path = folder / f"{notebook}.ipynb"
        if not path.is_file():
            raise FileNotFoundError(
                f"{path} is not there, and submissions are repaired by it: "
                f"run `nbgrader generate_assignment {assignment}`"
            )
        return nbformat.read(path, as_version=4)


class GradeCells(CoursePreprocessor):
    """In place of executing the notebook: grade it in a confined process, and write each score into its grade cell."""

    sandbox = Enum(
        ("auto", "strict"), "auto", help="strict: refuse to grade on a host without Landlock and seccomp."
    ).tag(config=True)

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        names = resources["nbgrader"]
        exercise = exercise_of(names["notebook"])
        if exercise is None:
            raise ValueError(f"{names['notebook']} is not a notebook of this course: no exercise has that name")
        where = f"{names['student']}/{names['assignment']}/{names['notebook']}.ipynb"
        task, cells = _task(nb, exercise, where)
        try:
            graded = grading_process(self.sandbox).grade(task)
        except GradingFailed as failure:
            raise self._left(names, str(failure)) from failure
        if graded.report.needs_attention:
            why = next(check.message for check in graded.report.checks if check.verdict == "grader_error")
            raise self._left(names, why)
        for cell, output in zip(cells, graded.outputs, strict=False):
            cell.outputs = _outputs(output, self.lang, int(cell.execution_count))
        (report,) = graded.report.exercises
        functions = {f"{exercise.id}-{function.name}": function for function in report.functions}
        if unequal := [
            c for c in _grade_cells(nb) if _hundredths(c) != functions[c.metadata.nbgrader.grade_id].max_points
        ]:
            raise self._left(
                names,
                f"{unequal[0].metadata.nbgrader.grade_id} is not worth the same in the released notebook as its checks "
                f"are: run `autograder build` and `nbgrader generate_assignment {names['assignment']}`.",
            )
        for cell in _grade_cells(nb):
            self._write_score(cell, functions[cell.metadata.nbgrader.grade_id])
        nb.metadata.setdefault("autograder", {})["report"] = jsonlines.as_dict(graded.report)
        return nb, resources

    def _write_score(self, cell: NotebookNode, function: FunctionReport) -> None:
        """One finite plain float in [0, points]: nbgrader gives full marks for silence and for what it cannot read."""
        score = min(max(function.points, 0), function.max_points) / 100
        shown = {"text/html": function_html(function, self.lang), "text/plain": function_text(function, self.lang)}
        cell.outputs = [
            new_output("display_data", data=shown),
            new_output("execute_result", data={"text/plain": repr(float(score))}, execution_count=None),
        ]

    def _left(self, names: dict[str, str], why: str) -> NeedsAttention:
        """No score at all, older ones withdrawn too: they were for another submission or another grader."""
        with Gradebook(names["db_url"]) as gradebook:
            notebook = gradebook.find_submission_notebook(names["notebook"], names["assignment"], names["student"])
            for grade in notebook.grades:
                grade.auto_score, grade.needs_manual_grade = None, True
            gradebook.db.commit()
        message = f"{names['student']}, {names['assignment']}: NEEDS ATTENTION, no score was written. {why}"
        self.log.error(message)
        return NeedsAttention(message)


class SaveScores(CoursePreprocessor):
    """In place of nbgrader's own step: the scores of a notebook are saved in one transaction, all or none."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        names = resources["nbgrader"]
        with Gradebook(names["db_url"]) as gradebook:
            notebook = gradebook.find_submission_notebook(names["notebook"], names["assignment"], names["student"])
            grades = {grade.name: grade for grade in notebook.grades}
            comments = {comment.name: comment for comment in notebook.comments}
            for cell in nb.cells:
                if utils.is_grade(cell):
                    grade = grades[cell.metadata.nbgrader.grade_id]
                    grade.auto_score, _ = utils.determine_grade(cell, self.log)
                    # a score that a person gave stays, and is to be looked at again
                    grade.needs_manual_grade = grade.manual_score is not None or grade.auto_score is None
                if utils.is_solution(cell):
                    comment = comments[cell.metadata.nbgrader.grade_id]
                    unchanged = cell.metadata.nbgrader.get("checksum") == utils.compute_checksum(cell)
                    comment.auto_comment = say("no response", self.lang) if unchanged else None
            gradebook.db.commit()
        return nb, resources


class ExplainFeedback(CoursePreprocessor):
    """Before feedback is written: what the template says, in the language of the course, and what was repaired."""

    def preprocess(self, nb: NotebookNode, resources: Any) -> tuple[NotebookNode, Any]:
        def words(key: str, **values: object) -> str:
            return say(key, self.lang, **values)

        names = resources["nbgrader"]
        with Gradebook(names["db_url"]) as gradebook:
            notebook = gradebook.find_submission_notebook(names["notebook"], names["assignment"], names["student"])
            waiting = [
                grade.name for grade in notebook.grades if grade.manual_score is None and grade.auto_score is None
            ]
        exercise = exercise_of(names["notebook"])
        title = "" if exercise is None else exercise.title_zh if self.lang == "zh" else exercise.title
        resources["autograder"] = {
            "lang": "zh-Hans" if self.lang == "zh" else "en",
            "say": words,
            "title": f"{names['assignment']} · {title}",
            "notes": nb.metadata.get("autograder", {}).get("notes", []),
            "waiting": waiting,
        }
        return nb, resources


def _grade_cells(nb: NotebookNode) -> list[NotebookNode]:
    """The cells that take an automatic score."""
    return [cell for cell in nb.cells if utils.is_grade(cell) and cell.cell_type == "code"]


def _hundredths(cell: NotebookNode) -> int:
    return round(float(cell.metadata.nbgrader.points) * 100)


def _task(nb: NotebookNode, exercise: Exercise, name: str) -> tuple[Task, list[NotebookNode]]:
    """The student's code cells as a task, and those cells.  What is locked is the course's, and is not run."""
    texts, cells = [], []
    code_cells = [cell for cell in nb.cells if cell.cell_type == "code"]
    for number, cell in enumerate(code_cells, start=1):
        if not utils.is_locked(cell):
            text, _ = plain_python(cell.source)
            texts.append((f"cell {number}", text))
            cell.execution_count = number
            cells.append(cell)
    refused = nb.metadata.get("autograder", {}).get("refused")
    return Task(name, exercise.number, tuple(texts), refused), cells


def _outputs(output: Output, lang: Any, number: int) -> list[NotebookNode]:
    """What a cell put out as notebook outputs: text and pictures, nothing that a browser would run."""
    found = []
    if output.stdout:
        found.append(new_output("stream", name="stdout", text=output.stdout))
    if output.stderr:
        found.append(new_output("stream", name="stderr", text=output.stderr))
    for image in output.images:
        found.append(new_output("display_data", data={"image/png": base64.b64encode(image).decode("ascii")}))
    if output.value:
        found.append(new_output("execute_result", data={"text/plain": output.value}, execution_count=number))
    if output.error is not None:
        name, message, lines = output.error
        traceback = [*lines, f"{name}: {message}" if message else name]
        found.append(new_output("error", ename=name, evalue=message, traceback=traceback))
    if output.ended:
        found.append(new_output("stream", name="stderr", text=say(output.ended, lang) + os.linesep))
    return found

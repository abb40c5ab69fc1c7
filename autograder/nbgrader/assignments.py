"""An exercise in the gradebook: its assignment, notebook and cells, as `nbgrader generate_assignment` records them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import nbformat
from nbformat import NotebookNode
from nbgrader import api, utils
from nbgrader.preprocessors import CheckCellMetadata, ClearOutput, ClearSolutions, ComputeChecksums, LockCells
from sqlalchemy import select
from sqlalchemy.orm import Session
from traitlets.config import Config

from autograder.build.notebook import path_of
from autograder.nbgrader_plugin import configure
from autograder.render.words import Lang
from autograder.submission import UsageError
from autograder.syllabus import Exercise

#: nbgrader's id of each course, as `nbgrader_config.py` beside its notebooks sets it.
COURSE_IDS: dict[Lang, str] = {"en": "bert", "zh": "bert-zh"}
_BEFORE_SAVING = (LockCells, ClearSolutions, ClearOutput, CheckCellMetadata, ComputeChecksums)


@dataclass(frozen=True)
class Notebook:
    """A notebook of an assignment: the database's ids of it and its cells, by the cells' names.

    automatic: grade cells that hold code, with their points in hundredths; by_person: those that a person marks.
    """

    id: str
    automatic: dict[str, tuple[str, int]]
    by_person: dict[str, str]
    commented: dict[str, str]


def notebooks(session: Session, assignment: str) -> dict[str, Notebook]:
    """The notebooks of an assignment by their names; none if the gradebook has no such assignment."""
    found: dict[str, Notebook] = {}
    rows = session.scalars(select(api.Notebook).join(api.Assignment).where(api.Assignment.name == assignment))
    for notebook in rows:
        cells = session.scalars(select(api.BaseCell).where(api.BaseCell.notebook_id == notebook.id)).all()
        graded = [cell for cell in cells if isinstance(cell, api.GradeCell | api.TaskCell)]
        automatic = [cell for cell in graded if isinstance(cell, api.GradeCell) and cell.cell_type == "code"]
        found[notebook.name] = Notebook(
            notebook.id,
            {cell.name: (cell.id, round(cell.max_score * 100)) for cell in automatic},
            {cell.name: cell.id for cell in graded if cell not in automatic},
            {cell.name: cell.id for cell in cells if isinstance(cell, api.SolutionCell | api.TaskCell)},
        )
    return found


def source_notebook(exercise: Exercise, lang: Lang) -> Path:
    """Where an exercise's source notebook lies: in the nbgrader course that we are in, or in this repository.

    Raises UsageError if it is nowhere.
    """
    path = path_of(exercise, lang)
    places = (Path("source", exercise.id, path.name), path, Path(__file__).parents[2] / path)
    for place in places:
        if place.is_file():
            return place
    raise UsageError(
        f"the gradebook has no assignment {exercise.id}, and the notebook {path}, which it is made from, is not here: "
        f"run this in the folder of the course, or `nbgrader generate_assignment {exercise.id}` first"
    )


def add_assignment(session: Session, exercise: Exercise, lang: Lang) -> bool:
    """Record an exercise whose assignment or notebook the gradebook lacks; whether there was anything to record.

    What is there stays as it is: a due date, other notebooks.  Raises UsageError if there is no source notebook.
    """
    assignment = session.scalars(select(api.Assignment).where(api.Assignment.name == exercise.id)).one_or_none()
    if assignment is not None and any(notebook.name == exercise.module for notebook in assignment.notebooks):
        return False
    recorded = _recorded(source_notebook(exercise, lang), lang)
    if assignment is None:
        if session.get(api.Course, COURSE_IDS[lang]) is None:
            session.add(api.Course(id=COURSE_IDS[lang]))
        assignment = api.Assignment(name=exercise.id, course_id=COURSE_IDS[lang])
        session.add(assignment)
    kernel = json.dumps(recorded.metadata.get("kernelspec", {}))
    notebook = api.Notebook(name=exercise.module, assignment=assignment, kernelspec=kernel)
    session.add(notebook)
    for cell in recorded.cells:
        if not (utils.is_grade(cell) or utils.is_solution(cell) or utils.is_locked(cell)):
            continue
        marks = cell.metadata.nbgrader
        name = marks["grade_id"]
        if utils.is_grade(cell):
            worth = float(marks["points"])
            session.add(api.GradeCell(name=name, notebook=notebook, max_score=worth, cell_type=cell.cell_type))
        if utils.is_solution(cell):
            session.add(api.SolutionCell(name=name, notebook=notebook))
        session.add(
            api.SourceCell(
                name=name,
                notebook=notebook,
                cell_type=cell.cell_type,
                locked=utils.is_locked(cell),
                source=cell.source,
                checksum=marks.get("checksum"),
            )
        )
    session.flush()
    return True


def _recorded(source: Path, lang: Lang) -> NotebookNode:
    """The notebook as it is when nbgrader records it: the course's own, through nbgrader's steps up to then."""
    try:
        notebook = nbformat.read(source, as_version=4)
    except (OSError, ValueError) as error:
        raise UsageError(f"{source}: cannot be read as a notebook ({type(error).__name__})") from None
    config = Config()
    configure(config, lang)
    resources: dict[str, object] = {}
    for step in _BEFORE_SAVING:
        notebook, resources = step(config=config).preprocess(notebook, resources)
    return notebook

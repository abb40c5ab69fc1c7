"""What `nbgrader_config.py` names: this course's steps in nbgrader, and `configure`, which puts them in place."""

from __future__ import annotations

import os
import sys
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import nbgrader

from autograder.nbgrader.words import say
from autograder.render.words import Lang

TEMPLATES = Path(__file__).parent / "nbgrader" / "templates"
_FORMGRADERS = os.path.join("server_extensions", "formgrader", "templates")
_STUB = 'raise NotImplementedError("this is yours to write")'
_TEXT_STUB: dict[Lang, str] = {"en": "(Write here.)", "zh": "（在此作答。）"}


def configure(config: Any, lang: Lang) -> None:
    """Put the steps into nbgrader's configuration, for a course in that language.

    They are named, not imported: a command loads what it uses.  Of nbgrader's own steps those are left out that do
    again what RepairCells has done.
    """
    # nbgrader calls programs of its own environment by name, also where that environment is not activated
    os.environ["PATH"] = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", os.defpath)])
    # nbgrader makes SQLAlchemy say this of every new submission, and nobody can do anything about it
    warnings.filterwarnings("ignore", message="Object of type <Submitted")
    here = "autograder.nbgrader"
    config.CoursePreprocessor.lang = lang
    config.ClearSolutions.code_stub = {"python": _STUB}
    config.ClearSolutions.text_stub = _TEXT_STUB[lang]
    config.Autograde.exporter_class = f"{here}.reading.SubmissionExporter"
    config.Autograde.pre_convert_hook = f"{here}.reading.match_renamed"
    config.Autograde.sanitize_preprocessors = [
        f"{here}.preprocessors.RepairCells",
        "nbgrader.preprocessors.ClearOutput",
        "nbgrader.preprocessors.DeduplicateIds",
        "nbgrader.preprocessors.OverwriteCells",
    ]
    config.Autograde.autograde_preprocessors = [
        f"{here}.preprocessors.GradeCells",
        f"{here}.preprocessors.SaveScores",
        "nbgrader.preprocessors.AssignLatePenalties",
    ]
    config.AssignLatePenalties.plugin_class = f"{here}.gradebook.LatePolicy"
    config.GenerateFeedback.preprocessors = [
        "nbgrader.preprocessors.GetGrades",
        f"{here}.preprocessors.ExplainFeedback",
        "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor",
    ]
    config.GenerateFeedback.exporter_class = f"{here}.reading.FeedbackExporter"
    config.FeedbackExporter.template_name = "course_feedback"
    config.FeedbackExporter.extra_template_basedirs = [str(TEMPLATES)]
    # formgrader's: it is to work offline, and to show what written answers are marked by
    config.HTMLExporter.template_name = "course_formgrade"
    config.HTMLExporter.extra_template_basedirs.prepend([str(TEMPLATES)])
    config.HTMLExporter.extra_template_paths = [os.path.join(os.path.dirname(nbgrader.__file__), _FORMGRADERS)]
    config.HTMLExporter.filters = {
        "marking_scheme": f"{here}.scheme.marking_scheme",
        "words": partial(say, lang=lang),
    }
    config.ExportApp.plugin_class = f"{here}.gradebook.GradebookCsv"
    config.Validator.validate_all = True  # the cells of visible checks carry no points, but say whether work is done

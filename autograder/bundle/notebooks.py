"""The students' version of a source notebook: what `nbgrader generate_assignment` releases, without a gradebook."""

from __future__ import annotations

import nbformat
from nbgrader import preprocessors
from traitlets.config import Config

from autograder.nbgrader_plugin import configure
from autograder.render.words import Lang

_STEPS = (
    preprocessors.LockCells,
    preprocessors.ClearSolutions,
    preprocessors.ClearOutput,
    preprocessors.CheckCellMetadata,
    preprocessors.ComputeChecksums,
    preprocessors.ClearHiddenTests,
    preprocessors.ClearMarkScheme,
    preprocessors.ComputeChecksums,
    preprocessors.CheckCellMetadata,
)


def released(source: str, lang: Lang) -> str:
    """The text of the notebook that students get.  source: the text of the notebook that instructors have."""
    config = Config()
    configure(config, lang)
    notebook = nbformat.reads(source, as_version=nbformat.current_nbformat)
    resources: dict[str, object] = {}
    for step in _STEPS:
        notebook, resources = step(config=config).preprocess(notebook, resources)
    text: str = nbformat.writes(notebook)
    return text.rstrip("\n") + "\n"

"""The table of formats: what the command can write, and how many reports each takes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from autograder.render import github, gradescope, jsonlines, junit, tables
from autograder.render.markdown import markdown
from autograder.render.words import Lang
from autograder.report import Report


@dataclass(frozen=True)
class Format:
    """render: a pure function of the reports.  single: what reads it knows one submission only."""

    render: Callable[[Sequence[Report], Lang], str]
    single: bool = False


def _html(reports: Sequence[Report], lang: Lang) -> str:
    from autograder.render.html import html  # brings Jinja2

    return html(reports, lang)


FORMATS: dict[str, Format] = {
    "json": Format(lambda reports, _: "".join(f"{jsonlines.line(report)}\n" for report in reports)),
    "markdown": Format(markdown),
    "html": Format(_html),
    "junit": Format(lambda reports, lang: junit.junit(reports, "pytest", lang)),
    "gitlab": Format(lambda reports, lang: junit.junit(reports, "gitlab", lang)),
    "gradescope": Format(lambda reports, lang: gradescope.results(reports[0], lang), single=True),
    "github": Format(github.summary),
    "annotations": Format(github.annotate),
    "classroom": Format(lambda reports, lang: github.classroom(reports[0], lang), single=True),
    "csv": Format(tables.gradebook),
    "canvas": Format(tables.canvas),
    "moodle": Format(tables.moodle),
}
#: Those that need many reports to make sense, or may find that the reports clash: only for stored results.
STORED_ONLY = ("canvas", "moodle")

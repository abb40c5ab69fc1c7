"""Reports as one HTML file that needs nothing else: no network, no script."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache, partial
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from autograder.render import words
from autograder.render.reasons import groups, misconceptions, passed
from autograder.render.words import Lang, say
from autograder.report import ExerciseReport, FunctionReport, Report, points_number

TEMPLATE = "report.html.j2"


def html(
    reports: Sequence[Report], lang: Lang = "en", names: Sequence[str] | None = None, home: str | None = None
) -> str:
    """The document; several reports come with a table of the class.  Every text in it is escaped by the template.

    names: what to call the submissions, if not by their paths.  home: a page about the class that this one belongs to.
    """
    return _template().render(
        reports=reports,
        names=words.short_names(reports) if names is None else names,
        home=home,
        lang=lang,
        html_lang=words.HTML_LANG[lang],
        say=partial(say, lang=lang),
        numbers=sorted({exercise.id for report in reports for exercise in report.exercises}),
        averages=_averages(reports, lang) if len(reports) > 1 else [],
        frequent=_frequent(reports, lang) if len(reports) > 1 else [],
        points=points_number,
        total=partial(words.total, lang=lang),
        out_of=partial(words.out_of, lang=lang),
        verdict=partial(words.verdict, lang=lang),
        explained=partial(words.explained, lang=lang),
        exercise_title=partial(words.exercise_title, lang=lang),
        circumstances=partial(words.circumstances, lang=lang),
        remark=partial(words.remark, lang=lang),
        exercise_number=words.exercise_number,
        one_line=words.one_line,
        groups=groups,
        passed=passed,
        filled=filled,
    )


def filled(part: Report | ExerciseReport | FunctionReport) -> int:
    """Per cent of a bar: 100 only for full points, and 0 only for none."""
    return _share(part.points, part.max_points)


def _share(points: int, most: int) -> int:
    return 0 if most <= 0 else max(int(points > 0), 100 * points // most)


def _averages(reports: Sequence[Report], lang: Lang) -> list[tuple[str, float, int | float, int]]:
    """For each exercise: its heading, average points of what is graded, what it is worth, and per cent of the bar."""
    done: dict[str, list[ExerciseReport]] = {}
    for report in reports:
        for exercise in report.exercises if not report.needs_attention else ():
            done.setdefault(exercise.id, []).append(exercise)
    rows = []
    for name, exercises in sorted(done.items()):
        title = f"{name} · {words.exercise_title(exercises[0], lang)}"
        average = round(sum(exercise.points for exercise in exercises) / len(exercises))
        most = max(exercise.max_points for exercise in exercises)
        rows.append((title, points_number(average), points_number(most), _share(average, most)))
    return rows


def _frequent(reports: Sequence[Report], lang: Lang) -> list[tuple[str, int, int]]:
    """For each misconception, most frequent first: its title, how many submissions show it, and per cent of them."""
    count = Counter(name for report in reports for name in misconceptions(report))
    return [
        (words.misconception_title(name, lang), times, _share(times, len(reports)))
        for name, times in count.most_common(12)
    ]


@cache
def _template() -> Template:
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template(TEMPLATE)

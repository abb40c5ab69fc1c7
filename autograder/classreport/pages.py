"""The pages of a class, but for those of the submissions: what was counted, put into templates that escape it."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from autograder.classreport import words
from autograder.classreport.charts import histogram, per_cent
from autograder.classreport.counting import TROUBLE, CheckCount, ClassCount, FunctionCount, Row
from autograder.classreport.similarity import NEAR, Excerpt, Group, Together, near_in_several, shared_by_many
from autograder.classreport.timeline import Period, by_the_clock, periods, zone
from autograder.classreport.tokens import LENGTH
from autograder.hidden.catalogue import catalogue
from autograder.plain import plain_text
from autograder.render import words as report_words
from autograder.render.words import HTML_LANG, LANGUAGES, VERDICTS, Lang
from autograder.report import Verdict, points_number

FOLDER = Path(__file__).parent / "templates"
#: The pages, each with the entry of the words that is its title.
NAMES = {
    "index": "overview",
    "submissions": "all submissions",
    "misconceptions": "all misconceptions",
    "checks": "all checks",
    "similar": "similar",
}
#: How much of each list the overview shows.
SHOWN = 10
LISTED = 60


@dataclass(frozen=True)
class Found:
    """A group of nearly identical submissions, and what the two nearest of them share."""

    group: Group
    passage: Excerpt | None


@dataclass(frozen=True)
class Similar:
    """What the comparison came to.  too_little: by exercise, how many submissions had too little to compare."""

    found: tuple[Found, ...]
    with_code: int
    too_little: dict[str, int]

    @property
    def members(self) -> int:
        return len({member for one in self.found for member in one.group.members})

    @property
    def several(self) -> list[Together]:
        return near_in_several([one.group for one in self.found])


@dataclass(frozen=True)
class _Misconception:
    """What is told of one: texts in the language of the report.  functions: where, most frequent first."""

    key: str
    title: str
    explanation: str
    hint: str
    rows: list[int]
    functions: list[tuple[str, int]]


def pages(count: ClassCount, similar: Similar | None, unreadable: list[str], lang: Lang) -> Iterator[tuple[str, str]]:
    """(file name, text) of each page.  unreadable: result files that are left out, and why."""
    style, script = ((FOLDER / name).read_text(encoding="utf-8").strip() for name in ("style.css", "tables.js"))
    told = _misconceptions(count, lang)
    found_periods = periods([row.time for row in count.rows])
    context: dict[str, Any] = {
        "count": count,
        "rows": count.rows,
        "similar": similar,
        "unreadable": unreadable,
        "lang": lang,
        "html_lang": HTML_LANG[lang],
        "say": partial(words.say, lang=lang),
        "gap": "" if lang == "zh" else " ",
        "style": Markup(style),
        "script": Markup(script),
        "policy": f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; base-uri 'none'; "
        "form-action 'none'",
        "titles": NAMES,
        "exercises": sorted(count.titles),
        "worth": {name: _worth(count, name) for name in count.titles},
        "heading": partial(_heading, lang=lang),
        "distributions": _distributions(count, lang),
        "total": histogram([row.score for row in count.rows]),
        "uneven": _uneven(count),
        "misconceptions": told,
        "hardest_checks": _hardest_checks(count),
        "hardest_functions": _hardest_functions(count),
        "periods": found_periods,
        "zone": zone([row.time for row in count.rows]),
        "timed": sum(row.time is not None for row in count.rows),
        "period_score": partial(_period_score, count.rows),
        "local_time": by_the_clock,
        "trouble": _trouble(count),
        "verdict_names": {verdict: VERDICTS[verdict][LANGUAGES.index(lang)] for verdict in TROUBLE},
        "TROUBLE": TROUBLE,
        "SHOWN": SHOWN,
        "LISTED": LISTED,
        "NEAR": round(100 * NEAR),
        "LENGTH": LENGTH,
        "many": shared_by_many(len(count.rows)),
        "points": points_number,
        "per_cent": per_cent,
        "too_little_list": [f"{name} ({n})" for name, n in similar.too_little.items()] if similar is not None else [],
        "plain": partial(plain_text, limit=20_000),
    }
    for name in NAMES:
        yield f"{name}.html", _environment().get_template(f"{name}.html.j2").render(context, page=name)


def _hash(text: str) -> str:
    """What a Content-Security-Policy calls one inline text: nothing else runs."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _coded(text: str) -> Markup:
    """A sentence in which `code` is set as code."""
    return Markup(re.sub(r"`([^`]+)`", r"<code>\1</code>", str(escape(text))))


def _breakable(name: str) -> Markup:
    """A long name that may be broken after an underscore, on a narrow screen."""
    return Markup(str(escape(name)).replace("_", "_<wbr>"))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["coded"] = _coded
    environment.filters["breakable"] = _breakable
    return environment


def _heading(exercise: str, lang: Lang, titles: dict[str, str]) -> str:
    number = exercise.removeprefix("ex").lstrip("0")
    return f"{words.say('exercise', lang, number=number)} · {titles[exercise]}"


def _distributions(count: ClassCount, lang: Lang) -> list[tuple[str, str, Any]]:
    """(id, heading, histogram) of each exercise."""
    found = []
    for name in sorted(count.titles):
        scores = [row.exercises[name] for row in count.rows if name in row.exercises]
        found.append((name, _heading(name, lang, count.titles), histogram(scores)))
    return found


def _worth(count: ClassCount, exercise: str) -> int | float:
    return points_number(
        max((row.exercises[exercise].most for row in count.rows if exercise in row.exercises), default=0)
    )


def _uneven(count: ClassCount) -> int:
    most = max((row.score.most for row in count.rows), default=0)
    return sum(row.score.most < most for row in count.graded)


def _misconceptions(count: ClassCount, lang: Lang) -> list[_Misconception]:
    """Those that most submissions show first."""
    found: list[_Misconception] = []
    for name, counted in sorted(count.misconceptions.items(), key=lambda item: (-len(item[1].rows), item[0])):
        entry = catalogue().get(name)
        explanation, hint = "", plain_text(counted.hint)
        if entry is not None:
            explanation = entry.explanation_zh if lang == "zh" else entry.explanation
            hint = entry.hint_zh if lang == "zh" else entry.hint
        title = report_words.misconception_title(name, lang)
        functions = sorted(counted.functions.items(), key=lambda item: (-item[1], item[0]))
        found.append(_Misconception(f"m{len(found) + 1}", title, explanation, hint, counted.rows, functions))
    return found


def _hardest_checks(count: ClassCount) -> list[tuple[str, str, CheckCount]]:
    """Checks that ran anywhere: smallest share passed first."""
    ran = [(exercise, function, check) for (exercise, function, _), check in count.checks.items() if check.ran]
    return sorted(ran, key=lambda item: (item[2].passed / item[2].ran, -item[2].ran, item[0], item[1], item[2].title))


def _hardest_functions(count: ClassCount) -> list[tuple[str, str, FunctionCount]]:
    graded = [(exercise, name, function) for (exercise, name), function in count.functions.items() if function.most]
    return sorted(graded, key=lambda item: (item[2].points / item[2].most, item[0], item[1]))


def _trouble(count: ClassCount) -> dict[Verdict, list[Row]]:
    return {verdict: [row for row in count.rows if verdict in row.trouble] for verdict in TROUBLE}


def _period_score(rows: list[Row], period: Period) -> int | None:
    """The average share of the points, in per cent, of what was handed in then and is graded."""
    scores = [rows[index].score for index in period.rows]
    shares = [score.points / score.most for score in scores if score.most and not score.at_fault]
    return round(100 * sum(shares) / len(shares)) if shares else None

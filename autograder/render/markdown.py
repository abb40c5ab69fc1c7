"""Reports in Markdown (GitHub's), in which whatever a student wrote stays text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from autograder.render.reasons import groups, passed
from autograder.render.words import (
    Lang,
    circumstances,
    exercise_number,
    exercise_title,
    explained,
    one_line,
    out_of,
    remark,
    say,
    short_names,
    total,
    verdict,
)
from autograder.report import Check, ExerciseReport, FunctionReport, Report, plain_text

_MEANS_SOMETHING = re.compile(r"([\\`*_\[\]<>#|~&$])")


def markdown(reports: Sequence[Report], lang: Lang = "en") -> str:
    return "".join(blocks(reports, lang))


def blocks(reports: Sequence[Report], lang: Lang = "en") -> Iterator[str]:
    """The document in pieces: after any of them it may end."""
    yield f"# {say('report', lang)}\n"
    if len(reports) > 1:
        yield from _class(reports, lang)
    for name, report in zip(short_names(reports), reports, strict=True):
        yield from _report(name, report, lang)


def _class(reports: Sequence[Report], lang: Lang) -> Iterator[str]:
    numbers = sorted({exercise.id for report in reports for exercise in report.exercises})
    header = _row([say("submission", lang), *map(_inline, numbers), say("total", lang), say("note", lang)])
    yield f"\n{header}{_row(['---', *['---:'] * len(numbers), '---:', '---'])}"
    for name, report in zip(short_names(reports), reports, strict=True):
        by_id = {exercise.id: exercise for exercise in report.exercises}
        cells = [out_of(by_id[number], lang) if number in by_id else "–" for number in numbers]
        yield _row([_inline(name), *cells, total(report, lang), _inline(remark(report, lang))])


def _report(name: str, report: Report, lang: Lang) -> Iterator[str]:
    yield f"\n## {_inline(name)}\n\n**{say('total', lang)}{say('colon', lang)}{total(report, lang)}**\n"
    if report.needs_attention:
        yield f"\n> **{say('needs attention', lang)}**\n"
    if report.notes:
        yield "\n" + "".join(f"- {_inline(note)}\n" for note in report.notes)
    for exercise in report.exercises:
        yield from _exercise(exercise, lang)
    ending = [circumstances(report, lang), *([] if report.device == "cuda" else [say("cpu only", lang)])]
    yield "\n" + "  \n".join(_inline(line) for line in ending) + "\n"


def _exercise(exercise: ExerciseReport, lang: Lang) -> Iterator[str]:
    number = say("exercise", lang, number=_inline(exercise_number(exercise)))
    yield f"\n### {number} · {_inline(exercise_title(exercise, lang))} · {out_of(exercise, lang)}\n"
    rows = [_row([say("function", lang), say("points", lang), say("check", lang)]), _row(["---", "---:", "---"])]
    for function in exercise.functions:
        rows.append(_row([_inline(function.name), out_of(function, lang), _passed(function, lang)]))
    yield "\n" + "".join(rows)
    for function in exercise.functions:
        for number_of_group, group in enumerate(groups(function.checks)):
            heading = f"\n#### {_inline(function.name)}\n" if number_of_group == 0 else ""
            yield heading + _reason(group, lang)


def _passed(function: FunctionReport, lang: Lang) -> str:
    return say("checks passed", lang, passed=passed(function), all=len(function.checks))


def _reason(group: list[Check], lang: Lang) -> str:
    lines = [f"- {_inline(c.title)} · **{verdict(c, lang)}** · {out_of(c, lang)}\n" for c in group]
    told = explained(group[0], lang)
    parts = ["\n" + "".join(lines)]
    if told.message:
        parts.append(f"\n{_fenced(told.message)}\n")
    if told.misconception:
        named = f"**{_inline(told.misconception)}**{say('colon', lang)}{_inline(told.explanation)}"
        parts.append(f"\n> {say('misconception', lang)}{say('colon', lang)}{named}\n")
    if told.hint:
        parts.append(f"\n> **{say('hint', lang)}**{say('colon', lang)}{_inline(told.hint)}\n")
    return "".join(parts)


def _fenced(text: str) -> str:
    """A block of code, behind a fence that does not occur in it."""
    fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", text)), default=0))
    return f"{fence}text\n{plain_text(text)}\n{fence}"


def _inline(text: str) -> str:
    return _MEANS_SOMETHING.sub(r"\\\1", one_line(text))


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |\n"

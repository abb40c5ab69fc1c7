"""What the record says about one function, as a piece of HTML for a notebook and as plain text."""

from __future__ import annotations

import html
from collections.abc import Iterator

from autograder.render import words
from autograder.render.words import Lang
from autograder.report import Check, FunctionReport

TITLES_SHOWN = 6


def function_html(function: FunctionReport, lang: Lang) -> str:
    """Points, and for what went wrong: the misconception, a hint, the checks that show it, what came of the calls."""
    return "\n".join(['<div class="autograder">', *_html(function, lang), "</div>"])


def function_text(function: FunctionReport, lang: Lang) -> str:
    """The same as plain text, for readers without HTML."""
    lines = [_summary(function, lang)]
    for checks in _alike(function):
        lines += [f"✗ {words.one_line(check.title)} · {words.verdict(check, lang)}" for check in _shown(checks)]
        lines += [f"    {line}" for line in words.explained(checks[0], lang).text(lang).splitlines()]
    return "\n".join(lines)


def _html(function: FunctionReport, lang: Lang) -> Iterator[str]:
    yield f"<p><b>{_safe(_summary(function, lang))}</b></p>"
    for checks in _alike(function):
        explained = words.explained(checks[0], lang)
        if explained.misconception:
            colon = words.say("colon", lang)
            yield f"<p><b>{_safe(explained.misconception)}{colon}</b>{_safe(explained.explanation)}</p>"
        if explained.hint:
            yield f"<p>→ {_safe(explained.hint)}</p>"
        yield "<ul>"
        said: set[str] = set()
        for check in _shown(checks):
            title = f"<b>{_safe(words.one_line(check.title))}</b> · {_safe(words.verdict(check, lang))}"
            message = words.explained(check, lang).message
            yield f"<li>{title}{_message(message, folded=bool(said)) if message not in said else ''}</li>"
            said.add(message)
        if len(checks) > len(_shown(checks)):
            yield f"<li>… (+{len(checks) - len(_shown(checks))})</li>"
        yield "</ul>"


def _message(message: str, folded: bool) -> str:
    """What was called and came back; after the first of its kind only for those who open it."""
    if not message:
        return ""
    text = f'<pre style="white-space: pre-wrap">{_safe(message)}</pre>'
    if not folded:
        return text
    # formgrader's style sheet takes from a summary the mark that says: this opens
    return f'<details><summary style="display: list-item">{_safe(_first_line(message))}</summary>{text}</details>'


def _first_line(message: str) -> str:
    line = message.partition("\n")[0]
    return line if len(line) <= 80 else f"{line[:79]}…"


def _summary(function: FunctionReport, lang: Lang) -> str:
    passed = sum(check.verdict == "passed" for check in function.checks)
    counted = words.say("checks passed", lang, passed=passed, all=len(function.checks))
    return f"{words.out_of(function, lang, 'of points')} · {counted}"


def _alike(function: FunctionReport) -> list[list[Check]]:
    """The checks that did not pass; those that show one misunderstanding, or failed alike, together."""
    groups: dict[tuple[str, str, str], list[Check]] = {}
    for check in function.checks:
        if check.verdict != "passed":
            message = check.message.rpartition("\n")[2] if check.verdict == "not_implemented" else check.message
            key = (check.misconception, "", "") if check.misconception else (check.verdict, message, check.hint)
            groups.setdefault(key, []).append(check)
    return list(groups.values())


def _shown(checks: list[Check]) -> list[Check]:
    return checks if len(checks) <= TITLES_SHOWN + 1 else checks[:TITLES_SHOWN]


def _safe(text: str) -> str:
    return html.escape(text)

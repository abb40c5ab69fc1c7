"""A student's Markdown as Markdown in which nothing runs: formgrader shows it within the session of the instructor."""

from __future__ import annotations

import html
import re

#: What a browser would take for a tag, and what Markdown would take for a link in angle brackets.
_TAG = re.compile(r"<(?=/?[a-zA-Z][\w:-]*(?:[\s/>]|$)|[!?]|[a-zA-Z][\w+.-]*:)")
#: Where a link leads: [text](there), [text](<there>), [name]: there.
_LINK = re.compile(r"(\]\s*(?:\(|:)[\s>]*)(<[^>\n]*>|[^\s)]+)")
#: MathJax makes a link of it.
_MATH_LINK = re.compile(r"\\(?=href|url|require)", re.I)
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:", re.I)
_HARMLESS = ("http:", "https:", "mailto:", "attachment:")
_NOT_IN_A_SCHEME = re.compile(r"[\x00-\x20\x7f-\xa0\\<>\u200b-\u200f\u2028\u2029\ufeff]")
_INERT = "\u200b"


def inert(text: str) -> str:
    """The text with no HTML in it and no link but to pages, addresses and attachments."""
    text = _LINK.sub(lambda link: link[1] + (link[2] if _leads_to_a_page(link[2]) else "left-out"), text)
    text = _TAG.sub(lambda tag: "<" if _is_page(text[tag.end() :]) else f"<{_INERT}", text)
    return _MATH_LINK.sub(lambda _: f"\\{_INERT}", text)


def _leads_to_a_page(place: str) -> bool:
    """Whether a link leads nowhere else than to a page, as a browser reads it: entities and escapes undone."""
    plain = place
    for _ in range(3):
        plain = html.unescape(plain)
    scheme = _SCHEME.match(_NOT_IN_A_SCHEME.sub("", plain))
    return scheme is None or scheme[0].lower() in _HARMLESS


def _is_page(rest: str) -> bool:
    """Whether a link in angle brackets, of which this follows the first one, leads to a page."""
    return re.match(r"(https?://|mailto:)[^\s<>\"]*>", rest, re.I) is not None

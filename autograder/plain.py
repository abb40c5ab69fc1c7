"""Text and numbers as they may be shown to people, anywhere: what students get needs no more of a report."""

from __future__ import annotations

import re

MESSAGE_LIMIT = 4_000
_UNPRINTABLE = re.compile(r"[^\n\t\x20-\x7e\xa0-\ud7ff\ue000-\ufeff\uff00-\ufff9\U00010000-\U0010ffff]")
_BIDIRECTIONAL = re.compile(r"[\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]")


def plain_text(text: str, limit: int = MESSAGE_LIMIT) -> str:
    """Text that is safe to show anywhere text is shown: no control or direction characters, at most `limit` long."""
    clean = _BIDIRECTIONAL.sub("�", _UNPRINTABLE.sub("�", text.replace("\r\n", "\n").replace("\r", "\n")))
    return clean if len(clean) <= limit else clean[:limit] + f" … ({len(clean) - limit} more characters)"


def points_number(hundredths: int) -> int | float:
    """Points as a JSON number: 250 -> 2.5, 300 -> 3."""
    return hundredths // 100 if hundredths % 100 == 0 else hundredths / 100

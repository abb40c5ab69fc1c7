"""Code as it is compared: tokens without what is easily changed, which are names, comments, layout and docstrings."""

from __future__ import annotations

import builtins
import io
import keyword
import tokenize
from dataclasses import dataclass
from itertools import islice

#: Longer code is compared up to here: nobody writes so much, and time for it must not grow without bound.
TOKENS_LIMIT = 50_000
CHARACTERS_LIMIT = 300_000
#: How many tokens in a row count as one fragment.
LENGTH = 10

_LAYOUT = frozenset({tokenize.COMMENT, tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER})
_BUILT_IN = frozenset(dir(builtins))
_NAME, _TEXT = "name", '"'


@dataclass(frozen=True, slots=True)
class Token:
    text: str
    line: int


def tokens(code: str) -> list[Token]:
    """The tokens up to where the code stops being Python.  What a student chooses freely is replaced: names and texts.

    Kept as they are: keywords, built-in names, attributes (`.logsumexp`), numbers and operators.
    """
    found: list[Token] = []
    before = ""
    at_start, only_text = True, False
    stream = io.StringIO(code[:CHARACTERS_LIMIT])
    try:
        for token in islice(tokenize.generate_tokens(stream.readline), TOKENS_LIMIT):
            if token.type in _LAYOUT:
                continue
            if token.type == tokenize.NEWLINE:
                if only_text:  # a docstring, or a text that stands alone and does nothing
                    found.pop()
                at_start, only_text, before = True, False, ""
                continue
            text = token.string
            if token.type == tokenize.STRING:
                text = _TEXT
            elif token.type == tokenize.NAME and not (before == "." or keyword.iskeyword(text) or text in _BUILT_IN):
                text = _NAME
            only_text = at_start and text == _TEXT
            at_start = False
            found.append(Token(text, token.start[0]))
            before = text
    except (tokenize.TokenError, SyntaxError, ValueError):
        pass
    return found


def fragments(code: list[Token]) -> list[str]:
    """Every run of LENGTH tokens, in order."""
    texts = [token.text for token in code]
    return ["\x1f".join(texts[start : start + LENGTH]) for start in range(len(texts) - LENGTH + 1)]

"""The Chinese prose says what the English says: cell for cell, formula for formula, and set as Chinese is set."""

from __future__ import annotations

import re
from collections import Counter
from itertools import pairwise
from pathlib import Path

import jupytext
import pytest
from markdown_it import MarkdownIt

from autograder.build.source import BEGIN_ANSWER, END_ANSWER
from autograder.syllabus import SYLLABUS, Exercise

ROOT = Path(__file__).parents[1]
CHINESE = r"[\u3400-\u4dbf\u4e00-\u9fff]"
#: Between two Chinese characters these must be the full-width ones, 《，。；：？！（）》.
HALF_WIDTH = re.compile(rf"{CHINESE}\s*[,.;:?!()]\s*{CHINESE}")
#: Markdown turns a line break into a space, which Chinese text does not have.
BROKEN_LINE = re.compile(rf"{CHINESE}\n[ ]*{CHINESE}")
FORMULA = re.compile(r"\$[^$]+\$")
HEADING = re.compile(r"^(#+) ", re.MULTILINE)
ITEM = re.compile(r"^(\d+\.|-) ", re.MULTILINE)
CODE = re.compile(r"`[^`]+`")

Pair = tuple[str, str]


def prose(exercise: Exercise) -> list[tuple[str, str]]:
    """Language and text of the cells of a solution, in their order; code cells have the language ""."""
    text = (ROOT / "solutions" / f"{exercise.module}.py").read_text(encoding="utf-8")
    return [
        (cell.metadata.get("lang", "") if cell.cell_type == "markdown" else "", cell.source)
        for cell in jupytext.reads(text, fmt="py:percent").cells
    ]


TRANSLATED = [exercise for exercise in SYLLABUS if any(lang == "zh" for lang, _ in prose(exercise))]
PAIRS = [
    pytest.param(english, chinese, id=f"{exercise.id}-{english.splitlines()[0].lstrip('# ')}")
    for exercise in TRANSLATED
    for (first, english), (second, chinese) in pairwise(prose(exercise))
    if (first, second) == ("en", "zh")
]


def test_the_first_five_exercises_are_translated() -> None:
    assert {1, 2, 3, 4, 5} <= {exercise.number for exercise in TRANSLATED}


@pytest.mark.parametrize("exercise", TRANSLATED, ids=lambda exercise: exercise.id)
def test_every_english_cell_is_followed_by_its_chinese_one(exercise: Exercise) -> None:
    languages = [lang for lang, _ in prose(exercise)]
    for index, lang in enumerate(languages):
        if lang == "en":
            assert languages[index + 1 : index + 2] == ["zh"], f"cell {index + 1} has no Chinese"
        if lang == "zh":
            assert languages[index - 1] == "en", f"cell {index + 1} has no English"


@pytest.mark.parametrize("exercise", TRANSLATED, ids=lambda exercise: exercise.id)
def test_the_title_is_that_of_the_syllabus(exercise: Exercise) -> None:
    title = next(text for lang, text in prose(exercise) if lang == "zh").splitlines()[0]
    assert title == f"# 练习 {exercise.number}：{exercise.title_zh}"


@pytest.mark.parametrize(("english", "chinese"), PAIRS)
def test_formulas_headings_items_and_code_are_the_same(english: str, chinese: str) -> None:
    assert re.search(CHINESE, chinese)
    for pattern in (FORMULA, HEADING, ITEM, CODE):
        assert Counter(pattern.findall(chinese)) == Counter(pattern.findall(english))


@pytest.mark.parametrize(("english", "chinese"), PAIRS)
def test_the_model_answer_stands_between_the_same_markers(english: str, chinese: str) -> None:
    markers = re.compile(f"{re.escape(BEGIN_ANSWER)}|{re.escape(END_ANSWER)}")
    assert markers.findall(chinese) == markers.findall(english)


@pytest.mark.parametrize(("english", "chinese"), PAIRS)
def test_chinese_is_set_as_chinese(english: str, chinese: str) -> None:
    assert not HALF_WIDTH.findall(chinese)
    assert not BROKEN_LINE.findall(chinese)


@pytest.mark.parametrize(("english", "chinese"), PAIRS)
def test_emphasis_is_rendered(english: str, chinese: str) -> None:
    """`**目标。**构造` shows its asterisks: punctuation, closing mark, letter close nothing (CommonMark 6.2)."""
    for text in (english, chinese):
        rendered = MarkdownIt().render(FORMULA.sub("x", text))
        assert "*" not in rendered
    marks = [
        sum(MarkdownIt().render(FORMULA.sub("x", text)).count(tag) for tag in ("<em>", "<strong>"))
        for text in (english, chinese)
    ]
    assert marks[0] == marks[1]


@pytest.mark.parametrize(
    ("pattern", "text"),
    [(HALF_WIDTH, "损失,分母"), (HALF_WIDTH, "练习 (见下) 中"), (HALF_WIDTH, "对. 错"), (BROKEN_LINE, "注意\n   力")],
)
def test_the_patterns_find_what_they_are_for(pattern: re.Pattern[str], text: str) -> None:
    assert pattern.search(text)
    assert not pattern.search("损失，分母（见下）是 $n$, 而不是 3.5。\n对")

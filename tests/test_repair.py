"""Whatever students do to a notebook, what is graded holds every cell that nbgrader counts on, once, as released."""

from __future__ import annotations

import copy
import random
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nbconvert.filters import markdown2html
from nbformat import NotebookNode

from autograder.build.notebook import path_of
from autograder.nbgrader.prose import inert
from autograder.nbgrader.repair import grade_id, is_locked, repair
from autograder.syllabus import SYLLABUS

ROOT = Path(__file__).parents[1]
CODE = "def copy_loss(*a):\n    return 1.0"


@pytest.fixture(scope="module")
def released() -> list[NotebookNode]:
    """The cells of exercise 3: with a written answer.  Solutions do not matter here."""
    return nbformat.read(ROOT / path_of(SYLLABUS[2], "en"), as_version=4).cells


@pytest.fixture
def cells(released):
    return copy.deepcopy(released)


def find(cells: list[Any], name: str) -> Any:
    (found,) = [cell for cell in cells if grade_id(cell) == f"ex03-{name}"]
    return found


def ids(cells: list[Any]) -> list[str]:
    return [grade_id(cell) for cell in cells if grade_id(cell)]


def test_an_untouched_notebook_stays_as_it_is(cells, released):
    repaired, notes = repair(cells, released, "en")
    assert notes == []
    assert [(cell.source, cell.metadata) for cell in repaired] == [(cell.source, cell.metadata) for cell in released]


def test_a_missing_grade_cell_comes_back_to_its_place(cells, released):
    cells.remove(find(cells, "copy_loss"))
    repaired, (note,) = repair(cells, released, "en")
    assert ids(repaired) == ids(released)
    assert "ex03-copy_loss, which cannot be changed, was missing" in note


def test_a_copied_grade_cell_is_dropped_and_a_changed_copy_is_the_students(cells, released):
    extra = copy.deepcopy(find(cells, "copy_loss"))
    other = copy.deepcopy(extra)
    other.source = CODE
    repaired, (note,) = repair([*cells, extra, other], released, "en")
    assert ids(repaired) == ids(released)
    assert repaired[-1].source == CODE
    assert "more than once" in note


def test_of_two_solution_cells_the_one_that_was_worked_on_counts(cells, released):
    extra = copy.deepcopy(find(cells, "copy_loss-solution"))
    extra.source = CODE
    repaired, _ = repair([*cells, extra], released, "en")
    assert find(repaired, "copy_loss-solution").source == CODE
    assert sum("def copy_loss(" in cell.source for cell in repaired) == 1


@pytest.mark.parametrize("kind", ["markdown", "raw"])
def test_a_cell_of_another_type_is_changed_back(cells, released, kind):
    cell = find(cells, "copy_loss-solution")
    cell.cell_type, cell.source = kind, CODE
    repaired, (note,) = repair(cells, released, "en")
    assert find(repaired, "copy_loss-solution").cell_type == "code"
    assert find(repaired, "copy_loss-solution").source == CODE
    assert kind in note


def test_moved_grade_cells_go_back(cells, released):
    moved = find(cells, "context_free_floor")
    cells.remove(moved)
    repaired, (note,) = repair([moved, *cells], released, "en")
    assert ids(repaired) == ids(released)
    assert "ex03-context_free_floor" in note


def test_code_written_into_a_locked_cell_is_kept_as_the_students_own(cells, released):
    find(cells, "copy_loss-check").source = CODE
    repaired, (note,) = repair(cells, released, "en")
    assert find(repaired, "copy_loss-check").source == find(released, "copy_loss-check").source
    assert [cell.source for cell in repaired if not grade_id(cell)].count(CODE) == 1
    assert "restored" in note


def test_points_and_flags_are_those_released(cells, released):
    find(cells, "copy_loss").metadata.nbgrader.update(points=1000, schema_version=99, locked=False, grade=False)
    repaired, _ = repair(cells, released, "en")
    assert find(repaired, "copy_loss").metadata == find(released, "copy_loss").metadata


def test_a_missing_written_answer_waits_for_a_person(cells, released):
    cells.remove(find(cells, "written"))
    repaired, (note,) = repair(cells, released, "zh")
    assert find(repaired, "written").source != find(released, "written").source  # unchanged would be 0 points
    assert "人工" in note


def test_a_missing_solution_cell_is_not_put_back_over_the_students_own(cells, released):
    find(cells, "copy_loss-solution").metadata = {}
    repaired, (note,) = repair(cells, released, "en")
    assert "ex03-copy_loss-solution" not in ids(repaired)
    assert "if another cell defines it" in note


RUNS = [
    *("[x](javascript:evil)", "[x]( JaVaScript:evil)", "[x](<java\tscript:evil>)", "[x](java&#115;cript&colon;evil)"),
    *(
        "[x](\njavascript\\:evil)",
        "[x][y]\n\n[y]: javascript:evil",
        "> [y]:\n> vbscript:evil\n\n[y]",
        "<javascript:evil(1)>",
    ),
    *("![x](data:text/html,<script>evil</script>)", "[x](data:text/html;base64,ZXZpbA)", "[x](&Tab;javascript:evil)"),
    *(
        "<svg onload=evil>",
        "<a href='javascript:evil'>x</a>",
        "[![x](y.png)](javascript:evil)",
        "[x](file:///etc/passwd)",
    ),
]
STAYS = [
    *(
        "[x](https://arxiv.org/abs/1810.04805)",
        "![x](attachment:x.png)",
        "[x](#a)",
        "[x](../a.md)",
        "<https://a.org/b?c=d>",
    ),
    *("see [1]: it says a < b", "$a<b$ and `x < y`", "[x][y]\n\n[y]: http://a.org", "\\frac{1}{2}", "1 < 2: yes"),
]


class Links(HTMLParser):
    """Tags that run something, and addresses that lead to no page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in ("a", "p", "img", "blockquote", "br", "code"):
            self.found.append(tag)
        for name, value in attrs:
            if name.startswith("on") or re.match(r"[\s<]*(java\s*script|vbscript|data|file)\s*:", value or "", re.I):
                self.found.append(f"{name}={value}")


@pytest.mark.parametrize("text", RUNS)
def test_no_link_of_a_student_runs_anything(text: str) -> None:
    """A click on `[x](javascript:…)` in formgrader ran it within the instructor's session."""
    reader = Links()
    reader.feed(markdown2html(inert(text)))
    assert reader.found == []


@pytest.mark.parametrize("text", STAYS)
def test_other_links_of_a_student_stay(text: str) -> None:
    assert inert(text) == text


def test_no_link_in_a_formula() -> None:
    assert "\\href" not in inert("$\\href{javascript:evil}{y}$")


def test_nothing_in_a_students_prose_is_html(cells, released):
    answer = "If $a<b$ and `x < y`: <script>alert(1)</script> <img src=x onerror=alert(1)> <!-- c --> </div>"
    find(cells, "written").source = answer
    cells[0].source = cells[0].source + "\n<SCRIPT SRC=//x></SCRIPT>"
    cells.append(nbformat.v4.new_raw_cell("<iframe src=x>"))
    repaired, _ = repair(cells, released, "en")
    for cell in repaired:
        if cell.cell_type != "code":
            assert "<s" not in cell.source.lower()
            assert not any(mark in cell.source for mark in ("<img", "<iframe", "</div", "<!--"))
    assert "$a<b$" in find(repaired, "written").source
    assert all(cell.cell_type in ("code", "markdown") for cell in repaired)


JUNK = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 10**20) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)


@settings(deadline=None)  # a loaded machine is no fault
@given(st.integers(0, 2**32), st.lists(JUNK, max_size=3), JUNK, JUNK)
def test_after_any_accident_every_cell_is_there_once(released, seed, junk, metadata, source):
    """Shuffled, dropped, copied, damaged: the result is valid and complete, and repairing it changes nothing."""
    dice = random.Random(seed)
    cells: list[Any] = copy.deepcopy(released)
    for _ in range(dice.randrange(12)):
        cell = dice.choice(cells)
        accident = dice.randrange(6)
        if accident == 0 and len(cells) > 1:
            cells.remove(cell)
        elif accident == 1:
            cells.insert(dice.randrange(len(cells)), copy.deepcopy(cell))
        elif accident == 2:
            cell.cell_type = dice.choice(["code", "markdown", "raw", "heading"])
        elif accident == 3:
            dice.shuffle(cells)
        elif accident == 4:
            cell.source = source
        else:
            cell.metadata["nbgrader"] = metadata
            cell.pop("id", None)
    repaired, _ = repair([*cells, *junk], released, "en")
    optional = {name for name in ids(released) if name.endswith("-solution")}
    found = ids(repaired)
    assert len(found) == len(set(found))
    assert set(ids(released)) - optional <= set(found) <= set(ids(released))
    for cell in repaired:
        if grade_id(cell) and is_locked(cell):
            assert cell.source == find(released, grade_id(cell).removeprefix("ex03-")).source
    notebook = nbformat.v4.new_notebook(cells=repaired)
    notebook.nbformat_minor = 5
    nbformat.validate(notebook)
    again, _ = repair(copy.deepcopy(repaired), released, "en")
    assert [cell.source for cell in again] == [cell.source for cell in repaired]

"""Near-identical work: copies are found however they are dressed up, independent work is not, in linear time."""

from __future__ import annotations

import csv
import json
import random
import subprocess
import sys
import time
from pathlib import Path

import pytest
import synthetic_class as synthetic

from autograder.classreport.build import build
from autograder.classreport.reading import code, stub
from autograder.classreport.similarity import (
    LEAST,
    NEAR,
    Comparison,
    Group,
    Together,
    longest_shared,
    near_in_several,
    shared_by_many,
)
from autograder.classreport.tokens import CHARACTERS_LIMIT, fragments, tokens
from autograder.syllabus import EXERCISES

ROOT = Path(__file__).parents[1]
HONEST = ROOT / "autograder" / "hidden" / "honest"
#: Exercises whose bank of right solutions was written independently of each other, and not by changing one of them.
INDEPENDENT = ("ex01", "ex02", "ex03", "ex04")


def honest(exercise: str) -> dict[str, str]:
    return {file.stem: file.read_text(encoding="utf-8") for file in sorted((HONEST / exercise).glob("*.py"))}


def compared(exercise: str, programs: list[str]) -> Comparison:
    comparison = Comparison(exercise, stub(exercise))
    for index, program in enumerate(programs):
        comparison.add(index, program)
    return comparison


# -- what is compared --------------------------------------------------------------------------------------------------
def texts(code: str) -> list[str]:
    return [token.text for token in tokens(code)]


def test_names_comments_layout_and_docstrings_do_not_count() -> None:
    one = "def f(logits, k=3):\n    '''Doc.'''\n    # why\n    return logits.exp().sum(k)  # sum\n"
    other = 'def g(x,\n      many=3):\n    """Another\n    text."""\n    return x.exp().sum(\n        many)\n'
    assert texts(one) == texts(other)
    assert texts("x.exp() + len(y) + 1") == ["name", ".", "exp", "(", ")", "+", "len", "(", "name", ")", "+", "1"]
    assert texts("x.exp()") != texts("x.log()")


def test_lines_are_those_of_the_file() -> None:
    assert [(token.text, token.line) for token in tokens("\n# a\nx = 1\n\nreturn x\n")] == [
        ("name", 3),
        ("=", 3),
        ("1", 3),
        ("return", 5),
        ("name", 5),
    ]


@pytest.mark.parametrize(
    "broken", ["def f(:\n  x = '''", "x = (1,\n", "\x00", "if x:\n   a\n  b\n", "", "\\", "$?", "é = 1\n'"], ids=repr
)
def test_code_that_is_no_python_is_compared_up_to_there(broken: str) -> None:
    before = "x = 1\ny = x + 2\n"
    assert texts(before + broken)[:8] == ["name", "=", "1", "name", "=", "name", "+", "2"]


@pytest.mark.parametrize("unit", ["1 ", "(", "'''\n", '"\n', "if x:\n ", "x\\\n", "f'{'", "\n"], ids=repr)
def test_hostile_code_takes_no_longer_than_other_code(unit: str) -> None:
    started = time.process_time()
    assert len(fragments(tokens(unit * (2 * 2**20 // len(unit))))) <= 50_000
    assert time.process_time() - started < 10  # about a second, of which what matters is that it is not minutes
    assert CHARACTERS_LIMIT <= 2**20


# -- what is found -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("exercise", INDEPENDENT)
def test_independent_solutions_are_far_from_near(exercise: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Right solutions of the same functions, and the most similar two of them are not half as near as what is shown."""
    monkeypatch.setattr("autograder.classreport.similarity.NEAR", 0.01)
    programs = list(honest(exercise).values())
    found = [pair.similarity for group in compared(exercise, programs).groups() for pair in group.pairs]
    assert len(programs) > 20
    assert len(found) > 20  # it is the same task after all
    assert max(found) < NEAR / 2


@pytest.mark.parametrize("exercise", INDEPENDENT)
def test_a_copy_is_found_however_it_is_dressed_up(exercise: str) -> None:
    """Other names, another order of functions, other layout, comments and docstrings: each copy with its original."""
    random_ = random.Random(3)
    # ast.unparse writes the patterns of match statements in another way, which is more than a disguise
    programs = [program for name, program in honest(exercise).items() if name != "match_statements"]
    size = len(programs)
    programs += [synthetic.disguised(program, random_) for program in programs]
    groups = compared(exercise, programs).groups()
    found = {group.members for group in groups}
    assert found == {(index, index + size) for index in range(size)}


def test_a_copy_with_changes_is_found() -> None:
    """Half a dozen statements put in and a function of one's own do not hide the rest."""
    random_ = random.Random(5)
    functions = [function.name for function in EXERCISES[2].functions]
    programs = [synthetic.program(random_, functions, statements=12) for _ in range(40)]
    lines = synthetic.disguised(programs[7], random_).split("\n")
    for _ in range(6):
        inside = [number for number, line in enumerate(lines) if line.startswith("    ") and " = " in line]
        lines.insert(random_.choice(inside), f"    print('step', {random_.randrange(99)})")
    copy = "\n".join(lines) + "\n\n" + synthetic.program(random_, ["helper"], statements=3)
    (group,) = compared("ex02", [*programs, copy]).groups()
    assert group.members == (7, 40)
    assert NEAR <= group.pairs[0].similarity < 1


def test_a_stub_and_what_many_share_do_not_count() -> None:
    """Everybody has the stub's code and the lecture's; one has no more than that, and two copied from each other."""
    random_ = random.Random(4)
    given, lecture = stub("ex02"), synthetic.program(random_, ["from_the_lecture"], statements=40)
    programs = [f"{given}\n{lecture}\n{synthetic.program(random_, ['own'])}" for _ in range(60)]
    programs += [given, f"{given}\nx = 1\n", programs[11].replace("own", "mine")]
    comparison = compared("ex02", programs)
    (group,) = comparison.groups()
    assert (group.members, group.pairs[0].similarity) == ((11, 62), 1.0)
    assert comparison.too_little == 2
    assert len(fragments(tokens(lecture))) > 10 * LEAST


def test_a_solution_that_was_passed_round_is_one_group() -> None:
    """Sixty who hand in the same are found although so many share it."""
    random_ = random.Random(6)
    programs = [synthetic.program(random_, ["f", "g"]) for _ in range(200)]
    programs[100:160] = [programs[100]] * 60
    (group,) = compared("ex01", programs).groups()
    assert group.members == tuple(range(100, 160))
    assert {pair.similarity for pair in group.pairs} == {1.0}
    assert shared_by_many(200) < 60


def test_the_longest_passage_is_shown_with_its_lines() -> None:
    random_ = random.Random(8)
    steps = "".join(f"    total = total * {n} + a.exp({n})\n" for n in range(9))
    shared = f"    total = 0\n{steps}    return total\n"
    one = f"{stub('ex02')}\n\ndef f(a):\n{shared}\n\n{synthetic.program(random_, ['g'])}"
    other = f"{synthetic.program(random_, ['h'])}\n\n\ndef f(a):\n{shared}"
    found = longest_shared(stub("ex02"), one, other)
    assert found is not None
    for text, (first, last), whole in zip(found.texts, found.lines, (one, other), strict=True):
        assert shared.strip() in text
        assert whole.split("\n")[first - 1 : last] == text.split("\n")
    assert longest_shared(one, one, one) is None
    assert longest_shared("", "x = 1", "x = 1") is None


def test_together_in_several_exercises() -> None:
    groups = [
        Group("ex01", (1, 2, 3), ()),
        Group("ex02", (1, 2), ()),
        Group("ex02", (3, 4), ()),
        Group("ex05", (1, 2), ()),
    ]
    assert near_in_several(groups) == [Together((1, 2), ("ex01", "ex02", "ex05"))]


def test_time_grows_with_the_class_and_not_with_its_square() -> None:
    """Four times the class: less than eight times the time of comparing, where pairs would be sixteen times as many."""
    random_ = random.Random(9)
    programs = [synthetic.program(random_, ["f", "g", "h"], statements=6) for _ in range(1_200)]
    spent = {}
    for size in (300, 1_200):
        comparison = compared("ex01", programs[:size])
        started = time.process_time()
        assert comparison.groups() == []
        spent[size] = time.process_time() - started
    assert spent[1_200] < 8 * spent[300] + 0.5


# -- the code of a class -----------------------------------------------------------------------------------------------
@pytest.fixture(scope="module")
def handed_in(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("handed_in")
    names = [f"s{n:02d}" for n in range(24)]
    synthetic.hand_in(folder / "class", names, copies=[(3, 20), (3, 21)])
    synthetic.store(folder / "results", synthetic.reports([f"class/{name}" for name in names]))
    return folder


def test_pages_and_export_of_a_class(handed_in: Path) -> None:
    site, export = handed_in / "site", handed_in / "export"
    written = build(str(handed_in / "results"), str(site), "en", str(handed_in / "class"), str(export))
    assert (written.with_code, written.groups) == (24, 2)
    page = (site / "similar.html").read_text(encoding="utf-8")
    assert "A signal, not a verdict." in page
    assert page.count("<article") == 2
    assert "variable_" in page  # the passage, as it stands in the copy

    with open(export / "ex02.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["full_name"] for row in rows] == [f"s{n:02d}" for n in range(24)]
    assert all(row["created_at"].startswith("2026-11-") and row["created_at"].endswith(" +0000") for row in rows)
    for row in rows:
        assert (export / row["filename"]).read_text() == (
            handed_in / "class" / row["full_name"] / "ex02_mlm_loss.py"
        ).read_text()
    assert (export / "base" / "ex02_mlm_loss.py").read_text() == stub("ex02")
    readme = (export / "README.md").read_text()
    assert "-l python3 -bc base submissions" in readme
    assert "dolos run -f web -l python -i base/ex02_mlm_loss.py ex02.csv" in readme
    assert len(list((export / "submissions").iterdir())) == 24


def test_the_same_report_whatever_order_hashing_takes(handed_in: Path) -> None:
    """Two processes with different hash seeds write the same bytes."""
    for seed in ("1", "2"):
        command = [sys.executable, "-m", "autograder", "report", str(handed_in / "results")]
        command += ["--out", str(handed_in / f"site{seed}"), "--submissions", str(handed_in / "class")]
        environment = {"PYTHONHASHSEED": seed, "PATH": "", "OMP_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
        subprocess.run(command, check=True, env=environment, capture_output=True)
    one, other = (
        {file.name: file.read_bytes() for file in sorted((handed_in / f"site{seed}").rglob("*")) if file.is_file()}
        for seed in ("1", "2")
    )
    assert one == other


def test_a_notebook_is_compared_by_its_code(tmp_path: Path) -> None:
    cells = [{"cell_type": "code", "source": text} for text in ("%pip install x\nx = 1", "def f(a):\n    return a")]

    (tmp_path / "EX 2.ipynb").write_text(
        json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 5, "metadata": {}})
    )
    assert code(str(tmp_path), ["ex02", "ex99"]) == {"ex02": "# skipped\nx = 1\n\ndef f(a):\n    return a"}
    assert code(str(tmp_path), ["ex99"]) == {}
    assert code(str(tmp_path / "nowhere"), ["ex02"]) == {}

"""The source notebooks: complete, in both languages, without anything hidden, and fit to be run by a student."""

from __future__ import annotations

import ast
import importlib
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest
from attacks.test_leaks import leaked

from autograder.build import BuildError
from autograder.build.check_cells import check_cells
from autograder.build.notebook import notebook, path_of
from autograder.build.notebook_words import LANGS
from autograder.build.source import read
from autograder.syllabus import SYLLABUS, Exercise

ROOT = Path(__file__).parents[1]
BOTH = [pytest.param(exercise, lang, id=f"{exercise.id}-{lang}") for exercise in SYLLABUS for lang in LANGS]
EACH = [pytest.param(exercise, id=exercise.id) for exercise in SYLLABUS]


def load(exercise: Exercise, lang: str) -> Any:
    return nbformat.read(ROOT / path_of(exercise, lang), as_version=4)


def mark(cell: Any) -> dict[str, Any]:
    return cell.metadata.get("nbgrader", {})


def by_id(cells: Any) -> dict[str, Any]:
    return {mark(cell)["grade_id"]: cell for cell in cells if mark(cell)}


@pytest.mark.parametrize(("exercise", "lang"), BOTH)
def test_there_is_one_grade_cell_a_function_with_its_points(exercise, lang):
    graded = {
        mark(cell)["grade_id"]: mark(cell)["points"]
        for cell in load(exercise, lang).cells
        if mark(cell).get("grade") and cell.cell_type == "code"
    }
    assert graded == {f"{exercise.id}-{function.name}": function.points / 100 for function in exercise.functions}


@pytest.mark.parametrize(("exercise", "lang"), BOTH)
def test_written_points_are_for_a_person_to_give(exercise, lang):
    written = [cell for cell in load(exercise, lang).cells if mark(cell).get("grade") and cell.cell_type == "markdown"]
    assert [mark(cell)["points"] for cell in written] == [exercise.written_points / 100] * len(written)
    assert len(written) == bool(exercise.written_points)
    for cell in written:
        assert mark(cell)["solution"]
        assert re.search(r"### BEGIN SOLUTION\n(.+)\n### END SOLUTION", cell.source, re.S)


@pytest.mark.parametrize(("exercise", "lang"), BOTH)
def test_nbgrader_accepts_the_metadata_and_every_id_is_there_once(exercise, lang):
    from nbgrader.nbgraderformat import MetadataValidator

    built = load(exercise, lang)
    MetadataValidator().validate_nb(built)
    nbformat.validate(built)
    ids = [cell.id for cell in built.cells]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize(("exercise", "lang"), BOTH)
def test_locked_cells_hold_nothing_hidden(exercise, lang):
    for cell in load(exercise, lang).cells:
        if mark(cell).get("locked"):
            assert leaked(cell.source) == [], mark(cell)["grade_id"]


@pytest.mark.parametrize(("exercise", "lang"), BOTH)
def test_setup_and_grade_cells_say_a_sentence_and_never_fail(exercise, lang, capsys):
    cells = by_id(load(exercise, lang).cells)
    exec(cells[f"{exercise.id}-setup"].source, {})
    assert capsys.readouterr().out == ""  # exercises is importable here: there is nothing to say
    for function in exercise.functions:
        (line,) = cells[f"{exercise.id}-{function.name}"].source.splitlines()
        exec(line, {})
        assert function.name in capsys.readouterr().out


@pytest.mark.parametrize("exercise", EACH)
def test_every_visible_check_of_a_function_is_in_its_cell(exercise):
    path = ROOT / "exercises" / "tests" / f"test_{exercise.module}.py"
    text = path.read_text(encoding="utf-8")
    names = [
        node.name
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef)
        and node.name.startswith("test_")
        and "submission" in ast.unparse(node.args)
    ]
    cells = "\n".join(check_cells(ROOT, exercise, "en").values())
    missing = [name for name in names if f"def {name}(" not in cells]
    fixtures = {"request", "tmp_path", "monkeypatch", "capsys"}
    for name in missing:  # only what asks for more than the submission
        node = next(node for node in ast.parse(text).body if getattr(node, "name", "") == name)
        assert {argument.arg for argument in node.args.args} & fixtures or "submission." not in ast.unparse(node)


@pytest.mark.parametrize("exercise", [case for case in EACH if case.values[0].number <= 5])
def test_check_cells_pass_on_the_solution_and_define_one_name(exercise, capsys):
    solution = importlib.import_module(f"solutions.{exercise.module}")
    for name, text in check_cells(ROOT, exercise, "zh").items():
        names = {function.name: getattr(solution, function.name) for function in exercise.functions}
        before = {*names, "__builtins__"}
        exec(text, names)
        assert set(names) - before == {f"check_{name}"}
        out = capsys.readouterr().out
        assert out.count("✓") == text.count("def test_")


@pytest.mark.parametrize("exercise", [case for case in EACH if case.values[0].number <= 5])
def test_check_cells_fail_on_the_stub(exercise):
    stub = importlib.import_module(f"exercises.{exercise.module}")
    cells = check_cells(ROOT, exercise, "en")
    assert set(cells) == {function.name for function in exercise.functions}
    for text in cells.values():
        with pytest.raises(NotImplementedError):
            exec(text, {function.name: getattr(stub, function.name) for function in exercise.functions})


def test_a_check_that_takes_parameters_runs_once_for_each(tmp_path, capsys):
    tests = tmp_path / "exercises" / "tests"
    tests.mkdir(parents=True)
    (tests / "test_ex02_mlm_loss.py").write_text(
        "import math\n\nimport pytest\n\nTABLE = {'ü': 1}\n\n\n"
        "def helper(submission, x):\n    return 'é', submission.mean_nll([x])\n\n\n"
        "@pytest.mark.parametrize('x', [1.0, 0.5])\n@pytest.mark.parametrize(('a', 'b'), [(1, 2), (3, 4)])\n"
        "def test_both(submission, x, a, b):\n    '''Title.'''\n"
        "    assert 'ü' in TABLE and helper(submission, x)[1] == pytest.approx(-math.log(x))\n    print(x, a, b)\n\n\n"
        "def test_needs_more(submission, tmp_path):\n    submission.mean_nll([1.0])\n",
        encoding="utf-8",
    )
    (text,) = check_cells(tmp_path, SYLLABUS[1], "en").values()
    assert "submission" not in text
    exec(text, {"mean_nll": importlib.import_module("solutions.ex02_mlm_loss").mean_nll})
    assert len(re.findall(r"^\d\.\d \d \d$", capsys.readouterr().out, re.M)) == 4


def test_setup_finds_the_course_above_the_notebook_and_else_says_what_to_do(tmp_path):
    setup = by_id(load(SYLLABUS[1], "en").cells)["ex02-setup"].source
    inside = tmp_path / "course" / "notebooks" / "ex02"
    inside.mkdir(parents=True)
    shutil.copytree(ROOT / "exercises" / "kit", tmp_path / "course" / "exercises" / "kit")
    (tmp_path / "course" / "exercises" / "__init__.py").touch()
    script = f"import sys\nsys.path[:] = [p for p in sys.path if 'packages' not in p]\n{setup}\nimport exercises"
    run = subprocess.run([sys.executable, "-S", "-I", "-c", script], cwd=inside, capture_output=True, text=True)
    assert (run.returncode, run.stdout) == (0, "")
    script = script.replace("\nimport exercises", "")
    run = subprocess.run([sys.executable, "-S", "-I", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert run.returncode == 0
    assert "pip install -e" in run.stdout


@pytest.fixture
def repository(tmp_path):
    for name in ("solutions/ex03_copy_shortcut.py", "exercises/tests/test_ex03_copy_shortcut.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def _edit(repository: Path, change: Any) -> None:
    file = repository / "solutions" / "ex03_copy_shortcut.py"
    file.write_text(change(file.read_text(encoding="utf-8")), encoding="utf-8")


def test_prose_without_translation_stays_english_cell_by_cell(repository):
    exercise = SYLLABUS[2]
    _edit(repository, lambda text: re.sub(r'# %% \[markdown\] lang="zh"\n(#.*\n)+\n*', "", text))
    english = notebook(repository, read(repository, exercise), "zh")
    assert "# Exercise 3: The copy shortcut" in english
    _edit(
        repository,
        lambda text: text.replace("\n# %%\nimport", '\n# %% [markdown] lang="zh"\n# 中文\n\n# %%\nimport', 1),
    )
    mixed = notebook(repository, read(repository, exercise), "zh")
    prose = [cell.source for cell in nbformat.reads(mixed, as_version=4).cells if cell.cell_type == "markdown"]
    assert prose[0] == "中文"
    assert any(text.startswith("## A rule without context") for text in prose)


def test_a_model_answer_in_one_language_only_is_explained(repository):
    def without_the_second(text: str) -> str:
        start, end = text.rindex("# <!-- BEGIN ANSWER -->"), text.rindex("# <!-- END ANSWER -->")
        assert text.count("# <!-- BEGIN ANSWER -->") == 2
        return text[:start] + text[end:].removeprefix("# <!-- END ANSWER -->")

    _edit(repository, without_the_second)
    with pytest.raises(BuildError, match="0 model answers in the zh cells"):
        notebook(repository, read(repository, SYLLABUS[2]), "zh")


def test_ids_of_cells_stay_when_another_cell_changes(repository):
    exercise = SYLLABUS[2]
    before = json.loads(notebook(repository, read(repository, exercise), "en"))["cells"]
    _edit(
        repository,
        lambda text: text.replace("# Training. Everything", "# Learning. Everything").replace(
            "Not the point", "Not it"
        ),
    )
    after = json.loads(notebook(repository, read(repository, exercise), "en"))["cells"]
    changed = [(old["id"], new["id"]) for old, new in zip(before, after, strict=True) if old["id"] != new["id"]]
    assert len(changed) == 1

"""What is generated from the solutions: up to date, without answers, and with clear words for authors' mistakes."""

import ast
import importlib
import inspect
import re
from pathlib import Path

import jupytext
import pytest

from autograder.build import BuildError, build, drift, write
from autograder.build.source import read
from autograder.build.stub import stub
from autograder.syllabus import SYLLABUS, Exercise, Function

ROOT = Path(__file__).parents[1]


def _written(exercise):
    """The names of what students write: the graded functions, or the tests where they write tests."""
    if not exercise.tests:
        return [function.name for function in exercise.functions]
    solution = ast.parse((ROOT / "solutions" / f"{exercise.module}.py").read_text(encoding="utf-8"))
    return [n.name for n in solution.body if isinstance(n, ast.FunctionDef) and n.name.startswith("test_")]


FUNCTIONS = [
    pytest.param(exercise.module, name, id=f"{exercise.id}-{name}")
    for exercise in SYLLABUS
    for name in _written(exercise)
]
SOLUTION = re.compile(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", re.S)
ANSWER = re.compile(r"<!-- BEGIN ANSWER -->\n(.*?)# <!-- END ANSWER -->", re.S)


@pytest.fixture
def repository(tmp_path):
    """A copy of the solutions, to be broken."""
    (tmp_path / "solutions").mkdir()
    for exercise in SYLLABUS:
        name = f"solutions/{exercise.module}.py"
        (tmp_path / name).write_text((ROOT / name).read_text(encoding="utf-8"), encoding="utf-8")
    return tmp_path


@pytest.fixture(scope="module")
def built():
    return build(ROOT)


def edit(repository, old, new, module="ex01_input_embeddings"):
    file = repository / "solutions" / f"{module}.py"
    text = file.read_text(encoding="utf-8")
    assert old in text
    file.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_generated_files_are_up_to_date():
    assert drift(ROOT) == []


def test_building_twice_gives_the_same(built):
    assert build(ROOT) == built


@pytest.mark.parametrize(("module", "function"), FUNCTIONS)
def test_stub_functions_keep_signature_and_docstring_and_raise(module, function):
    stub = getattr(importlib.import_module(f"exercises.{module}"), function)
    solution = getattr(importlib.import_module(f"solutions.{module}"), function)
    with pytest.raises(NotImplementedError, match=function):
        stub(**dict.fromkeys(inspect.signature(stub).parameters))
    assert stub.__doc__ == solution.__doc__
    kept, given = inspect.signature(stub).parameters, inspect.signature(solution).parameters
    assert [(p.name, p.kind, p.default) for p in kept.values()] == [(p.name, p.kind, p.default) for p in given.values()]


def _parts(source, exercise):
    """How many solutions a module must hide: the bodies of its functions, and of the methods of its classes."""
    classes = [node for node in ast.parse(source).body if isinstance(node, ast.ClassDef)]
    graded = _written(exercise)
    methods = {node.name: sum(isinstance(inner, ast.FunctionDef) for inner in node.body) for node in classes}
    return sum(methods.get(name, 1) for name in graded)


@pytest.mark.parametrize("exercise", SYLLABUS, ids=lambda exercise: exercise.id)
def test_stubs_hold_no_line_of_a_solution_or_an_answer(built, exercise):
    source = (ROOT / "solutions" / f"{exercise.module}.py").read_text(encoding="utf-8")
    stub = built[Path("exercises", f"{exercise.module}.py")]
    hidden = SOLUTION.findall(source) + ANSWER.findall(source)
    languages = 2 if 'lang="zh"' in source else 1
    assert len(hidden) == _parts(source, exercise) + languages * bool(exercise.written_points)
    public = {line.strip() for line in ANSWER.sub("", SOLUTION.sub("", source)).splitlines()}
    stub_lines = {line.strip() for line in stub.splitlines()}
    for line in (line.strip() for region in hidden for line in region.splitlines()):
        if line not in public and len(line) > 1:
            assert line not in stub_lines
    assert not re.search(r"(BEGIN|END) (SOLUTION|ANSWER)", stub)


@pytest.mark.parametrize("exercise", SYLLABUS, ids=lambda exercise: exercise.id)
def test_stubs_open_as_notebooks(built, exercise):
    text = built[Path("exercises", f"{exercise.module}.py")]
    cells = jupytext.reads(text, fmt="py:percent").cells
    assert cells[1].source.startswith(f"# Exercise {exercise.number}:")
    for name in _written(exercise):
        begins = re.compile(rf"^(def|class) {name}\(", re.M)
        assert sum(bool(begins.search(cell.source)) for cell in cells if cell.cell_type == "code") == 1
    assert any("*Your answer:*" in cell.source for cell in cells) == bool(exercise.written_points)


@pytest.mark.parametrize("exercise", SYLLABUS, ids=lambda exercise: exercise.id)
def test_stubs_say_how_to_check_and_where_they_come_from(built, exercise):
    docstring = ast.get_docstring(ast.parse(built[Path("exercises", f"{exercise.module}.py")]))
    assert exercise.title in docstring
    assert f"autograder check {exercise.number}\n" in docstring
    assert f"solutions/{exercise.module}.py" in docstring


def test_prose_in_another_language_is_left_out(repository):
    before = build(repository)
    edit(
        repository,
        '# %% [markdown] lang="en"\n# ## From ids',
        '# %% [markdown] lang="zh"\n# ## 三个向量之和\n\n# %% [markdown] lang="en"\n# ## From ids',
    )
    edit(
        repository,
        "\n\n\n# %%\ndef embedding_sum",
        '\n\n# %% [markdown] lang="zh"\n# 中文\n\n\n# %%\ndef embedding_sum',
    )
    stub = Path("exercises", "ex01_input_embeddings.py")
    assert build(repository)[stub] == before[stub]


def test_write_makes_what_drift_misses(repository):
    (repository / "exercises").mkdir()
    expected = len(build(repository))
    assert len(drift(repository)) == len(write(repository)) == expected
    assert drift(repository) == []
    assert write(repository) == []


def test_drift_names_edited_and_orphaned_stubs(repository):
    write(repository)
    edited = repository / "exercises" / "ex02_mlm_loss.py"
    edited.write_text(edited.read_text(encoding="utf-8") + "# mine\n", encoding="utf-8")
    (repository / "exercises" / "ex77_lost.py").touch()
    first, second = drift(repository)
    assert first.startswith("exercises/ex02_mlm_loss.py differs")
    assert second.startswith("exercises/ex77_lost.py is generated from nothing")


BROKEN = {
    "solution never begins": ("    ### BEGIN SOLUTION\n", "", r":\d+: `### END SOLUTION` ends nothing"),
    "solution never ends": (
        "    ### END SOLUTION\n\n\n# %%\nif",
        "\n\n# %%\nif",
        r":\d+: the solution that begins here is still open where a new cell begins, at line \d+",
    ),
    "answer never ends": (
        "# <!-- END ANSWER -->\n\n",
        "\n",
        r":\d+: the answer that begins here is still open where a new cell begins, at line \d+",
    ),
    "last answer never ends": (
        "任何有用的方向。\n# <!-- END ANSWER -->\n",
        "任何有用的方向。\n",
        r":\d+: the answer that begins here never ends",
    ),
    "nested": (
        "    ### BEGIN SOLUTION\n",
        "    ### BEGIN SOLUTION\n    ### BEGIN SOLUTION\n",
        r":\d+: `### BEGIN SOLUTION` inside the solution that begins at line \d+",
    ),
    "marker with a typo": (
        "    ### END SOLUTION\n",
        "    ## END SOLUTION\n",
        r":\d+: `## END SOLUTION` is not a marker",
    ),
    "answer in a solution": (
        "    ### END SOLUTION\n",
        "    # <!-- END ANSWER -->\n",
        r":\d+: `<!-- END ANSWER -->` ends nothing",
    ),
    "answer ends twice": (
        "# <!-- BEGIN ANSWER -->\n",
        "# <!-- BEGIN ANSWER -->\n# <!-- END ANSWER -->\n",
        r":\d+: `<!-- END ANSWER -->` ends nothing",
    ),
    "function missing": ("def embedding_sum", "def embeddings_sum", r": the function embedding_sum .* is missing"),
    "function twice": (
        "def another_decomposition",
        "def embedding_sum",
        r":\d+: embedding_sum is defined a second time \(first at line \d+\)",
    ),
    "other parameters": (
        "def embedding_sum(token: np.ndarray",
        "def embedding_sum(tokens: np.ndarray",
        r":\d+: embedding_sum takes \(tokens, segment, position\), but the syllabus says \(token, segment, position\)",
    ),
    "not Python": ("import numpy as np", "import numpy as", r":\d+: not valid Python"),
    "solution outside": (
        "import numpy as np\n",
        "import numpy as np\n\n### BEGIN SOLUTION\nx = 1\n### END SOLUTION\n",
        r":\d+: a solution outside of every function",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_solution_is_explained(repository, name):
    old, new, message = BROKEN[name]
    edit(repository, old, new)
    with pytest.raises(BuildError, match=r"solutions/ex01_input_embeddings\.py" + message):
        build(repository)


def test_a_missing_solution_is_explained(repository):
    (repository / "solutions" / "ex03_copy_shortcut.py").unlink()
    with pytest.raises(BuildError, match=r"solutions/ex03_copy_shortcut\.py: no such file"):
        build(repository)


def test_a_function_without_region_would_give_the_answer_away(repository):
    file = repository / "solutions" / "ex04_shapes_and_attention.py"
    text = file.read_text(encoding="utf-8")
    start = text.index("### BEGIN", text.index("def attention_scores"))
    end = text.index("### END SOLUTION", start)
    file.write_text(
        text[:start] + text[start:end].removeprefix("### BEGIN SOLUTION") + text[end:].removeprefix("### END SOLUTION"),
        encoding="utf-8",
    )
    with pytest.raises(BuildError, match=r":\d+: attention_scores has no solution region"):
        build(repository)


def test_a_function_without_docstring_is_refused(repository):
    file = repository / "solutions" / "ex04_shapes_and_attention.py"
    text = file.read_text(encoding="utf-8")
    start = text.index('    """Dot products')
    end = text.index('"""', start + 10) + 3
    file.write_text(text[:start] + text[end:], encoding="utf-8")
    with pytest.raises(BuildError, match=r":\d+: attention_scores has no docstring"):
        build(repository)


def test_an_exercise_with_written_points_needs_a_model_answer(repository):
    file = repository / "solutions" / "ex03_copy_shortcut.py"
    file.write_text(ANSWER.sub("", file.read_text(encoding="utf-8")).replace("# \n", ""), encoding="utf-8")
    with pytest.raises(BuildError, match="no model answer"):
        build(repository)


def test_a_region_that_leaves_no_python_is_refused(repository):
    edit(
        repository,
        "    ### BEGIN SOLUTION\n    if not token",
        "    if token is None:\n    ### BEGIN SOLUTION\n        return 0\n    if not token",
    )
    with pytest.raises(BuildError, match=r"`def embedding_sum.*` is not valid Python without its solution"):
        build(repository)


CLASS = """\
# %%
class Doubler(nn.Module):
    \"\"\"Doubles.\"\"\"

    def __init__(self, factor):
        super().__init__()
        ### BEGIN SOLUTION
        self.factor = factor
        ### END SOLUTION

    def forward(self, x):
        \"\"\"Twice x.\"\"\"
        ### BEGIN SOLUTION
        return 2 * x
        ### END SOLUTION
"""


def _with_class(tmp_path, text):
    exercise = Exercise(1, "doubling", "Doubling", "加倍", (Function("Doubler", 1000, ("factor",)),))
    (tmp_path / "solutions").mkdir()
    (tmp_path / "solutions" / "ex01_doubling.py").write_text(text, encoding="utf-8")
    return read(tmp_path, exercise)


def test_a_class_keeps_its_methods_and_loses_their_bodies(tmp_path):
    text = stub(_with_class(tmp_path, CLASS))
    for line in ("class Doubler(nn.Module):", "super().__init__()", "def forward(self, x):", '"""Twice x."""'):
        assert line in text
    assert text.count('raise NotImplementedError("Doubler is yours to write")') == 2
    assert "2 * x" not in text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("factor):", "factor, other):", r"takes \(factor, other\), but the syllabus says \(factor\)"),
        ("def __init__(self, factor)", "def begin(self, factor)", "no __init__"),
        ("        ### BEGIN SOLUTION\n        self", "        self", "ends nothing"),
        (
            '    """Doubles."""\n',
            '    """Doubles."""\n    ### BEGIN SOLUTION\n    two = 2\n    ### END SOLUTION\n',
            "outside",
        ),
    ],
    ids=["parameters", "no __init__", "marker without partner", "region beside the methods"],
)
def test_mistakes_in_a_class_are_explained(tmp_path, old, new, message):
    assert old in CLASS
    broken = CLASS.replace(old, new, 1)
    with pytest.raises(BuildError, match=message):
        _with_class(tmp_path, broken)

"""The pictures show the numbers they are given, load Matplotlib only when drawn, and say what is missing."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import jupytext
import matplotlib
import numpy as np
import pytest
import torch

from exercises.kit import plots

matplotlib.use("Agg")
from matplotlib import pyplot as plt

ROOT = Path(__file__).parents[1]
SOLUTIONS = sorted((ROOT / "solutions").glob("ex[0-9][0-9]_*.py"))
WITH_PICTURES = [path for path in SOLUTIONS if "plots." in path.read_text(encoding="utf-8")]


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    plt.close("all")
    yield
    plt.close("all")


def weights() -> torch.Tensor:
    return torch.tensor([[0.25, 0.75, 0.0], [0.5, 0.5, 0.0], [0.0, 0.0, 0.0]])


def test_heatmaps_show_every_weight_and_hatch_exact_zeros() -> None:
    figure = plots.attention_heatmaps({"first": weights(), "second": weights() + 1e-9}, ["a", "b", "[PAD]"])
    first, second, *_ = figure.axes
    assert [axis.get_title() for axis in (first, second)] == ["first", "second"]
    assert np.array_equal(first.images[0].get_array(), weights().numpy())
    assert first.images[0].get_clim() == second.images[0].get_clim()
    hatched = {(int(p.get_y() + 0.5), int(p.get_x() + 0.5)) for p in first.patches}
    assert hatched == {(0, 2), (1, 2), (2, 0), (2, 1), (2, 2)}
    assert not second.patches
    assert [label.get_text() for label in first.get_yticklabels()] == ["a", "b", "[PAD]"]


def test_heatmaps_survive_nan_and_nothing_but_zeros() -> None:
    broken = weights().requires_grad_() * float("nan")
    plots.attention_heatmaps({"nan": broken, "zeros": weights() * 0}, ["a", "b", "c"]).canvas.draw()


def test_loss_curves_have_their_floors_in_their_colour() -> None:
    figure = plots.loss_over_scale([0, 1, 2], {"seen": [3, 2, 1], "unseen": [3, 4, 5]}, {"seen": 0.5})
    seen, floor, unseen = figure.axes[0].lines
    assert list(seen.get_ydata()) == [3, 2, 1]
    assert list(unseen.get_ydata()) == [3, 4, 5]
    assert set(floor.get_ydata()) == {0.5}
    assert floor.get_color() == seen.get_color() != unseen.get_color()


@pytest.mark.parametrize("kinds", [1, 7, 500])
def test_the_histogram_counts_every_sequence_once(kinds: int) -> None:
    ratios = torch.linspace(0.1, 0.2, kinds, dtype=torch.float64).repeat(3) if kinds > 1 else torch.full((3,), 0.15)
    figure = plots.masking(ratios, 0.15, {"[MASK]": 0.7, "kept": 0.3}, {"[MASK]": 0.8, "kept": 0.2})
    left, right = figure.axes
    assert sum(bar.get_height() for bar in left.patches) == len(ratios)
    if kinds < 60:
        assert [bar.get_height() for bar in left.patches] == [3] * kinds
    assert [round(bar.get_height(), 6) for bar in right.patches] == [0.7, 0.3, 0.8, 0.2]


@pytest.mark.parametrize(
    ("draw", "message"),
    [
        (lambda: plots.attention_heatmaps({}, ["a"]), "weights holds no matrix"),
        (lambda: plots.attention_heatmaps({"x": weights()}, ["a", "b"]), r"weights\['x'\] is \(3, 3\).*2 tokens"),
        (lambda: plots.loss_over_scale([1, 2], {"x": [1.0]}, {}), r"losses\['x'\] has 1"),
        (lambda: plots.loss_over_scale([1], {"x": [1.0]}, {"y": 0.0}), r"floors\['y'\] belongs to no curve"),
        (lambda: plots.masking([], 0.1, {}, {}), "ratios is empty"),
        (lambda: plots.masking([0.1], 0.1, {"a": 1.0}, {"b": 1.0}), "shares has"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw()


def test_without_a_display_nothing_is_shown_and_nothing_warns(recwarn: pytest.WarningsRecorder) -> None:
    plots.loss_over_scale([1], {"x": [1.0]}, {})
    plots.show()
    assert not recwarn.list
    assert plt.get_fignums()  # still open: whoever collects pictures finds it


@pytest.mark.parametrize("path", WITH_PICTURES, ids=lambda path: path.stem[:4])
def test_the_solutions_draw_their_pictures(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    runpy.run_path(str(path), run_name="__main__")
    assert len(plt.get_fignums()) == len(re.findall(r"= plots\.", text)) > 0
    for number in plt.get_fignums():
        plt.figure(number).canvas.draw()


def test_there_are_pictures_where_one_looks() -> None:
    assert {"ex03", "ex04", "ex05"} <= {path.stem[:4] for path in WITH_PICTURES}


@pytest.mark.parametrize("path", WITH_PICTURES, ids=lambda path: path.stem[:4])
def test_grading_never_loads_matplotlib(path: Path) -> None:
    """Importing a solution, as the grader does, must cost nothing for its pictures."""
    code = (
        f"import sys, exercises.kit, exercises.kit.plots, solutions.{path.stem}\n"
        "print(any(name.split('.')[0] == 'matplotlib' for name in sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert run.stdout.strip() == "False"


def test_a_missing_matplotlib_is_explained() -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from exercises.kit import plots\n"
        "plots.loss_over_scale([1], {'x': [1.0]}, {})"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert run.returncode == 1
    assert run.stderr.splitlines()[-1] == "ModuleNotFoundError: the pictures need Matplotlib: pip install matplotlib"
    assert run.stderr.count("Traceback") == 1


@pytest.mark.slow
def test_a_notebook_shows_each_picture_once(tmp_path: Path) -> None:
    """Matplotlib's inline backend shows what a cell leaves open, and IPython what it returns: not both."""
    import nbclient

    path = next(path for path in WITH_PICTURES if path.stem.startswith("ex03"))
    notebook = jupytext.read(path, fmt="py:percent")
    notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(ROOT)}}).execute()
    pictures = [
        output for cell in notebook.cells for output in cell.get("outputs", []) if "image/png" in output.get("data", {})
    ]
    assert len(pictures) == len(re.findall(r"= plots\.", path.read_text(encoding="utf-8")))

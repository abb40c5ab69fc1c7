"""Pictures of what the exercises compute; Matplotlib is loaded when the first one is drawn, not before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_SILENT = ("agg", "cairo", "pdf", "pgf", "ps", "svg", "template")  # backends that have no window
_FIRST, _SECOND = "#3b6ea8", "#c8553d"


def attention_heatmaps(weights: Mapping[str, Tensor], tokens: Sequence[str]) -> Figure:
    """Attention weights of one head, one heatmap for each title, all on one scale.

    weights: a title, and the weights (T, T) below it: row i shows what query i attends to.
    tokens: T names, for both axes.
    Cells that are exactly 0 are hatched: a weight that is merely small is not.  NaN is a white hole.

    Raises:
        ValueError: weights holds nothing, or a matrix that is not (T, T).
    """
    size = len(tokens)
    if not weights:
        raise ValueError("weights holds no matrix to draw")
    for title, matrix in weights.items():
        if tuple(matrix.shape) != (size, size):
            raise ValueError(f"weights[{title!r}] is {tuple(matrix.shape)}, but there are {size} tokens")
    panels = [(title, matrix.detach().to("cpu").double().numpy()) for title, matrix in weights.items()]
    largest = max(values[np.isfinite(values)].max(initial=0.0) for _, values in panels)
    figure, axes = _subplots(len(weights), panel=(4.0, 4.0), layout="compressed")
    from matplotlib import patches

    for index, (axis, (title, values)) in enumerate(zip(axes, panels, strict=True)):
        image = axis.imshow(values, vmin=0.0, vmax=largest or 1.0, cmap="Blues")
        for row, column in np.argwhere(values == 0):
            cell = patches.Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, hatch="////", edgecolor="0.7", lw=0)
            axis.add_patch(cell)
        axis.set_title(title)
        axis.set_xlabel("key")
        axis.set_xticks(range(size), tokens, rotation=60, ha="right", rotation_mode="anchor")
        axis.set_yticks(range(size), tokens if index == 0 else [])
    axes[0].set_ylabel("query")
    figure.colorbar(image, ax=axes, label="weight", shrink=0.7)
    return figure


def loss_over_scale(
    scales: Sequence[float], losses: Mapping[str, Sequence[float]], floors: Mapping[str, float]
) -> Figure:
    """Losses of the copy rule as curves over its scale, with the infimum of each as a dashed line.

    scales: n scales.
    losses: a name, and n losses in nats, for each curve.
    floors: the infimum of the curve of that name; a curve may lack one.

    Raises:
        ValueError: a curve has not n losses, or a floor belongs to no curve.
    """
    for name, curve in losses.items():
        if len(curve) != len(scales):
            raise ValueError(f"losses[{name!r}] has {len(curve)} numbers, but there are {len(scales)} scales")
    if lost := [name for name in floors if name not in losses]:
        raise ValueError(f"floors[{lost[0]!r}] belongs to no curve: there are {', '.join(map(repr, losses))}")
    figure, (axis,) = _subplots(1, panel=(7.0, 4.2))
    for name, curve in losses.items():
        (line,) = axis.plot(scales, curve, label=name)
        if name in floors:
            axis.axhline(floors[name], color=line.get_color(), linestyle="--", linewidth=1)
    axis.set_xlabel("scale")
    axis.set_ylabel("expected loss (nats)")
    axis.set_ylim(bottom=-0.4)
    axis.legend(title="dashed: the infimum")
    return figure


def masking(
    ratios: Sequence[float] | Tensor, expected_ratio: float, shares: Mapping[str, float], expected: Mapping[str, float]
) -> Figure:
    """How many candidates were selected, sequence by sequence, and what became of the selected.

    ratios: for each sequence, selected / candidates.  expected_ratio: where they should lie on average.
    shares: for each fate of a selected token, the share that met it.  expected: the shares asked for, same names.

    Raises:
        ValueError: ratios is empty, or the names of shares and expected differ.
    """
    values = np.asarray([float(ratio) for ratio in ratios])
    if not values.size:
        raise ValueError("ratios is empty: there is nothing to draw")
    if list(shares) != list(expected):
        raise ValueError(f"shares has {list(shares)}, but expected has {list(expected)}")
    figure, (left, right) = _subplots(2, panel=(4.8, 3.6))
    left.hist(values, bins=_bins(values), color=_FIRST)
    left.axvline(expected_ratio, color=_SECOND, label=f"asked for: {expected_ratio:g}")
    left.axvline(values.mean(), color="black", linestyle="--", label=f"mean: {values.mean():.4f}")
    left.set_xlabel("selected / candidates")
    left.set_ylabel("sequences")
    left.legend()
    places = np.arange(len(shares))
    bars = right.bar(places - 0.2, list(shares.values()), 0.4, color=_FIRST, label="found")
    right.bar(places + 0.2, list(expected.values()), 0.4, color=_SECOND, label="asked for")
    right.bar_label(bars, fmt="%.3f", padding=2)
    right.set_xticks(places, list(shares))
    right.set_ylabel("share of the selected")
    right.set_ylim(0, 1)
    right.legend()
    return figure


def show() -> None:
    """Show what was drawn: below the cell in a notebook, in a window from a script; without a display, nothing."""
    plt = _pyplot()
    if plt.get_backend().lower() not in _SILENT:
        plt.show()


def _bins(values: np.ndarray) -> Any:
    """One bar for each ratio if they are few, so that no bar gathers two ratios and the next one only one."""
    different = np.unique(values)
    if len(different) == 1:
        return [values[0] - 0.005, values[0] + 0.005]
    if len(different) > 60:
        return 30
    middles = (different[1:] + different[:-1]) / 2
    return [2 * different[0] - middles[0], *middles, 2 * different[-1] - middles[-1]]


def _subplots(count: int, panel: tuple[float, float], layout: str = "constrained") -> tuple[Figure, Sequence[Axes]]:
    width, height = panel
    figure, axes = _pyplot().subplots(1, count, figsize=(count * width, height), squeeze=False, layout=layout)
    return figure, axes[0]


def _pyplot() -> ModuleType:
    try:
        from matplotlib import pyplot
    except ModuleNotFoundError:
        raise ModuleNotFoundError("the pictures need Matplotlib: pip install matplotlib") from None
    return pyplot

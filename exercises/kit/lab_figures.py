"""The lab's figures: what quality costs, how training went, and which lengths are hard."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from exercises.kit.lab_report import Errors, Group, Run, span

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(folder: Path, groups: Mapping[Group, Sequence[Run]], errors: Errors) -> list[str]:
    """PNG files in the folder; gives their names, without ending."""
    import matplotlib

    matplotlib.use("Agg")
    drawings: dict[str, Callable[[Axes], None]] = {"quality_vs_cost": lambda axes: _cost(axes, groups)}
    if any(run.curve for runs in groups.values() for run in runs):
        drawings["learning_curves"] = lambda axes: _curves(axes, groups)
    if errors:
        drawings["errors_by_length"] = lambda axes: _lengths(axes, errors)
    import matplotlib.pyplot as plt

    for name, drawing in drawings.items():
        figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
        drawing(axes)
        axes.legend(fontsize="small")
        figure.savefig(folder / f"{name}.png", dpi=90)
        plt.close(figure)
    return list(drawings)


def _cost(axes: Axes, groups: Mapping[Group, Sequence[Run]]) -> None:
    for group, runs in groups.items():
        seconds = [run.record.train_seconds for run in runs]
        axes.scatter(seconds, [run.record.accuracy for run in runs], label=" ".join(group), alpha=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("seconds of training (a dot is a seed)")
    axes.set_ylabel("accuracy on the test split")


def _curves(axes: Axes, groups: Mapping[Group, Sequence[Run]]) -> None:
    """A line is the mean over the seeds, the band around it goes from the lowest to the highest."""
    for group, runs in groups.items():
        curves = [run.curve for run in runs if run.curve]
        if not curves:
            continue
        points = list(zip(*curves, strict=True))
        updates = [point[0][0] for point in points]
        losses = [[loss for _, loss in point] for point in points]
        (line,) = axes.plot(updates, [statistics.fmean(found) for found in losses], lw=2, label=" ".join(group))
        axes.fill_between(updates, list(map(min, losses)), list(map(max, losses)), color=line.get_color(), alpha=0.2)
    axes.set_xlabel("updates")
    axes.set_ylabel("training loss, nats (with dropout)")
    axes.set_ylim(bottom=0)


def _lengths(axes: Axes, errors: Errors) -> None:
    for name, rows in errors.items():
        axes.plot([span(row) for row in rows], [row.error_rate or 0.0 for row in rows], marker="o", label=name)
    axes.set_xlabel("tokens of the original text")
    axes.set_ylabel("share of errors")
    axes.set_ylim(bottom=0)

"""What the lab writes: a Markdown table of mean and spread over the seeds, and figures."""

from __future__ import annotations

import platform
import statistics
from collections.abc import Callable, Sequence
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from exercises.kit.records import RunRecord
from exercises.kit.types import Splits

Group = tuple[str, ...]


def write(
    folder: Path,
    exercise: str,
    records: Sequence[RunRecord],
    splits: Splits,
    setup: dict[str, Any],
    device: str,
    module: ModuleType,
) -> None:
    """table.md and PNG files, from all records."""
    groups: dict[Group, list[RunRecord]] = {}
    for record in records:
        groups.setdefault(_group(record), []).append(record)
    figures = _figures(folder, groups, splits, module)
    lines = [f"# {exercise}: {setup['data']} with {setup['encoder']}", "", *_table(groups), ""]
    lines += [f"![{name}]({name}.png)" for name in figures]
    lines += ["", *_environment(setup, splits, device), ""]
    (folder / "table.md").write_text("\n".join(lines), encoding="utf-8")


def _group(record: RunRecord) -> Group:
    if record.max_length is None:
        return (record.method,)
    return (record.method, str(record.max_length), str(record.strategy))


def _table(groups: dict[Group, list[RunRecord]]) -> list[str]:
    columns: list[tuple[str, Callable[[RunRecord], float | None], str]] = [
        ("accuracy", lambda r: r.accuracy, ".3f"),
        ("F1", lambda r: r.f1, ".3f"),
        ("train s", lambda r: r.train_seconds, ".2f"),
        ("predict s", lambda r: r.predict_seconds, ".2f"),
        ("peak MiB", lambda r: r.peak_memory_bytes / 2**20, ".0f"),
        ("trainable", lambda r: r.trainable_parameters, ",.0f"),
        ("total", lambda r: r.total_parameters, ",.0f"),
        ("encoder forward", lambda r: r.encoder_forward_calls, ".0f"),
        ("backward", lambda r: r.encoder_backward_calls, ".0f"),
        ("truncated", lambda r: r.truncation_ratio, ".3f"),
        ("padding", lambda r: r.padding_ratio, ".3f"),
    ]
    shown = [c for c in columns if any(c[1](record) is not None for found in groups.values() for record in found)]
    lengths = any(len(group) > 1 for group in groups)
    heads = ["method", *(["max length", "padding by"] if lengths else []), "seeds", *(head for head, _, _ in shown)]
    lines = ["| " + " | ".join(heads) + " |", "|" + " --- |" * (len(heads) - len(shown)) + " ---: |" * len(shown)]
    for group, found in groups.items():
        cells = [
            _spread([value for record in found if (value := read(record)) is not None], form) for _, read, form in shown
        ]
        lines.append("| " + " | ".join([*group, str(len(found)), *cells]) + " |")
    return lines


def _spread(values: Sequence[float], form: str) -> str:
    """Mean ± standard deviation (n - 1) over the seeds; the mean alone where nothing varies."""
    mean = statistics.fmean(values)
    if len(values) < 2 or max(values) == min(values):
        return f"{mean:{form}}"
    return f"{mean:{form}} ± {statistics.stdev(values):{form}}"


def _figures(folder: Path, groups: dict[Group, list[RunRecord]], splits: Splits, module: ModuleType) -> list[str]:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
    for group, found in groups.items():
        axes.scatter([r.train_seconds for r in found], [r.accuracy for r in found], label=" ".join(group), alpha=0.8)
    axes.set_xscale("log")
    axes.set_xlabel("seconds of training (a dot is a seed)")
    axes.set_ylabel("accuracy on the test split")
    axes.legend(fontsize="small")
    figure.savefig(folder / "quality_vs_cost.png", dpi=90)
    plt.close(figure)
    names = ["quality_vs_cost"]
    by_length = getattr(module, "errors_by_length", None)
    if by_length is not None:
        figure, axes = plt.subplots(figsize=(6, 3.6), layout="constrained")
        lengths = [len(example.input_ids) for example in splits.test]
        labels = [example.label for example in splits.test]
        for group, found in groups.items():
            if group[-1] != "dynamic":
                continue
            correct = [p == y for record in found for p, y in zip(record.test_predictions, labels, strict=True)]
            rows = by_length(lengths * len(found), correct, (8, 16, 32))
            rows = [row for row in rows if row.error_rate is not None]
            names_of_groups = [f"{r.shortest}–{r.longest if r.longest is not None else '…'}" for r in rows]
            axes.plot(names_of_groups, [row.error_rate for row in rows], marker="o", label=f"at most {group[1]}")
        axes.set_xlabel("tokens of the original text")
        axes.set_ylabel("share of errors")
        axes.set_ylim(bottom=0)
        axes.legend(fontsize="small")
        figure.savefig(folder / "errors_by_length.png", dpi=90)
        plt.close(figure)
        names.append("errors_by_length")
    return names


def _environment(setup: dict[str, Any], splits: Splits, device: str) -> list[str]:
    options = [f"--{name.replace('_', '-')} {_words(value)}" for name, value in setup.items() if name != "exercise"]
    name = torch.cuda.get_device_name() if device == "cuda" else platform.processor() or platform.machine()
    counts = [len(part) for part in splits]
    sizes = f"{counts[0]} texts to train, {counts[1]} to validate, {counts[2]} to test"
    return [
        "Mean ± standard deviation over seeds; all share one split, so the spread says nothing about other texts.",
        f"{sizes}. Settings are chosen on validation; test is read once a run.",
        "",
        f"    python -m exercises.kit.lab {setup['exercise']} {' '.join(options)}",
        "",
        f"Device: {device} ({name}), 1 thread. Python {platform.python_version()}, torch {torch.__version__}, "
        f"transformers {version('transformers')}, scikit-learn {version('scikit-learn')}. "
        "On a CPU, the peak is that of "
        "the whole process.",
    ]


def _words(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list) else str(value)

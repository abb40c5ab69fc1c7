"""What the lab writes: a Markdown table of mean and spread over the seeds, and below it how it came about."""

from __future__ import annotations

import itertools
import os
import platform
import statistics
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import torch

from exercises.kit.records import LengthGroup, RunRecord
from exercises.kit.types import Splits

#: What the runs of one line of the table share: the method; in exercise 10, its maximum length and strategy as well.
Group = tuple[str, ...]
#: A line of the table of errors -> its groups of lengths.
Errors = dict[str, list[LengthGroup]]
#: Where one group of original lengths ends, in tokens; the last has no end.
LENGTHS = (8, 16, 32)


class Run(NamedTuple):
    """A record, and the learning curve of the training run that it is about."""

    record: RunRecord
    #: (updates so far, training loss): empty for a run without updates, or with a training loop of its own.
    curve: list[tuple[int, float]]
    #: CPU time of that training run; None likewise.
    cpu_seconds: float | None
    #: How many processes the machine had to run at the end: with more than it has cores, times are those of a queue.
    load: float


def write(
    folder: Path, runs: Sequence[Run], splits: Splits, setup: dict[str, Any], device: str, module: ModuleType
) -> None:
    """table.md and PNG files, from all runs."""
    from exercises.kit.lab_figures import draw

    groups: dict[Group, list[Run]] = {}
    for run in runs:
        groups.setdefault(_group(run.record), []).append(run)
    options = setup["options"]
    lines = [f"# {options['exercise']}: {options['data']} with {options['encoder']}", "", *_table(groups, device), ""]
    lines += _differences(groups)
    errors = _errors(groups, splits, getattr(module, "errors_by_length", None))
    lines += _errors_table(errors)
    lines += [f"![{name}]({name}.png)" for name in draw(folder, groups, errors)]
    lines += ["", *_environment(setup, splits, device, runs), ""]
    (folder / "table.md").write_text("\n".join(lines), encoding="utf-8")


def _group(record: RunRecord) -> Group:
    if record.max_length is None:
        return (record.method,)
    return (record.method, str(record.max_length), str(record.strategy))


def _table(groups: Mapping[Group, Sequence[Run]], device: str) -> list[str]:
    columns: list[tuple[str, Callable[[Run], float | None], str]] = [
        ("validation", lambda r: r.record.validation_score, ".3f"),
        ("accuracy", lambda r: r.record.accuracy, ".3f"),
        ("F1", lambda r: r.record.f1, ".3f"),
        ("train s", lambda r: r.record.train_seconds, ".3f"),
        ("train CPU s", lambda r: r.cpu_seconds if device == "cpu" else None, ".3f"),
        ("predict s", lambda r: r.record.predict_seconds, ".3f"),
        ("peak MiB", lambda r: r.record.peak_memory_bytes / 2**20, ".0f"),
        ("trainable", lambda r: r.record.trainable_parameters, ",.0f"),
        ("total", lambda r: r.record.total_parameters, ",.0f"),
        ("encoder forward", lambda r: r.record.encoder_forward_calls, ".0f"),
        ("backward", lambda r: r.record.encoder_backward_calls, ".0f"),
        ("truncated", lambda r: r.record.truncation_ratio, ".3f"),
        ("padding", lambda r: r.record.padding_ratio, ".3f"),
    ]
    all_runs = [run for runs in groups.values() for run in runs]
    shown = [column for column in columns if any(column[1](run) is not None for run in all_runs)]
    lengths = any(len(group) > 1 for group in groups)
    heads = ["method", *(["max length", "padding by"] if lengths else []), "seeds", "chosen (seeds)"]
    names = [*heads, *(head for head, _, _ in shown)]
    lines = ["| " + " | ".join(names) + " |", "|" + " --- |" * len(heads) + " ---: |" * len(shown)]
    for group, runs in groups.items():
        cells = [_spread([value for run in runs if (value := read(run)) is not None], form) for _, read, form in shown]
        chosen = _chosen([run.record for run in runs])
        lines.append("| " + " | ".join([*group, str(len(runs)), chosen, *cells]) + " |")
    return lines


def _differences(groups: Mapping[Group, Sequence[Run]]) -> list[str]:
    """Accuracies of two lines of the table, subtracted seed by seed: what they share cancels, such as a lucky start."""
    lines = ["| difference in accuracy, by seed | mean ± sd | each seed |", "| --- | ---: | --- |"]
    for one, other in itertools.combinations(groups, 2):
        accuracy = [{run.record.seed: run.record.accuracy for run in groups[group]} for group in (other, one)]
        seeds = sorted(accuracy[0].keys() & accuracy[1].keys())
        if len(seeds) > 1:
            found = [accuracy[0][seed] - accuracy[1][seed] for seed in seeds]
            each = ", ".join(f"{value:+.3f}" for value in found)
            lines.append(f"| {' '.join(other)} − {' '.join(one)} | {_spread(found, '+.3f', '.3f')} | {each} |")
    return [*lines, ""] if len(lines) > 2 else []


def _errors(
    groups: Mapping[Group, Sequence[Run]], splits: Splits, by_length: Callable[..., Sequence[LengthGroup]] | None
) -> Errors:
    """Of dynamic padding only, since the strategies compute the same; empty where lengths are not compared.

    by_length: the exercise's own `errors_by_length`.
    """
    errors: Errors = {}
    lengths = [len(example.input_ids) for example in splits.test]
    labels = [example.label for example in splits.test]
    for group, runs in groups.items():
        if by_length is not None and group[-1] == "dynamic":
            guesses = [zip(run.record.test_predictions, labels, strict=True) for run in runs]
            correct = [guess == label for pairs in guesses for guess, label in pairs]
            rows = by_length(lengths * len(runs), correct, LENGTHS)
            errors[f"at most {group[1]}"] = [row for row in rows if row.texts]
    return errors


def _errors_table(errors: Errors) -> list[str]:
    if not errors:
        return []
    spans = [span(row) for row in next(iter(errors.values()))]
    lines = [
        f"| share of errors, all seeds together, by original tokens | {' | '.join(spans)} |",
        "| --- |" + " ---: |" * len(spans),
    ]
    for name, rows in errors.items():
        cells = [f"{row.error_rate:.3f} ({row.errors} of {row.texts})" for row in rows]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return [*lines, ""]


def span(row: LengthGroup) -> str:
    """The lengths of a group, as on an axis."""
    return f"{row.shortest}–{'…' if row.longest is None else row.longest}"


def _chosen(records: Sequence[RunRecord]) -> str:
    """Which setting validation chose, and for how many seeds: one at the end of a grid may ask for a wider one."""
    picks = Counter(value for record in records for value in record.chosen_hyperparameters.values())
    return ", ".join(f"{value:g} ({count})" for value, count in sorted(picks.items()))


def _spread(values: Sequence[float], form: str, deviation: str = "") -> str:
    """Mean ± standard deviation (n - 1) over the seeds; the mean alone where nothing varies, a dash of none."""
    if not values:
        return "–"
    mean = statistics.fmean(values)
    if len(values) < 2 or max(values) == min(values):
        return f"{mean:{form}}"
    return f"{mean:{form}} ± {statistics.stdev(values):{deviation or form}}"


def _environment(setup: dict[str, Any], splits: Splits, device: str, runs: Sequence[Run]) -> list[str]:
    options = {**setup["options"], "seeds": len({run.record.seed for run in runs})}
    exercise = options.pop("exercise")
    words = " ".join(f"--{name.replace('_', '-')} {_words(value)}" for name, value in options.items())
    name = torch.cuda.get_device_name() if device == "cuda" else _processor()
    train, validation, test = map(len, splits)
    tried = [f"{method} {', '.join(f'{v:g}' for v in values)}" for method, values in setup["settings"].items()]
    where = f"{device} ({name}), 1 thread" if device == "cpu" else f"{device} ({name})"
    lines = [
        f"    python -m exercises.kit.lab {exercise} {words} --out OUT",
        "",
        f"{train} texts to train, {validation} to validate, {test} to test. Settings tried: {'; '.join(tried)}.",
        "The best of them on validation reads the test texts, once.",
        "",
        "Mean ± standard deviation over seeds; all share one split, so the spread says nothing about other texts. The",
        f"choice of the test texts alone gives an accuracy of 0.8 a standard error of {(0.8 * 0.2 / test) ** 0.5:.3f}.",
        "",
        f"Device: {where}. Python {platform.python_version()}, torch {torch.__version__}, transformers",
        f"{version('transformers')}, scikit-learn {version('scikit-learn')}.",
    ]
    loads = [run.load for run in runs]
    lines.append(
        f"Seconds are wall time; {min(loads):.1f} to {max(loads):.1f} processes were running or waiting on "
        f"{os.cpu_count()} cores (load average)."
    )
    if device == "cpu":
        lines.append("The peak is that of the whole process, data and libraries included.")
    return lines


def _processor() -> str:
    """The processor's own name; Linux keeps it where the standard library does not look."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def _words(value: Any) -> str:
    return " ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)

"""The lab: run the comparison of exercise 8, 9 or 10 for real, and write down what came out.

    python -m exercises.kit.lab ex08 --out results/ex08

trains your own `compare_…` (or, with --package solutions, the reference's) on a data set and an encoder, seed by seed.
OUT then holds records.jsonl, a table and figures.  The same command again goes on where it stopped.
"""

from __future__ import annotations

import argparse
import copy
import importlib
import importlib.util
import json
import os
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from exercises.kit.classifier import Classifier
from exercises.kit.datasets import load_splits
from exercises.kit.encoder import load_encoder
from exercises.kit.lab_report import Run
from exercises.kit.records import ComparisonConfig, RunRecord
from exercises.kit.training import FitLog, logged_fits, seeded
from exercises.kit.unavailable import Unavailable


@dataclass(frozen=True)
class Experiment:
    """module, function: what is run.  methods: those with a learning rate.  lengths: whether it compares lengths."""

    module: str
    function: str
    methods: tuple[str, ...]
    bag_of_words: bool = False
    lengths: bool = False


EXPERIMENTS = {
    "ex08": Experiment("ex08_baselines", "compare_baselines", ("frozen", "full"), bag_of_words=True),
    "ex09": Experiment("ex09_transfer_methods", "compare_transfer", ("frozen", "full", "lora")),
    "ex10": Experiment("ex10_length_and_padding", "compare_lengths", ("full",), lengths=True),
}
#: Learning rates that are tried for each kind of encoder and method, and values of C; as many for each method.
RATES = {
    "tiny": {"frozen": (1e-2, 3e-2), "full": (3e-4, 1e-3), "lora": (3e-3, 1e-2)},
    "other": {"frozen": (3e-3, 1e-2), "full": (5e-5, 1e-4), "lora": (2e-3, 5e-3)},
}
INVERSE_REGULARISATION = (1.0, 10.0)
#: Of a learning curve.
CURVE_POINTS = 40


class LabError(ValueError):
    """The command cannot mean anything; the message says why and what to do."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; exit status 2 and a sentence if it makes no sense, 1 if something is not there."""
    given = _parser().parse_args(arguments)
    try:
        run(given)
    except LabError as error:
        print(f"lab: {error}", file=sys.stderr)
        return 2
    except (Unavailable, ValueError) as error:
        print(f"lab: {error}", file=sys.stderr)
        return 1
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser("python -m exercises.kit.lab", description=__doc__.split("\n")[0])
    parser.add_argument("exercise", choices=EXPERIMENTS)
    parser.add_argument("--package", choices=["exercises", "solutions"], default="exercises", help="whose functions")
    parser.add_argument("--data", default="synthetic", help='"synthetic", "movies", "imdb", "sst2" or a CSV file')
    parser.add_argument("--encoder", default="tiny", help='"tiny", "minilm", a folder or a name of the hub')
    parser.add_argument(
        "--sizes", type=int, nargs=3, default=(1000, 500, 1000), metavar="N", help="texts to train, validate, test"
    )
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds: 0, 1, … (default: 5)")
    parser.add_argument("--updates", type=int, default=320, help="updates of a training run (default: 320)")
    parser.add_argument("--batch-size", type=int, default=32, help="examples an update (default: 32)")
    parser.add_argument("--max-lengths", type=int, nargs="+", default=(16, 32, 64), metavar="T", help="of exercise 10")
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])
    parser.add_argument("--out", type=Path, required=True, help="folder for records, table and figures")
    return parser


def run(given: argparse.Namespace) -> None:
    """Run what is missing in OUT, then write the table and the figures anew."""
    from tqdm import tqdm

    from exercises.kit import lab_report

    experiment = EXPERIMENTS[given.exercise]
    module = importlib.import_module(f"{given.package}.{experiment.module}")
    compare: Callable[..., list[RunRecord]] = getattr(module, experiment.function)
    if importlib.util.find_spec("matplotlib") is None:  # said now, not when all is trained and the figures are due
        raise Unavailable("The figures need Matplotlib, which is not installed: pip install matplotlib")
    device = given.device
    if device == "auto":
        device = "cuda" if torch.cuda.is_available() else "cpu"
    if device == "cuda" and not torch.cuda.is_available():
        raise LabError("--device cuda: PyTorch sees no CUDA device here")
    torch.set_num_threads(1)
    pretrained = load_encoder(given.encoder)
    encoder: Any = pretrained.encoder
    positions = int(encoder.config.max_position_embeddings)
    splits = load_splits(given.data, pretrained.tokenizer, tuple(given.sizes), max_length=positions)
    config = _config(given, experiment, pretrained.tokenizer.vocabulary, device)
    options = {name: value for name, value in vars(given).items() if name not in ("out", "seeds", "device")}
    if not experiment.lengths:
        del options["max_lengths"]
    store = Records(given.out, {"options": options, "settings": config.settings})
    make_model = model_maker(pretrained.encoder)
    units = list(_units(config, experiment, given.seeds))
    for name, unit in tqdm(units, desc=given.exercise, unit="run", file=sys.stderr):
        if name in store.done:
            continue
        try:
            with logged_fits() as logs:
                records = compare(splits, make_model, unit)
        except NotImplementedError as error:
            raise LabError(
                f"{experiment.module}.py is not written yet ({error}); --package solutions runs the reference"
            ) from None
        load = os.getloadavg()[0]
        store.add(name, [_run(record, logs, load) for record in records])
    lab_report.write(given.out, store.runs, splits, store.setup, device, module)
    print(f"{given.out}/table.md")


def model_maker(encoder: torch.nn.Module) -> Callable[[int], Classifier]:
    """make_model(seed): a copy of the same encoder, and a classification layer whose weights the seed decides."""

    def make_model(seed: int) -> Classifier:
        with seeded(seed):
            return Classifier(copy.deepcopy(encoder), 2)

    return make_model


def _run(record: RunRecord, logs: Sequence[FitLog], load: float) -> Run:
    """The record with what `fit` noted of its training run: nothing if that was not made by `fit`."""
    rate = record.chosen_hyperparameters.get("learning_rate")
    for log in logs:
        if (log.learning_rate, log.seed, log.trainable_parameters) == (rate, record.seed, record.trainable_parameters):
            return Run(record, learning_curve(log.losses), log.cpu_seconds, load)
    return Run(record, [], None, load)


def learning_curve(losses: Sequence[float]) -> list[tuple[int, float]]:
    """(updates so far, mean loss since the point before), at most CURVE_POINTS of them."""
    step = max(1, -(-len(losses) // CURVE_POINTS))
    pieces = [(start, losses[start : start + step]) for start in range(0, len(losses), step)]
    return [(start + len(piece), statistics.fmean(piece)) for start, piece in pieces]


def _config(given: argparse.Namespace, experiment: Experiment, vocabulary: Any, device: str) -> ComparisonConfig:
    rates = RATES["tiny" if given.encoder == "tiny" else "other"]
    settings: dict[str, tuple[float, ...]] = {method: rates[method] for method in experiment.methods}
    if experiment.bag_of_words:
        settings["bag_of_words"] = INVERSE_REGULARISATION
    return ComparisonConfig(
        seeds=(),
        settings=settings,
        updates=given.updates,
        batch_size=given.batch_size,
        device=device,
        pad_id=vocabulary.pad_id,
        vocab_size=vocabulary.size,
        max_lengths=tuple(given.max_lengths) if experiment.lengths else (),
    )


def _units(config: ComparisonConfig, experiment: Experiment, seeds: int) -> Iterator[tuple[str, ComparisonConfig]]:
    """What is run, and remembered, as a whole: a seed; for exercise 10, a seed with one length and one strategy."""
    for seed in range(seeds):
        if not experiment.lengths:
            yield f"seed {seed}", replace(config, seeds=(seed,))
            continue
        for length in config.max_lengths:
            for padding in config.strategies:
                name = f"seed {seed}, {length}, {padding}"
                yield name, replace(config, seeds=(seed,), max_lengths=(length,), strategies=(padding,))


class Records:
    """records.jsonl: the setup in the first line, then a line for each unit that is done, whole or not there.

    The setup holds all that decides what comes out, the settings that are tried too: they may change with the course.

    Raises LabError if the folder holds records of another setup.
    """

    def __init__(self, folder: Path, setup: dict[str, Any]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._path = folder / "records.jsonl"
        self.setup = setup
        self.done: dict[str, list[Run]] = {}
        lines = self._path.read_text(encoding="utf-8").splitlines() if self._path.exists() else []
        if lines and json.loads(lines[0]) != json.loads(json.dumps(setup)):
            raise LabError(f"{folder} holds records of another setup ({lines[0]}); choose another --out, or delete it")
        for line in lines[1:]:
            entry = json.loads(line)
            curves = [[(updates, loss) for updates, loss in curve] for curve in entry["curves"]]
            records = [RunRecord(**record) for record in entry["records"]]
            self.done[entry["unit"]] = [
                Run(record, curve, seconds, entry["load"])
                for record, curve, seconds in zip(records, curves, entry["cpu_seconds"], strict=True)
            ]

    @property
    def runs(self) -> list[Run]:
        return [run for runs in self.done.values() for run in runs]

    def add(self, unit: str, runs: Sequence[Run]) -> None:
        self.done[unit] = list(runs)
        lines = [json.dumps(self.setup)]
        lines += [
            json.dumps(
                {
                    "unit": name,
                    "load": runs[0].load,
                    "records": [asdict(run.record) for run in runs],
                    "curves": [run.curve for run in runs],
                    "cpu_seconds": [run.cpu_seconds for run in runs],
                }
            )
            for name, runs in self.done.items()
        ]
        partial = self._path.with_suffix(f".{os.getpid()}.partial")
        partial.write_text("\n".join(lines) + "\n", encoding="utf-8")
        partial.replace(self._path)


if __name__ == "__main__":
    sys.exit(main())

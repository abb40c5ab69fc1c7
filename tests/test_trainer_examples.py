"""The Trainer scripts keep to their protocol: validation chooses, the best checkpoint is restored, and tested once."""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import torch

EXAMPLES = Path(__file__).parents[1] / "examples"
pytestmark = pytest.mark.slow  # importing the Trainer alone takes seconds

#: What validation is made to say after each epoch: the second is the best.
PRESCRIBED = (0.5, 0.9, 0.7)


class Watched(torch.utils.data.Dataset):
    """Rows that note in a common diary which of them is read."""

    def __init__(self, rows: list[dict[str, Any]], name: str, diary: list[tuple[str, int]]) -> None:
        self.rows, self.name, self.diary = rows, name, diary

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> dict[str, Any]:
        row = self.rows[index]  # IndexError ends an iteration
        self.diary.append((self.name, index))
        return row


class Run(NamedTuple):
    result: Any
    parts: dict[str, list[dict[str, Any]]]
    #: (part, index) of each read, in order.
    diary: list[tuple[str, int]]
    #: How many texts were scored, one entry a time.
    scored: list[int]
    folder: Path


@pytest.fixture(scope="module")
def runs() -> Iterator[Any]:
    """The module that both scripts share; they import it from the folder they lie in."""
    sys.path.insert(0, str(EXAMPLES))
    try:
        yield importlib.import_module("trainer_runs")
    finally:
        sys.path.remove(str(EXAMPLES))


@pytest.fixture(scope="module")
def run(runs: Any, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """One run of three epochs whose validation accuracies are prescribed."""
    folder = tmp_path_factory.mktemp("run")
    recipe = dataclasses.replace(runs.SYNTHETIC, sizes=(120, 50, 60), epochs=len(PRESCRIBED))
    tokenizer = runs.load_tokenizer(recipe.model)
    names = ("train", "validation", "test")
    texts = runs.load_texts(recipe.data, recipe.sizes)
    parts = {name: runs.tokenize(tokenizer, part, recipe.max_length) for name, part in zip(names, texts, strict=True)}
    diary: list[tuple[str, int]] = []
    watched = tuple(Watched(parts[name], name, diary) for name in names)
    true_scores, said = runs.scores, iter(PRESCRIBED)
    scored: list[int] = []

    def scores(prediction: Any) -> dict[str, float]:
        found = true_scores(prediction)
        scored.append(len(prediction.label_ids))
        return found if len(prediction.label_ids) == 60 else {**found, "accuracy": next(said)}

    with pytest.MonkeyPatch.context() as patch, torch.random.fork_rng():
        patch.setattr(runs, "scores", scores)
        result = runs.fine_tune(recipe, watched, tokenizer, 0, folder)
    return Run(result, parts, diary, scored, folder)


def test_the_test_texts_are_not_touched_before_all_else_is_done(run: Run) -> None:
    first = [name for name, _ in run.diary].index("test")
    assert {name for name, _ in run.diary[first:]} == {"test"}
    assert {index for _, index in run.diary[first:]} == set(range(60))


def test_validation_is_scored_after_every_epoch_and_the_test_once(run: Run) -> None:
    assert run.result.updates == 3 * -(-120 // 16)
    assert run.scored == [50, 50, 50, 60]


def test_the_epoch_that_validation_likes_best_is_the_one_that_is_tested(run: Run) -> None:
    from transformers import AutoModelForSequenceClassification

    updates = run.result.best_update
    assert (updates, run.result.validation_accuracy) == (16, 0.9)
    model = AutoModelForSequenceClassification.from_pretrained(run.folder / f"checkpoint-{updates}").eval()
    right = []
    for row in run.parts["test"]:
        with torch.no_grad():
            logits = model(torch.tensor([row["input_ids"]])).logits  # (1, 2), no padding at all
        right.append(int(logits.argmax()) == row["label"])
    assert run.result.test_accuracy == pytest.approx(sum(right) / 60)


def test_texts_are_cut_but_not_padded(runs: Any) -> None:
    tokenizer = runs.load_tokenizer(str(runs.TINY))
    short, long = runs.tokenize(tokenizer, [("the soup was bland .", 0), ("the soup was bland . " * 9, 1)], 16)
    assert (len(short["input_ids"]), len(long["input_ids"])) == (7, 16)
    assert set(short["attention_mask"]) == set(long["attention_mask"]) == {1}
    assert short["input_ids"][-1] == long["input_ids"][-1] == tokenizer.sep_token_id


def script(name: str, *arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}
    environment |= {"HF_HOME": str(home / "hub"), "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=home, check=False)


@pytest.mark.parametrize("name", ["imdb", "sst2"])
def test_a_script_runs_offline_on_synthetic_reviews(name: str, tmp_path: Path) -> None:
    small = ["--sizes", "64", "32", "48", "--epochs", "2", "--seeds", "2"]
    done = script(f"trainer_{name}.py", "--data", "synthetic", *small, home=tmp_path)
    assert done.returncode == 0, done.stderr
    (written,) = (tmp_path / "results").glob("*/results.json")
    found = json.loads(written.read_text(encoding="utf-8"))
    assert found["recipe"]["sizes"] == [64, 32, 48]
    assert [result["seed"] for result in found["results"]] == [0, 1]
    accuracies = [result["test_accuracy"] for result in found["results"]]
    expected = f"{statistics.fmean(accuracies):.4f} ± {statistics.stdev(accuracies):.4f} (2 seeds)"
    assert done.stdout.splitlines()[-1].startswith(f"test accuracy {expected}")


@pytest.mark.parametrize(
    ("arguments", "advice"),
    [
        (["trainer_sst2.py"], ['The data set "sst2"', "pip install 'bert-exercises[real]'|CSV file"]),
        (
            ["trainer_imdb.py", "--data", "synthetic", "--model", "bert-base-nowhere"],
            ["'bert-base-nowhere' could not be loaded", "hf download NAME --local-dir FOLDER"],
        ),
    ],
    ids=["data", "checkpoint"],
)
def test_without_the_hub_the_message_says_what_to_do(arguments: list[str], advice: list[str], tmp_path: Path) -> None:
    done = script(*arguments, home=tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    for sentence in advice:
        assert any(choice in done.stderr for choice in sentence.split("|"))

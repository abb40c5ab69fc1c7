"""The lab runs comparisons for real, goes on where it stopped, and writes down what came out."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

from exercises.kit import fit, lab
from exercises.kit.datasets import load_splits
from exercises.kit.encoder import load_encoder
from exercises.kit.training import logged_fits

SMALL = ["--package", "solutions", "--sizes", "24", "12", "12", "--updates", "3", "--batch-size", "4"]


def lines(out: Path) -> list[str]:
    return (out / "records.jsonl").read_text(encoding="utf-8").splitlines()


def test_a_seed_that_is_done_is_not_run_again(tmp_path: Path) -> None:
    arguments = ["ex10", *SMALL, "--max-lengths", "8", "16", "--out", str(tmp_path)]
    assert lab.main([*arguments, "--seeds", "1"]) == 0
    first = lines(tmp_path)
    assert [json.loads(line)["unit"] for line in first[1:]] == [
        f"seed 0, {length}, {padding}" for length in (8, 16) for padding in ("global", "dynamic")
    ]
    assert lab.main([*arguments, "--seeds", "2"]) == 0
    both = lines(tmp_path)
    assert both[:5] == first  # times and all: they were not measured again
    assert len(both) == 9
    table = (tmp_path / "table.md").read_text(encoding="utf-8")
    assert table.count("| full | 8 | global | 2 |") == 1
    assert "python -m exercises.kit.lab ex10" in table
    assert "--max-lengths 8 16 --seeds 2 --out OUT" in table
    records = [json.loads(line)["records"][0] for line in both[1:]]
    (row,) = [line for line in table.splitlines() if line.startswith("| at most 8 |")]
    counted = [tuple(map(int, pair)) for pair in re.findall(r"\((\d+) of (\d+)\)", row)]
    accuracies = [r["accuracy"] for r in records if (r["max_length"], r["strategy"]) == (8, "dynamic")]
    assert sum(texts for _, texts in counted) == 2 * 12
    assert sum(errors for errors, _ in counted) == pytest.approx(12 * (2 - sum(accuracies)))
    for name in ("quality_vs_cost", "learning_curves", "errors_by_length"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert f"({name}.png)" in table


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Exercise 8 with two seeds."""
    out = tmp_path_factory.mktemp("ex08")
    assert lab.main(["ex08", *SMALL, "--seeds", "2", "--out", str(out)]) == 0
    return out


def rows(out: Path) -> dict[str, dict[str, str]]:
    """The table of a folder: method -> column -> cell."""
    table = [line.strip("| ").split(" | ") for line in (out / "table.md").read_text(encoding="utf-8").splitlines()]
    heads = next(cells for cells in table if cells[0] == "method")
    return {cells[0]: dict(zip(heads, cells, strict=True)) for cells in table if len(cells) == len(heads)}


def test_the_table_says_mean_and_spread_of_the_records(compared: Path) -> None:
    records = [record for line in lines(compared)[1:] for record in json.loads(line)["records"]]
    for method in ("bag_of_words", "frozen", "full"):
        row = rows(compared)[method]
        found = [record["accuracy"] for record in records if record["method"] == method]
        assert row["seeds"] == "2"
        assert f"{sum(found) / 2:.3f}" in row["accuracy"]
        spread = abs(found[0] - found[1]) / 2**0.5  # the standard deviation of two numbers, n - 1 = 1
        assert (f"± {spread:.3f}" in row["accuracy"]) == (found[0] != found[1])


def test_the_table_says_what_was_tried_and_what_validation_chose(compared: Path) -> None:
    records = [record for line in lines(compared)[1:] for record in json.loads(line)["records"]]
    text = (compared / "table.md").read_text(encoding="utf-8")
    for method, rates in lab.RATES["tiny"].items():
        if method != "lora":
            assert f"{method} {', '.join(f'{rate:g}' for rate in rates)}" in text
    for method in ("bag_of_words", "frozen", "full"):
        chosen = [v for r in records if r["method"] == method for v in r["chosen_hyperparameters"].values()]
        cell = rows(compared)[method]["chosen (seeds)"]
        assert cell == ", ".join(f"{value:g} ({chosen.count(value)})" for value in sorted(set(chosen)))


def test_differences_are_taken_seed_by_seed(compared: Path) -> None:
    records = [record for line in lines(compared)[1:] for record in json.loads(line)["records"]]
    accuracy = {(record["method"], record["seed"]): record["accuracy"] for record in records}
    found = [accuracy["full", seed] - accuracy["frozen", seed] for seed in (0, 1)]
    text = (compared / "table.md").read_text(encoding="utf-8")
    (row,) = [line for line in text.splitlines() if line.startswith("| full − frozen |")]
    assert row.endswith(f"| {found[0]:+.3f}, {found[1]:+.3f} |")
    assert f"| {sum(found) / 2:+.3f}" in row


def test_a_run_made_by_fit_has_a_curve_and_cpu_seconds(compared: Path) -> None:
    for line in lines(compared)[1:]:
        entry = json.loads(line)
        for record, curve, seconds in zip(entry["records"], entry["curves"], entry["cpu_seconds"], strict=True):
            if record["method"] == "bag_of_words":
                assert (curve, seconds) == ([], None)
            else:
                assert [updates for updates, _ in curve] == [1, 2, 3]
                assert all(0.0 < loss < 5.0 for _, loss in curve)
                assert 0.0 < seconds < 60.0
    assert rows(compared)["bag_of_words"]["train CPU s"] == "–"


def test_a_log_tells_which_fit_it_is_of_and_what_the_losses_were() -> None:
    examples = load_splits("synthetic", load_encoder("tiny").tokenizer, (16, 1, 1)).train
    make_model = lab.model_maker(load_encoder("tiny").encoder)
    with logged_fits() as logs:
        for rate in (0.0, 0.01):
            fit(make_model(1), examples, learning_rate=rate, updates=4, batch_size=16, seed=1)
    fit(make_model(1), examples, learning_rate=0.0, updates=1, batch_size=16, seed=1)  # after the block: no log
    assert [log.learning_rate for log in logs] == [0.0, 0.01]
    still, learning = (log.losses for log in logs)
    assert still[0] == learning[0]
    assert learning[3] < still[3]


def test_a_long_curve_is_thinned_by_means() -> None:
    losses = [float(number) for number in range(101)]
    curve = lab.learning_curve(losses)
    assert len(curve) <= lab.CURVE_POINTS
    assert curve[0] == (3, 1.0)  # the mean of 0, 1, 2
    assert curve[-1] == (101, 99.5)
    assert lab.learning_curve([2.0, 1.0]) == [(1, 2.0), (2, 1.0)]


@pytest.mark.parametrize(
    ("arguments", "status", "said"),
    [
        (["ex09", "--package", "exercises"], 2, "ex09_transfer_methods.py is not written yet"),
        (["ex08", "--data", "nowhere"], 1, "There is no data set 'nowhere'"),
        (["ex08", "--encoder", "/nowhere/at/all"], 1, "could not be loaded"),
        (["ex08", "--data", "nothing.csv"], 1, "There is no file nothing.csv"),
    ],
)
def test_what_makes_no_sense_is_said_in_a_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], status: int, said: str
) -> None:
    assert lab.main([*arguments, *SMALL[2:], "--seeds", "1", "--out", str(tmp_path)]) == status
    error = capsys.readouterr().err
    assert f"lab: {said}" in error or said in error
    assert "Traceback" not in error


def test_without_matplotlib_nothing_is_trained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name, *rest: None if name == "matplotlib" else found(name))
    assert lab.main(["ex08", *SMALL, "--seeds", "1", "--out", str(tmp_path / "out")]) == 1
    assert "pip install matplotlib" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_records_of_another_setup_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "records.jsonl").write_text('{"exercise": "ex08", "updates": 99}\n')
    assert lab.main(["ex08", *SMALL, "--seeds", "1", "--out", str(tmp_path)]) == 2
    assert "records of another setup" in capsys.readouterr().err
    assert lines(tmp_path) == ['{"exercise": "ex08", "updates": 99}']

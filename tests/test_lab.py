"""The lab runs comparisons for real, goes on where it stopped, and writes down what came out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from exercises.kit import lab

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
    for name in ("quality_vs_cost", "errors_by_length"):
        assert (tmp_path / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert f"({name}.png)" in table


def test_the_table_says_mean_and_spread_of_the_records(tmp_path: Path) -> None:
    assert lab.main(["ex08", *SMALL, "--seeds", "2", "--out", str(tmp_path)]) == 0
    records = [record for line in lines(tmp_path)[1:] for record in json.loads(line)["records"]]
    table = (tmp_path / "table.md").read_text(encoding="utf-8").splitlines()
    for method in ("bag_of_words", "frozen", "full"):
        found = [record["accuracy"] for record in records if record["method"] == method]
        (row,) = [line for line in table if line.startswith(f"| {method} | 2 |")]
        assert f"{sum(found) / 2:.3f}" in row.split("|")[3]
        spread = abs(found[0] - found[1]) / 2**0.5  # the standard deviation of two numbers, n - 1 = 1
        assert (f"± {spread:.3f}" in row.split("|")[3]) == (found[0] != found[1])


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


def test_records_of_another_setup_are_kept(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "records.jsonl").write_text('{"exercise": "ex08", "updates": 99}\n')
    assert lab.main(["ex08", *SMALL, "--seeds", "1", "--out", str(tmp_path)]) == 2
    assert "records of another setup" in capsys.readouterr().err
    assert lines(tmp_path) == ['{"exercise": "ex08", "updates": 99}']

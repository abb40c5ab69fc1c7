"""`make bench` in small: every row is there with a number, and what the numbers are made with computes what it says."""

from __future__ import annotations

import math
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks import cost
from benchmarks.batches import exponent
from benchmarks.measuring import Measured, Row, table
from benchmarks.twelve import compare, peers
from benchmarks.twelve.notebooks import works

ROOT = Path(__file__).parents[1]
#: How the rows of each part begin.  None of them is about seconds: those are the machine's.
ROWS = {
    "(a)": [
        "CPU, in-process",
        "CPU, across the wire",
        "CPU, wire /",
        "wall, wire /",
        "CPU, wire / in-process, exercise",
        "CPU, wire / in-process, one that answers like no other",
    ],
    "(b)": [
        "CPU, stub / right",
        "CPU, wrong / right, both",
        "the dearest",
        "share of",
        "CPU, wrong / right, the right one",
    ],
    "(c)": ["CPU, one more by ours, right, wrong", "CPU, one more by ours, a right", "CPU, the first by ours"],
    "(d)": ["right submissions a minute, --jobs 1", "right submissions a minute, --jobs 2", "throughput", "wall of"],
    "(e)": ["PSS, one grading process"],
    "(f)": [
        "CPU until the first result",
        "CPU, a batch of 6",
        "wall, a batch of 6",
        "CPU, a batch of 18",
        "wall, a batch of 18",
        "CPU, one more",
        "exponent of CPU",
        "exponent of wall",
    ],
}
TARGETS = {"(a)": 2, "(b)": 4, "(c)": 0, "(d)": 1, "(e)": 1, "(f)": 1}


def number(cell: str) -> float:
    match = re.fullmatch(r"(?:[≤≥] )?(-?[\d,]+(?:\.\d+)?) ?(?:s|ms|%|×|GiB)?", cell)
    assert match, cell
    return float(match.group(1).replace(",", ""))


@pytest.mark.slow
def test_the_quick_table_has_every_row_with_numbers(tmp_path: Path) -> None:
    """All parts but the peers, which only the full run installs."""
    out = tmp_path / "bench.md"
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.bench", "--quick", "--out", out], cwd=ROOT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    page = out.read_text(encoding="utf-8")
    assert page in done.stdout
    rows: dict[str, list[list[str]]] = {}
    for line in page.splitlines():
        if line.startswith("| **"):
            part = rows.setdefault(line.removeprefix("| **").partition(" ")[0], [])
        elif line.startswith("| ") and rows:
            part.append([cell.strip() for cell in line.strip("|").split("|")])
    assert rows.keys() == ROWS.keys()
    for name, beginnings in ROWS.items():
        assert len(rows[name]) == len(beginnings), rows[name]
        assert sum(bool(row[4]) for row in rows[name]) == TARGETS[name]
        for row, beginning in zip(rows[name], beginnings, strict=True):
            what, median, _, repeats, target, met = row
            assert what.startswith(beginning)
            assert math.isfinite(number(median))
            assert int(repeats) >= 1
            assert met in (("met", "not met") if target else ("",))
    assert "nbgrader and otter-grader are not run with --quick" in page
    assert "Load at the start" in page


@pytest.mark.slow
def test_plain_nbgrader_gives_the_points_that_the_checks_are_worth() -> None:
    """The peer of the comparison that is installed here anyway grades the same notebooks by the same checks."""
    texts = works(2)
    spent, points = peers.nbgrader(Path(sys.executable), texts)
    assert spent > 0
    assert points == [compare.points(code) for code in texts]


def test_the_checks_tell_right_from_wrong_from_unwritten() -> None:
    right, wrong, stub = (compare.points(code) for code in works(3))
    assert right == 12
    assert 0 < wrong < 12
    assert stub == 0


@pytest.mark.parametrize("power", [0.5, 1.0, 2.0])
def test_the_exponent_of_a_known_growth(power: float) -> None:
    sizes = (124, 249, 499, 999, 1999)
    assert exponent(sizes, [0.07 * size**power for size in sizes]) == pytest.approx(power)


def test_no_exponent_where_a_batch_cost_nothing() -> None:
    with pytest.raises(ValueError, match="cost nothing"):
        exponent((5, 10), (0.1, -0.1))


@pytest.mark.parametrize(
    ("values", "bounds", "met"),
    [
        ((1.1, 1.3, 1.2), {"at_most": 1.2}, "met"),
        ((1.1, 1.3, 1.21), {"at_most": 1.2}, "not met"),
        ((150, 90, 100), {"at_least": 100}, "met"),
        ((150, 90, 99), {"at_least": 100}, "not met"),
        ((1.0,), {}, ""),
    ],
)
def test_a_target_is_judged_by_the_median(values: tuple[float, ...], bounds: dict[str, float], met: str) -> None:
    assert Row("a ratio", values, "×", **bounds).met == met


def test_the_table_shows_median_spread_and_target() -> None:
    text = table([Measured("(x) a part", [Row("a ratio", (1.5, 1.1, 1.3), "×", at_most=1.2)], ["a note"])])
    assert "| a ratio | 1.30× | 1.10× … 1.50× | 3 | ≤ 1.20× | not met |" in text
    assert "- (x) a note" in text


def test_what_a_submission_costs_is_above_nothing(capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setattr(sys, "argv", ["cost", "--exercises", "3", "--repeats", "1"])
    cost.main()
    *_, row = capsys.readouterr().out.splitlines()
    found = re.fullmatch(r"\| ex03 \| ([\d.]+) s \| ([\d.]+) s \| ([\d.]+) s \| ([\d.]+) kB \|", row)
    assert found is not None, row
    assert all(float(number) > 0 for number in found.groups())

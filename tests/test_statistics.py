"""The bounds of exercise 5 hold what they promise, and the checks' docstrings state numbers that are true."""

import itertools
import math
import re
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from autograder.hidden import statistics as chance
from autograder.hidden import test_ex05_dynamic_masking as masking
from autograder.hidden import test_ex05_dynamic_masking_chance as masking_chance
from autograder.hidden import test_ex05_dynamic_masking_collate as collating

CHECKS = {name: check for module in (masking, masking_chance, collating) for name, check in vars(module).items()}

STATED = re.compile(
    r"A right solution fails with probability below (\S+)\.\s+Detected with probability above (\S+): ([^.]*)\."
)


def stated(name: str) -> tuple[float, float, set[str]]:
    """(false alarm, power, deviations) as the docstring of a check states them."""
    match = STATED.search(" ".join(CHECKS[name].__doc__.split()))
    assert match, f"the docstring of {name} must state both error rates"
    return float(match[1]), float(match[2]), set(match[3].split("; "))


def probabilities(count: chance.Count) -> dict[int, float]:
    return {count.start + i: float(p) for i, p in enumerate(count.pmf) if p > 0}


@pytest.mark.parametrize(("n", "p"), [(1, 0.5), (40, 0.15), (386, 0.15), (20_000, 0.1), (124_800, 0.15)])
def test_binomial_bounds_are_exact_and_tight(n: int, p: float) -> None:
    for alpha in (1e-3, chance.ALPHA):
        low, high = chance.binomial_bounds(n, p, alpha)
        assert stats.binom.cdf(low - 1, n, p) <= alpha / 2
        assert stats.binom.sf(high, n, p) <= alpha / 2
        assert stats.binom.cdf(low, n, p) > alpha / 2, "the lower bound could be higher"
        assert stats.binom.sf(high - 1, n, p) > alpha / 2, "the upper bound could be lower"
        assert chance.binomial_outside(n, p, (low, high)) <= alpha
        if n < 1000:
            assert chance.binomial(n, p).bounds(alpha) == (low, high)


def test_sums_of_counts() -> None:
    whole = chance.total([chance.binomial(30, 0.2)] * 7 + [chance.binomial(90, 0.2)])
    np.testing.assert_allclose(
        [probabilities(whole).get(k, 0.0) for k in range(301)],
        stats.binom.pmf(range(301), 300, 0.2),
        rtol=1e-9,
        atol=1e-29,
    )
    assert chance.total([]).bounds() == (0, 0)
    events = chance.poisson_binomial([0.1, 0.5, 0.9])
    assert probabilities(events) == pytest.approx({0: 0.045, 1: 0.455, 2: 0.455, 3: 0.045})


def test_overlap_and_pairs_by_enumeration() -> None:
    subsets = list(itertools.combinations(range(8), 3))
    shared = Counter(len(set(a) & set(b)) for a in subsets for b in itertools.combinations(range(8), 4))
    assert probabilities(chance.overlap(8, 3, 4)) == pytest.approx({k: v / shared.total() for k, v in shared.items()})
    for drawn in range(9):
        whole = Counter(
            sum({2 * i, 2 * i + 1} <= set(subset) for i in range(4))
            for subset in itertools.combinations(range(8), drawn)
        )
        expected = {k: v / whole.total() for k, v in whole.items()}
        assert probabilities(chance.both_of_pairs(4, drawn)) == pytest.approx(expected)


def test_near_counts_what_is_near_counts() -> None:
    for n, p, width in ((64, 0.8, 1.0), (386, 0.15, 2.0), (10, 0.5, 1.0), (512, 1 / 23, 1.0)):
        expected = sum(stats.binom.pmf(k, n, p) for k in range(n + 1) if chance.is_near(k, n, p, width))
        assert chance.near(n, p, width) == pytest.approx(expected)


def test_families_of_counts() -> None:
    for family in chance.FAMILIES:
        for n, p in ((1, 0.02), (6, 0.02), (100, 0.15), (386, 0.15)):
            count = chance.targets(n, p, family)
            assert count.pmf.sum() == pytest.approx(1)
            if n >= 100:
                assert count.mean == pytest.approx(n * p, abs=0.5)
    assert chance.targets(386, 0.15, "stochastic").mean == pytest.approx(57.9)
    assert chance.targets(3, 0.5, "forced").mean == pytest.approx(1.5 + 0.125)
    assert chance.targets(3, 0.5, "redrawn").mean == pytest.approx(1.5 / 0.875)


@pytest.mark.parametrize("family", chance.FAMILIES)
def test_right_ways_of_selecting_pass(family: str) -> None:
    """Every legal family, a tie rounded either way included, over many samples."""
    rng = np.random.default_rng(1)
    sizes = chance.SELECTION.per_sequence()
    for _ in range(50):
        each = [chance.targets(n, 0.15, family) for n in sizes]
        counts = [count.start + int(rng.choice(len(count.pmf), p=count.pmf / count.pmf.sum())) for count in each]
        assert chance.share_fault(counts, sizes, 0.15) is None
    assert chance.share_fault([16, 17, 16], [110] * 3, 0.15) is None


def test_wrong_shares_are_named() -> None:
    sizes = chance.SELECTION.per_sequence()
    down, up = [math.floor(0.15 * n) for n in sizes], [math.ceil(0.15 * n) for n in sizes]
    assert chance.share_fault(down, sizes, 0.15) == "cut off"
    assert chance.share_fault(up, sizes, 0.15) == "rounded up"
    assert chance.share_fault([round(0.2 * n) for n in sizes], sizes, 0.15) == "too many"
    assert chance.share_fault([0] * len(sizes), sizes, 0.15) == "too few"


def test_right_solutions_hardly_ever_fail() -> None:
    """Over all checks of one submission together."""
    assert 0 < chance.false_alarm() < 1e-9
    for family in chance.FAMILIES:
        assert 0 < chance.false_alarm(family) <= chance.false_alarm()


@pytest.mark.parametrize("name", sorted(chance.rates()))
def test_docstrings_state_true_numbers(name: str) -> None:
    false_alarm, power, deviations = stated(name)
    rate = chance.rates()[name]
    assert 0 < rate.false_alarm < false_alarm
    assert power >= 0.999
    assert deviations == set(rate.power)
    for deviation, detected in rate.power.items():
        assert detected > power, deviation


def test_every_statement_is_computed() -> None:
    stating = {name for name, check in CHECKS.items() if STATED.search(" ".join((check.__doc__ or "").split()))}
    assert stating == set(chance.rates())


def test_the_table_tells_all() -> None:
    """Each check and each deviation with its number, each legal way of selecting, and the total."""
    lines = chance.as_markdown().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    deviations = [deviation for rate in chance.rates().values() for deviation in rate.power]
    assert [row[2] for row in rows[2:] if len(row) == 4] == deviations
    told = {row[0]: float(row[1]) for row in rows[2:] if len(row) == 4 and row[0]}
    assert told == {
        name.removeprefix("test_").replace("_", " "): pytest.approx(rate.false_alarm, rel=0.1)
        for name, rate in chance.rates().items()
    }
    ways = {row[0]: float(row[1]) for row in rows if len(row) == 2 and row[0] in chance.IN_WORDS.values()}
    assert set(ways) == set(chance.IN_WORDS.values())
    assert set(chance.IN_WORDS) == set(chance.FAMILIES)
    assert float(lines[-1].split()[-1].rstrip(".")) == pytest.approx(chance.false_alarm(), rel=0.1)
    assert max(ways.values()) < 1e-9

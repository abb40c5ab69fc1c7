"""How far chance may carry a right solution of exercise 5: exact bounds, sample sizes, and both error rates.

Every bound is two-sided and missed by a right solution with probability at most ALPHA.  Where the number of targets is
left to the solution, the bound is conditional on the numbers that came back: it then holds for every legal way of
selecting (independent draws with a target forced or redrawn, a count rounded to nearest or stochastically), because
given its number the targets of a sequence are a uniform subset of its candidates under all of them.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
from scipy import stats

#: Chance that a right solution misses one bound.
ALPHA = 1e-12
#: Rates of (mask, random) in the named samples.
DEFAULT_RATES = (0.8, 0.1)
OTHER_RATES = (0.3, 0.6)


class Design(NamedTuple):
    """One sample: so many calls on (rows, length) ids, two calls in a row on the same ids.

    candidates: in each sequence, by pair of calls in turn.  ordinary: how many ordinary ids there are.
    """

    calls: int
    rows: int
    length: int
    candidates: tuple[int, ...]
    ordinary: int
    probability: float

    def per_sequence(self) -> list[int]:
        """Candidates of every sequence of the sample."""
        return [
            self.candidates[call // 2 % len(self.candidates)] for call in range(self.calls) for _ in range(self.rows)
        ]

    @property
    def total(self) -> int:
        return sum(self.per_sequence())


#: Selection at the default settings.  0.15 · 386 = 57.9 and 0.15 · 394 = 59.1: a count cut off, or rounded up, shows.
SELECTION = Design(20, 16, 512, (386, 394), 41, 0.15)
#: Every candidate is a target, so each of them shows one decision.  Many small calls: quotas a sequence or a call show.
ACTIONS = Design(60, 8, 66, (64,), 997, 1.0)
OTHER_ACTIONS = Design(10, 8, 66, (64,), 997, 1.0)
#: Every candidate becomes a random id.
REPLACEMENTS = Design(20, 8, 66, (64,), 23, 1.0)
#: Hardly any draw succeeds: 16 sequences each with 1 … 6 candidates a call.
GUARANTEE = Design(30, 96, 16, (1, 2, 3, 4, 5, 6), 41, 0.02)
GUARANTEE_SAME = GUARANTEE.calls * GUARANTEE.rows // len(GUARANTEE.candidates)
#: A count of 2 in 100: a target that is always added shows.
FEW = Design(10, 64, 112, (100,), 41, 0.02)
#: A vocabulary of realistic size, its ids in groups of equal size.
LARGE = Design(1, 4, 512, (500,), 30_000, 1.0)
LARGE_GROUPS = 8
#: Groups of ordinary ids, for vocabularies too large to count single ids in.
ACTION_GROUPS = 10
#: collate_mlm: whole texts of 120 and 128 candidates at the default share, and all selected.
COLLATED = Design(4, 24, 134, (120, 128), 26, 0.15)
COLLATED_FEW = Design(4, 24, 134, (120, 128), 26, 0.02)
COLLATED_ALL = Design(4, 24, 134, (120, 128), 26, 1.0)
#: Equal sequences, and candidates in each, in one large batch at mlm_probability 0.5: no two masks are the same.
MANY_ROWS = (200, 62)
#: Equal sequences, and candidates in each, in one batch where hardly any draw succeeds.
EQUAL_ROWS = (200, 6)
#: Sequences and, at least, candidates in each, of the batch that is masked again and again.
REPEATED = (3, 30)
#: Calls on that batch: a small stock of masks shows.
REPETITIONS = 100


class Count(NamedTuple):
    """The distribution of a count: pmf[i] is the probability of start + i."""

    start: int
    pmf: np.ndarray

    def bounds(self, alpha: float = ALPHA) -> tuple[int, int]:
        """(low, high), both still allowed: a count outside has probability at most alpha, alpha / 2 on each side."""
        below, above = np.cumsum(self.pmf), np.cumsum(self.pmf[::-1])[::-1]
        low = int(np.argmax(below > alpha / 2))
        high = len(self.pmf) - 1 - int(np.argmax(above[::-1] > alpha / 2))
        return self.start + low, self.start + high

    def outside(self, low: int, high: int) -> float:
        """Probability of a count below low or above high."""
        cut = np.arange(self.start, self.start + len(self.pmf))
        return float(self.pmf[(cut < low) | (cut > high)].sum())

    @property
    def mean(self) -> float:
        return float((np.arange(self.start, self.start + len(self.pmf)) * self.pmf).sum())


def certain(value: int) -> Count:
    return Count(value, np.ones(1))


@cache
def binomial(n: int, p: float) -> Count:
    return Count(0, stats.binom.pmf(np.arange(n + 1), n, p))


@cache
def binomial_bounds(n: int, p: float, alpha: float = ALPHA) -> tuple[int, int]:
    """Bounds of Binomial(n, p), as `Count.bounds`."""
    return int(stats.binom.ppf(alpha / 2, n, p)), int(stats.binom.isf(alpha / 2, n, p))


@cache
def binomial_outside(n: int, p: float, bounds: tuple[int, int]) -> float:
    """Probability that Binomial(n, p) lies outside the bounds."""
    return float(stats.binom.cdf(bounds[0] - 1, n, p) + stats.binom.sf(bounds[1], n, p))


def total(counts: Iterable[Count]) -> Count:
    """The sum of independent counts."""
    counts = list(counts)
    by_identity = {id(count): count for count in counts}
    result = certain(0)
    for key, times in Counter(map(id, counts)).items():
        power = by_identity[key]
        while times:
            if times % 2:
                result = _plus(result, power)
            power, times = _plus(power, power), times // 2
    return result


def _plus(a: Count, b: Count) -> Count:
    pmf = np.convolve(a.pmf, b.pmf)
    kept = np.flatnonzero(pmf > 1e-30)  # what is cut away is far below ALPHA
    return Count(a.start + b.start + int(kept[0]), pmf[kept[0] : kept[-1] + 1])


def poisson_binomial(probabilities: Iterable[float]) -> Count:
    """How many of independent events happen."""
    return total(event(p) for p in probabilities)


@cache
def event(p: float) -> Count:
    """1 with probability p, else 0."""
    return Count(0, np.array([1 - p, p]))


@cache
def overlap(n: int, first: int, second: int) -> Count:
    """How many of n places are in both of two independent uniform subsets of these sizes (hypergeometric)."""
    low = max(0, first + second - n)
    return Count(low, stats.hypergeom.pmf(np.arange(low, min(first, second) + 1), n, first, second))


@cache
def both_of_pairs(pairs: int, drawn: int) -> Count:
    """How many of disjoint pairs are drawn whole when `drawn` of the 2 · pairs places are a uniform subset."""
    low, high = max(0, drawn - pairs), drawn // 2
    ways = [
        math.comb(pairs, b) * math.comb(pairs - b, drawn - 2 * b) * 2 ** (drawn - 2 * b) for b in range(low, high + 1)
    ]
    whole = math.comb(2 * pairs, drawn)
    return Count(low, np.array([way / whole for way in ways]))


@cache
def near(n: int, p: float, width: float = 1.0) -> float:
    """Probability that Binomial(n, p) lies within width of its mean."""
    low, high = math.ceil(n * p - width - 1e-9), math.floor(n * p + width + 1e-9)
    return float(stats.binom.cdf(high, n, p) - stats.binom.cdf(low - 1, n, p))


def is_near(count: float, n: int, p: float, width: float = 1.0) -> bool:
    """Whether a count lies within width of n · p, as `near` counts it."""
    return abs(count - n * p) <= width + 1e-9


@cache
def equal_counts(n: int, p: float) -> float:
    """Probability that two independent Binomial(n, p) are equal."""
    return float((binomial(n, p).pmf ** 2).sum())


# -- How many targets a sequence gets ----------------------------------------------------------------------------------
FAMILIES = ("forced", "redrawn", "nearest", "stochastic")


@cache
def targets(n: int, p: float, family: str) -> Count:
    """The number of targets among n candidates, for one of the legal families or a named deviation."""
    count, whole = binomial(n, p), n * p
    down = math.floor(whole + 1e-9)
    if family == "forced":
        pmf = count.pmf.copy()
        pmf[1] += pmf[0]
        return Count(1, pmf[1:])
    if family == "redrawn":
        return Count(1, count.pmf[1:] / count.pmf[1:].sum())
    if family == "nearest":
        return certain(max(1, round(whole)))
    if family == "stochastic":
        return Count(down, np.array([1 - (whole - down), whole - down]))
    if family == "cut off":
        return certain(max(1, down))
    if family == "rounded up":
        return certain(math.ceil(whole - 1e-9))
    if family == "always one more":
        extra = total([count, Count(0, np.array([p, 1 - p]))])  # a uniform candidate; with probability p it was drawn
        return Count(extra.start, extra.pmf)
    raise ValueError(f"no family {family!r}")


def rounds(counts: Sequence[int], candidates: Sequence[int], p: float) -> bool:
    """Whether every count is n · p rounded one way or the other: then it was rounded, not drawn."""
    return all(
        math.floor(n * p + 1e-9) <= k <= math.ceil(n * p - 1e-9) for k, n in zip(counts, candidates, strict=True)
    )


@cache
def drawn_bounds(candidates: tuple[int, ...], p: float) -> tuple[int, int]:
    """Bounds of the total of independent draws, whether a target is forced or redrawn where there is none."""
    each = [total(targets(n, p, family) for n in candidates).bounds() for family in ("forced", "redrawn")]
    return min(low for low, _ in each), max(high for _, high in each)


def share_fault(counts: Sequence[int], candidates: Sequence[int], p: float) -> str | None:
    """What is wrong with these numbers of targets: "cut off", "rounded up", "too few", "too many" or None."""
    if rounds(counts, candidates, p):
        if all(abs(k - n * p) <= 0.5 + 1e-9 for k, n in zip(counts, candidates, strict=True)):
            return None
        up = [n * p - math.floor(n * p + 1e-9) for n in candidates]
        low, high = poisson_binomial(max(0.0, share) for share in up).bounds()
        ups = sum(k - math.floor(n * p + 1e-9) for k, n in zip(counts, candidates, strict=True))
        return "cut off" if ups < low else "rounded up" if ups > high else None
    low, high = drawn_bounds(tuple(candidates), p)
    return "too few" if sum(counts) < low else "too many" if sum(counts) > high else None


def share_outside(design: Design, family: str, p: float | None = None) -> float:
    """Probability that `share_fault` flags that family, drawing with p instead of the design's probability."""
    sizes, asked = design.per_sequence(), design.probability
    each = {n: targets(n, asked if p is None else p, family) for n in set(sizes)}
    if all(len(count.pmf) == 1 for count in each.values()):
        return float(share_fault([each[n].start for n in sizes], sizes, asked) is not None)
    if family == "stochastic" and p is None:
        ups = poisson_binomial(n * asked - math.floor(n * asked + 1e-9) for n in sizes)
        return ups.outside(*ups.bounds())
    rounded = math.prod(
        sum(float(q) for k, q in enumerate(each[n].pmf, each[n].start) if rounds([k], [n], asked)) for n in sizes
    )
    return total(each[n] for n in sizes).outside(*drawn_bounds(tuple(sizes), asked)) + rounded


# -- What becomes of a target ------------------------------------------------------------------------------------------
def seen(mask: float, random: float, ordinary: int) -> tuple[float, float, float]:
    """Chances that an ordinary target is seen masked, changed to another id, or as it was (a random id may match)."""
    return mask, random * (1 - 1 / ordinary), 1 - mask - random + random / ordinary


def split_outside(n: int, asked: tuple[float, float], drawn: tuple[float, float], ordinary: int) -> float:
    """Probability that one of the three shares of n targets misses its bounds (an upper bound if drawn is asked)."""
    chances = [
        binomial_outside(n, actual, binomial_bounds(n, right))
        for right, actual in zip(seen(*asked, ordinary), seen(*drawn, ordinary), strict=True)
    ]
    return sum(chances) if asked == drawn else max(chances)


def repeated(p: float) -> float:
    """Probability, at most, that a batch of size REPEATED is selected or corrupted twice in just the same way."""
    rows, n = REPEATED
    drawn = (p * p + (1 - p) * (1 - p)) ** n
    counted = 1 / math.comb(n, math.floor(n * p))
    corrupted = max(agreement(DEFAULT_RATES, 2), agreement((0.5, 0.2), 2), 1 / 2) ** n
    return max(drawn, counted, corrupted) ** rows


def agreement(rates: tuple[float, float], ordinary: int) -> float:
    """Probability that two targets are seen to meet the same fate."""
    return sum(q * q for q in seen(*rates, ordinary))


class Rates(NamedTuple):
    """Both error rates of a check.

    false_alarm: how likely, at most, a right solution fails, whichever legal way it selects.  power: by deviation.
    """

    false_alarm: float
    power: dict[str, float]


def _flagged(value: int, bounds: tuple[int, int]) -> float:
    """The power against a deviation that always gives this value."""
    return float(not bounds[0] <= value <= bounds[1])


def _all_near(n: int, p: float, times: int) -> float:
    """The power against a quota: all of `times` counts lie at the mean."""
    return _flagged(times, binomial_bounds(times, near(n, p)))


@cache
def rates() -> dict[str, Rates]:
    """Both error rates of every statistical check, by the name of the check."""
    s, a, r, g = SELECTION, ACTIONS, REPLACEMENTS, GUARANTEE
    n, k = s.candidates[0], round(s.candidates[0] * s.probability)
    sequences, per_call = s.calls * s.rows, s.rows * n
    targets_least = drawn_bounds(tuple(s.per_sequence()), s.probability)[0]
    pair = binomial_bounds(a.total // 2, agreement(DEFAULT_RATES, a.ordinary))
    other_n = OTHER_ACTIONS.total
    changed = binomial_bounds(targets_least, seen(*DEFAULT_RATES, s.ordinary)[1])[0]
    one_position = poisson_binomial([k / n] * sequences).bounds(ALPHA / n)
    forced = poisson_binomial([1 / 6] * GUARANTEE_SAME).bounds(ALPHA / 20)
    large = LARGE.total
    few = COLLATED_ALL.total
    return {
        "test_share_of_candidates": Rates(
            max(share_outside(s, family) for family in FAMILIES) + 2 * ALPHA,
            {
                "17% instead of 15%": min(
                    share_outside(s, f, 0.17) for f in ("forced", "redrawn", "nearest", "stochastic")
                ),
                "counts cut off": share_outside(s, "cut off"),
                "counts rounded up": share_outside(s, "rounded up"),
                "one quota for the whole batch": _flagged(
                    s.calls, binomial_bounds(s.calls, near(per_call, s.probability))
                ),
            },
        ),
        "test_share_when_small": Rates(
            max(share_outside(FEW, family) for family in FAMILIES),
            {"a target always added": share_outside(FEW, "always one more")},
        ),
        "test_positions_uniform": Rates(
            6 * ALPHA,
            {
                "a position never selected": _flagged(0, one_position),
                "neighbours selected together": _flagged(
                    sequences * (k // 2), total([both_of_pairs(n // 2, k)] * sequences).bounds()
                ),
                "only the first half": _flagged(sequences * k, total([overlap(n, n // 2, k)] * sequences).bounds()),
            },
        ),
        "test_sequences_independent": Rates(
            3 * ALPHA
            + math.comb(sequences, 2) / math.comb(n, k)
            + math.comb(MANY_ROWS[0], 2) / math.comb(MANY_ROWS[1], MANY_ROWS[1] // 2),
            {
                "the same mask in every sequence": _flagged(
                    sequences // 2 * k, total([overlap(n, k, k)] * (sequences // 2)).bounds()
                ),
                "one number of targets for all sequences": _flagged(
                    sequences // 2, binomial_bounds(sequences // 2, equal_counts(n, s.probability))
                ),
            },
        ),
        "test_split": Rates(
            split_outside(a.total, DEFAULT_RATES, DEFAULT_RATES, a.ordinary) + 3 * ALPHA,
            {
                "80/2/18": split_outside(a.total, DEFAULT_RATES, (0.8, 0.02), a.ordinary),
                "80/8/12": split_outside(a.total, DEFAULT_RATES, (0.8, 0.08), a.ordinary),
                "85/15/0": split_outside(a.total, DEFAULT_RATES, (0.85, 0.15), a.ordinary),
                "80/2/18 at the default share": split_outside(targets_least, DEFAULT_RATES, (0.8, 0.02), s.ordinary),
                "85/15/0 at the default share": split_outside(targets_least, DEFAULT_RATES, (0.85, 0.15), s.ordinary),
            },
        ),
        "test_rates_are_the_arguments": Rates(
            split_outside(other_n, OTHER_RATES, OTHER_RATES, OTHER_ACTIONS.ordinary),
            {
                "30/35/35": split_outside(other_n, OTHER_RATES, (0.3, 0.35), OTHER_ACTIONS.ordinary),
                "30/42/28": split_outside(other_n, OTHER_RATES, (0.3, 0.42), OTHER_ACTIONS.ordinary),
                "80/10/10": split_outside(other_n, OTHER_RATES, DEFAULT_RATES, OTHER_ACTIONS.ordinary),
            },
        ),
        "test_each_token_on_its_own": Rates(
            14 * ALPHA,
            {
                "one fate a sequence": min(
                    _flagged(a.total // 2, pair),
                    _flagged(0, binomial_bounds(a.calls * a.rows, near(64, DEFAULT_RATES[0]))),
                ),
                "one fate a column": _flagged(a.total // 2, pair),
                "quota in each sequence": _all_near(64, DEFAULT_RATES[0], a.calls * a.rows),
                "quota in each call": _all_near(64 * a.rows, DEFAULT_RATES[0], a.calls),
                "quota in each sequence at the default share": _all_near(k, DEFAULT_RATES[0], sequences),
                "masks first, then the rest": _flagged(
                    a.total // 2, binomial_bounds(a.total // 2, seen(*DEFAULT_RATES, a.ordinary)[0])
                ),
            },
        ),
        "test_random_ids_uniform": Rates(
            3 * ALPHA,
            {
                "one id of V missing": min(
                    _flagged(0, binomial_bounds(r.total, 1 / r.ordinary, ALPHA / r.ordinary)),
                    _flagged(0, binomial_bounds(changed, 1 / (s.ordinary - 1), ALPHA / s.ordinary)),
                ),
                "the original excluded": _flagged(0, binomial_bounds(r.total, 1 / r.ordinary)),
            },
        ),
        "test_random_ids_independent": Rates(
            7 * ALPHA,
            {
                "one id a sequence": _flagged(r.total // 2, binomial_bounds(r.total // 2, 1 / r.ordinary)),
                "ids dealt like cards": _all_near(64 * r.rows, 1 / r.ordinary, r.calls),
            },
        ),
        "test_large_vocabulary": Rates(
            ALPHA,
            {"one group of ids missing": _flagged(0, binomial_bounds(large, 1 / LARGE_GROUPS, ALPHA / LARGE_GROUPS))},
        ),
        "test_guaranteed_target_uniform": Rates(
            3 * ALPHA,
            {
                "always the first candidate": _flagged(GUARANTEE_SAME, forced),
                "never the last candidate": binomial(GUARANTEE_SAME, g.probability).outside(forced[0], GUARANTEE_SAME),
                "the same place in every sequence": _flagged(
                    5 * GUARANTEE_SAME // 2,
                    poisson_binomial([1 / c for c in range(2, 7)] * (GUARANTEE_SAME // 2)).bounds(),
                ),
                # Each pair where no draw succeeds shares its place.
                "one draw for equal sequences": float(
                    stats.binom.sf(
                        total([overlap(EQUAL_ROWS[1], 1, 1)] * (EQUAL_ROWS[0] // 2)).bounds()[1],
                        EQUAL_ROWS[0] // 2,
                        (1 - g.probability) ** (2 * EQUAL_ROWS[1]),
                    )
                ),
            },
        ),
        "test_guaranteed_target_corrupted": Rates(
            split_outside(g.calls * g.rows, DEFAULT_RATES, DEFAULT_RATES, g.ordinary),
            {
                "always masked": split_outside(g.calls * g.rows, DEFAULT_RATES, (1.0, 0.0), g.ordinary),
                "never corrupted": split_outside(g.calls * g.rows, DEFAULT_RATES, (0.0, 0.0), g.ordinary),
            },
        ),
        "test_second_call_is_new": Rates(
            ALPHA + 8 * repeated(0.3) + 2 / math.factorial(20) ** 2 + math.comb(REPETITIONS, 2) * repeated(0.3),
            {
                "a generator seeded again": 1.0,
                "the same mask in two calls": _flagged(
                    sequences // 2 * k, total([overlap(n, k, k)] * (sequences // 2)).bounds()
                ),
                "a stock of 500 masks": 1 - math.prod(1 - call / 500 for call in range(REPETITIONS)),
            },
        ),
        "test_collate_hands_on_the_generator": Rates(4 * repeated(0.4), {"a generator seeded again": 1.0}),
        "test_collate_share": Rates(
            max(share_outside(COLLATED, family) + share_outside(COLLATED_FEW, family) for family in FAMILIES),
            {
                "15% instead of 2%": min(
                    share_outside(COLLATED_FEW, f, 0.15) for f in ("forced", "redrawn", "nearest")
                ),
                "20% instead of 15%": min(share_outside(COLLATED, f, 0.2) for f in ("forced", "redrawn", "nearest")),
            },
        ),
        "test_collate_split": Rates(
            split_outside(few, DEFAULT_RATES, DEFAULT_RATES, COLLATED_ALL.ordinary) + ALPHA,
            {
                "80/2/18": split_outside(few, DEFAULT_RATES, (0.8, 0.02), COLLATED_ALL.ordinary),
                "one ordinary id missing": _flagged(
                    0,
                    binomial_bounds(
                        binomial_bounds(few, seen(*DEFAULT_RATES, COLLATED_ALL.ordinary)[1])[0] * 9 // 10,
                        1 / (COLLATED_ALL.ordinary - 1),
                        ALPHA / COLLATED_ALL.ordinary,
                    ),
                ),
            },
        ),
    }


# -- For people --------------------------------------------------------------------------------------------------------
#: The legal ways of selecting, in words.
IN_WORDS = {
    "forced": "independent draws, one target forced where there is none",
    "redrawn": "independent draws, redrawn where there is none",
    "nearest": "a count rounded to nearest",
    "stochastic": "a count rounded up or down at random",
}
#: The checks of how many targets there are, with their samples: only these see how a solution selects.
SHARES = {
    "test_share_of_candidates": (SELECTION,),
    "test_share_when_small": (FEW,),
    "test_collate_share": (COLLATED, COLLATED_FEW),
}


def false_alarm(family: str | None = None) -> float:
    """Chance, at most, that a right solution loses a point to any of the checks.  family: None for the worst one."""
    found = {name: rate.false_alarm for name, rate in rates().items()}
    if family is not None:
        worst = {name: max(_outside_all(designs, f) for f in FAMILIES) for name, designs in SHARES.items()}
        found |= {name: found[name] - worst[name] + _outside_all(SHARES[name], family) for name in SHARES}
    return sum(found.values())


def _outside_all(designs: Iterable[Design], family: str) -> float:
    return sum(share_outside(design, family) for design in designs)


def as_markdown() -> str:
    """Every random check with its false-alarm probability and its power against each named deviation, as a page."""
    lines = ["| check | a right solution fails with | deviation | detected with |", "| --- | --- | --- | --- |"]
    for name, rate in rates().items():
        first = [name.removeprefix("test_").replace("_", " "), _rounded_up(rate.false_alarm)]
        for deviation, power in rate.power.items():
            lines.append(f"| {' | '.join([*first, deviation, f'1 - {_rounded_up(max(1 - power, 1e-12))}'])} |")
            first = ["", ""]
    lines += ["", "| way of selecting | a right submission fails any of them with |", "| --- | --- |"]
    lines += [f"| {words} | {_rounded_up(false_alarm(family))} |" for family, words in IN_WORDS.items()]
    lines += [
        "",
        f"Total false alarm per submission, whichever of these ways it selects: at most {_rounded_up(false_alarm())}",
    ]
    return "\n".join(lines)


def _rounded_up(p: float) -> str:
    """Two digits, not less than p."""
    unit = 10.0 ** (math.floor(math.log10(p)) - 1)
    return f"{math.ceil(p / unit - 1e-6) * unit:.1e}"

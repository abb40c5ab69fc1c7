"""Hidden checks of exercise 5: how many targets mask_tokens selects, where, and what becomes of them.

Judged by bounds from `statistics.py`, which a right solution misses with the probability that each docstring states.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch

from autograder.hidden import expect
from autograder.hidden import statistics as chance
from autograder.hidden.cases_ex05 import Case, first, make_case, read, some_target, source, spread_ids
from autograder.hidden.samples_ex05 import (
    FATES,
    MASKED,
    alike,
    changed_tokens,
    halves,
    mirrored,
    outside,
    sample,
    spell,
    split_fault,
    varied,
)
from autograder.wire.proxy import Student


@pytest.mark.worth("mask_tokens", 0.4, misconception="wrong-share")
def test_share_of_candidates(student: Student, seed: int) -> None:
    """Of the candidates, the share mlm_probability is selected: by independent draws, or by a count for each sequence
    that is rounded, not cut off.

    A right solution fails with probability below 6e-12.
    Detected with probability above 0.999: 17% instead of 15%; counts cut off; counts rounded up; one quota for the
    whole batch.
    """
    drawn = sample(student, seed, chance.SELECTION)
    counts, candidates, p = drawn.counts, drawn.sizes, chance.SELECTION.probability
    fault = chance.share_fault(counts, candidates, p)
    if fault in {"cut off", "rounded up"}:
        drawn.fail(
            f"Of {candidates[0]} candidates always {counts[0]} were selected, of {candidates[-1]} always {counts[-1]}; "
            f"{p} · n is {p * candidates[0]:.4g} and {p * candidates[-1]:.4g}. These were {fault}.",
            "count-cut-off",
        )
    if fault:
        bounds = chance.drawn_bounds(tuple(candidates), p)
        drawn.fail(
            f"{sum(counts)} of {sum(candidates)} candidates were selected, or {sum(counts) / sum(candidates):.4f}; "
            f"with mlm_probability {p} it is {spell(bounds)} but for a chance of {chance.ALPHA:g}.",
            "wrong-share",
        )
    if chance.rounds(counts, candidates, p):
        return
    near = sum(chance.is_near(k, n, p, 2) for k, n in zip(counts, candidates, strict=True))
    bounds = chance.poisson_binomial(chance.near(n, p, 2) for n in candidates).bounds()
    if outside(near, bounds):
        drawn.fail(
            f"In {near} of {len(counts)} sequences the number of targets lies within 2 of its mean; for independent "
            f"draws this is {spell(bounds)}, and for a rounded count it would be all.",
            "one-decision-for-many" if near < bounds[0] else "wrong-share",
        )
    near, chances = 0, []
    for selected in drawn.selected:
        near += chance.is_near(int(selected.sum()), selected.size, p)
        chances.append(chance.near(selected.size, p))
    bounds = chance.poisson_binomial(chances).bounds()
    if outside(near, bounds):
        drawn.fail(
            f"In {near} of {len(chances)} calls the number of targets in the whole batch lies within 1 of its mean, "
            f"while single sequences vary; for independent draws it is {spell(bounds)} calls.",
            "quota-for-the-batch",
        )


@pytest.mark.worth("mask_tokens", 0.15, misconception="wrong-share")
def test_share_when_small(student: Student, seed: int) -> None:
    """When mlm_probability is small, the guaranteed target does not come on top of the others.

    A right solution fails with probability below 1e-12.
    Detected with probability above 0.999: a target always added.
    """
    design = chance.FEW
    drawn = sample(student, seed, design)
    fault = chance.share_fault(drawn.counts, drawn.sizes, design.probability)
    if fault:
        drawn.fail(
            f"Of {design.candidates[0]} candidates, {sum(drawn.counts) / len(drawn.counts):.3f} were selected on "
            f"average, with mlm_probability {design.probability} ({fault}).",
            "wrong-share",
        )


@pytest.mark.worth("mask_tokens", 0.2, misconception="same-mask-in-all-sequences")
def test_sequences_independent(student: Student, seed: int) -> None:
    """Sequences are masked independently of each other, even if they are equal.

    A right solution fails with probability below 4e-12.
    Detected with probability above 0.999: the same mask in every sequence; one number of targets for all sequences.
    """
    drawn = sample(student, seed, chance.SELECTION)
    both, same, expected = 0, 0, []
    for selected in drawn.selected:
        n = selected.shape[1]
        for one, other in zip(selected[::2], selected[1::2], strict=True):
            both += int((one & other).sum())
            same += bool((one == other).all())
            expected.append(chance.overlap(n, int(one.sum()), int(other.sum())))
    bounds = chance.total(expected).bounds()
    if outside(both, bounds):
        drawn.fail(
            f"Two sequences of a batch have {both / len(expected):.1f} selected places in common on average; "
            f"{bounds[0] / len(expected):.1f} … {bounds[1] / len(expected):.1f} are likely.",
            "same-mask-in-all-sequences" if same or both < bounds[0] else "position-bias",
        )
    pairs = list(zip(drawn.counts[::2], drawn.counts[1::2], drawn.sizes[::2], strict=True))
    if not chance.rounds(drawn.counts, drawn.sizes, drawn.design.probability):
        p = drawn.design.probability
        equal = sum(one == other for one, other, _ in pairs)
        bounds = chance.poisson_binomial(chance.equal_counts(n, p) for _, _, n in pairs).bounds()
        if outside(equal, bounds):
            drawn.fail(
                f"Of {len(pairs)} pairs of sequences in a batch, {equal} have the same number of targets, although it "
                f"varies; {spell(bounds)} are likely.",
                "same-mask-in-all-sequences",
            )
        near = sum(chance.is_near(one + other, 2 * n, p) for one, other, n in pairs)
        bounds = chance.poisson_binomial(chance.near(2 * n, p) for _, _, n in pairs).bounds()
        if outside(near, bounds):
            drawn.fail(
                f"In {near} of {len(pairs)} pairs of sequences in a batch, one has as many more targets than its mean "
                f"as the other has fewer; {spell(bounds)} are likely.",
                "quota-for-the-batch",
            )
    for selected in drawn.selected:
        different = len({mask.tobytes() for mask in selected})
        if different < len(selected):
            drawn.fail(
                f"In one call, only {different} of {len(selected)} sequences have different masks; by chance all do.",
                "same-mask-in-all-sequences",
            )
    rows, n = chance.MANY_ROWS
    case = equal_sequences(rows, n)
    got = case.masked_by(student, source(seed, rows), mlm_probability=0.5)
    (chosen,) = read(got, student.last, case.shape, "selected")
    some_target(chosen, student.last)
    different = len({row.tobytes() for row in chosen.numpy()})
    if different < rows:
        expect.wrong(
            f"{student.last.text}\nOf {rows} equal sequences only {different} have different masks; by chance all do.",
            "same-mask-in-all-sequences",
        )


def equal_sequences(rows: int, length: int) -> Case:
    """One and the same token everywhere, all of them candidates."""
    ids = torch.full((rows, length), 3)
    return Case(ids, torch.ones_like(ids), torch.zeros_like(ids), 4, spread_ids(41))


@pytest.mark.worth("mask_tokens", 0.15, misconception="position-bias")
def test_positions_uniform(student: Student, seed: int) -> None:
    """The selected positions are uniform among the candidates of the sequence: no place is preferred, none avoided, and
    neighbours are no likelier together.

    A right solution fails with probability below 7e-12.
    Detected with probability above 0.999: a position never selected; neighbours selected together; only the first half.
    """
    drawn = sample(student, seed, chance.SELECTION)
    least = min(chance.SELECTION.candidates)
    places = np.concatenate([np.concatenate([s[:, : least // 2], s[:, -least // 2 :]], axis=1) for s in drawn.selected])
    shares = [k / n for k, n in zip(drawn.counts, drawn.sizes, strict=True)]
    bounds = chance.poisson_binomial(shares).bounds(chance.ALPHA / least)
    for place, count in enumerate(places.sum(axis=0).tolist()):
        if outside(count, bounds):
            where = f"{place + 1}." if place < least // 2 else f"{least - place}. to last"
            drawn.fail(
                f"The {where} candidate is selected in {count} of {len(places)} sequences; likely are {spell(bounds)}.",
                "position-bias",
            )
    middle = 3 * (drawn.design.ordinary // 2)
    for what, picks in (
        ("of the lower half", [ids < middle for ids in drawn.ids]),
        ("of every second id", [ids % 2 == 0 for ids in drawn.ids]),
    ):
        count, expected = 0, []
        for selected, pick in zip(drawn.selected, picks, strict=True):
            count += int((selected & pick).sum())
            n = selected.shape[1]
            expected += [
                chance.overlap(n, int(here.sum()), int(row.sum())) for here, row in zip(pick, selected, strict=True)
            ]
        bounds = chance.total(expected).bounds()
        if outside(count, bounds):
            drawn.fail(
                f"{count} of {sum(drawn.counts)} targets have an id {what}; {spell(bounds)} are likely.",
                "position-bias",
            )
    early, early_counts = 0, []
    for selected in drawn.selected:
        n = selected.shape[1]
        early += int(selected[:, : n // 2].sum())
        early_counts += [chance.overlap(n, n // 2, int(k)) for k in selected.sum(axis=1)]
    bounds = chance.total(early_counts).bounds()
    if outside(early, bounds):
        drawn.fail(
            f"{early} of {sum(drawn.counts)} targets lie in the first half of a sequence; likely are {spell(bounds)}.",
            "position-bias",
        )
    for first_place in (0, 1):
        together, pair_counts = 0, []
        for selected in drawn.selected:
            pairs = (selected.shape[1] - first_place) // 2
            part = selected[:, first_place : first_place + 2 * pairs]
            one, other = halves(part)
            together += int((one & other).sum())
            pair_counts += [chance.both_of_pairs(pairs, int(k)) for k in part.sum(axis=1)]
        bounds = chance.total(pair_counts).bounds()
        if outside(together, bounds):
            drawn.fail(
                f"Of neighbouring candidates, both were selected {together} times; {spell(bounds)} times are likely.",
                "position-bias",
            )


@pytest.mark.worth("mask_tokens", 0.4, misconception="wrong-split")
def test_split(student: Student, seed: int) -> None:
    """Of the selected tokens 80% become [MASK], 10% a random token and 10% stay, by default.

    A right solution fails with probability below 1e-11.
    Detected with probability above 0.999: 80/2/18; 80/8/12; 85/15/0; 80/2/18 at the default share; 85/15/0 at the
    default share.
    """
    split_fault(sample(student, seed, chance.SELECTION), chance.DEFAULT_RATES)
    split_fault(sample(student, seed, chance.ACTIONS), chance.DEFAULT_RATES)


@pytest.mark.worth("mask_tokens", 0.4, misconception="wrong-split")
def test_rates_are_the_arguments(student: Student, device: torch.device, seed: int) -> None:
    """The arguments mask_rate and random_rate are the shares of [MASK] and of random tokens; where one of the
    three fates has the rate 0 none meets it, and with the rate 1 all do.

    A right solution fails with probability below 3e-12.
    Detected with probability above 0.999: 30/35/35; 30/42/28; 80/10/10.
    """
    case = make_case(11 + seed % 7, (5, 61), device, text="other")
    mask, ordinary = case.mask_token_id, case.ordinary_ids.cpu()
    for number, (mask_rate, random_rate) in enumerate(
        [(1.0, 0.0), (0.0, 1.0), (0.0, 0.0), (0.6, 0.4), (0.5, 0.0), (0.0, 0.5), (0.9, 0.1)]
    ):
        got = case.masked_by(
            student,
            source(seed, number, device),
            mlm_probability=0.5,
            mask_rate=mask_rate,
            random_rate=random_rate,
        )
        call = student.last
        new, selected = read(got, call, case.shape, "input_ids", "selected")
        some_target(selected, call)
        fates = [new == mask, torch.isin(new, ordinary), new == case.ids]
        for fate, rate, name in zip(fates, (mask_rate, random_rate, 1 - mask_rate - random_rate), FATES, strict=True):
            if rate == 0 and bool((selected & fate).any()):
                row, place = first(selected & fate)
                expect.wrong(
                    f"{call.text}\nSome selected tokens were {name}, at [{row}, {place}] for instance "
                    f"({case.ids[row, place]} → {new[row, place]}); with these rates none may be.",
                )
            if rate == 1 and not bool(fate[selected].all()):
                row, place = first(selected & ~fate)
                expect.wrong(
                    f"{call.text}\nAll selected tokens must be {name}; at [{row}, {place}] there is "
                    f"{case.ids[row, place]} → {new[row, place]}.",
                )
    split_fault(sample(student, seed, chance.OTHER_ACTIONS, chance.OTHER_RATES), chance.OTHER_RATES)


@pytest.mark.worth("mask_tokens", 0.25, misconception="quota-instead-of-chance", needs="test_split")
def test_each_token_on_its_own(student: Student, seed: int) -> None:
    """Each selected token decides on its own what becomes of it: neither one decision for a whole sequence, nor a fixed
    number of each kind dealt out like cards.

    A right solution fails with probability below 2e-11.
    Detected with probability above 0.999: one fate a sequence; one fate a column; quota in each sequence; quota in
    each call; quota in each sequence at the default share; masks first, then the rest.
    """
    drawn = sample(student, seed, chance.ACTIONS)
    same = chance.agreement(chance.DEFAULT_RATES, drawn.design.ordinary)
    fates = [np.where(selected, fate, -1) for fate, selected in zip(drawn.fate, drawn.selected, strict=True)]
    for first_place in (0, 1):
        alike("neighbouring targets", drawn, [halves(fate[:, first_place:]) for fate in fates], same)
    alike("targets in the same place of two sequences", drawn, [(fate[::2], fate[1::2]) for fate in fates], same)
    alike("targets in the same place of two sequences", drawn, [mirrored(fate) for fate in fates], same)
    mask_share = chance.DEFAULT_RATES[0]
    for what, part in (
        ("in the first halves of the sequences", [fate[:, : fate.shape[1] // 2] for fate in fates]),
        ("with every second id", [fate[ids % 2 == 0] for fate, ids in zip(fates, drawn.ids, strict=True)]),
    ):
        some = np.concatenate([array.ravel() for array in part])
        bounds = chance.binomial_bounds(int((some >= 0).sum()), mask_share)
        if outside(int((some == MASKED).sum()), bounds):
            drawn.fail(
                f"Of {int((some >= 0).sum())} targets {what}, {int((some == MASKED).sum())} became [MASK]; "
                f"{spell(bounds)} are likely.",
                "one-decision-for-many",
            )
    varied("sequence", drawn, [row for fate in fates for row in fate])
    varied("call", drawn, fates)

    drawn = sample(student, seed, chance.SELECTION)
    same = chance.agreement(chance.DEFAULT_RATES, drawn.design.ordinary)
    rows = [
        row[chosen] for f, s in zip(drawn.fate, drawn.selected, strict=True) for row, chosen in zip(f, s, strict=True)
    ]
    for first_place in (0, 1):
        alike("successive targets", drawn, [halves(row[None, first_place:]) for row in rows], same)
    varied("sequence", drawn, rows, rest=False)
    varied(
        "call",
        drawn,
        [fate[selected] for fate, selected in zip(drawn.fate, drawn.selected, strict=True)],
        rest=False,
    )


@pytest.mark.worth("mask_tokens", 0.1, misconception="one-decision-for-many")
def test_random_ids_independent(student: Student, seed: int) -> None:
    """Each random token is drawn by itself: neither one id for many positions, nor ids dealt out like cards.

    A right solution fails with probability below 8e-12.
    Detected with probability above 0.999: one id a sequence; ids dealt like cards.
    """
    drawn = sample(student, seed, chance.REPLACEMENTS, (0.0, 1.0))
    size = drawn.design.ordinary
    new = [np.where(selected, array, -1) for array, selected in zip(drawn.new, drawn.selected, strict=True)]
    alike_ids = "one id for many positions" if any(len(np.unique(array)) < size // 2 for array in new) else ""
    for first_place in (0, 1):
        pairs = [halves(array[:, first_place:]) for array in new]
        alike("neighbouring targets", drawn, pairs, 1 / size, "became the same id")
    alike(
        "targets in the same place of two sequences",
        drawn,
        [(a[::2], a[1::2]) for a in new],
        1 / size,
        "became the same id",
    )
    alike(
        "targets in the same place of two sequences",
        drawn,
        [mirrored(array) for array in new],
        1 / size,
        "became the same id",
    )
    for id_ in (0, 3 * (size // 2), 3 * (size - 1)):
        near, chances = 0, []
        for array in new:
            n = int((array >= 0).sum())
            near += chance.is_near(int((array == id_).sum()), n, 1 / size)
            chances.append(chance.near(n, 1 / size))
        bounds = chance.poisson_binomial(chances).bounds()
        if outside(near, bounds):
            drawn.fail(
                f"The number of tokens that became {id_} lies within 1 of its mean in {near} of {len(new)} calls; "
                f"{spell(bounds)} are likely. {alike_ids}",
                "quota-instead-of-chance" if near > bounds[1] else "one-decision-for-many",
            )


@pytest.mark.worth("mask_tokens", 0.25, misconception="random-range")
def test_random_ids_uniform(student: Student, seed: int) -> None:
    """A random token is a uniform draw from all of ordinary_ids: the first, the last and the original included.

    A right solution fails with probability below 4e-12.
    Detected with probability above 0.999: one id of V missing; the original excluded.
    """
    drawn = sample(student, seed, chance.REPLACEMENTS, (0.0, 1.0))
    size = drawn.design.ordinary
    new, old = (np.concatenate([np.ravel(array) for array in arrays]) for arrays in (drawn.new, drawn.ids))
    chosen = np.concatenate([np.ravel(selected) for selected in drawn.selected])
    new, old = new[chosen], old[chosen]
    bounds = chance.binomial_bounds(len(new), 1 / size)
    if outside(int((new == old).sum()), bounds):
        drawn.fail(
            f"{int((new == old).sum())} of {len(new)} random tokens are the original; of {size} ordinary ids it is "
            f"1 in {size}, or {spell(bounds)}.",
            "original-excluded",
        )
    bounds = chance.binomial_bounds(len(new), 1 / size, chance.ALPHA / size)
    for id_ in range(0, 3 * size, 3):
        if outside(int((new == id_).sum()), bounds):
            drawn.fail(
                f"Of {len(new)} random tokens, {int((new == id_).sum())} are {id_}; for each of {size} ordinary ids "
                f"{spell(bounds)} are likely.",
                "random-range",
            )
    # In the default mix, too: there the same draw may have decided the fate.
    drawn = sample(student, seed, chance.SELECTION)
    new, old = changed_tokens(drawn)
    size = drawn.design.ordinary
    for id_ in range(0, 3 * size, 3):
        n = int((old != id_).sum())
        bounds = chance.binomial_bounds(n, 1 / (size - 1), chance.ALPHA / size)
        if outside(int((new == id_).sum()), bounds):
            drawn.fail(
                f"Of {n} tokens that changed into another one, {int((new == id_).sum())} became {id_}; "
                f"{spell(bounds)} are likely.",
                "random-range",
            )


@pytest.mark.worth("mask_tokens", 0.1, misconception="random-range")
def test_large_vocabulary(student: Student, device: torch.device, seed: int) -> None:
    """Random tokens come from all of 30,000 ordinary ids, with T = 512.

    A right solution fails with probability below 2e-12.
    Detected with probability above 0.999: one group of ids missing.
    """
    design = chance.LARGE
    pool = torch.arange(0, 70_000)
    pool = pool[(pool % 7 < 3) & (pool != 2)][: design.ordinary]  # 0, 1, 7, 8, 9, 14 … 69,998
    rng = np.random.default_rng(5)
    ids = pool[torch.as_tensor(rng.integers(0, design.ordinary, (design.rows, design.length)))]
    attention, special = torch.ones_like(ids), torch.zeros_like(ids)
    special[:, 0], attention[:, design.candidates[0] + 1 :] = 1, 0
    case = Case(ids.to(device), attention.to(device), special.to(device), 2, pool.to(device))
    one = source(seed, 30_000, device)
    got = case.masked_by(student, one, mlm_probability=1.0, mask_rate=0.0, random_rate=1.0)
    call = student.last
    new, selected = read(got, call, case.shape, "input_ids", "selected")
    some_target(selected, call)
    drawn = new[selected & case.candidates]
    drawn = drawn[torch.isin(drawn, pool)]
    if len(drawn) == 0:
        expect.wrong(f"{call.text}\nput no ordinary id anywhere, with random_rate 1.", "random-id-not-ordinary")
    groups = (torch.searchsorted(pool, drawn) * chance.LARGE_GROUPS) // design.ordinary
    bounds = chance.binomial_bounds(len(drawn), 1 / chance.LARGE_GROUPS, chance.ALPHA / chance.LARGE_GROUPS)
    for group, count in enumerate(torch.bincount(groups, minlength=chance.LARGE_GROUPS).tolist()):
        if outside(count, bounds):
            expect.wrong(
                f"{call.text}\nOf {len(drawn)} random tokens, {count} are from part {group + 1} of "
                f"{chance.LARGE_GROUPS} equal parts of ordinary_ids; {spell(bounds)} are likely.",
                "random-range",
            )


@pytest.mark.worth("mask_tokens", 0.15, misconception="position-bias")
def test_guaranteed_target_uniform(student: Student, seed: int) -> None:
    """The target that a sequence gets in any case is uniform among its candidates, and independent of other sequences'.

    A right solution fails with probability below 4e-12.
    Detected with probability above 0.999: always the first candidate; never the last candidate; the same place in every
    sequence; one draw for equal sequences.
    """
    drawn = sample(student, seed, chance.GUARANTEE)
    both, overlaps = 0, []
    for count in drawn.design.candidates[1:]:
        here = [selected for selected in drawn.selected if selected.shape[1] == count]
        every = np.concatenate(here)
        bounds = chance.poisson_binomial(k / count for k in every.sum(axis=1).tolist()).bounds(chance.ALPHA / 20)
        for place, times in enumerate(every.sum(axis=0).tolist()):
            if outside(times, bounds):
                drawn.fail(
                    f"In {len(every)} sequences of {count} candidates, number {place + 1} was selected {times} times; "
                    f"{spell(bounds)} are likely.",
                    "position-bias",
                )
        for selected in here:
            for one, other in zip(selected[::2], selected[1::2], strict=True):
                both += int((one & other).sum())
                overlaps.append(chance.overlap(count, int(one.sum()), int(other.sum())))
    bounds = chance.total(overlaps).bounds()
    if outside(both, bounds):
        drawn.fail(
            f"In {len(overlaps)} pairs of sequences the targets stand in the same place {both} times; "
            f"{spell(bounds)} are likely.",
            "same-mask-in-all-sequences",
        )
    rows, n = chance.EQUAL_ROWS
    case = equal_sequences(rows, n)
    got = case.masked_by(student, source(seed, rows), mlm_probability=chance.GUARANTEE.probability)
    call = student.last
    chosen = read(got, call, case.shape, "selected")[0].numpy()
    both = int((chosen[::2] & chosen[1::2]).sum())
    pairs = zip(chosen[::2].sum(axis=1), chosen[1::2].sum(axis=1), strict=True)
    bounds = chance.total(chance.overlap(n, int(one), int(other)) for one, other in pairs).bounds()
    if outside(both, bounds):
        expect.wrong(
            f"{call.text}\nIn {rows // 2} pairs of equal sequences the targets stand in the same place {both} times; "
            f"{spell(bounds)} are likely.",
            "same-mask-in-all-sequences",
        )


@pytest.mark.worth("mask_tokens", 0.1, misconception="forced-target-apart", needs="test_split")
def test_guaranteed_target_corrupted(student: Student, seed: int) -> None:
    """The target that a sequence gets in any case is corrupted like any other.

    A right solution fails with probability below 3e-12.
    Detected with probability above 0.999: always masked; never corrupted.
    """
    split_fault(sample(student, seed, chance.GUARANTEE), chance.DEFAULT_RATES, "forced-target-apart")

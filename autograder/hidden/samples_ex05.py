"""Samples of exercise 5: many calls with one generator, and what must hold in them but for a computed chance.

Statistical checks share their samples, drawn once a submission, on the CPU: chance does not depend on the device.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import torch

from autograder.hidden import expect
from autograder.hidden import statistics as chance
from autograder.hidden.cases_ex05 import Case, read, source, spread_ids
from autograder.wire.proxy import Student

MASKED, CHANGED, KEPT = 0, 1, 2
FATES = ("replaced by [MASK]", "replaced by another id", "left as they were")
SPECIAL_IDS = (1, 2, 4, 5, 7)  # none is a multiple of 3; 4 is [MASK]


@dataclass
class Sample:
    """What became of the candidates of many calls with one generator.

    Each list has an entry a call (and a number of candidates, if sequences differ in it), an array (sequences,
    candidates): originals; new ids; whether selected; the fate of each candidate (MASKED, CHANGED or KEPT).
    text: the last call, for messages.
    """

    design: chance.Design
    text: str
    ids: list[np.ndarray]
    new: list[np.ndarray]
    selected: list[np.ndarray]
    fate: list[np.ndarray]

    def fail(self, what: str, misconception: str) -> None:
        expect.wrong(f"{self.text}\n({self.design.calls} calls like this with one generator)\n{what}", misconception)

    @property
    def counts(self) -> list[int]:
        """Targets of each sequence."""
        return [int(k) for selected in self.selected for k in selected.sum(axis=1)]

    @property
    def sizes(self) -> list[int]:
        """Candidates of each sequence."""
        return [selected.shape[1] for selected in self.selected for _ in selected]


def texts(design: chance.Design, call: int) -> Case:
    """Input of one call.  Two calls in a row have the same; in every second pair all sequences are the same, too.

    [CLS], [SEP] and four other special tokens stand in each sequence.  In half of the pairs each id comes twice.
    """
    case = _texts(design, call)
    return case.with_tensors(tensor.clone() for tensor in case[:3])


@cache
def _texts(design: chance.Design, call: int) -> Case:
    pair = call // 2
    rng = np.random.default_rng(1000 * design.length + pair)
    count = design.candidates[pair % len(design.candidates)]
    rows = 1 if pair % 2 == 0 and len(design.candidates) < 6 else design.rows
    sizes_ = rng.permutation(np.resize(design.candidates, rows)) if len(design.candidates) == 6 else [count] * rows
    ids, attention, special = (np.zeros((rows, design.length), dtype=np.int64) for _ in range(3))
    ids += SPECIAL_IDS[0]
    for row, n in enumerate(sizes_):
        used = min(design.length, int(n) + 6)
        free = np.sort(rng.permutation(np.arange(1, used - 1))[: int(n)])
        ids[row, :used] = rng.choice(SPECIAL_IDS, used)
        drawn = rng.integers(0, design.ordinary, int(n)) * 3
        ids[row, free] = np.repeat(drawn, 2)[: int(n)] if pair % 4 >= 2 else drawn
        attention[row, :used], special[row, :used] = 1, 1
        special[row, free] = 0
    ids, attention, special = (np.repeat(array, design.rows // rows, axis=0) for array in (ids, attention, special))
    tensors = [torch.as_tensor(array) for array in (ids, attention, special)]
    return Case(tensors[0], tensors[1], tensors[2], 4, spread_ids(design.ordinary))


def sample(student: Student, seed: int, design: chance.Design, rates: tuple[float, float] | None = None) -> Sample:
    """The sample of that design, drawn when it is first asked for.  rates: of [MASK] and random ids."""
    made: Sample = student.once((design, rates), partial(_draw, student, seed, design, rates))
    return made


def _draw(student: Student, seed: int, design: chance.Design, rates: tuple[float, float] | None) -> Sample:
    one = source(seed, design.length * 1000 + design.calls)
    changes: dict[str, Any] = {} if design.probability == 0.15 else {"mlm_probability": design.probability}
    if rates is not None:
        changes |= {"mask_rate": rates[0], "random_rate": rates[1]}
    made = Sample(design, "", [], [], [], [])
    for call in range(design.calls):
        case = texts(design, call)
        got = case.masked_by(student, one, **changes)
        new, selected = (t.numpy() for t in read(got, student.last, case.shape, "input_ids", "selected"))
        ids, free = case.ids.numpy(), case.candidates.numpy()
        for count in sorted(set(design.candidates) & set(free.sum(axis=1).tolist())):
            rows = free.sum(axis=1) == count
            before, after, chosen = (array[rows][free[rows]].reshape(-1, count) for array in (ids, new, selected))
            made.ids.append(before)
            made.new.append(after)
            made.selected.append(chosen)
            made.fate.append(np.where(after == 4, MASKED, np.where(after == before, KEPT, CHANGED)))
    made.text = student.last.text
    return made


def halves(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Even and odd columns: disjoint pairs of neighbours."""
    even = array.shape[1] // 2 * 2
    return array[:, :even:2], array[:, 1:even:2]


def mirrored(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first sequence and the last, the second and the last but one …"""
    half = len(array) // 2
    return array[:half], array[::-1][:half]


def outside(value: float, bounds: tuple[int, int]) -> bool:
    return not bounds[0] <= value <= bounds[1]


def spell(bounds: tuple[int, int]) -> str:
    return f"{bounds[0]} … {bounds[1]}"


def split_fault(drawn: Sample, rates: tuple[float, float], misconception: str | None = None) -> None:
    """Fail if masked, changed and kept tokens do not have their shares among the targets.

    misconception: default, one that fits the shares.
    """
    fates = np.concatenate([fate[selected] for fate, selected in zip(drawn.fate, drawn.selected, strict=True)])
    n = len(fates)
    counts = [int((fates == fate).sum()) for fate in (MASKED, CHANGED, KEPT)]
    right = chance.seen(*rates, drawn.design.ordinary)
    for count, share, name in zip(counts, right, FATES, strict=True):
        bounds = chance.binomial_bounds(n, share)
        if not outside(count, bounds):
            continue
        shares = [count / n for count in counts]
        rest = (1 - rates[0]) * rates[1]
        if shares[0] > rates[0] + 0.9 * (1 - rates[0]):
            named = "everything-masked"
        elif abs(shares[1] - rest) < abs(shares[1] - rates[1]) and abs(shares[0] - rates[0]) < 0.02:
            named = "random-share-of-the-rest"
        else:
            named = "wrong-split"
        drawn.fail(
            f"Of {n} targets, {count} were {name}: {count / n:.4f}. With mask_rate {rates[0]:g} and random_rate "
            f"{rates[1]:g} it is {share:.4f}, or {spell(bounds)}. (Masked, changed, kept: "
            f"{shares[0]:.3f}, {shares[1]:.3f}, {shares[2]:.3f}.)",
            misconception or named,
        )


def alike(
    what: str,
    drawn: Sample,
    pairs: Sequence[tuple[np.ndarray, np.ndarray]],
    probability: float,
    did: str = "met the same fate",
) -> None:
    """Fail if two targets meet the same fate (`did`) too often or too rarely; entries below 0 are no targets."""
    one, other = (np.concatenate([np.ravel(pair[side]) for pair in pairs]) for side in (0, 1))
    valid = (one >= 0) & (other >= 0)
    count, n = int((one == other)[valid].sum()), int(valid.sum())
    bounds = chance.binomial_bounds(n, probability)
    if outside(count, bounds):
        drawn.fail(
            f"Of {n} pairs of {what}, {count} {did}; {spell(bounds)} are likely if each decides alone.",
            "one-decision-for-many" if count > bounds[1] else "quota-instead-of-chance",
        )


def varied(what: str, drawn: Sample, groups: Sequence[np.ndarray], rest: bool = True) -> None:
    """Fail if the number of masked targets in a group lies at its mean too often or too rarely.

    rest: look also at the number of changed ones among those that are not masked.
    """
    mask, changed, kept = chance.seen(*chance.DEFAULT_RATES, drawn.design.ordinary)
    kinds: list[tuple[int, tuple[int, ...], float]] = [(MASKED, (MASKED, CHANGED, KEPT), mask)]
    if rest:
        kinds.append((CHANGED, (CHANGED, KEPT), changed / (changed + kept)))
    for fate, among, share in kinds:
        near, chances = 0, []
        for group in groups:
            n = int(np.isin(group, among).sum())
            near += chance.is_near(int((group == fate).sum()), n, share)
            chances.append(chance.near(n, share))
        bounds = chance.poisson_binomial(chances).bounds()
        if outside(near, bounds):
            drawn.fail(
                f"The number of targets {FATES[fate]} in a {what} lies within 1 of its mean in {near} of "
                f"{len(groups)} cases; {spell(bounds)} are likely if each token decides on its own.",
                "quota-instead-of-chance" if near > bounds[1] else "one-decision-for-many",
            )


def changed_tokens(drawn: Sample) -> tuple[np.ndarray, np.ndarray]:
    """(new, old) ids of the targets that became another token."""
    chosen = [s & (f == CHANGED) for s, f in zip(drawn.selected, drawn.fate, strict=True)]
    pick = [np.concatenate([a[c] for a, c in zip(arrays, chosen, strict=True)]) for arrays in (drawn.new, drawn.ids)]
    return pick[0], pick[1]

"""Hidden checks of exercise 10: errors_by_length."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral

import pytest
from hypothesis import example
from hypothesis import strategies as st

from autograder.examples import settings
from autograder.hidden import expect
from autograder.hidden.cases_ex10 import allowed
from autograder.hidden.oracles import ex10 as oracle
from autograder.hidden.properties import given
from autograder.hidden.strategies import seeds
from autograder.wire.proxy import Student
from autograder.wire.show import show
from exercises.kit import LengthGroup


def grouped(student: Student, lengths: list[int], correct: list[bool], edges: Sequence[int]) -> list[LengthGroup]:
    """The groups of a legal call, one for each edge and one more; fails if they are not that."""
    got = allowed(student.errors_by_length, list(lengths), list(correct), tuple(edges))
    names = LengthGroup._fields
    if not isinstance(got, list | tuple) or not all(all(hasattr(group, name) for name in names) for group in got):
        expect.wrong(f"{student.last.text}\nreturned {show(got)}\nexpected a list of LengthGroup", "no-groups")
    if len(got) != len(edges) + 1:
        expect.wrong(
            f"{student.last.text}\nreturned {len(got)} groups, not {len(edges) + 1}: {show(got)}",
            "open-end-left-out" if got and got[-1].longest is not None else "no-groups",
        )
    return [LengthGroup(*(getattr(group, name) for name in names)) for group in got]


def cases(seed: int, edges: Sequence[int], count: int) -> tuple[list[int], list[bool]]:
    """Lengths, no group without one and none at an edge or right above it where there is room; what was right."""
    lengths = []
    for number in range(count):
        low = [1, *(edge + 1 for edge in edges)][number % (len(edges) + 1)]
        high = [*edges, low + 40][number % (len(edges) + 1)]
        lengths.append(min(high - 1, low + 1 + (seed + 7 * number) % 5) if high - low > 1 else low)
    return lengths, [(seed >> number % 13) % 3 != 1 for number in range(count)]


EDGES = st.lists(st.integers(3, 12), min_size=1, max_size=4).map(
    lambda steps: tuple(sum(steps[: n + 1]) for n in range(len(steps)))
)


@given(edges=EDGES, number=seeds)
@settings(max_examples=15)
@pytest.mark.worth("errors_by_length", 0.3, misconception="wrong-bounds")
def test_groups_and_bounds(student: Student, edges: tuple[int, ...], number: int) -> None:
    """Each edge ends a group, the next group starts one token later, and the last one has no upper end."""
    got = grouped(student, *cases(number, edges, 11), edges)
    bounds = [(group.shortest, group.longest) for group in got]
    right = list(zip([1, *(edge + 1 for edge in edges)], [*edges, None], strict=True))
    if bounds != right:
        overlap = bounds[1:] == [(edge, end) for edge, end in zip(edges, [*edges[1:], None], strict=True)]
        expect.wrong(
            f"{student.last.text}\nreturned groups with (shortest, longest) = {bounds}\nexpected {right}",
            "groups-overlap" if overlap else "wrong-bounds",
        )


def texts_of(student: Student, got: list[LengthGroup], lengths: list[int], edges: Sequence[int]) -> None:
    """Fail unless every text is counted in the group of its length, and there only."""
    right = [group.texts for group in oracle.errors_by_length(lengths, [True] * len(lengths), edges)]
    found = [group.texts for group in got]
    if not all(isinstance(n, Integral) and not isinstance(n, bool) for n in found):
        expect.wrong(f"{student.last.text}\nreturned groups with texts = {show(found)}, no integers.", "no-groups")
    if found != right:
        missing = sum(found) - len(lengths)
        below = [sum(n < end for n in lengths) for end in edges]
        shifted = [b - a for a, b in zip([0, *below], [*below, len(lengths)], strict=True)]
        named = "groups-overlap" if missing > 0 else "texts-left-out" if missing < 0 else None
        expect.wrong(
            f"{student.last.text}\nreturned groups of {found} texts\nexpected {right}",
            "edge-in-the-next-group" if found == shifted else named,
        )


@given(edges=EDGES, number=seeds, more=st.integers(0, 9))
@example(edges=(16, 32), number=1, more=3)
@pytest.mark.worth("errors_by_length", 0.35, misconception="edge-in-the-next-group")
def test_each_text_in_one_group(student: Student, edges: tuple[int, ...], number: int, more: int) -> None:
    """Each text counts in the one group that holds its length: at an edge, right above it, and far beyond the last."""
    lengths, _ = cases(number, edges, more)
    lengths += [1, 1000, edges[-1] + 1, *edges, *(edge + 1 for edge in edges[: number % 3])]
    lengths = lengths[number % len(lengths) :] + lengths[: number % len(lengths)]
    got = grouped(student, lengths, [place % 2 == 0 for place in range(len(lengths))], edges)
    texts_of(student, got, lengths, edges)


@given(edges=EDGES, number=seeds, count=st.integers(0, 30))
@settings(max_examples=15)
@pytest.mark.worth("errors_by_length", 0.3, misconception="wrong-error-rate")
def test_errors_and_rates(student: Student, edges: tuple[int, ...], number: int, count: int) -> None:
    """The errors of a group are its texts that were classified wrong, and the rate is errors / texts."""
    lengths, correct = cases(number, edges, count + len(edges) + 1)
    got = grouped(student, lengths, correct, edges)
    for mine, right in zip(got, oracle.errors_by_length(lengths, correct, edges), strict=True):
        turned = mine.errors == right.texts - right.errors != right.errors
        if not isinstance(mine.errors, Integral) or mine.errors != right.errors:
            expect.wrong(
                f"{student.last.text}\nreturned {show(mine)}\nexpected {right.errors} errors",
                "correct-counted-as-errors" if turned else "wrong-error-rate",
            )
        assert right.error_rate is not None
        if not expect.is_number(mine.error_rate) or abs(mine.error_rate - right.error_rate) > 1e-6:
            rates = [
                ("correct-counted-as-errors", 1 - right.error_rate),
                ("rate-over-all-texts", right.errors / len(lengths)),
                ("rate-over-all-texts", right.errors / max(1, correct.count(False))),
                ("wrong-error-rate", 100 * right.error_rate),
            ]
            near = [m for m, v in rates if expect.is_number(mine.error_rate) and abs(v - mine.error_rate) < 1e-6]
            expect.wrong(
                f"{student.last.text}\nreturned {show(mine)}\nexpected the error rate {right.error_rate:.7g}",
                near[0] if near else "rate-of-nothing" if mine.error_rate is None else "wrong-error-rate",
            )


@given(edges=EDGES, number=seeds)
@settings(max_examples=15)
@pytest.mark.worth("errors_by_length", 0.2, misconception="rate-of-nothing")
def test_empty_group_has_no_rate(student: Student, edges: tuple[int, ...], number: int) -> None:
    """A group without texts is there, with 0 texts, 0 errors and error_rate None; a group without errors has 0.0."""
    empty = number % (len(edges) + 1)
    lengths, _ = cases(number, edges, 3 * (len(edges) + 1))
    lengths = [length for place, length in enumerate(lengths) if place % (len(edges) + 1) != empty]
    got = grouped(student, lengths, [True] * len(lengths), edges)
    for place, group in enumerate(got):
        if place == empty and (group.texts != 0 or group.errors != 0 or group.error_rate is not None):
            expect.wrong(
                f"{student.last.text}\nreturned {show(group)}\nexpected 0 texts, 0 errors, error_rate None",
                "rate-of-nothing",
            )
        if place != empty and (not expect.is_number(group.error_rate) or group.error_rate != 0):
            expect.wrong(
                f"{student.last.text}\nreturned {show(group)}\nexpected error_rate 0.0: all were right",
                "correct-counted-as-errors" if group.error_rate == 1 else "rate-of-nothing",
            )


def groups_work(student: Student) -> None:
    """Fails unless good arguments give the right groups."""
    got = grouped(student, [3, 9, 8], [True, False, True], (5,))
    if [group.errors for group in got] != [0, 1]:
        expect.wrong(f"{student.last.text}\nreturned {show(got)}\nexpected 0 and 1 errors", "wrong-error-rate")


@pytest.mark.worth("errors_by_length", 0.1, misconception="bad-input-accepted")
def test_refuses_unequal_lists(student: Student) -> None:
    """Unequally many lengths and results are refused."""
    groups_work(student)
    for lengths, correct in (([3, 9, 8], [True, False]), ([3, 9], [True, False, True]), ([3], [])):
        expect.refuses(
            student.errors_by_length,
            lengths,
            correct,
            (5,),
            names=("lengths", "correct"),
            because=f"there are {len(lengths)} lengths and {len(correct)} results",
        )


@pytest.mark.worth("errors_by_length", 0.1, misconception="bad-input-accepted")
def test_refuses_bad_edges(student: Student) -> None:
    """Edges that do not ascend strictly, or begin below 1, are refused."""
    groups_work(student)
    for edges in ((5, 5), (8, 4), (0, 5), (-1,), (3, 9, 7)):
        expect.refuses(
            student.errors_by_length,
            [3, 9, 8],
            [True, False, True],
            edges,
            names=("edges", "edge"),
            because=f"edges is {edges}",
        )


@pytest.mark.worth("errors_by_length", 0.1, misconception="bad-input-accepted")
def test_refuses_texts_of_no_length(student: Student) -> None:
    """A length below 1 is refused, wherever it stands."""
    groups_work(student)
    for lengths, bad in (([0, 9, 8], 0), ([3, 9, -4], -4), ([3, 0, 8], 0)):
        expect.refuses(
            student.errors_by_length,
            lengths,
            [True, False, True],
            (5,),
            names=("lengths", "length"),
            values=(bad,),
            because=f"lengths holds {bad}",
        )


@pytest.mark.worth("errors_by_length", 0.05, misconception="input-mutated")
def test_groups_leave_lists_alone(student: Student) -> None:
    """The lists given are not changed, and no global random generator is used."""
    for lengths, correct, edges in (([9, 3, 40, 7], [True, False, False, True], [5, 20]), ([2, 9], [True, True], [4])):
        got = allowed(student.errors_by_length, lengths, correct, edges)
        if not isinstance(got, list | tuple) or len(got) != len(edges) + 1:
            expect.wrong(f"{student.last.text}\nreturned {show(got)}\nexpected {len(edges) + 1} groups", "no-groups")
    expect.unchanged(student, "errors_by_length")

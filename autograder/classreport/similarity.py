"""Which submissions are nearly the same, exercise by exercise: a signal to look closer, and never a verdict.

Each submission is the set of its fragments (runs of tokens, `tokens.py`), as a sparse vector of scikit-learn.  What the
stub gives does not count, nor what many share; a rare fragment counts more than a frequent one (tf-idf), and two
submissions are as similar as the cosine of their vectors.  Only those that share a rare fragment are ever compared, so
the time grows with the class and not with its square.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

from autograder.classreport.tokens import LENGTH, Token, fragments, tokens

#: From here on two submissions are shown.  docs/instructor.md says what it was chosen by.
NEAR = 0.6
#: With fewer fragments of one's own there is nothing to compare.
LEAST = 20
_FEATURES = 2**22
_BLOCK = 512


def shared_by_many(submissions: int) -> int:
    """A fragment in more submissions than that does not count: everybody writes it."""
    return max(20, min(100, submissions // 4))


@dataclass(frozen=True)
class Pair:
    """Two submissions by their indices in the class."""

    first: int
    second: int
    similarity: float


@dataclass(frozen=True)
class Group:
    """Submissions that hang together by pairs.  pairs: the most similar first."""

    exercise: str
    members: tuple[int, ...]
    pairs: tuple[Pair, ...]


class Comparison:
    """Collects one exercise's code of every submission, then finds those that are nearly the same."""

    def __init__(self, exercise: str, stub: str) -> None:
        self.exercise = exercise
        self._vectorizer = HashingVectorizer(
            analyzer=lambda code: fragments(tokens(code)),
            n_features=_FEATURES,
            binary=True,
            norm=None,
            alternate_sign=False,
            dtype=np.float32,
        )
        self._given = self._columns(stub)
        self._members: list[int] = []
        self._found: list[np.ndarray] = []
        self.too_little = 0

    def add(self, index: int, code: str) -> None:
        own = np.setdiff1d(self._columns(code), self._given, assume_unique=True)
        if len(own) < LEAST:
            self.too_little += 1
            return
        self._members.append(index)
        self._found.append(own)

    def groups(self) -> list[Group]:
        if len(self._members) < 2:
            return []
        alike: dict[bytes, list[int]] = {}
        for member, own in zip(self._members, self._found, strict=True):
            alike.setdefault(own.tobytes(), []).append(member)
        different = [np.frombuffer(key, dtype=np.int32) for key in alike]
        same = list(alike.values())
        pairs = [Pair(one[0], other, 1.0) for one in same for other in one[1:]]
        for first, second, similarity in self._near(different):
            pairs.append(Pair(same[first][0], same[second][0], similarity))
        return self._grouped(pairs)

    def _columns(self, code: str) -> np.ndarray:
        return np.unique(self._vectorizer.transform([code]).indices).astype(np.int32)

    def _near(self, different: Sequence[np.ndarray]) -> list[tuple[int, int, float]]:
        size = len(different)
        if size < 2:
            return []
        columns = np.concatenate(different)
        starts = np.cumsum([0, *map(len, different)])
        frequency = np.bincount(columns, minlength=_FEATURES)
        kept = (frequency[columns] <= shared_by_many(size)).astype(np.float32)
        counts = sparse.csr_matrix((kept, columns, starts), shape=(size, _FEATURES))
        counts.eliminate_zeros()
        counts.sort_indices()
        left = np.diff(counts.indptr)
        counts = sparse.diags((left >= LEAST).astype(np.float32)) @ counts
        counts.eliminate_zeros()
        vectors = TfidfTransformer().fit_transform(counts)
        others = vectors.T.tocsr()
        found = []
        for start in range(0, size, _BLOCK):
            block = (vectors[start : start + _BLOCK] @ others).tocoo()
            near = (block.data >= NEAR) & (block.row + start < block.col)
            rows, cols, values = block.row[near] + start, block.col[near], block.data[near]
            # 100 % is for what is the same
            found += [(int(r), int(c), min(0.99, float(v))) for r, c, v in sorted(zip(rows, cols, values, strict=True))]
        return found

    def _grouped(self, pairs: list[Pair]) -> list[Group]:
        if not pairs:
            return []
        inside = sorted({index for pair in pairs for index in (pair.first, pair.second)})
        place = {index: number for number, index in enumerate(inside)}
        first = [place[pair.first] for pair in pairs]
        second = [place[pair.second] for pair in pairs]
        links = sparse.coo_matrix((np.ones(len(pairs)), (first, second)), shape=(len(inside), len(inside)))
        _, labels = connected_components(links, directed=False)
        members: dict[int, list[int]] = {}
        its_pairs: dict[int, list[Pair]] = {}
        for index, label in zip(inside, labels.tolist(), strict=True):
            members.setdefault(label, []).append(index)
        for pair in pairs:
            its_pairs.setdefault(int(labels[place[pair.first]]), []).append(pair)
        groups = [
            Group(
                self.exercise,
                tuple(found),
                tuple(sorted(its_pairs[label], key=lambda p: (-p.similarity, p.first, p.second))),
            )
            for label, found in members.items()
        ]
        return sorted(groups, key=lambda group: (-group.pairs[0].similarity, -len(group.members), group.members))


@dataclass(frozen=True)
class Excerpt:
    """The longest passage that two submissions share.  lines: where it is in each."""

    texts: tuple[str, str]
    lines: tuple[tuple[int, int], tuple[int, int]]


def longest_shared(stub: str, first: str, second: str, most: int = 24) -> Excerpt | None:
    """The longest passage of both that is not in the stub; of a long one its first `most` lines."""
    given = set(fragments(tokens(stub)))
    here, there = tokens(first), tokens(second)
    places: dict[str, int] = {}
    for place, fragment in enumerate(fragments(there)):
        if fragment not in given:
            places.setdefault(fragment, place)
    best, length = (0, 0), 0
    run: tuple[int, int] | None = None
    for place, fragment in enumerate(fragments(here)):
        other = places.get(fragment)
        if other is None:
            run = None
            continue
        if run is None or other != run[1] + place - run[0]:
            run = (place, other)
        if place - run[0] + 1 > length:
            best, length = run, place - run[0] + 1
    if length == 0:
        return None
    spans = [_lines(code, start, start + length + LENGTH - 2) for code, start in ((here, best[0]), (there, best[1]))]
    texts = [
        "\n".join(text.split("\n")[begin - 1 : min(end, begin - 1 + most)])
        for text, (begin, end) in zip((first, second), spans, strict=True)
    ]
    return Excerpt((texts[0], texts[1]), (spans[0], spans[1]))


def _lines(code: list[Token], first: int, last: int) -> tuple[int, int]:
    return code[first].line, code[last].line


@dataclass(frozen=True)
class Together:
    """Submissions that are in one group in each of these exercises."""

    members: tuple[int, ...]
    exercises: tuple[str, ...]


def near_in_several(groups: Sequence[Group]) -> list[Together]:
    """Submissions that are together in more than one exercise: those in most exercises first."""
    where: dict[int, list[int]] = {}
    for number, group in enumerate(groups):
        for member in group.members:
            where.setdefault(member, []).append(number)
    together: dict[tuple[int, ...], list[int]] = {}
    for member, numbers in sorted(where.items()):
        if len(numbers) > 1:
            together.setdefault(tuple(numbers), []).append(member)
    found = [
        Together(tuple(members), tuple(sorted({groups[number].exercise for number in numbers})))
        for numbers, members in together.items()
        if len(members) > 1
    ]
    return sorted(found, key=lambda one: (-len(one.exercises), one.members))

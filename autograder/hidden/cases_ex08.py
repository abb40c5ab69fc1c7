"""The data sets, configurations and expensive calls of exercise 8's checks."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from autograder.hidden import journal
from autograder.hidden.attempts import second_attempt
from autograder.hidden.journal import CLS, SEP, Comparison, Journal, make_texts, with_turned_labels
from autograder.hidden.oracles import ex08 as oracle
from autograder.wire.errors import RemoteError
from autograder.wire.proxy import Student
from exercises.kit import ComparisonConfig, Example, RunRecord, Splits

# -- Bags of words -----------------------------------------------------------------------------------------------------
#: Ids of the texts for bags of words; 0 is an ordinary word, and so is the last one.
VOCABULARY = 41
COMMON, FOR_ONE, FOR_ZERO, NEUTRAL = 3, (4, 40), (5, 6), (0, *range(7, 39))
#: So small a C that every text gets the class that most training texts have, and one that lets the words speak.
DEAF, GOOD = 1e-9, 100.0


def word_texts(
    seed: int, train: int = 40, validation: int = 16, test: int = 20, ones: float = 0.25, share: float | None = None
) -> Splits:
    """Texts of unequal length whose class is told by three words of it, wherever they stand.

    ones: share of class 1 in training and validation.  share: in the test split, if it is another.
    All texts hold one common word four times, so that with hardly any weight on words the larger class wins everywhere.
    """
    source = random.Random(seed)

    def part(count: int, share: float) -> list[Example]:
        labels = [int(number < round(share * count)) for number in range(count)]
        source.shuffle(labels)
        texts = []
        for number, label in enumerate(labels):
            words = [COMMON] * 4 + [source.choice(NEUTRAL) for _ in range(source.randint(1, 6))]
            words.append(NEUTRAL[number % len(NEUTRAL)])  # so that the training texts hold them all
            words += [source.choice(FOR_ONE if label else FOR_ZERO) for _ in range(3)]
            source.shuffle(words)
            texts.append(Example([CLS, *words, SEP], label))
        return texts

    return Splits(part(train, ones), part(validation, ones), part(test, ones if share is None else share))


@dataclass(frozen=True)
class WordsRun(Comparison):
    """One call of bag_of_words, in the form in which comparisons are checked."""

    @property
    def text(self) -> str:
        sizes = ", ".join(f"{part} {len(getattr(self.texts, part))}" for part in self.texts._fields)
        (settings,) = self.config.settings.values()
        return (
            f"bag_of_words(splits of {sizes} texts, seed={self.config.seeds[0]}, settings={settings}, "
            f"vocab_size={self.config.vocab_size})"
        )


def count_words(
    student: Student, texts: Splits, settings: tuple[float, ...], seed: int = 3, vocab_size: int = VOCABULARY
) -> WordsRun:
    """Call student.bag_of_words with texts whose readings are noted."""
    notes = Journal(texts)
    splits = student.fixtures.served_splits(
        student.lend(notes.read), *(len(getattr(texts, part)) for part in texts._fields)
    )
    config = ComparisonConfig((seed,), {"bag_of_words": settings}, vocab_size=vocab_size)
    started = time.perf_counter()
    returned = student.bag_of_words(splits, seed, settings, vocab_size)
    seconds = time.perf_counter() - started
    return WordsRun(student.bag_of_words.last, [returned], seconds, texts, config, tuple(notes.events))


# -- Comparisons -------------------------------------------------------------------------------------------------------
METHODS = ("bag_of_words", "frozen", "full")
NEURAL = METHODS[1:]
#: Learning rates (for bags of words, a C) that learn the texts of `journal.make_texts`, and one that changes nothing.
LEARNING = {"bag_of_words": GOOD, "frozen": 0.05, "full": 0.005}
STILL = 1e-9


def configuration(seeds: Sequence[int], order: Sequence[float | None], **changes: Any) -> ComparisonConfig:
    """order: the settings of every method; None stands for the one that learns."""
    settings = {m: tuple(LEARNING[m] if value is None else value for value in order) for m in METHODS}
    return ComparisonConfig(
        tuple(seeds), settings, **{"updates": 20, "batch_size": 8, "vocab_size": journal.VOCAB_SIZE, **changes}
    )


class _RightWords:
    """A right bag_of_words in the place of the submission's: a fault of theirs must not cost points here."""

    def __init__(self, texts: Splits, notes: Journal) -> None:
        self._texts = texts
        self._notes = notes

    def __call__(self, splits: Any, seed: int, settings: Sequence[float], vocab_size: int) -> RunRecord:
        train, validation, test = (self._read(name, getattr(splits, name)) for name in Splits._fields)
        return oracle.bag_of_words(train, validation, test, seed, settings, vocab_size)

    def _read(self, name: str, given: Any) -> Sequence[Example]:
        """The texts of a part, read here unless they were read before."""
        if type(given) in (list, tuple):
            return given
        return [Example(*self._notes.read(name, index)) for index in range(len(getattr(self._texts, name)))]


def _compare(
    student: Student, device: torch.device, texts: Splits, config: ComparisonConfig, **more: Any
) -> Comparison:
    """Call compare_baselines with a right bag_of_words; if that fails, with the submission's own."""
    notes = Journal(texts)

    def call(notes: Journal | None) -> Comparison:
        return journal.compare(student, student.compare_baselines, texts, config, device=device, notes=notes, **more)

    try:
        with student.replacing(bag_of_words=_RightWords(texts, notes)):
            return call(notes)
    except RemoteError as error:
        if error.raised.base == "NotImplementedError":
            raise
        first = error
    with second_attempt(first):
        return call(None)


#: So long takes the first call of an encoder in the comparison `plain`.
COLD = 0.5


def plain(student: Student, device: torch.device) -> Comparison:
    """Two seeds; the first setting is the one that learns; some labels are wrong, so that scores differ."""
    texts = make_texts(0, wrong_labels=("test",), every=3)
    config = configuration((4, 1), (None, STILL))
    return student.once("plain", lambda: _compare(student, device, texts, config, cold_seconds=COLD, dropout=0.1))


def plain_again(student: Student, device: torch.device) -> Comparison:
    """`plain` once more."""
    texts = make_texts(0, wrong_labels=("test",), every=3)
    config = configuration((4, 1), (None, STILL))
    return student.once("again", lambda: _compare(student, device, texts, config, dropout=0.1))


def turned(student: Student, device: torch.device) -> Comparison:
    """Validation labels that contradict the training texts: what learns least is best."""
    texts = with_turned_labels(make_texts(2), "validation")
    return student.once("turned", lambda: _compare(student, device, texts, configuration((2,), (None, STILL))))


def last_learns(student: Student, device: torch.device) -> Comparison:
    """Three settings, the second one learns; padding is an id that texts hold as well; other batch sizes."""
    config = configuration((5,), (STILL, None, STILL / 10), pad_id=30, batch_size=10, updates=18)
    return student.once("middle", lambda: _compare(student, device, make_texts(5, test=17), config))


def ties(student: Student, device: torch.device) -> Comparison:
    """Two settings that change nothing: equal scores.  Few updates of few texts."""
    config = configuration((3,), (STILL, STILL / 10), updates=3, batch_size=5)
    return student.once("ties", lambda: _compare(student, device, make_texts(3), config))

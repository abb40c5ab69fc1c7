"""A synthetic corpus of reviews: free text, as much as you like, with a label that depends on the order of words.

A review is a few sentences about one thing: opinions that agree with the label, and sentences that say nothing about
it.  Counting praising and blaming words is not enough to tell the label.  An opinion may deny the opposite ("the soup
was not bland").  It may be set against another one, and then the one that is not conceded counts ("although the soup
was bland , the staff was kind").  A distractor holds a polar word that is not the writer's opinion ("my uncle said the
soup would be bland").
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import NamedTuple

from exercises.kit import review_words as words


class Review(NamedTuple):
    """One text and what its writer thinks."""

    #: Lower case, tokens separated by spaces.
    text: str
    #: 1 praises, 0 blames.
    label: int


@dataclass(frozen=True)
class Controls:
    """How hard the reviews are.  All shares lie in [0, 1]."""

    #: Share of the opinions that deny the opposite instead of saying the thing itself.
    negation: float = 0.15
    #: Share of the opinions that are set against an opinion of the other polarity.
    contrast: float = 0.1
    #: Share of distractors among the sentences without an opinion.
    distractors: float = 0.25
    #: Mean number of sentences beyond the first; a review has at most 9.
    length: float = 1.5
    #: Share of opinions among the sentences beyond the first.
    opinions: float = 0.6
    #: Share of what makes polarity easy to learn from unlabelled text: pairs of adjectives, adverbs, closing sentences.
    #: The labelled reviews have none, the text that the tiny encoder was pretrained on has many.
    cues: float = 0.0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name == "length":
                if not 0 <= value < float("inf"):
                    raise ValueError(f"length is {value}, but must be a number of sentences, 0 or more")
            elif not 0 <= value <= 1:
                raise ValueError(f"{field.name} is {value}, outside [0, 1]")


#: An opinion, said and denied.  {thing}: noun phrase, {how}: a degree or nothing, {what}: adjectives.
_SAID = (
    "{thing} was {how} {what}",
    "{thing} felt {how} {what}",
    "we found {thing} {how} {what}",
    "i would call {thing} {how} {what}",
    "there was something {what} about {thing}",
)
_DENIED = (
    "{thing} was not {how} {what}",
    "{thing} never felt {how} {what}",
    "we did not find {thing} {how} {what}",
    "i would hardly call {thing} {how} {what}",
    "there was nothing {what} about {thing}",
)
_CONTRAST = ("{other} but {own}", "although {other} , {own}", "{own} although {other}", "{other} . however , {own}")
_DISTRACTORS = (
    "my {person} said {thing} would be {what}",
    "i had expected something {what}",
    "last year {thing} had been {what}",
    "people told us {thing} would be {what}",
)
_FILLERS = (
    "we went there on {day}",
    "it took about {number} hours",
    "{thing} had a {neutral} look",
    "my {person} came with me on {day}",
    "we paid for {number} people",
    "there was a {neutral} station next to it",
    "there were {number} of us",
)


class _Writer:
    """Writes reviews, every choice taken from one random source."""

    def __init__(self, source: random.Random, controls: Controls) -> None:
        self.source = source
        self.controls = controls

    def happens(self, share: float) -> bool:
        return self.source.random() < share

    def adjectives(self, praise: bool) -> str:
        polar = words.POSITIVE if praise else words.NEGATIVE
        chosen = self.source.choice(polar)
        if self.happens(0.5 * self.controls.cues):
            adverbs = words.POSITIVE_ADVERBS if praise else words.NEGATIVE_ADVERBS
            chosen = f"{self.source.choice(adverbs)} {chosen}"
        if self.happens(0.5 * self.controls.cues):
            chosen += f" and {self.source.choice(polar)}"
        return chosen

    def thing(self, domain: str) -> str:
        names, parts = words.DOMAINS[domain]
        return "the " + self.source.choice(parts if self.happens(0.75) else names)

    def clause(self, domain: str, praise: bool) -> str:
        denied = self.happens(self.controls.negation)
        what = self.adjectives(praise != denied)
        if denied and self.happens(0.5 * self.controls.cues):
            what += f" but {self.adjectives(praise)}"
        template = self.source.choice(_DENIED if denied else _SAID)
        return template.format(thing=self.thing(domain), how=self.source.choice(words.DEGREES), what=what)

    def opinion(self, domain: str, praise: bool) -> str:
        own = self.clause(domain, praise)
        if not self.happens(self.controls.contrast):
            return own
        return self.source.choice(_CONTRAST).format(other=self.clause(domain, not praise), own=own)

    def aside(self, domain: str) -> str:
        """A sentence that says nothing about the label."""
        source = self.source
        template = source.choice(_DISTRACTORS if self.happens(self.controls.distractors) else _FILLERS)
        return template.format(
            thing=self.thing(domain),
            what=self.adjectives(self.happens(0.5)),
            person=source.choice(words.PEOPLE),
            day=source.choice(words.DAYS),
            number=source.choice(words.NUMBERS),
            neutral=source.choice(words.NEUTRAL),
        )

    def review(self, label: int) -> Review:
        praise = label == 1
        domain = self.source.choice(tuple(words.DOMAINS))
        more = int(self.source.expovariate(1 / self.controls.length)) if self.controls.length else 0
        sentences = [self.opinion(domain, praise)]
        for _ in range(min(more, 8)):
            says = self.happens(self.controls.opinions)
            sentences.append(self.opinion(domain, praise) if says else self.aside(domain))
        self.source.shuffle(sentences)
        if self.happens(0.5 * self.controls.cues):
            sentences.append(self.source.choice(words.POSITIVE_CLOSINGS if praise else words.NEGATIVE_CLOSINGS))
        return Review(" ".join(" . ".join([*sentences, ""]).split()), label)


def _stream(seed: int, controls: Controls) -> Iterator[Review]:
    """Different reviews without end, each pair of them one of either class in random order."""
    source = random.Random(seed)
    writer = _Writer(source, controls)
    seen: set[str] = set()
    while True:
        for label in source.sample((0, 1), 2):
            review = writer.review(label)
            tries = 0
            while review.text in seen:
                tries += 1
                if tries == 10_000:
                    raise ValueError(
                        f"n is too large: these controls allow hardly more than {len(seen)} different reviews"
                    )
                review = writer.review(label)
            seen.add(review.text)
            yield review


def reviews(n: int, seed: int, **controls: float) -> list[Review]:
    """n reviews, no text twice, the two classes in equal numbers (one more of either if n is odd).

    seed: decides all; the same seed gives the same reviews, whatever n is: a longer list begins with the shorter one.
    controls: fields of `Controls`, by name.

    Example: reviews(2, seed=0, negation=0.0, length=0.0) gives two reviews of one plain sentence.

    Raises:
        ValueError: n is negative or more than there are different reviews; a control that does not exist or a value
            that it cannot have.
    """
    if n < 0:
        raise ValueError(f"n is {n}, but a number of reviews is 0 or more")
    known = {field.name for field in fields(Controls)}
    for name in controls:
        if name not in known:
            raise ValueError(f"there is no control {name!r}; there are {', '.join(sorted(known))}")
    stream = _stream(seed, Controls(**controls))
    return [next(stream) for _ in range(n)]


def polarity_by_counting(text: str) -> float:
    """The order-blind oracle: praising words minus blaming words of a text, with the whole lexicon known.

    Its sign is what no bag of words can beat by much.  0 is a tie.
    """
    positive, negative = set(words.POSITIVE), set(words.NEGATIVE)
    tokens = text.split()
    return sum(token in positive for token in tokens) - sum(token in negative for token in tokens)

"""A comparison of methods as the grader sees it: the texts it serves, and a journal of all that was read and run.

`compare(student.compare_…, …)` makes the call; `Comparison` holds what came of it.  The assertions are in
`protocol.py`.  The readings of texts are witnessed by the grader; calls of models are told by the student's side.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import torch

from autograder.sandbox.fixtures.comparison import fresh_model
from autograder.wire.proxy import Call, Function, Student
from exercises.kit import ComparisonConfig, Example, RunRecord, Splits, collate

#: Ids of the texts: 0 is an ordinary token (and the usual padding), then [CLS], [SEP], pairs of markers that tell the
#: texts apart, words that go with class 1 and class 0, words that mean nothing.
CLS, SEP = 1, 2
MARKERS = range(3, 17)
FOR_ONE, FOR_ZERO, NEUTRAL = (17, 18), (19, 20), (0, *range(21, 31))
VOCAB_SIZE = 31
#: How long a text may be: positions of the models.
POSITIONS = 40

Row = tuple[str, int]


def make_texts(
    seed: int,
    train: int = 24,
    validation: int = 12,
    test: int = 15,
    *,
    ones: float = 0.4,
    neutral: tuple[int, int] = (1, 5),
    wrong_labels: Sequence[str] = (),
    every: int = 5,
) -> Splits:
    """Texts whose class two words give away: [CLS] marker marker words [SEP], the markers different for every text.

    ones: share of class 1, in every part.  neutral: fewest and most words without a meaning.
    wrong_labels: the parts in which every `every`-th label is wrong.
    """
    source = random.Random(seed)
    pairs = [(a, b) for a in MARKERS for b in MARKERS]
    source.shuffle(pairs)
    parts = {}
    for part, count in (("train", train), ("validation", validation), ("test", test)):
        labels = [int(number < round(ones * count)) for number in range(count)]
        source.shuffle(labels)
        texts = []
        for label in labels:
            words = [source.choice(NEUTRAL) for _ in range(source.randint(*neutral))]
            words += [source.choice(FOR_ONE if label else FOR_ZERO) for _ in range(3)]
            source.shuffle(words)
            texts.append(Example([CLS, *pairs.pop(), *words, SEP], label))
        if part in wrong_labels:
            texts = [t._replace(label=1 - t.label) if n % every == 0 else t for n, t in enumerate(texts)]
        parts[part] = texts
    return Splits(**parts)


def with_turned_labels(texts: Splits, part: str) -> Splits:
    """The same texts, every label of one part turned round: there, whatever was learned is wrong."""
    return texts._replace(**{part: [t._replace(label=1 - t.label) for t in getattr(texts, part)]})


class Event(NamedTuple):
    """One thing that happened.

    seconds: when, by the grader's clock.
    kind: "read" a text, "made" a model, "cold" the first call of an encoder, "forward" or "backward" through an
        encoder, "predicted" by a whole model in evaluation mode.
    rows: the texts read or run through, None for what is none of them.  lengths: tokens of each that are not masked.
    learning: numbers in the encoder's parameters that require a gradient.  graph: whether a gradient can flow back.
    """

    at: int
    seconds: float
    kind: str
    model: int = -1
    seed: int = 0
    rows: tuple[Row | None, ...] = ()
    lengths: tuple[int, ...] = ()
    input_ids: torch.Tensor | None = None
    attention_mask: torch.Tensor | None = None
    learning: int = 0
    training: bool = False
    graph: bool = False
    logits: torch.Tensor | None = None

    def of(self, part: str) -> bool:
        """Whether any of its texts belongs to that part."""
        return any(row is not None and row[0] == part for row in self.rows)


class Journal:
    """Answers readings of the texts and notes them, and what models tell, in order."""

    def __init__(self, texts: Splits) -> None:
        self._texts = texts
        self._rows: dict[tuple[int, ...], Row] = {
            tuple(text.input_ids[1:3]): (part, index)
            for part in texts._fields
            for index, text in enumerate(getattr(texts, part))
        }
        self.events: list[Event] = []

    def read(self, part: str, index: int) -> tuple[list[int], int]:
        """The text, for `fixtures.served_splits`."""
        text = getattr(self._texts, part)[index]
        self._note("read", rows=((part, index),))
        return list(text.input_ids), text.label

    def told(self, kind: str, model: int, *rest: Any) -> None:
        """What `fixtures.watched_models` tells."""
        if kind == "made":
            self._note(kind, model, seed=rest[0])
        elif kind == "forward":
            ids, mask, learning, training, graph = rest
            rows = self._known(ids)
            whole = [ids.shape[1]] * len(rows) if ids is not None and ids.ndim == 2 else []
            lengths = whole if mask is None else mask.reshape(len(mask), -1).ne(0).sum(-1).tolist()
            self._note(
                kind,
                model,
                rows=rows,
                lengths=tuple(lengths),
                input_ids=ids,
                attention_mask=mask,
                learning=learning,
                training=training,
                graph=graph,
            )
        elif kind == "predicted":
            ids, logits = rest
            self._note(kind, model, rows=self._known(ids), input_ids=ids, logits=logits)
        else:
            self._note(kind, model)

    def _note(self, kind: str, model: int = -1, **what: Any) -> None:
        self.events.append(Event(len(self.events), time.perf_counter(), kind, model, **what))

    def _known(self, ids: torch.Tensor | None) -> tuple[Row | None, ...]:
        if ids is None or ids.ndim != 2:
            return ()
        return tuple(self._rows.get(tuple(row[1:3])) for row in ids.tolist())


@dataclass(frozen=True)
class Run:
    """All that happened to one model.  events: in order, the making of it first."""

    model: int
    seed: int
    events: tuple[Event, ...]

    def forward(self, part: str) -> list[Event]:
        """Calls of the encoder on texts of that part."""
        return [event for event in self.events if event.kind == "forward" and event.of(part)]

    @cached_property
    def backward_calls(self) -> int:
        return sum(event.kind == "backward" for event in self.events)

    @cached_property
    def steps(self) -> list[Event]:
        """The encoder's forward calls through which a gradient could flow back while training."""
        return [event for event in self.events if event.kind == "forward" and event.graph and event.training]

    @property
    def learning(self) -> int:
        """Numbers in the encoder's parameters that learned in this run."""
        return self.steps[-1].learning if self.backward_calls and self.steps else 0

    def selected(self, validation: int) -> int:
        """When it was last trained, or had first run through all validation texts, whichever is later."""
        trained = [e.at for e in self.events if e.kind == "backward" or (e.training and e.of("train"))]
        seen: set[Row] = set()
        scored = 0
        for event in self.forward("validation"):
            seen |= {row for row in event.rows if row is not None and row[0] == "validation"}
            if len(seen) == validation:
                scored = event.at
                break
        return max([self.events[0].at, *trained, scored])

    def logits(self, part: str, count: int) -> torch.Tensor | None:
        """(count, C): the last logits of every text of that part, or None if the whole model did not predict all."""
        found: dict[int, torch.Tensor] = {}
        for event in self.events:
            if event.kind == "predicted" and event.logits is not None and len(event.logits) == len(event.rows):
                found |= {
                    row[1]: value for row, value in zip(event.rows, event.logits, strict=True) if row and row[0] == part
                }
        return torch.stack([found[index] for index in range(count)]) if len(found) == count else None


@dataclass(frozen=True)
class Comparison:
    """One call of compare_…: what it was given, what it did, and what it returned.  Plain data, to be kept."""

    call: Call
    returned: Any
    #: Wall time of the call, in seconds.
    seconds: float
    texts: Splits
    config: ComparisonConfig
    events: tuple[Event, ...]
    #: What `fresh_model` takes besides the seed.
    model_settings: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def text(self) -> str:
        """The call, for messages: the texts are too many to show."""
        sizes = ", ".join(f"{part} {len(getattr(self.texts, part))}" for part in self.texts._fields)
        c = self.config
        return (
            f"{self.call.function}(splits of {sizes} texts, make_model, config with seeds={c.seeds}, "
            f"settings={dict(c.settings)}, updates={c.updates}, batch_size={c.batch_size}, pad_id={c.pad_id})"
        )

    @cached_property
    def runs(self) -> list[Run]:
        """One for every model that was made."""
        grouped: dict[int, list[Event]] = {}
        for event in self.events:
            if event.model >= 0:
                grouped.setdefault(event.model, []).append(event)
        return [Run(number, events[0].seed, tuple(events)) for number, events in sorted(grouped.items())]

    def reads(self, part: str) -> list[list[int]]:
        """For every text of that part, when it was read."""
        times: list[list[int]] = [[] for _ in getattr(self.texts, part)]
        for event in self.events:
            if event.kind == "read" and event.of(part):
                row = event.rows[0]
                assert row is not None
                times[row[1]].append(event.at)
        return times

    @cached_property
    def encoder_size(self) -> int:
        """How many numbers the encoder of a model has."""
        return sum(p.numel() for p in fresh_model(0, **self.model_settings).encoder.parameters())

    def untrained(self, seed: int, part: str) -> torch.Tensor:
        """The logits (n, C) that make_model(seed) gives the texts of that part before any training, computed here."""
        model = fresh_model(seed, **self.model_settings).eval()
        with torch.no_grad():
            batch = collate(getattr(self.texts, part))
            return model(batch.input_ids, batch.attention_mask)


def compare(
    student: Student,
    function: Function,
    texts: Splits,
    config: ComparisonConfig,
    *,
    device: torch.device | None = None,
    base_seed: int = 3,
    cold_seconds: float = 0.0,
    notes: Journal | None = None,
    **settings: Any,
) -> Comparison:
    """Call student.compare_…(splits, make_model, config) with texts and models that are watched.

    device: replaces that of the configuration.  notes: the journal to use, of the same texts.
    settings: of `fixtures.classifier`, e.g. hidden_size, dropout.
    Expensive: use it inside `student.once`.
    """
    journal = Journal(texts) if notes is None else notes
    settings = {"vocab_size": VOCAB_SIZE, "positions": POSITIONS, "hidden_size": 32, **settings}
    if device is not None:
        config = replace(config, device=device.type)
    sizes = [len(getattr(texts, part)) for part in texts._fields]
    splits = student.fixtures.served_splits(student.lend(journal.read), *sizes)
    make_model = student.fixtures.watched_models(student.lend(journal.told), base_seed, cold_seconds, **settings)
    started = time.perf_counter()
    returned = function(splits, make_model, config)
    seconds = time.perf_counter() - started
    return Comparison(
        function.last, returned, seconds, texts, config, tuple(journal.events), {"base_seed": base_seed, **settings}
    )


#: How a run is told from those of other methods: (method, max_length, strategy), None for one that is none of them.
Place = Callable[[Comparison, Run], tuple[str, int | None, str | None] | None]
Key = tuple[int, str, int | None, str | None]


def key(record: RunRecord) -> Key:
    return record.seed, record.method, record.max_length, record.strategy


def by_learning(comparison: Comparison, run: Run) -> tuple[str, int | None, str | None] | None:
    """Exercises 8 and 9: full and LoRA learn in the encoder, all of it or little of it; frozen does not."""
    if not run.learning:
        return "frozen", None, None
    return ("full" if run.learning == comparison.encoder_size else "lora"), None, None

"""Labelled texts by name, cut into train, validation and test: a grammar's reviews, film snippets, IMDb, SST-2, a CSV.

    python -m exercises.kit.datasets movies

fetches the film snippets, once.
"""

from __future__ import annotations

import csv
import itertools
import random
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from exercises.kit.reviews import Review, reviews
from exercises.kit.snippets import fetch_snippets, read_snippets
from exercises.kit.tokenizer import Tokenizer
from exercises.kit.types import Example, Splits
from exercises.kit.unavailable import Unavailable


class Sizes(NamedTuple):
    """How many texts each part gets."""

    train: int
    validation: int
    test: int


class TextSplits(NamedTuple):
    """The three parts as text, in the same order as the examples of `load_splits`."""

    train: Sequence[Review]
    validation: Sequence[Review]
    test: Sequence[Review]


class Hub(NamedTuple):
    """Where a data set of the hub is, and which of its parts have labels.  The name of its text column differs too."""

    path: str
    configuration: str | None
    text: str
    #: The part that the test texts come from; train and validation are both cut from "train".
    test: str
    megabytes: int


HUB = {
    "imdb": Hub("stanfordnlp/imdb", None, "text", "test", 84),
    # GLUE keeps the labels of its test part to itself, so its validation part has to be the test here
    "sst2": Hub("nyu-mll/glue", "sst2", "sentence", "validation", 4),
}


def load_texts(name: str, sizes: Sizes | tuple[int, int, int], seed: int = 0) -> TextSplits:
    """Texts and labels of a data set, no text in two parts or twice in one.

    name: "synthetic", reviews from a grammar (`exercises.kit.reviews`);
        "movies", one-sentence film reviews rated by people (fetch them first, see above);
        "imdb", long film reviews from the hub; its own test texts make the test part;
        "sst2", pieces of film reviews from the hub (GLUE); test comes from its validation part, whose labels are known;
        a path of a CSV file with the columns text and label, labels 0 … C-1.
    seed: decides which text goes where.

    Raises:
        Unavailable: the data set is not here; the message says how to get it.
        ValueError: a name that means nothing, too few texts for the sizes, a CSV file that does not fit.
    """
    sizes = Sizes(*sizes)
    for part, size in zip(sizes._fields, sizes, strict=True):
        if size < 1:
            raise ValueError(f"sizes.{part} is {size}, but every part needs at least one text")
    if name == "synthetic":
        return TextSplits(*_cut(reviews(sum(sizes), seed), sizes))
    if name == "movies":
        return TextSplits(*_shuffled_cut(name, read_snippets(), sizes, seed))
    if name in HUB:
        return _load_hub(name, sizes, seed)
    if Path(name).suffix.lower() == ".csv":
        return TextSplits(*_shuffled_cut(name, read_csv(Path(name)), sizes, seed))
    raise ValueError(
        f'There is no data set {name!r}: there are "synthetic", "movies", "imdb", "sst2", '
        "and any file whose name ends in .csv"
    )


def load_splits(
    name: str,
    tokenizer: Tokenizer,
    sizes: Sizes | tuple[int, int, int],
    seed: int = 0,
    *,
    max_length: int | None = None,
) -> Splits:
    """The same as examples: ids with [CLS] first and [SEP] last.

    tokenizer: that of the encoder which is to read them (`load_encoder`).
    max_length: longer sequences lose their end, but keep [SEP].  None leaves them whole; an encoder has only so many
        positions (the tiny one 128, BERT 512), so IMDb needs a maximum.

    Raises:
        Unavailable, ValueError: as `load_texts`; max_length under 2.
    """
    if max_length is not None and max_length < 2:
        raise ValueError(f"max_length is {max_length}, but [CLS] and [SEP] alone take 2")
    parts = []
    for part in load_texts(name, sizes, seed):
        examples = []
        for text, label in part:
            ids = tokenizer.encode(text)
            if max_length is not None and len(ids) > max_length:
                ids = [*ids[: max_length - 1], ids[-1]]
            examples.append(Example(ids, label))
        parts.append(examples)
    return Splits(*parts)


def read_csv(path: Path) -> list[Review]:
    """The rows of a CSV file with the columns text and label.

    Raises:
        ValueError: the file does not exist or a column, a text or a label is missing; names the line.
    """
    if not path.is_file():
        raise ValueError(f"There is no file {path}")
    texts = []
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = csv.DictReader(file)
        missing = {"text", "label"} - set(rows.fieldnames or ())
        if missing:
            raise ValueError(
                f"{path} has no column {' and no column '.join(sorted(missing))}; its first line must name the columns "
                f"text and label, and names {', '.join(rows.fieldnames or ()) or 'nothing'}"
            )
        for row in rows:
            text, label = (row["text"] or "").strip(), (row["label"] or "").strip()
            if not text:
                raise ValueError(f"{path}, line {rows.line_num}: the text is empty")
            if not (label.isascii() and label.isdigit()):
                raise ValueError(f"{path}, line {rows.line_num}: the label is {label!r}, but must be 0, 1, 2, …")
            texts.append(Review(text, int(label)))
    classes = {label for _, label in texts}
    if classes != set(range(len(classes))) or len(classes) < 2:
        shown = ", ".join(map(str, sorted(classes)[:10])) or "none"
        raise ValueError(f"{path}: the labels must be 0 … C-1 with at least two classes; the file holds {shown}")
    return texts


def _load_hub(name: str, sizes: Sizes, seed: int) -> TextSplits:
    hub = HUB[name]
    try:
        import datasets
    except ImportError as error:
        raise Unavailable(
            f'The data set "{name}" is read with the package datasets, which is not installed. '
            "Install it with: pip install 'bert-exercises[real]'"
        ) from error
    try:
        learn, test = datasets.load_dataset(hub.path, hub.configuration, split=["train", hub.test])
    except (OSError, datasets.exceptions.DatasetsError) as error:
        raise Unavailable(
            f'The data set "{name}" ({hub.megabytes} MB) could not be fetched from the hub. With a connection, run '
            "this again: it is then kept. Without one, save it elsewhere as a CSV file with the columns text and label "
            'and give it; or use "movies" or "synthetic". '
            f"({str(error).strip().splitlines()[0] if str(error) else error!r})"
        ) from error
    learning = [Review(row[hub.text], row["label"]) for row in learn]
    known = {text for text, _ in learning}
    testing = [Review(row[hub.text], row["label"]) for row in test if row[hub.text] not in known]
    train, validation = _shuffled_cut(f"{name}, train", learning, (sizes.train, sizes.validation), seed)
    (test_texts,) = _shuffled_cut(f"{name}, {hub.test}", testing, (sizes.test,), seed)
    return TextSplits(train, validation, test_texts)


def _shuffled_cut(name: str, texts: Iterable[Review], sizes: Sequence[int], seed: int) -> list[Sequence[Review]]:
    """Each text once, with the label it has first, in an order that the seed decides, cut into parts."""
    unique = list({" ".join(review.text.split()): review for review in reversed(list(texts))}.values())
    if len(unique) < sum(sizes):
        raise ValueError(f"{name} holds {len(unique)} different texts, but {sum(sizes)} are asked for: {tuple(sizes)}")
    unique.sort()
    random.Random(seed).shuffle(unique)
    return _cut(unique, sizes)


def _cut(texts: Sequence[Review], sizes: Sequence[int]) -> list[Sequence[Review]]:
    ends = itertools.accumulate(sizes)
    return [texts[end - size : end] for end, size in zip(ends, sizes, strict=True)]


def main(arguments: Sequence[str]) -> int:
    """The command line."""
    if list(arguments) != ["movies"]:
        print("usage: python -m exercises.kit.datasets movies", file=sys.stderr)
        print('"movies" is the only data set that has to be fetched by a command of its own.', file=sys.stderr)
        return 2
    try:
        path = fetch_snippets()
        count = len(read_snippets())
    except Unavailable as error:
        print(error, file=sys.stderr)
        return 1
    print(f"{count} film snippets with a clear rating, in {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

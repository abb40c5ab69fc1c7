"""From text to ids: the WordPiece tokenizer of the tiny encoder, or the one that belongs to another checkpoint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from exercises.kit.vocabulary import Vocabulary

if TYPE_CHECKING:
    import tokenizers

#: In the order of their ids, as BERT's own tokenizer is set up today.
SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

_CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_PUNCTUATION = ".,;:!?'\"()-&/%$"


@dataclass(frozen=True)
class Tokenizer:
    """What the exercises need to know of a tokenizer."""

    vocabulary: Vocabulary
    #: text -> ids, [CLS] first and [SEP] last, not truncated.
    encode: Callable[[str], list[int]]
    #: ids -> text, special tokens left out.
    decode: Callable[[list[int]], str]


def make_wordpiece(texts: Iterable[str]) -> tokenizers.Tokenizer:
    """A WordPiece tokenizer whose pieces are all words of the texts and all single characters, so that nothing made of
    Latin letters, digits and common punctuation is unknown.

    Ids: the special tokens, the characters, then the words, frequent ones first.
    """
    from tokenizers import Tokenizer as FastTokenizer
    from tokenizers import decoders, models, normalizers, pre_tokenizers, processors

    counts = Counter(word for text in texts for word in text.split())
    frequent = sorted(counts, key=lambda word: (-counts[word], word))
    pieces = dict.fromkeys(
        [*SPECIAL_TOKENS, *_PUNCTUATION, *_CHARACTERS, *(f"##{character}" for character in _CHARACTERS), *frequent]
    )
    vocabulary = {piece: i for i, piece in enumerate(pieces)}
    tokenizer = FastTokenizer(models.WordPiece(vocab=vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, vocabulary[token]) for token in ("[CLS]", "[SEP]")],
    )
    tokenizer.add_special_tokens(list(SPECIAL_TOKENS))
    return tokenizer


def read_tokenizer(folder: Path) -> Tokenizer:
    """The tokenizer of a folder with a tokenizer.json made by `make_wordpiece`.

    Reads it with the library `tokenizers` alone: importing `transformers` takes seconds.
    """
    from tokenizers import Tokenizer as FastTokenizer

    fast = FastTokenizer.from_file(str(folder / "tokenizer.json"))
    size = fast.get_vocab_size()
    pieces = fast.get_vocab()
    pad, unk, cls, sep, mask = (pieces[token] for token in SPECIAL_TOKENS)
    return Tokenizer(
        Vocabulary(size=size, pad_id=pad, cls_id=cls, sep_id=sep, mask_id=mask, unk_id=unk),
        encode=lambda text: list(fast.encode(text).ids),
        decode=fast.decode,
    )


def wrap_tokenizer(tokenizer: Any, name: str) -> Tokenizer:
    """The same view of a tokenizer of `transformers`.

    Raises:
        ValueError: it lacks one of the five special tokens, as those of generators do.
    """
    special: dict[str, int] = {}
    for kind in ("pad", "cls", "sep", "mask", "unk"):
        i = getattr(tokenizer, f"{kind}_token_id", None)
        if i is None:
            raise ValueError(f"The tokenizer of {name!r} has no {kind}_id: the exercises need one like BERT's")
        special[f"{kind}_id"] = i
    return Tokenizer(
        Vocabulary(size=len(tokenizer), **special),
        encode=lambda text: list(tokenizer(text, truncation=False, verbose=False)["input_ids"]),
        decode=lambda ids: tokenizer.decode(ids, skip_special_tokens=True),
    )


def tiny_tokenizer() -> Tokenizer:
    """The tokenizer of the tiny encoder, whole words of the synthetic reviews.

    >>> tokenizer = tiny_tokenizer()
    >>> tokenizer.decode(tokenizer.encode("the soup was not bland ."))
    'the soup was not bland.'
    """
    return read_tokenizer(Path(__file__).parent / "data" / "tiny")

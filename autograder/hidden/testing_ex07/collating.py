"""Implementations of `collate_mlm`: right ones of three families, and wrong ones with one step done wrongly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from autograder.hidden.testing_ex07.masking import MOST_POSITIONS, Counted, Independent, Masking, WithNumpy
from autograder.hidden.testing_ex07.masking_faults import NothingToDoAccepted
from exercises.kit import MaskedBatch, Vocabulary

Padded = tuple[torch.Tensor, torch.Tensor]


class Collating:
    """`collate_mlm` in steps, of which a family or a fault replaces some."""

    masking: type[Masking] = Independent

    def __init__(self, salt: int) -> None:
        self.mask_tokens = self.masking(salt)

    def __call__(
        self,
        examples: Sequence[Sequence[int]],
        vocabulary: Vocabulary,
        *,
        mlm_probability: float = 0.15,
        ignore_index: int = -100,
        generator: torch.Generator | None = None,
    ) -> MaskedBatch:
        longest = max((len(example) for example in examples), default=0)
        if max(longest * len(examples), vocabulary.size) > MOST_POSITIONS:
            raise MemoryError(f"no call may ask for more than {MOST_POSITIONS:,} positions")
        self.refuse(examples, vocabulary)
        if longest == 0:
            return self.nothing(len(examples))
        settings = {"mlm_probability": mlm_probability, "ignore_index": ignore_index, "generator": generator}
        input_ids, attention_mask = self.pad(examples, vocabulary.pad_id, longest)
        batch = self.mask_tokens(
            input_ids,
            attention_mask,
            self.special(input_ids, attention_mask, vocabulary),
            mask_token_id=vocabulary.mask_id,
            ordinary_ids=vocabulary.ordinary_ids,
            **self.handed_on(settings),
        )
        return self.finish(batch, examples, vocabulary)

    def refuse(self, examples: Sequence[Sequence[int]], vocabulary: Vocabulary) -> None:
        self.refuse_nothing(examples)
        self.refuse_empty(examples)
        self.refuse_ids(examples, vocabulary)

    def refuse_nothing(self, examples: Sequence[Sequence[int]]) -> None:
        if len(examples) == 0:
            raise ValueError("examples is empty")

    def refuse_empty(self, examples: Sequence[Sequence[int]]) -> None:
        if any(len(example) == 0 for example in examples):
            raise ValueError("examples holds an example without tokens")

    def refuse_ids(self, examples: Sequence[Sequence[int]], vocabulary: Vocabulary) -> None:
        for i in (i for example in examples for i in example):
            if not 0 <= i < vocabulary.size:
                raise ValueError(f"examples holds {i}, but the vocabulary has {vocabulary.size} ids")

    def nothing(self, rows: int) -> MaskedBatch:
        empty = torch.zeros((rows, 0), dtype=torch.int64)
        return MaskedBatch(empty, empty.clone(), empty.clone(), empty.bool())

    def pad(self, examples: Sequence[Sequence[int]], pad_id: int, longest: int) -> Padded:
        rows = [[*example, *[pad_id] * (longest - len(example))] for example in examples]
        mask = [[1] * len(example) + [0] * (longest - len(example)) for example in examples]
        return torch.tensor(rows, dtype=torch.int64), torch.tensor(mask, dtype=torch.int64)

    def special(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, vocabulary: Vocabulary) -> torch.Tensor:
        return torch.isin(input_ids, vocabulary.special_ids)

    def handed_on(self, settings: dict[str, Any]) -> dict[str, Any]:
        return settings

    def finish(self, batch: MaskedBatch, examples: Sequence[Sequence[int]], vocabulary: Vocabulary) -> MaskedBatch:
        return batch


class WithLists(Collating):
    """Lists, and independent draws."""


class WithPadSequence(Collating):
    """PyTorch's own padding, masks as bool, and an exact number of targets."""

    masking = Counted

    def pad(self, examples: Sequence[Sequence[int]], pad_id: int, longest: int) -> Padded:
        rows = [torch.tensor(list(example), dtype=torch.int64) for example in examples]
        lengths = torch.tensor([len(example) for example in examples])
        ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=pad_id)
        return ids, torch.arange(longest) < lengths[:, None]


class WithArrays(Collating):
    """NumPy throughout."""

    masking = WithNumpy

    def pad(self, examples: Sequence[Sequence[int]], pad_id: int, longest: int) -> Padded:
        ids = np.full((len(examples), longest), pad_id, dtype=np.int64)
        mask = np.zeros_like(ids)
        for row, example in enumerate(examples):
            ids[row, : len(example)] = list(example)
            mask[row, : len(example)] = 1
        return torch.from_numpy(ids), torch.from_numpy(mask)


FAMILIES: tuple[type[Collating], ...] = (WithLists, WithPadSequence, WithArrays)


# -- padding -----------------------------------------------------------------------------------------------------------
class AttentionFromIds(Collating):
    """The attention mask is made by comparing ids with pad_id."""

    def pad(self, examples: Sequence[Sequence[int]], pad_id: int, longest: int) -> Padded:
        ids, _ = super().pad(examples, pad_id, longest)
        return ids, (ids != pad_id).long()


class PaddedOnTheLeft(Collating):
    """The padding is on the left."""

    def pad(self, examples: Sequence[Sequence[int]], pad_id: int, longest: int) -> Padded:
        ids, mask = super().pad([list(reversed(example)) for example in examples], pad_id, longest)
        return ids.flip(1), mask.flip(1)


class PaddedWithZero(Collating):
    """The padding is id 0 in place of pad_id."""

    def pad(self, examples: Sequence[Sequence[int]], pad_id: int, longest: int) -> Padded:
        return super().pad(examples, 0, longest)

    def special(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, vocabulary: Vocabulary) -> torch.Tensor:
        return super().special(input_ids, attention_mask, vocabulary) | ~attention_mask.bool()


class PaddedToMultiple(Collating):
    """The width is rounded up to a multiple of 8."""

    def pad(self, examples: Sequence[Sequence[int]], pad_id: int, longest: int) -> Padded:
        ids, mask = super().pad(examples, pad_id, longest)
        more = -longest % 8
        return torch.nn.functional.pad(ids, (0, more), value=pad_id), torch.nn.functional.pad(mask, (0, more))


class LabelsAtPadding(Collating):
    """The labels at the padding are pad_id."""

    def finish(self, batch: MaskedBatch, examples: Sequence[Sequence[int]], vocabulary: Vocabulary) -> MaskedBatch:
        return batch._replace(labels=torch.where(batch.attention_mask.bool(), batch.labels, vocabulary.pad_id))


# -- special tokens ----------------------------------------------------------------------------------------------------
class OnlyTheEndsSpecial(Collating):
    """Only the first and the last token of a text are special."""

    def special(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, vocabulary: Vocabulary) -> torch.Tensor:
        last = attention_mask.long().sum(dim=1, keepdim=True) - 1
        place = torch.arange(input_ids.shape[1])
        return (place == 0) | (place == last)


class OnlyClsAndSepSpecial(Collating):
    """Only [CLS] and [SEP] are special, not [PAD], [MASK] and [UNK]."""

    def special(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, vocabulary: Vocabulary) -> torch.Tensor:
        return torch.isin(input_ids, torch.tensor([vocabulary.cls_id, vocabulary.sep_id]))


# -- settings ----------------------------------------------------------------------------------------------------------
class IgnoreIndexKept(Collating):
    """Ignore_index is not handed on."""

    def handed_on(self, settings: dict[str, Any]) -> dict[str, Any]:
        return {**settings, "ignore_index": -100}


class ProbabilityKept(Collating):
    """Mlm_probability is not handed on."""

    def handed_on(self, settings: dict[str, Any]) -> dict[str, Any]:
        return {**settings, "mlm_probability": 0.15}


class GeneratorKept(Collating):
    """The generator is not handed on."""

    def handed_on(self, settings: dict[str, Any]) -> dict[str, Any]:
        return {**settings, "generator": None}


# -- arguments ---------------------------------------------------------------------------------------------------------
class NoExamplesAccepted(Collating):
    """An empty list of examples is accepted."""

    def refuse_nothing(self, examples: Sequence[Sequence[int]]) -> None:
        pass


class EmptyExampleAccepted(Collating):
    """An empty example is accepted."""

    def __init__(self, salt: int) -> None:
        super().__init__(salt)
        forgiving: type[Masking] = type("Forgiving", (NothingToDoAccepted, self.masking), {})
        self.mask_tokens = forgiving(salt)

    def refuse_empty(self, examples: Sequence[Sequence[int]]) -> None:
        pass


class AnyIdAccepted(Collating):
    """An id outside of the vocabulary is accepted."""

    def refuse_ids(self, examples: Sequence[Sequence[int]], vocabulary: Vocabulary) -> None:
        pass


class ExamplesPadded(Collating):
    """The lists of the caller grow to the length of the batch."""

    def finish(self, batch: MaskedBatch, examples: Sequence[Sequence[int]], vocabulary: Vocabulary) -> MaskedBatch:
        for example in examples:
            if isinstance(example, list):
                example += [vocabulary.pad_id] * (batch.input_ids.shape[1] - len(example))
        return batch

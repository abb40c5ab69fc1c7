"""Exercise 5 in loops over Python numbers, one position at a time."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from exercises.kit import MaskedBatch, Vocabulary


def mask_tokens(
    input_ids: torch.Tensor,
    attention_mask: torch.Tensor,
    special_tokens_mask: torch.Tensor,
    *,
    mask_token_id: int,
    ordinary_ids: torch.Tensor,
    mlm_probability: float = 0.15,
    mask_rate: float = 0.8,
    random_rate: float = 0.1,
    ignore_index: int = -100,
    generator: torch.Generator | None = None,
) -> MaskedBatch:
    """Independent draws; a sequence without a target gets one, uniform among its candidates."""
    shape = tuple(input_ids.shape)
    if len(shape) != 2 or tuple(attention_mask.shape) != shape or tuple(special_tokens_mask.shape) != shape:
        raise ValueError("input_ids, attention_mask and special_tokens_mask must be (m, T)")
    if not 0 < mlm_probability <= 1:
        raise ValueError(f"mlm_probability {mlm_probability} is outside (0, 1]")
    if not (mask_rate >= 0 and random_rate >= 0 and mask_rate + random_rate <= 1 + 1e-9):
        raise ValueError(f"mask_rate {mask_rate} and random_rate {random_rate} are no shares of a whole")
    ids, pool = input_ids.tolist(), ordinary_ids.tolist()
    if random_rate > 0 and not pool:
        raise ValueError("ordinary_ids is empty")
    places = candidates(attention_mask, special_tokens_mask)
    if not any(places):
        raise ValueError("input_ids holds no candidate")
    chance = _Chance(generator, 3 * input_ids.numel() + len(ids))

    new, labels = [row[:] for row in ids], [[ignore_index] * shape[1] for _ in ids]
    selected = [[False] * shape[1] for _ in ids]
    for row, free in enumerate(places):
        chosen = [place for place in free if chance.next() < mlm_probability]
        if free and not chosen:
            chosen = [free[int(chance.next() * len(free))]]
        for place in chosen:
            selected[row][place] = True
            labels[row][place] = ids[row][place]
            fate = chance.next()
            if fate < mask_rate:
                new[row][place] = mask_token_id
            elif fate < mask_rate + random_rate:
                new[row][place] = pool[int(chance.next() * len(pool))]
    device = input_ids.device
    return MaskedBatch(
        torch.tensor(new, dtype=torch.int64, device=device),
        torch.tensor(labels, dtype=torch.int64, device=device),
        attention_mask,
        torch.tensor(selected, dtype=torch.bool, device=device),
    )


def candidates(attention_mask: torch.Tensor, special_tokens_mask: torch.Tensor) -> list[list[int]]:
    """For each sequence the positions that may be selected."""
    attended, special = attention_mask.tolist(), special_tokens_mask.tolist()
    return [
        [place for place in range(len(row)) if row[place] == 1 and special[number][place] == 0]
        for number, row in enumerate(attended)
    ]


def collate_mlm(
    examples: Sequence[Sequence[int]],
    vocabulary: Vocabulary,
    *,
    mlm_probability: float = 0.15,
    ignore_index: int = -100,
    generator: torch.Generator | None = None,
) -> MaskedBatch:
    """Pad, then mask."""
    if not examples or not all(examples):
        raise ValueError("examples must hold texts")
    for example in examples:
        for i in example:
            if not 0 <= i < vocabulary.size:
                raise ValueError(f"examples: {i} is outside the vocabulary")
    ids, attention = padded(examples, vocabulary)
    return mask_tokens(
        ids,
        attention,
        special(ids, vocabulary),
        mask_token_id=vocabulary.mask_id,
        ordinary_ids=vocabulary.ordinary_ids,
        mlm_probability=mlm_probability,
        ignore_index=ignore_index,
        generator=generator,
    )


def padded(examples: Sequence[Sequence[int]], vocabulary: Vocabulary) -> tuple[torch.Tensor, torch.Tensor]:
    """Ids filled up on the right, and the attention mask."""
    longest = max(len(example) for example in examples)
    ids, attention = [], []
    for example in examples:
        missing = longest - len(example)
        ids.append([*example] + [vocabulary.pad_id] * missing)
        attention.append([1] * len(example) + [0] * missing)
    return torch.tensor(ids, dtype=torch.int64), torch.tensor(attention, dtype=torch.int64)


def special(ids: torch.Tensor, vocabulary: Vocabulary) -> torch.Tensor:
    """1 at special ids, wherever they stand."""
    special_ids = {vocabulary.pad_id, vocabulary.cls_id, vocabulary.sep_id, vocabulary.mask_id, vocabulary.unk_id}
    return torch.tensor([[int(i in special_ids) for i in row] for row in ids.tolist()], dtype=torch.int64)


class _Chance:
    """Uniform numbers in [0, 1), one after the other; drawn at once, because a draw alone is slow."""

    def __init__(self, generator: torch.Generator | None, most: int) -> None:
        device = "cpu" if generator is None else generator.device
        drawn = torch.rand(most, dtype=torch.float64, generator=generator, device=device)
        self._numbers = iter(drawn.tolist())

    def next(self) -> float:
        return next(self._numbers)

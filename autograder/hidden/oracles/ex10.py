"""Exercise 10 in loops over Python numbers, one text and one position at a time."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from exercises.kit import LengthGroup, PaddingReport


def cut(ids: Sequence[int], max_length: int) -> list[int]:
    """The text as the encoder gets it: the first max_length - 1 ids and the last one."""
    kept = []
    for place, token in enumerate(ids):
        if place < max_length - 1 or place == len(ids) - 1:
            kept.append(int(token))
    return kept


def width(sequences: Sequence[Sequence[int]], max_length: int, strategy: str) -> int:
    """T of a batch."""
    if strategy == "global":
        return max_length
    longest = 0
    for ids in sequences:
        longest = max(longest, len(cut(ids, max_length)))
    return longest


def truncate_and_pad(
    sequences: Sequence[Sequence[int]], max_length: int, strategy: str, pad_id: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Refuses what the contract says that it refuses."""
    if strategy not in ("global", "dynamic"):
        raise ValueError(f"strategy {strategy!r} is neither 'global' nor 'dynamic'")
    if max_length < 2:
        raise ValueError(f"max_length {max_length} is less than 2")
    if len(sequences) == 0 or any(len(ids) == 0 for ids in sequences):
        raise ValueError("sequences is empty, or one of them is")
    length = width(sequences, max_length, strategy)
    rows, masks = [], []
    for ids in sequences:
        row, mask = [], []
        kept = cut(ids, max_length)
        for place in range(length):
            row.append(kept[place] if place < len(kept) else pad_id)
            mask.append(int(place < len(kept)))
        rows.append(row)
        masks.append(mask)
    return torch.tensor(rows), torch.tensor(masks)


def padding_report(
    sequences: Sequence[Sequence[int]], max_length: int, strategy: str, batch_size: int
) -> PaddingReport:
    """Refuses what the contract says that it refuses."""
    if batch_size < 1:
        raise ValueError(f"batch_size {batch_size} is less than 1")
    if len(sequences) == 0 or any(len(ids) == 0 for ids in sequences):
        raise ValueError("sequences is empty, or one of them is")
    padding = positions = longer = 0
    for start in range(0, len(sequences), batch_size):
        batch = sequences[start : start + batch_size]
        length = width(batch, max_length, strategy)
        for ids in batch:
            longer += len(ids) > max_length
            positions += length
            padding += length - len(cut(ids, max_length))
    return PaddingReport(longer / len(sequences), padding / positions)


def errors_by_length(lengths: Sequence[int], correct: Sequence[bool], edges: Sequence[int]) -> list[LengthGroup]:
    """For input that the contract allows."""
    groups = []
    shortest = 1
    for longest in [*edges, None]:
        texts = errors = 0
        for length, right in zip(lengths, correct, strict=True):
            if length >= shortest and (longest is None or length <= longest):
                texts += 1
                errors += not right
        groups.append(LengthGroup(shortest, longest, texts, errors, errors / texts if texts else None))
        shortest = 0 if longest is None else longest + 1
    return groups

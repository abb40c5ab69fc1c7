# honest: Works on Python lists and returns the attention mask as a view of the argument.
"""Lists in, tensors out."""

import torch

from exercises.kit import MaskedBatch


def mask_tokens(
    input_ids,
    attention_mask,
    special_tokens_mask,
    *,
    mask_token_id,
    ordinary_ids,
    mlm_probability=0.15,
    mask_rate=0.8,
    random_rate=0.1,
    ignore_index=-100,
    generator=None,
):
    """At most four numbers a position are needed."""
    for name, tensor in (
        ("input_ids", input_ids),
        ("attention_mask", attention_mask),
        ("special_tokens_mask", special_tokens_mask),
    ):
        if tensor.dim() != 2:
            raise ValueError(f"{name} must be 2-D, got shape {tuple(tensor.shape)}")
    if attention_mask.shape != input_ids.shape:
        raise ValueError(f"attention_mask {tuple(attention_mask.shape)} does not fit input_ids {tuple(input_ids.shape)}")
    if special_tokens_mask.shape != input_ids.shape:
        raise ValueError(
            f"special_tokens_mask {tuple(special_tokens_mask.shape)} does not fit input_ids {tuple(input_ids.shape)}"
        )
    if not 0 < mlm_probability <= 1:
        raise ValueError(f"mlm_probability must lie in (0, 1], got {mlm_probability}")
    if not mask_rate >= 0:
        raise ValueError(f"mask_rate must not be negative, got {mask_rate}")
    if not random_rate >= 0:
        raise ValueError(f"random_rate must not be negative, got {random_rate}")
    if mask_rate + random_rate > 1 + 1e-9:
        raise ValueError(f"mask_rate {mask_rate} and random_rate {random_rate} sum to more than 1")
    if random_rate > 0 and len(ordinary_ids) == 0:
        raise ValueError(f"ordinary_ids is empty, but random_rate is {random_rate}")
    candidates = attention_mask.bool() & ~special_tokens_mask.bool()
    if not candidates.any():
        raise ValueError("attention_mask and special_tokens_mask leave no candidate in the whole batch")
    m, length = input_ids.shape
    numbers = torch.rand(m * length * 4, generator=generator, device=input_ids.device, dtype=torch.float64)
    stream = iter(numbers.tolist())
    corrupted, targets = input_ids.tolist(), [[ignore_index] * length for _ in range(m)]
    marks = [[False] * length for _ in range(m)]
    pool = ordinary_ids.tolist()
    for r, allowed in enumerate(candidates.tolist()):
        open_places = [c for c in range(length) if allowed[c]]
        picked = [c for c in open_places if next(stream) < mlm_probability]
        if open_places and not picked:
            picked = [open_places[int(next(stream) * len(open_places))]]
        for c in picked:
            marks[r][c], targets[r][c] = True, corrupted[r][c]
            fate, which = next(stream), next(stream)
            if fate < mask_rate:
                corrupted[r][c] = mask_token_id
            elif fate < mask_rate + random_rate:
                corrupted[r][c] = pool[int(which * len(pool))]
    new = input_ids.new_tensor
    return MaskedBatch(
        new(corrupted), new(targets), attention_mask.view_as(attention_mask),
        torch.tensor(marks, dtype=torch.bool, device=input_ids.device),
    )


def collate_mlm(examples, vocabulary, *, mlm_probability=0.15, ignore_index=-100, generator=None):
    """Pad the examples on the right to the longest, then mask."""
    if len(examples) == 0:
        raise ValueError("examples is empty")
    for number, example in enumerate(examples):
        if len(example) == 0:
            raise ValueError(f"examples[{number}] is empty")
        for token in example:
            if not 0 <= token < vocabulary.size:
                raise ValueError(f"examples[{number}] holds the id {token}, the vocabulary has {vocabulary.size} ids")
    longest = max(len(example) for example in examples)
    input_ids = torch.full((len(examples), longest), vocabulary.pad_id, dtype=torch.int64)
    attention_mask = torch.zeros((len(examples), longest), dtype=torch.int64)
    for row, example in enumerate(examples):
        input_ids[row, : len(example)] = torch.tensor(example)
        attention_mask[row, : len(example)] = 1
    special_tokens_mask = torch.isin(input_ids, vocabulary.special_ids)
    return mask_tokens(
        input_ids,
        attention_mask,
        special_tokens_mask,
        mask_token_id=vocabulary.mask_id,
        ordinary_ids=vocabulary.ordinary_ids,
        mlm_probability=mlm_probability,
        ignore_index=ignore_index,
        generator=generator,
    )

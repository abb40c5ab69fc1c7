# fault: Random ids come from the whole vocabulary, special ids included.
# function: collate_mlm
# check: test_collate_split
# misconception: random-id-not-ordinary
"""Exercise 5: masking for a masked language model."""

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
    """Select and corrupt row by row: a count rounded up or down at random, at least 1, places by a shuffle."""
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
    candidates = (attention_mask == 1) & (special_tokens_mask == 0)
    if not candidates.any():
        raise ValueError("attention_mask and special_tokens_mask leave no candidate in the whole batch")
    device = input_ids.device
    corrupted = input_ids.clone()
    labels = torch.full_like(input_ids, ignore_index)
    selected = torch.zeros(input_ids.shape, dtype=torch.bool, device=device)
    for row in range(input_ids.shape[0]):
        places = candidates[row].nonzero().flatten()
        n = len(places)
        if n == 0:
            continue
        expected = mlm_probability * n
        count = int(expected)
        if torch.rand((), generator=generator, device=device).item() < expected - count:
            count += 1
        count = max(count, 1)
        order = torch.randperm(n, generator=generator, device=device)
        chosen = places[order[:count]]
        originals = input_ids[row, chosen]

        action = torch.rand(len(chosen), generator=generator, device=device)
        new = originals.clone()
        new[action < mask_rate] = mask_token_id
        replaced = (action >= mask_rate) & (action < mask_rate + random_rate)
        if replaced.any():
            pick = torch.randint(len(ordinary_ids), (int(replaced.sum()),), generator=generator, device=device)
            new[replaced] = ordinary_ids[pick]

        selected[row, chosen] = True
        labels[row, chosen] = originals
        corrupted[row, chosen] = new
    return MaskedBatch(corrupted, labels, attention_mask, selected)


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
        ordinary_ids=torch.arange(vocabulary.size),
        mlm_probability=mlm_probability,
        ignore_index=ignore_index,
        generator=generator,
    )

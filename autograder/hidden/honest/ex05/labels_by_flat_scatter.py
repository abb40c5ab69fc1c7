# honest: Works on flat lists of candidate places; labels and ids are written by scatter and index_put.
"""Flat indices."""

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
    """No two-dimensional mask until the end."""
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
    device = input_ids.device
    flat = candidates.reshape(-1).nonzero().reshape(-1)
    row = torch.div(flat, length, rounding_mode="floor")
    hit = torch.rand(len(flat), generator=generator, device=device) < mlm_probability
    # One random candidate of every row: shuffle all, the first of each row is it.
    shuffled = torch.randperm(len(flat), generator=generator, device=device)
    lucky = torch.full((m,), -1, device=device)
    lucky[row[shuffled].flip(0)] = shuffled.flip(0)
    position = torch.full((m,), len(flat), device=device)
    position.scatter_reduce_(0, row[shuffled], torch.arange(len(flat), device=device), "amin")
    has_candidate = position < len(flat)
    lucky = torch.where(has_candidate, shuffled[position.clamp(max=len(flat) - 1)], lucky)
    hits = torch.zeros(m, dtype=torch.long, device=device).index_add(0, row, hit.long())
    needs = has_candidate & (hits == 0)
    hit[lucky[needs]] = True

    places = flat[hit]
    originals = input_ids.reshape(-1)[places]
    fate = torch.rand(len(places), generator=generator, device=device)
    new = torch.where(fate < mask_rate, mask_token_id, originals)
    swap = ((fate >= mask_rate) & (fate < mask_rate + random_rate)).nonzero().reshape(-1)
    if len(swap):
        pick = torch.randint(len(ordinary_ids), (len(swap),), generator=generator, device=device)
        new.index_put_((swap,), ordinary_ids.take(pick))
    corrupted = input_ids.reshape(-1).scatter(0, places, new).reshape(m, length)
    labels = torch.full((m * length,), ignore_index, device=device).scatter(0, places, originals).reshape(m, length)
    selected = torch.zeros(m * length, dtype=torch.bool, device=device).scatter(0, places, True).reshape(m, length)
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
        ordinary_ids=vocabulary.ordinary_ids,
        mlm_probability=mlm_probability,
        ignore_index=ignore_index,
        generator=generator,
    )

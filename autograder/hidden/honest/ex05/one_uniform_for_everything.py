# honest: One double per position decides selection, action and random id, rescaled after every decision.
"""One draw per position."""

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
    """The rest of a uniform number is uniform again."""
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
    shape, device = input_ids.shape, input_ids.device
    u = torch.rand(shape, generator=generator, device=device, dtype=torch.float64)
    lottery = torch.rand(shape, generator=generator, device=device, dtype=torch.float64).masked_fill(~candidates, 2.0)
    selected = candidates & (u < mlm_probability)
    winner = torch.arange(shape[1], device=device) == lottery.argmin(dim=1, keepdim=True)
    forced = winner & candidates & ~selected.any(dim=1, keepdim=True)
    # Given that u is below p, u / p is uniform; given that it is not, (u - p) / (1 - p) is.
    p = float(mlm_probability)
    fresh = torch.where(u < p, u / p, (u - p) / (1 - p) if p < 1 else u)
    selected = selected | forced
    masked = selected & (fresh < mask_rate)
    swapped = selected & ~masked & (fresh < mask_rate + random_rate)
    corrupted = input_ids.clone()
    corrupted[masked] = mask_token_id
    if random_rate > 0:
        inner = (fresh[swapped] - mask_rate) / random_rate
        corrupted[swapped] = ordinary_ids[(inner * len(ordinary_ids)).long().clamp(0, len(ordinary_ids) - 1)]
    labels = torch.full_like(input_ids, ignore_index)
    labels[selected] = input_ids[selected]
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

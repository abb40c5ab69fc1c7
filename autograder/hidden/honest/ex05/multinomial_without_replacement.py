# honest: torch.multinomial draws the places, and the actions too.
"""Everything by multinomial."""

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
    """Places without replacement, actions and ids with replacement."""
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
    weights = candidates.double()
    selected = torch.zeros_like(candidates)
    for row in range(input_ids.shape[0]):
        n = int(weights[row].sum())
        if n > 0:
            count = max(1, round(mlm_probability * n))
            selected[row, torch.multinomial(weights[row], count, replacement=False, generator=generator)] = True
    targets = input_ids[selected]
    keep_rate = max(0.0, 1 - mask_rate - random_rate)
    rates = torch.tensor([mask_rate, random_rate, keep_rate], dtype=torch.float64, device=input_ids.device)
    action = torch.multinomial(rates, len(targets), replacement=True, generator=generator)
    new = torch.where(action == 0, mask_token_id, targets)
    swaps = int((action == 1).sum())
    if swaps:
        even = torch.ones(len(ordinary_ids), dtype=torch.float64, device=input_ids.device)
        new[action == 1] = ordinary_ids[torch.multinomial(even, swaps, replacement=True, generator=generator)]
    corrupted = input_ids.clone()
    corrupted[selected] = new
    return MaskedBatch(corrupted, input_ids.masked_fill(~selected, ignore_index), attention_mask, selected)


def collate_mlm(examples, vocabulary, *, mlm_probability=0.15, ignore_index=-100, generator=None):
    """Pad with list arithmetic and hand everything to mask_tokens."""
    if len(examples) == 0:
        raise ValueError("examples is empty")
    for number, example in enumerate(examples):
        if len(example) == 0:
            raise ValueError(f"examples[{number}] is empty")
        for token in example:
            if not 0 <= token < vocabulary.size:
                raise ValueError(f"examples[{number}] holds the id {token}, the vocabulary has {vocabulary.size} ids")
    longest = max(map(len, examples))
    specials = set(vocabulary.special_ids.tolist())
    rows, attention, special = [], [], []
    for example in examples:
        missing = longest - len(example)
        rows.append(list(example) + [vocabulary.pad_id] * missing)
        attention.append([True] * len(example) + [False] * missing)
        special.append([token in specials for token in rows[-1]])
    return mask_tokens(
        torch.tensor(rows),
        torch.tensor(attention),
        torch.tensor(special),
        mask_token_id=vocabulary.mask_id,
        ordinary_ids=vocabulary.ordinary_ids,
        mlm_probability=mlm_probability,
        ignore_index=ignore_index,
        generator=generator,
    )

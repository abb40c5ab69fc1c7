# fault: One draw decides the fate of every two neighbouring positions.
# function: mask_tokens
# check: test_each_token_on_its_own
# misconception: one-decision-for-many
"""Dynamic masking: hide a random part of every text, anew at every call."""

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
    """Select and corrupt candidates: independent draws, one forced target where there would be none."""
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

    # Which candidates become targets.
    noise = torch.rand(shape, generator=generator, device=device)
    selected = candidates & (noise < mlm_probability)
    # A row with candidates but no target gets one of them, each with the same chance.
    lottery = torch.rand(shape, generator=generator, device=device).masked_fill(~candidates, -1.0)
    winner = torch.zeros_like(selected).scatter_(1, lottery.argmax(dim=1, keepdim=True), True)
    empty = ~selected.any(dim=1, keepdim=True)
    selected = selected | (winner & candidates & empty)

    # What becomes of the targets: one draw decides, cut at mask_rate and mask_rate + random_rate.
    pairs = torch.rand((shape[0], shape[1] // 2 + 1), generator=generator, device=device)
    action = pairs.repeat_interleave(2, dim=1)[:, : shape[1]]
    masked = selected & (action < mask_rate)
    replaced = selected & (action >= mask_rate) & (action < mask_rate + random_rate)
    corrupted = input_ids.clone()
    corrupted[masked] = mask_token_id
    if random_rate > 0:
        pick = torch.randint(len(ordinary_ids), shape, generator=generator, device=device)
        corrupted[replaced] = ordinary_ids[pick[replaced]]

    labels = torch.where(selected, input_ids, ignore_index)
    return MaskedBatch(corrupted, labels, attention_mask, selected)


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

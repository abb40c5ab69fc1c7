# fault: selected marks changed ids (all targets where nothing changed), so others that stayed the same are missing.
# function: mask_tokens
# check: test_labels
# misconception: targets-by-change
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
    action = torch.rand(shape, generator=generator, device=device)
    masked = selected & (action < mask_rate)
    replaced = selected & (action >= mask_rate) & (action < mask_rate + random_rate)
    corrupted = input_ids.clone()
    corrupted[masked] = mask_token_id
    if random_rate > 0:
        pick = torch.randint(len(ordinary_ids), shape, generator=generator, device=device)
        corrupted[replaced] = ordinary_ids[pick[replaced]]

    labels = torch.where(selected, input_ids, ignore_index)
    changed = corrupted != input_ids
    changed |= selected & ~changed.any(dim=1, keepdim=True)  # every sequence has a target
    return MaskedBatch(corrupted, labels, attention_mask, changed)


def collate_mlm(examples, vocabulary, *, mlm_probability=0.15, ignore_index=-100, generator=None):
    """Pad on the right to the longest example; masking is done by _hide."""
    if len(examples) == 0:
        raise ValueError("examples is empty")
    for number, example in enumerate(examples):
        if len(example) == 0:
            raise ValueError(f"examples[{number}] is empty")
        for token in example:
            if not 0 <= token < vocabulary.size:
                raise ValueError(f"examples[{number}] holds the id {token}, the vocabulary has {vocabulary.size} ids")
    lengths = torch.tensor([len(example) for example in examples])
    rows = [torch.tensor(example, dtype=torch.int64) for example in examples]
    input_ids = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=vocabulary.pad_id)
    attention_mask = (torch.arange(input_ids.shape[1]) < lengths[:, None]).long()
    special = torch.isin(input_ids, vocabulary.special_ids)
    candidates = attention_mask.bool() & ~special
    selected = _choose(candidates, mlm_probability, generator)
    labels = torch.full_like(input_ids, ignore_index)
    labels[selected] = input_ids[selected]
    return MaskedBatch(_hide(input_ids, selected, vocabulary, generator), labels, attention_mask, selected)


def _choose(candidates, probability, generator):
    """Independent draws for all candidates; a row left with none gets its candidate of smallest draw."""
    if not 0 < probability <= 1:
        raise ValueError(f"mlm_probability must lie in (0, 1], got {probability}")
    if not candidates.any():
        raise ValueError("examples hold nothing but special tokens")
    draw = torch.rand(candidates.shape, generator=generator).masked_fill(~candidates, 2.0)
    smallest = torch.arange(draw.shape[1]) == draw.argmin(dim=1, keepdim=True)
    return candidates & ((draw < probability) | smallest)


def _hide(input_ids, selected, vocabulary, generator):
    """80% of the selected become [MASK], 10% a random ordinary id, 10% stay."""
    ordinary = vocabulary.ordinary_ids
    action = torch.rand(input_ids.shape, generator=generator)
    other = ordinary[torch.randint(len(ordinary), input_ids.shape, generator=generator)]
    hidden = torch.where(selected & (action < 0.8), vocabulary.mask_id, input_ids)
    return torch.where(selected & (action >= 0.8) & (action < 0.9), other, hidden)

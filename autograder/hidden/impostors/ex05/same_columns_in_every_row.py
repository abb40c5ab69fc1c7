# fault: One row of noise is used for all rows, so the same columns are selected everywhere.
# function: mask_tokens
# check: test_sequences_independent
# misconception: same-mask-in-all-sequences
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
    noise = torch.rand(shape[1], generator=generator, device=device).expand(shape).masked_fill(~candidates, 2.0)
    count = (candidates.sum(dim=1, keepdim=True) * mlm_probability).round().clamp(min=1)
    selected = candidates & (noise.argsort(dim=1).argsort(dim=1) < count)

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
    return MaskedBatch(corrupted, labels, attention_mask, selected)


def collate_mlm(examples, vocabulary, *, mlm_probability=0.15, ignore_index=-100, generator=None):
    """Pad and mask one example after the other, without mask_tokens."""
    if len(examples) == 0:
        raise ValueError("examples is empty")
    for number, example in enumerate(examples):
        if len(example) == 0:
            raise ValueError(f"examples[{number}] is empty")
        for token in example:
            if not 0 <= token < vocabulary.size:
                raise ValueError(f"examples[{number}] holds the id {token}, the vocabulary has {vocabulary.size} ids")
    if not 0 < mlm_probability <= 1:
        raise ValueError(f"mlm_probability must lie in (0, 1], got {mlm_probability}")
    specials = set(vocabulary.special_ids.tolist())
    ordinary = vocabulary.ordinary_ids.tolist()
    longest = max(len(example) for example in examples)
    ids, labels, attention, chosen = [], [], [], []
    for example in examples:
        padding = longest - len(example)
        targets = _pick([place for place, token in enumerate(example) if token not in specials], mlm_probability, generator)
        ids.append(
            [
                _disguise(token, vocabulary.mask_id, ordinary, generator) if place in targets else token
                for place, token in enumerate(example)
            ]
            + [vocabulary.pad_id] * padding
        )
        labels.append(
            [token if place in targets else ignore_index for place, token in enumerate(example)]
            + [ignore_index] * padding
        )
        attention.append([1] * len(example) + [0] * padding)
        chosen.append([place in targets for place in range(longest)])
    return MaskedBatch(torch.tensor(ids), torch.tensor(labels), torch.tensor(attention), torch.tensor(chosen))


def _pick(places, probability, generator):
    """The set of places that become targets, at least one where there are any."""
    draws = torch.rand(len(places), generator=generator).tolist()
    targets = {place for place, draw in zip(places, draws) if draw < probability}
    if places and not targets:
        targets = {places[int(torch.randint(len(places), (), generator=generator))]}
    return targets


def _disguise(token, mask_id, ordinary, generator):
    """[MASK] in 80%, a random ordinary id in 10%, the token itself in 10%."""
    action = torch.rand((), generator=generator).item()
    if action < 0.8:
        return mask_id
    if action < 0.9:
        return ordinary[int(torch.randint(len(ordinary), (), generator=generator))]
    return token

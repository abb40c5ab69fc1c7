# honest: A Fisher-Yates shuffle by hand, stopped after the targets are dealt.
"""My own shuffle."""

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
    """int(exact + u) rounds up with the probability of the fraction."""
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
    device = input_ids.device
    selected = torch.zeros(input_ids.shape, dtype=torch.bool, device=device)
    for row, allowed in enumerate(candidates.tolist()):
        deck = [place for place, flag in enumerate(allowed) if flag]
        if not deck:
            continue
        exact = mlm_probability * len(deck)
        draws = torch.rand(len(deck) + 1, generator=generator, device=device, dtype=torch.float64).tolist()
        count = max(1, min(len(deck), int(exact + draws[-1])))
        for top in range(count):
            other = top + min(int(draws[top] * (len(deck) - top)), len(deck) - top - 1)
            deck[top], deck[other] = deck[other], deck[top]
        selected[row, deck[:count]] = True
    shape, device = input_ids.shape, input_ids.device
    action = torch.rand(shape, generator=generator, device=device)
    corrupted = torch.where(selected & (action < mask_rate), mask_token_id, input_ids)
    if random_rate > 0:
        pick = torch.randint(len(ordinary_ids), shape, generator=generator, device=device)
        swap = selected & (action >= mask_rate) & (action < mask_rate + random_rate)
        corrupted = torch.where(swap, ordinary_ids[pick], corrupted)
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

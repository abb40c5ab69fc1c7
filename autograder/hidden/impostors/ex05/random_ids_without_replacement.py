# fault: Random ids are dealt without replacement as long as there are enough of them.
# function: mask_tokens
# check: test_random_ids_independent
# misconception: quota-instead-of-chance
"""MLM masking and the collate function that uses it."""

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
    """Select by independent draws, drawn again for rows that got no target; corrupt the targets only."""
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
    candidates = attention_mask.to(torch.bool) & special_tokens_mask.to(torch.bool).logical_not()
    if not candidates.any():
        raise ValueError("attention_mask and special_tokens_mask leave no candidate in the whole batch")
    device = input_ids.device
    selected = torch.zeros(input_ids.shape, dtype=torch.bool, device=device)
    waiting = candidates.any(dim=1).nonzero().flatten()
    while len(waiting) > 0:
        chance = torch.rand((len(waiting), input_ids.shape[1]), generator=generator, device=device)
        selected[waiting] = candidates[waiting] & (chance < mlm_probability)
        waiting = waiting[~selected[waiting].any(dim=1)]

    targets = input_ids[selected]
    action = torch.rand(len(targets), generator=generator, device=device)
    is_masked = action < mask_rate
    is_random = ~is_masked & (action < mask_rate + random_rate)
    new = targets.clone()
    new[is_masked] = mask_token_id
    if is_random.any():
        wanted = int(is_random.sum())
        rounds = wanted // len(ordinary_ids) + 1
        index = torch.cat(
            [torch.randperm(len(ordinary_ids), generator=generator, device=device) for _ in range(rounds)]
        )[:wanted]
        new[is_random] = ordinary_ids[index]

    corrupted = input_ids.clone()
    corrupted[selected] = new
    labels = torch.full(input_ids.shape, ignore_index, dtype=torch.int64, device=device)
    labels[selected] = targets
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

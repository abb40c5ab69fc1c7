# honest: Bad input is refused through torch._check_value.
"""torch raises for me."""

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
    """Conditions are stated with torch._check_value, which raises the ValueError."""
    same = input_ids.shape == attention_mask.shape == special_tokens_mask.shape
    torch._check_value(
        input_ids.dim() == 2 and attention_mask.dim() == 2 and special_tokens_mask.dim() == 2,
        lambda: "input_ids, attention_mask and special_tokens_mask must be 2-D",
    )
    torch._check_value(same, lambda: "input_ids, attention_mask and special_tokens_mask must have one shape")
    torch._check_value(0 < mlm_probability <= 1, lambda: f"mlm_probability = {mlm_probability} is outside (0, 1]")
    torch._check_value(mask_rate >= 0, lambda: f"mask_rate = {mask_rate} is negative")
    torch._check_value(random_rate >= 0, lambda: f"random_rate = {random_rate} is negative")
    torch._check_value(
        mask_rate + random_rate <= 1 + 1e-9,
        lambda: f"mask_rate = {mask_rate} and random_rate = {random_rate} sum to more than 1",
    )
    torch._check_value(
        not (random_rate > 0 and len(ordinary_ids) == 0),
        lambda: f"ordinary_ids is empty while random_rate = {random_rate}",
    )
    candidates = attention_mask.bool() & ~special_tokens_mask.bool()
    torch._check_value(
        bool(candidates.any()), lambda: "no candidate left by attention_mask and special_tokens_mask"
    )
    shape, device = input_ids.shape, input_ids.device
    selected = torch.zeros_like(candidates)
    for row, allowed in enumerate(candidates):
        n = int(allowed.sum())
        if n:
            draws = torch.rand(n, generator=generator, device=device)
            selected[row, allowed] = (draws < mlm_probability) | (draws == draws.min())
    action = torch.rand(shape, generator=generator, device=device)
    corrupted = torch.where(selected & (action < mask_rate), mask_token_id, input_ids)
    if random_rate > 0:
        pick = torch.randint(len(ordinary_ids), shape, generator=generator, device=device)
        swap = selected & (action >= mask_rate) & (action < mask_rate + random_rate)
        corrupted = torch.where(swap, ordinary_ids[pick], corrupted)
    labels = torch.where(selected, input_ids, ignore_index)
    return MaskedBatch(corrupted, labels, attention_mask, selected)


def collate_mlm(examples, vocabulary, *, mlm_probability=0.15, ignore_index=-100, generator=None):
    """Pads every example by itself and stacks."""
    torch._check_value(len(examples) > 0, lambda: "examples is empty")
    for example in examples:
        torch._check_value(len(example) > 0, lambda: "examples holds an empty one")
        low, high = min(example), max(example)
        torch._check_value(low >= 0, lambda: f"examples: the id {low} is outside the vocabulary")
        torch._check_value(high < vocabulary.size, lambda: f"examples: the id {high} is outside the vocabulary")
    width = max(len(example) for example in examples)
    padded = [torch.nn.functional.pad(torch.tensor(x), (0, width - len(x)), value=vocabulary.pad_id) for x in examples]
    real = [torch.nn.functional.pad(torch.ones(len(x), dtype=torch.uint8), (0, width - len(x))) for x in examples]
    ids, attention_mask = torch.stack(padded), torch.stack(real)
    return mask_tokens(
        ids, attention_mask, torch.isin(ids, vocabulary.special_ids).byte(),
        mask_token_id=vocabulary.mask_id, ordinary_ids=vocabulary.ordinary_ids,
        mlm_probability=mlm_probability, ignore_index=ignore_index, generator=generator,
    )

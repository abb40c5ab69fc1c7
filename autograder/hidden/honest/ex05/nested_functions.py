# honest: Closures over the arguments; the rows are masked apart and stacked.
"""Functions inside functions."""

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
    """Row by row, token by token."""
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
    def draw(*size):
        return torch.rand(size, generator=generator, device=input_ids.device)

    def choose(allowed):
        chosen = allowed & (draw(len(allowed)) < mlm_probability)
        if allowed.any() and not chosen.any():
            places = allowed.nonzero().squeeze(1)
            chosen = chosen.index_fill(0, places[int(draw(1) * len(places)) % len(places)], True)
        return chosen

    pool = ordinary_ids.tolist()

    def disguise(token):
        def inner(fate, which):
            if fate < mask_rate:
                return mask_token_id
            if fate < mask_rate + random_rate:
                return pool[int(which * len(pool)) % len(pool)]
            return token

        return inner

    def corrupt(row, chosen):
        tokens = row.tolist()
        places = chosen.nonzero().squeeze(1).tolist()
        for place, fate, which in zip(places, draw(len(places)).tolist(), draw(len(places)).tolist()):
            tokens[place] = disguise(tokens[place])(fate, which)
        return row.new_tensor(tokens)

    selected = torch.stack([choose(allowed) for allowed in candidates])
    corrupted = torch.stack([corrupt(row, chosen) for row, chosen in zip(input_ids, selected)])
    return MaskedBatch(corrupted, input_ids.where(selected, ignore_index), attention_mask, selected)


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

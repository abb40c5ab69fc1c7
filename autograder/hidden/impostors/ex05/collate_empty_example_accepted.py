# fault: An empty example becomes a row of padding.
# function: collate_mlm
# check: test_collate_refuses_an_empty_example
# misconception: bad-input-accepted
"""Masks for the masked-language-model task, drawn per batch."""

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
    """Select by rank of random noise, a count rounded to nearest per row; corrupt in two stages."""
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
    candidates = torch.logical_and(attention_mask == 1, special_tokens_mask == 0)
    if not candidates.any():
        raise ValueError("attention_mask and special_tokens_mask leave no candidate in the whole batch")
    shape, device = input_ids.shape, input_ids.device

    def uniform():
        return torch.rand(shape, generator=generator, device=device)

    sizes = candidates.sum(dim=1, keepdim=True)
    counts = (mlm_probability * sizes.double()).round().clamp(min=1)
    noise = uniform().masked_fill(~candidates, 2.0)
    rank = noise.argsort(dim=1).argsort(dim=1)
    selected = candidates & (rank < counts)

    masked = selected & (uniform() < mask_rate)
    # Of what is not masked, random_rate / (1 - mask_rate) becomes random.
    rest = random_rate / (1 - mask_rate) if mask_rate < 1 else 0.0
    replaced = selected & ~masked & (uniform() < rest)

    labels = input_ids.masked_fill(~selected, ignore_index)
    corrupted = input_ids.masked_fill(masked, mask_token_id)
    if random_rate > 0:
        index = torch.randint(len(ordinary_ids), shape, generator=generator, device=device)
        corrupted = torch.where(replaced, ordinary_ids[index], corrupted)
    return MaskedBatch(input_ids=corrupted, labels=labels, attention_mask=attention_mask, selected=selected)


def collate_mlm(examples, vocabulary, *, mlm_probability=0.15, ignore_index=-100, generator=None):
    """Pad with list arithmetic and hand everything to mask_tokens."""
    if len(examples) == 0:
        raise ValueError("examples is empty")
    for number, example in enumerate(examples):
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

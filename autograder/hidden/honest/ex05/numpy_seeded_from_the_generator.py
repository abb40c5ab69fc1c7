# honest: A NumPy generator, seeded by one draw from the generator given, does the rest.
"""NumPy inside."""

import numpy as np
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
    """The seed comes from the generator, so the state decides everything."""
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
    seed = int(torch.randint(2**62, (), generator=generator, device=device))
    rng = np.random.default_rng(seed)
    ids = input_ids.detach().cpu().numpy()
    allowed = candidates.cpu().numpy()
    chosen = allowed & (rng.random(ids.shape) < mlm_probability)
    for row in np.flatnonzero(allowed.any(axis=1) & ~chosen.any(axis=1)):
        chosen[row, rng.choice(np.flatnonzero(allowed[row]))] = True
    fate = rng.random(ids.shape)
    new = ids.copy()
    new[chosen & (fate < mask_rate)] = mask_token_id
    swap = chosen & (fate >= mask_rate) & (fate < mask_rate + random_rate)
    if swap.any():
        new[swap] = rng.choice(ordinary_ids.cpu().numpy(), size=swap.sum())
    labels = np.where(chosen, ids, ignore_index)
    back = [torch.from_numpy(np.ascontiguousarray(array)).to(device) for array in (new, labels, chosen)]
    return MaskedBatch(back[0], back[1], attention_mask, back[2])


def collate_mlm(examples, vocabulary, *, mlm_probability=0.15, ignore_index=-100, generator=None):
    """Padding with NumPy."""
    if len(examples) == 0:
        raise ValueError("examples is empty")
    for number, example in enumerate(examples):
        if len(example) == 0:
            raise ValueError(f"examples[{number}] is empty")
        for token in example:
            if not 0 <= token < vocabulary.size:
                raise ValueError(f"examples[{number}] holds the id {token}, the vocabulary has {vocabulary.size} ids")
    lengths = np.array([len(example) for example in examples])
    attention = np.arange(lengths.max()) < lengths[:, None]
    ids = np.full(attention.shape, vocabulary.pad_id, dtype=np.int64)
    ids[attention] = np.concatenate([np.asarray(example, dtype=np.int64) for example in examples])
    special = np.isin(ids, list(vocabulary[1:]))
    return mask_tokens(
        torch.from_numpy(ids),
        torch.from_numpy(attention),
        torch.from_numpy(special),
        mask_token_id=vocabulary.mask_id,
        ordinary_ids=vocabulary.ordinary_ids,
        mlm_probability=mlm_probability,
        ignore_index=ignore_index,
        generator=generator,
    )

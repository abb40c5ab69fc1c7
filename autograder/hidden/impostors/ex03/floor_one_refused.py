# fault: q = 1 is refused.
# function: context_free_floor
# check: test_floor_at_certainty
# misconception: valid-input-refused
"""Why unperturbed targets teach nothing."""

import math

import torch


def copy_logits(input_ids, vocab_size, scale):
    """logits[i, t, v] = scale if v is the id at (i, t), else 0."""
    low, high = int(input_ids.min()), int(input_ids.max())
    if low < 0:
        raise ValueError(f"input_ids holds {low}, which is negative")
    if high >= vocab_size:
        raise ValueError(f"input_ids holds {high}, but vocab_size is {vocab_size}")
    classes = torch.arange(vocab_size, device=input_ids.device)
    seen = input_ids[..., None] == classes
    return seen.to(torch.float32) * float(scale)


def copy_loss(input_ids, targets, selected, vocab_size, scale):
    """Mean NLL of the copy rule at the selected positions."""
    for name, tensor in (("targets", targets), ("selected", selected)):
        if tensor.shape != input_ids.shape:
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}, input_ids has {tuple(input_ids.shape)}")
    if not selected.any():
        raise ValueError("selected selects no position")
    hit = (input_ids[selected] == targets[selected]).double()
    log_z = scale + math.log1p((vocab_size - 1) * math.exp(-scale))
    return float((log_z - scale * hit).mean())


def match_probability(mask_rate, random_rate, keep_rate, n_ordinary):
    """Kept tokens match; a random one matches once in n_ordinary draws; [MASK] never does."""
    rates = {"mask_rate": mask_rate, "random_rate": random_rate, "keep_rate": keep_rate}
    outside = {name: rate for name, rate in rates.items() if not (rate >= 0 and rate <= 1)}
    if outside:
        raise ValueError(f"rates outside [0, 1]: {outside}")
    if not abs(sum(rates.values()) - 1.0) <= 1e-9:
        raise ValueError(f"the rates {rates} sum to {sum(rates.values())}, not to 1")
    if n_ordinary < 1:
        raise ValueError(f"n_ordinary = {n_ordinary} leaves nothing to draw from")
    chance = 1.0 / n_ordinary
    return float(keep_rate + random_rate * chance)


def context_free_floor(match_probability, vocab_size):
    """Least expected loss of the copy rule over all scales: H(q) + (1 - q) ln(V - 1)."""
    q = match_probability
    if not 0 <= q < 1:
        raise ValueError(f"match_probability must lie in [0, 1], got {q}")
    if vocab_size < 2:
        raise ValueError(f"vocab_size must be at least 2, got {vocab_size}")
    floor = (1 - q) * math.log(vocab_size - 1)
    for p in (q, 1 - q):
        if p > 0:
            floor -= p * math.log(p)
    return floor

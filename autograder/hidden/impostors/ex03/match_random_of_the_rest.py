# fault: The random share is taken of what is left after masking.
# function: match_probability
# check: test_match_is_kept_or_drawn_again
# misconception: random-share-of-the-rest
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
    """Chance that the token seen at a selected position is the target."""
    for name, rate in (("mask_rate", mask_rate), ("random_rate", random_rate), ("keep_rate", keep_rate)):
        if not 0 <= rate <= 1:
            raise ValueError(f"{name} must lie in [0, 1], got {rate}")
    total = mask_rate + random_rate + keep_rate
    if abs(total - 1) > 1e-9:
        raise ValueError(
            f"mask_rate, random_rate and keep_rate must sum to 1: {mask_rate} + {random_rate} + {keep_rate} = {total}"
        )
    if n_ordinary < 1:
        raise ValueError(f"n_ordinary must be at least 1, got {n_ordinary}")
    return keep_rate + (1 - mask_rate) * random_rate / n_ordinary


def context_free_floor(match_probability, vocab_size):
    """The floor in nats, with 0 ln 0 = 0."""

    def entropy_term(p):
        return 0.0 if p == 0 else -p * math.log(p)

    q = match_probability
    if not (0.0 <= q <= 1.0):
        raise ValueError(f"match_probability {q} is no probability")
    if vocab_size < 2:
        raise ValueError(f"vocab_size {vocab_size} is less than 2")
    miss = 1.0 - q
    return entropy_term(q) + entropy_term(miss) + miss * math.log(vocab_size - 1)

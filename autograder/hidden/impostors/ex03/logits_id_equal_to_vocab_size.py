# fault: The id V is not refused and gives a row of zeros.
# function: copy_logits
# check: test_logits_refuse_ids_past_the_vocabulary
# misconception: bad-input-accepted
"""A rule that copies the token it sees."""

import math

import torch
import torch.nn.functional as F


def copy_logits(input_ids, vocab_size, scale):
    """logits[i, t, v] = scale if v is the id at (i, t), else 0."""
    low, high = int(input_ids.min()), int(input_ids.max())
    if low < 0:
        raise ValueError(f"input_ids holds {low}, which is negative")
    if high > vocab_size:
        raise ValueError(f"input_ids holds {high}, but vocab_size is {vocab_size}")
    classes = torch.arange(vocab_size, device=input_ids.device)
    seen = input_ids[..., None] == classes
    return seen.to(torch.float32) * float(scale)


def copy_loss(input_ids, targets, selected, vocab_size, scale):
    """Cross-entropy of the copy rule over the selected positions of the whole batch."""
    if targets.shape != input_ids.shape or selected.shape != input_ids.shape:
        raise ValueError(
            f"input_ids, targets and selected need one shape, got {tuple(input_ids.shape)}, "
            f"{tuple(targets.shape)} and {tuple(selected.shape)}"
        )
    if int(selected.sum()) == 0:
        raise ValueError("selected has no position that is True")
    logits = F.one_hot(input_ids[selected], vocab_size).double() * scale
    return F.cross_entropy(logits, targets[selected]).item()


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
    return keep_rate + random_rate / n_ordinary


def context_free_floor(match_probability, vocab_size):
    """Entropy of hit or miss, plus the entropy of a uniform guess among the V - 1 others."""
    q = float(match_probability)
    if not (q >= 0.0 and q <= 1.0):
        raise ValueError(f"match_probability = {match_probability} is outside [0, 1]")
    if vocab_size < 2:
        raise ValueError(f"vocab_size = {vocab_size}, but the rule needs two tokens")
    if q == 1.0:
        return 0.0
    if q == 0.0:
        return math.log(vocab_size - 1)
    return -q * math.log(q) - (1 - q) * math.log((1 - q) / (vocab_size - 1))

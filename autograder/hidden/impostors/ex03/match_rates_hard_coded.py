# fault: The rates 0.1 and 0.1 of the paper are used whatever is given.
# function: match_probability
# check: test_match_is_kept_or_drawn_again
# misconception: rates-fixed
"""Exercise 3: the copy shortcut."""

import math

import torch
import torch.nn.functional as F


def copy_logits(input_ids, vocab_size, scale):
    """Score `scale` on the token that is seen, 0 on all others: (m, T, V), float32."""
    outside = input_ids[(input_ids < 0) | (input_ids >= vocab_size)]
    if outside.numel():
        raise ValueError(f"input_ids holds {outside[0].item()}, outside [0, {vocab_size})")
    return F.one_hot(input_ids, vocab_size).to(torch.float32) * scale


def copy_loss(input_ids, targets, selected, vocab_size, scale):
    """Mean over the selected positions of log Z minus the target's score, in double."""
    if not input_ids.shape == targets.shape == selected.shape:
        raise ValueError(
            f"shapes differ: input_ids {tuple(input_ids.shape)}, targets {tuple(targets.shape)}, "
            f"selected {tuple(selected.shape)}"
        )
    count = int(selected.sum())
    if count == 0:
        raise ValueError("nothing is selected: selected is False everywhere")
    hits = int(((input_ids == targets) & selected).sum())
    nll_hit = math.log1p((vocab_size - 1) * math.exp(-scale))
    nll_miss = scale + nll_hit
    return (hits * nll_hit + (count - hits) * nll_miss) / count


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
    return 0.1 + 0.1 / n_ordinary


def context_free_floor(match_probability, vocab_size):
    """Least expected loss of the copy rule over all scales: H(q) + (1 - q) ln(V - 1)."""
    q = match_probability
    if not 0 <= q <= 1:
        raise ValueError(f"match_probability must lie in [0, 1], got {q}")
    if vocab_size < 2:
        raise ValueError(f"vocab_size must be at least 2, got {vocab_size}")
    floor = (1 - q) * math.log(vocab_size - 1)
    for p in (q, 1 - q):
        if p > 0:
            floor -= p * math.log(p)
    return floor

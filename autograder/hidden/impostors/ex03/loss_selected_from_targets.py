# fault: Positions count as selected if their target is not -100, whatever selected says.
# function: copy_loss
# check: test_loss_is_mean_nll_of_the_rule
# misconception: selection-ignored
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
    """Mean NLL of the copy rule at the selected positions."""
    for name, tensor in (("targets", targets), ("selected", selected)):
        if tensor.shape != input_ids.shape:
            raise ValueError(f"{name} has shape {tuple(tensor.shape)}, input_ids has {tuple(input_ids.shape)}")
    if not selected.any():
        raise ValueError("selected selects no position")
    hit = (input_ids == targets).double()
    log_z = scale + math.log1p((vocab_size - 1) * math.exp(-scale))
    nll = log_z - scale * hit
    return float(nll[targets != -100].mean()) if (targets != -100).any() else math.nan


def match_probability(mask_rate, random_rate, keep_rate, n_ordinary):
    """keep + random / n."""
    if not (0.0 <= mask_rate <= 1.0):
        raise ValueError(f"mask_rate {mask_rate} is outside [0, 1]")
    if not (0.0 <= random_rate <= 1.0):
        raise ValueError(f"random_rate {random_rate} is outside [0, 1]")
    if not (0.0 <= keep_rate <= 1.0):
        raise ValueError(f"keep_rate {keep_rate} is outside [0, 1]")
    excess = mask_rate + random_rate + keep_rate - 1.0
    if excess > 1e-9 or excess < -1e-9:
        raise ValueError(f"mask_rate {mask_rate}, random_rate {random_rate}, keep_rate {keep_rate} do not sum to 1")
    if n_ordinary < 1:
        raise ValueError(f"n_ordinary is {n_ordinary}, at least 1 is needed")
    return keep_rate + random_rate / n_ordinary


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

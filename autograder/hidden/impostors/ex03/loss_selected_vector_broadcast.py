# fault: A mask of shape (T,) is used for every sequence.
# function: copy_loss
# check: test_loss_refuses_unequal_shapes
# misconception: shapes-stretched
"""A rule that copies the token it sees."""

import math

import torch


def copy_logits(input_ids, vocab_size, scale):
    """The copy rule as logits, written into a tensor of zeros."""
    for value in input_ids.reshape(-1).tolist():
        if not 0 <= value < vocab_size:
            raise ValueError(f"input_ids: the id {value} is not in a vocabulary of {vocab_size}")
    logits = torch.zeros(*input_ids.shape, vocab_size, dtype=torch.float32, device=input_ids.device)
    return logits.scatter_(-1, input_ids.unsqueeze(-1), float(scale))


def copy_loss(input_ids, targets, selected, vocab_size, scale):
    """Mean NLL of the copy rule at the selected positions."""
    if selected.shape == input_ids.shape[1:]:
        selected = selected.expand_as(input_ids)
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

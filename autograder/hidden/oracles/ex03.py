"""Exercise 3 by its definition: loops over single positions, in double."""

from __future__ import annotations

import math

import torch


def copy_logits(input_ids: torch.Tensor, vocab_size: int, scale: float) -> torch.Tensor:
    """`scale` on the token that is seen, 0 elsewhere.  Shape (m, T, V), float32, on the device of the ids."""
    m, length = input_ids.shape
    out = torch.zeros(m, length, vocab_size, dtype=torch.float32)
    for i, row in enumerate(input_ids.tolist()):
        for j, seen in enumerate(row):
            out[i, j, seen] = scale
    return out.to(input_ids.device)


def nll(seen: int, target: int, vocab_size: int, scale: float) -> float:
    """Negative log-likelihood of one target, in nats: ln(e^scale + V − 1), less scale if the target is what is seen.

    The largest score is taken out of the sum first, so that nothing overflows.
    """
    top = max(scale, 0.0)
    normaliser = top + math.log(math.exp(scale - top) + (vocab_size - 1) * math.exp(-top))
    return normaliser - (scale if seen == target else 0.0)


def copy_loss(
    input_ids: torch.Tensor, targets: torch.Tensor, selected: torch.Tensor, vocab_size: int, scale: float
) -> float:
    """Mean of `nll` over the selected positions of the whole batch."""
    losses = []
    for seen_row, target_row, selected_row in zip(input_ids.tolist(), targets.tolist(), selected.tolist(), strict=True):
        for seen, target, chosen in zip(seen_row, target_row, selected_row, strict=True):
            if chosen:
                losses.append(nll(seen, target, vocab_size, scale))
    return math.fsum(losses) / len(losses)


def match_probability(mask_rate: float, random_rate: float, keep_rate: float, n_ordinary: int) -> float:
    """Kept for certain, or drawn: one of n equally likely tokens is the original.  A mask never matches."""
    return math.fsum([mask_rate * 0.0, random_rate / n_ordinary, keep_rate])


def context_free_floor(match_probability: float, vocab_size: int) -> float:
    """H(q) + (1 − q) ln(V − 1) in nats, a term of probability 0 being 0."""
    q = match_probability
    total = 0.0
    if q > 0:
        total -= q * math.log(q)
    if q < 1:
        total -= (1 - q) * (math.log1p(-q) - math.log(vocab_size - 1))
    return total

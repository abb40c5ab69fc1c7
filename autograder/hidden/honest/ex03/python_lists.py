# honest: Python lists and loops; a tensor only at the very end
"""Exercise 3 without tensor arithmetic."""

import math

import torch


def copy_logits(input_ids, vocab_size, scale):
    rows = []
    for sequence in input_ids.tolist():
        row = []
        for i in sequence:
            if i < 0 or i >= vocab_size:
                raise ValueError(f"input_ids contains {i}, which is not in [0, {vocab_size})")
            scores = [0.0] * vocab_size
            scores[i] = float(scale)
            row.append(scores)
        rows.append(row)
    return torch.tensor(rows, dtype=torch.float32, device=input_ids.device)


def copy_loss(input_ids, targets, selected, vocab_size, scale):
    if not (input_ids.shape == targets.shape and targets.shape == selected.shape):
        raise ValueError(
            f"input_ids {list(input_ids.shape)}, targets {list(targets.shape)}, selected {list(selected.shape)}"
        )
    losses = []
    for ids, wanted, chosen in zip(input_ids.tolist(), targets.tolist(), selected.tolist()):
        for i, w, c in zip(ids, wanted, chosen):
            if not c:
                continue
            top = max(scale, 0)
            log_z = top + math.log(math.exp(scale - top) + (vocab_size - 1) * math.exp(-top))
            losses.append(log_z - (scale if i == w else 0))
    if not losses:
        raise ValueError("selected contains no True")
    return math.fsum(losses) / len(losses)


def match_probability(mask_rate, random_rate, keep_rate, n_ordinary):
    if not 0 <= mask_rate <= 1:
        raise ValueError(f"mask_rate is {mask_rate}")
    if not 0 <= random_rate <= 1:
        raise ValueError(f"random_rate is {random_rate}")
    if not 0 <= keep_rate <= 1:
        raise ValueError(f"keep_rate is {keep_rate}")
    if abs(math.fsum([mask_rate, random_rate, keep_rate, -1])) > 1e-9:
        raise ValueError(f"mask_rate {mask_rate}, random_rate {random_rate}, keep_rate {keep_rate}: sum is not 1")
    if n_ordinary < 1:
        raise ValueError(f"n_ordinary is {n_ordinary}")
    return keep_rate + random_rate / n_ordinary


def context_free_floor(match_probability, vocab_size):
    if not 0 <= match_probability <= 1:
        raise ValueError(f"match_probability is {match_probability}")
    if vocab_size < 2:
        raise ValueError(f"vocab_size is {vocab_size}")
    q = match_probability
    probabilities = [q] + [(1 - q) / (vocab_size - 1)]
    counts = [1, vocab_size - 1]
    return -sum(n * p * math.log(p) for n, p in zip(counts, probabilities) if p)

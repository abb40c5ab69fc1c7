# honest: helpers of its own named softmax, log_softmax, gather, one_hot, cross_entropy and isclose
"""Own helpers with familiar names."""

import math

import torch


def isclose(a, b):
    return abs(a - b) <= 1e-9


def one_hot(ids, size, dtype):
    out = torch.zeros((*ids.shape, size), dtype=dtype, device=ids.device)
    return out.scatter(-1, ids[..., None], torch.ones((*ids.shape, 1), dtype=dtype, device=ids.device))


def log_softmax(scores):
    shifted = scores - scores.max(dim=-1, keepdim=True).values
    return shifted - shifted.exp().sum(dim=-1, keepdim=True).log()


def softmax(scores):
    return log_softmax(scores).exp()


def gather(table, ids):
    return table[torch.arange(len(ids), device=ids.device), ids]


def cross_entropy(scores, wanted):
    return -gather(log_softmax(scores), wanted).mean()


def clamp(name, value):
    """Refuses instead of clamping."""
    if value >= 0 and value <= 1:
        return value
    raise ValueError(f"{name} must be in [0, 1], not {value}")


def copy_logits(input_ids, vocab_size, scale):
    bad = [i for i in input_ids.ravel().tolist() if not -1 < i < vocab_size]
    if bad:
        raise ValueError(f"input_ids must be in [0, {vocab_size}), not {bad[0]}")
    return one_hot(input_ids, vocab_size, torch.float32) * scale


def copy_loss(input_ids, targets, selected, vocab_size, scale):
    if input_ids.shape != targets.shape or input_ids.shape != selected.shape:
        raise ValueError(f"input_ids, targets, selected must agree, not {[tuple(x.shape) for x in (input_ids, targets, selected)]}")
    if not selected.any():
        raise ValueError("selected must hold a True")
    return cross_entropy(one_hot(input_ids[selected], vocab_size, torch.float64) * scale, targets[selected]).item()


def match_probability(mask_rate, random_rate, keep_rate, n_ordinary):
    rates = clamp("mask_rate", mask_rate), clamp("random_rate", random_rate), clamp("keep_rate", keep_rate)
    if not isclose(sum(rates), 1):
        raise ValueError(f"mask_rate + random_rate + keep_rate must be 1, not {mask_rate} + {random_rate} + {keep_rate}")
    if n_ordinary < 1:
        raise ValueError(f"n_ordinary must be at least 1, not {n_ordinary}")
    return keep_rate + random_rate / n_ordinary


def context_free_floor(match_probability, vocab_size):
    q = clamp("match_probability", match_probability)
    if vocab_size < 2:
        raise ValueError(f"vocab_size must be at least 2, not {vocab_size}")
    floor = 0.0
    if q > 0:
        floor -= q * math.log(q)
    if q < 1:
        floor -= (1 - q) * (math.log1p(-q) - math.log(vocab_size - 1))
    return floor

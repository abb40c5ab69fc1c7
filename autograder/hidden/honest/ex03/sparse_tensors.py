# honest: logits from a sparse tensor; hits are counted with bincount
"""Most of a one-hot vector is zero."""

import math

import torch


def copy_logits(input_ids, vocab_size, scale):
    if (input_ids < 0).any() or (input_ids >= vocab_size).any():
        wrong = input_ids[(input_ids < 0) + (input_ids >= vocab_size)]
        raise ValueError(f"input_ids: {wrong.tolist()}; vocabulary: {vocab_size}")
    m, T = input_ids.shape
    row = torch.arange(m, device=input_ids.device).repeat_interleave(T)
    column = torch.arange(T, device=input_ids.device).repeat(m)
    index = torch.stack([row, column, input_ids.reshape(-1)])
    values = torch.full((m * T,), float(scale), dtype=torch.float32, device=input_ids.device)
    return torch.sparse_coo_tensor(index, values, (m, T, vocab_size), device=input_ids.device).to_dense()


def copy_loss(input_ids, targets, selected, vocab_size, scale):
    sizes = [tuple(x.shape) for x in (input_ids, targets, selected)]
    if sizes.count(sizes[0]) != 3:
        raise ValueError("input_ids has shape %s, targets %s, selected %s" % tuple(sizes))
    if torch.all(torch.logical_not(selected)):
        raise ValueError("torch.all(torch.logical_not(selected))")
    misses, hits = torch.bincount((input_ids == targets)[selected].long(), minlength=2).tolist()
    softplus = math.log1p((vocab_size - 1) * math.exp(-scale))
    return (misses * scale + (misses + hits) * softplus) / (misses + hits)


def match_probability(mask_rate, random_rate, keep_rate, n_ordinary):
    problem = None
    if n_ordinary < 1:
        problem = f"n_ordinary ({n_ordinary}) must be at least 1"
    if not abs(mask_rate + random_rate + keep_rate - 1) <= 1e-9:
        problem = f"mask_rate ({mask_rate}), random_rate ({random_rate}) and keep_rate ({keep_rate}) must sum to 1"
    if not 0 <= mask_rate <= 1:
        problem = f"mask_rate ({mask_rate}) must be a rate"
    if not 0 <= random_rate <= 1:
        problem = f"random_rate ({random_rate}) must be a rate"
    if not 0 <= keep_rate <= 1:
        problem = f"keep_rate ({keep_rate}) must be a rate"
    if problem:
        raise ValueError(problem)
    return 1 - mask_rate - random_rate * (1 - 1 / n_ordinary)


def context_free_floor(match_probability, vocab_size):
    problem = None
    if vocab_size < 2:
        problem = f"vocab_size ({vocab_size}) must be at least 2"
    elif not 0 <= match_probability <= 1:
        problem = f"match_probability ({match_probability}) must be a probability"
    if problem:
        raise ValueError(problem)
    bits = [-p * math.log2(p) for p in (match_probability, 1 - match_probability) if p]
    return (sum(bits) + (1 - match_probability) * math.log2(vocab_size - 1)) * math.log(2)

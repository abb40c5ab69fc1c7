# honest: logits come back as a transposed, strided view of a larger tensor
"""A result need not be contiguous."""

import math

import torch


def copy_logits(input_ids, vocab_size, scale):
    inside = input_ids.ge(0).logical_and(input_ids.lt(vocab_size))
    if not inside.all():
        raise ValueError(f"ids outside [0, {vocab_size}) in input_ids: {input_ids[~inside].tolist()}")
    m, T = input_ids.shape
    big = torch.zeros(2 * vocab_size, T, m + 1, dtype=torch.float32, device=input_ids.device)
    view = big[::2, :, 1:].permute(2, 1, 0)
    view.scatter_(2, input_ids.unsqueeze(2), float(scale))
    return view


def copy_loss(input_ids, targets, selected, vocab_size, scale):
    if targets.shape != input_ids.shape:
        raise ValueError(f"targets.shape {tuple(targets.shape)}")
    if selected.shape != input_ids.shape:
        raise ValueError(f"selected.shape {tuple(selected.shape)}")
    where = torch.nonzero(selected, as_tuple=True)
    if where[0].numel() == 0:
        raise ValueError("selected.nonzero() is empty")
    running, count = 0.0, 0
    for i, t in zip(input_ids[where].tolist(), targets[where].tolist()):
        count += 1
        loss = math.log1p((vocab_size - 1) * math.exp(-scale)) + scale * (i != t)
        running += (loss - running) / count
    return running


def match_probability(mask_rate, random_rate, keep_rate, n_ordinary):
    names = "mask_rate random_rate keep_rate".split()
    for name, rate in zip(names, (mask_rate, random_rate, keep_rate)):
        if rate != rate or rate < 0.0 or 1.0 < rate:
            raise ValueError("%s %r" % (name, rate))
    if abs((mask_rate + random_rate + keep_rate) - 1.0) > 1e-9:
        raise ValueError("mask_rate %r random_rate %r keep_rate %r" % (mask_rate, random_rate, keep_rate))
    if n_ordinary < 1:
        raise ValueError("n_ordinary %r" % (n_ordinary,))
    return sum([keep_rate, random_rate / n_ordinary])


def context_free_floor(match_probability, vocab_size):
    if match_probability != match_probability or match_probability < 0.0 or 1.0 < match_probability:
        raise ValueError("match_probability %r" % (match_probability,))
    if vocab_size < 2:
        raise ValueError("vocab_size %r" % (vocab_size,))
    q, others = match_probability, vocab_size - 1
    if q == 1:
        return 0
    if q == 0:
        return math.log(others)
    odds = q / (1 - q)
    return math.log1p(1 / odds) * q + math.log1p(odds) * (1 - q) + (1 - q) * math.log(others)

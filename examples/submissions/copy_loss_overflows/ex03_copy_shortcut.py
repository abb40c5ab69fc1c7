import math

import torch


def copy_logits(input_ids, vocab_size, scale):
    for i in input_ids.flatten().tolist():
        if not 0 <= i < vocab_size:
            raise ValueError(f"input_ids: {i} is outside of the vocabulary of {vocab_size}")
    ids = torch.arange(vocab_size, device=input_ids.device)
    return (input_ids[..., None] == ids).float() * scale  # (m, T, V)


def copy_loss(input_ids, targets, selected, vocab_size, scale):
    if not (input_ids.shape == targets.shape == selected.shape):
        raise ValueError("input_ids, targets and selected differ in shape")
    n = int(selected.sum())
    if n == 0:
        raise ValueError("selected selects nothing")
    hits = int((input_ids[selected] == targets[selected]).sum())
    log_z = torch.log(torch.exp(torch.tensor(scale, dtype=torch.float64)) + vocab_size - 1).item()
    return log_z - scale * hits / n


def match_probability(mask_rate, random_rate, keep_rate, n_ordinary):
    for name, rate in [("mask_rate", mask_rate), ("random_rate", random_rate), ("keep_rate", keep_rate)]:
        if not (0 <= rate <= 1):
            raise ValueError(f"{name} = {rate} is no probability")
    if abs(mask_rate + random_rate + keep_rate - 1) > 1e-9:
        raise ValueError(f"mask_rate {mask_rate}, random_rate {random_rate}, keep_rate {keep_rate} do not sum to 1")
    if n_ordinary < 1:
        raise ValueError(f"n_ordinary = {n_ordinary} is less than 1")
    return keep_rate + random_rate / n_ordinary


def context_free_floor(match_probability, vocab_size):
    q = match_probability
    if not (0 <= q <= 1):
        raise ValueError(f"match_probability = {q} is no probability")
    if vocab_size < 2:
        raise ValueError(f"vocab_size = {vocab_size} is less than 2")
    entropy = sum(-p * math.log(p) for p in (q, 1 - q) if p > 0)
    return entropy + (1 - q) * math.log(vocab_size - 1)

# honest: F.embedding for the scores, F.cross_entropy for the loss, torch.special.entr for the floor
"""The rule as an embedding layer and a library loss."""

import math

import torch
import torch.nn.functional as F


def copy_logits(input_ids, vocab_size, scale):
    if input_ids.min() < 0:
        raise ValueError(f"negative id {input_ids.min().item()} in input_ids")
    if input_ids.max() >= vocab_size:
        raise ValueError(f"id {input_ids.max().item()} in input_ids, vocab_size is {vocab_size}")
    # row i of the table is the scores for id i; rows after the largest id are never read
    weight = torch.eye(int(input_ids.max()) + 1, vocab_size, device=input_ids.device, dtype=torch.float32)
    return F.embedding(input_ids, weight.mul(float(scale)))


def copy_loss(input_ids, targets, selected, vocab_size, scale):
    if input_ids.shape != targets.shape:
        raise ValueError(f"targets: shape {tuple(targets.shape)}, not {tuple(input_ids.shape)}")
    if input_ids.shape != selected.shape:
        raise ValueError(f"selected: shape {tuple(selected.shape)}, not {tuple(input_ids.shape)}")
    if not bool(selected.any()):
        raise ValueError("selected: nothing to average over")
    logits = F.one_hot(torch.where(selected, input_ids, 0), vocab_size).double() * scale
    labels = torch.where(selected, targets, -1)
    loss = F.cross_entropy(logits.transpose(1, 2), labels, ignore_index=-1, reduction="sum")
    return float(loss) / int(selected.sum())


def match_probability(mask_rate, random_rate, keep_rate, n_ordinary):
    given = dict(mask_rate=mask_rate, random_rate=random_rate, keep_rate=keep_rate)
    for name in given:
        if math.isnan(given[name]) or given[name] < 0 or given[name] > 1:
            raise ValueError(f"{name}: {given[name]}")
    if abs(1 - mask_rate - random_rate - keep_rate) > 1e-9:
        raise ValueError(f"rates do not sum to 1: {given}")
    if n_ordinary < 1:
        raise ValueError(f"n_ordinary: {n_ordinary}")
    return keep_rate * 1.0 + random_rate * (1 / n_ordinary)


def context_free_floor(match_probability, vocab_size):
    if math.isnan(match_probability) or match_probability < 0 or match_probability > 1:
        raise ValueError(f"match_probability: {match_probability}")
    if vocab_size < 2:
        raise ValueError(f"vocab_size: {vocab_size}")
    outcome = torch.tensor([match_probability, 1 - match_probability], dtype=torch.double, device="cpu")
    return float(torch.special.entr(outcome).sum()) + (1 - match_probability) * math.log(vocab_size - 1)

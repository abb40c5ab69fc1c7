# honest: a torch.nn.Module with identity weights plays the rule; its output carries a gradient graph that is cut at the end
"""The rule as a (frozen) linear layer."""

import math

import torch
from torch import nn


class Copy(nn.Module):
    def __init__(self, vocab_size, scale, dtype, device):
        super().__init__()
        self.weight = nn.Parameter(torch.eye(vocab_size, dtype=dtype, device=device) * scale)

    def forward(self, one_hot):
        return nn.functional.linear(one_hot, self.weight)


def _one_hot(ids, vocab_size, dtype):
    return nn.functional.one_hot(ids, vocab_size).to(dtype)


def _rows(ids, vocab_size, scale, dtype):
    """Scores of the distinct ids only, then spread over the positions: large vocabularies stay small."""
    kinds, place = torch.unique(ids, return_inverse=True)
    if vocab_size > 512:
        table = _one_hot(kinds, vocab_size, dtype) * scale
    else:
        table = Copy(vocab_size, scale, dtype, ids.device)(_one_hot(kinds, vocab_size, dtype))
    return table[place]


def copy_logits(input_ids, vocab_size, scale):
    for bad in input_ids[(input_ids < 0) | (input_ids >= vocab_size)].tolist():
        raise ValueError(f"id {bad} in input_ids, vocabulary of {vocab_size}")
    return _rows(input_ids, vocab_size, float(scale), torch.float32).detach()


def copy_loss(input_ids, targets, selected, vocab_size, scale):
    if targets.shape != input_ids.shape or selected.shape != input_ids.shape:
        raise ValueError(f"input_ids: {input_ids.shape}, targets: {targets.shape}, selected: {selected.shape}")
    if selected.logical_not().all():
        raise ValueError("all of selected is False")
    scores = _rows(input_ids[selected], vocab_size, float(scale), torch.float64)
    criterion = nn.CrossEntropyLoss()
    return criterion(scores, targets[selected]).detach().item()


def match_probability(mask_rate, random_rate, keep_rate, n_ordinary):
    for name, rate in reversed([("mask_rate", mask_rate), ("random_rate", random_rate), ("keep_rate", keep_rate)]):
        if not 0 <= rate <= 1:
            raise ValueError(f"{name} has the value {rate}")
    if abs(mask_rate + (random_rate + keep_rate) - 1) > 1e-9:
        raise ValueError(f"mask_rate {mask_rate}, random_rate {random_rate}, keep_rate {keep_rate}")
    if n_ordinary < 1:
        raise ValueError(f"n_ordinary has the value {n_ordinary}")
    seen_given_action = {"mask": 0.0, "random": 1 / n_ordinary, "keep": 1.0}
    chance = {"mask": mask_rate, "random": random_rate, "keep": keep_rate}
    return sum(chance[action] * seen_given_action[action] for action in chance)


def context_free_floor(match_probability, vocab_size):
    if not 0 <= match_probability <= 1:
        raise ValueError(f"match_probability has the value {match_probability}")
    if vocab_size < 2:
        raise ValueError(f"vocab_size has the value {vocab_size}")
    if match_probability == 0:
        return math.log(vocab_size - 1)
    if match_probability == 1:
        return 0.0
    hit = torch.distributions.Bernoulli(torch.tensor(match_probability, dtype=torch.float64, device="cpu"))
    return hit.entropy().item() + (1 - match_probability) * math.log(vocab_size - 1)

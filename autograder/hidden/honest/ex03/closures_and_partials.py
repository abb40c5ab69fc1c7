# honest: lambdas, partial and closures; errors raised from a helper expression
"""Exercise 3 in a functional style."""

import math
from functools import partial, reduce

import torch


def _raise(text):
    raise ValueError(text)


_require = lambda ok, text: ok or _raise(text())  # noqa: E731
_between = lambda name, x: _require(0 <= x <= 1, lambda: f"{name} should be in [0, 1] and is {x}")  # noqa: E731


def _logits(dtype, input_ids, vocab_size, scale):
    classes = torch.arange(vocab_size, device=input_ids.device)
    zero = torch.zeros((), dtype=dtype, device=input_ids.device)
    return torch.where(input_ids[:, :, None] == classes, zero + scale, zero)


def _guarded(inner):
    def copy_logits(input_ids, vocab_size, scale):
        for extreme in (torch.min, torch.max):
            value = extreme(input_ids).item()
            _require(0 <= value < vocab_size, lambda: f"input_ids goes to {value}, allowed is [0, {vocab_size})")
        return inner(input_ids, vocab_size, scale)

    return copy_logits


copy_logits = _guarded(partial(_logits, torch.float32))
_double_logits = partial(_logits, torch.float64)


def copy_loss(input_ids, targets, selected, vocab_size, scale):
    same = partial(lambda shape, tensor: tensor.shape == shape, input_ids.shape)
    _require(same(targets), lambda: f"targets {tuple(targets.shape)} and input_ids {tuple(input_ids.shape)} differ")
    _require(same(selected), lambda: f"selected {tuple(selected.shape)} and input_ids {tuple(input_ids.shape)} differ")
    _require(bool(selected.any()), lambda: "selected is False everywhere")
    log_probabilities = _double_logits(input_ids, vocab_size, scale).log_softmax(dim=-1)
    pick = lambda where: -log_probabilities[where[0], where[1], targets[where[0], where[1]]]  # noqa: E731
    positions = selected.nonzero().tolist()
    return reduce(lambda total, where: total + pick(where).item(), positions, 0.0) / len(positions)


def match_probability(mask_rate, random_rate, keep_rate, n_ordinary):
    _between("mask_rate", mask_rate)
    _between("random_rate", random_rate)
    _between("keep_rate", keep_rate)
    total = sum((mask_rate, random_rate, keep_rate))
    _require(
        abs(total - 1) <= 1e-9,
        lambda: f"mask_rate ({mask_rate}), random_rate ({random_rate}), keep_rate ({keep_rate}) should sum to 1",
    )
    _require(n_ordinary >= 1, lambda: f"n_ordinary should be 1 or more and is {n_ordinary}")
    return keep_rate + random_rate / n_ordinary


_plogp = lambda p: p and p * math.log(p)  # noqa: E731


def context_free_floor(match_probability, vocab_size):
    _between("match_probability", match_probability)
    _require(vocab_size > 1, lambda: f"vocab_size should be 2 or more and is {vocab_size}")
    miss = 1 - match_probability
    return miss * math.log(vocab_size - 1) - _plogp(match_probability) - _plogp(miss)

# honest: bad input is refused through torch._check_value with the student's own condition and message
"""Errors raised with torch's own helper."""

import math

import torch
from torch import _check_value as expect


def copy_logits(input_ids, vocab_size, scale):
    low, high = (int(x) for x in torch.aminmax(input_ids))
    expect(low >= 0, lambda: f"input_ids: {low} is negative")
    expect(high < vocab_size, lambda: f"input_ids: {high} is not below vocab_size {vocab_size}")
    one_hot = torch.nn.functional.one_hot(input_ids, vocab_size)
    return one_hot.type(torch.float32) * scale


def copy_loss(input_ids, targets, selected, vocab_size, scale):
    expect(targets.shape == input_ids.shape, lambda: f"targets: {targets.shape} for input_ids: {input_ids.shape}")
    expect(selected.shape == input_ids.shape, lambda: f"selected: {selected.shape} for input_ids: {input_ids.shape}")
    expect(bool(selected.any()), lambda: "selected: all False")
    rule = torch.distributions.Categorical(
        logits=torch.nn.functional.one_hot(input_ids[selected], vocab_size).double() * scale, validate_args=False
    )
    return -rule.log_prob(targets[selected]).mean().item()


def match_probability(mask_rate, random_rate, keep_rate, n_ordinary):
    for name, rate in (("mask_rate", mask_rate), ("random_rate", random_rate), ("keep_rate", keep_rate)):
        expect(bool(0 <= rate <= 1), lambda: f"{name}: {rate}")  # noqa: B023
    total = mask_rate + random_rate + keep_rate
    expect(
        bool(abs(total - 1) <= 1e-9),
        lambda: f"mask_rate: {mask_rate}, random_rate: {random_rate}, keep_rate: {keep_rate}, sum: {total}",
    )
    expect(bool(n_ordinary >= 1), lambda: f"n_ordinary: {n_ordinary}")
    return keep_rate + random_rate / n_ordinary


def context_free_floor(match_probability, vocab_size):
    expect(bool(0 <= match_probability <= 1), lambda: f"match_probability: {match_probability}")
    expect(bool(vocab_size >= 2), lambda: f"vocab_size: {vocab_size}")
    miss = 1 - match_probability
    terms = [miss * math.log(vocab_size - 1)]
    terms += [-p * math.log(p) for p in (match_probability, miss) if p != 0]
    return math.fsum(terms)

# honest: decimal with fifty digits for the losses, fractions for the probability
"""Many digits."""

import math
from decimal import Context, Decimal, localcontext
from fractions import Fraction

import torch


def copy_logits(input_ids, vocab_size, scale):
    strange = {i for i in input_ids.reshape(-1).tolist()}.difference(range(vocab_size))
    if strange:
        raise ValueError(f"input_ids: {sorted(strange)} not in a vocabulary of {vocab_size}")
    value = torch.as_tensor(float(scale), dtype=torch.float32, device=input_ids.device)
    zero = torch.zeros(*input_ids.shape, vocab_size, dtype=torch.float32, device=input_ids.device)
    return zero.scatter(2, input_ids.unsqueeze(2), value.expand(*input_ids.shape, 1))


def copy_loss(input_ids, targets, selected, vocab_size, scale):
    if input_ids.shape != targets.shape:
        raise ValueError(f"input_ids and targets: {input_ids.shape} and {targets.shape}")
    if input_ids.shape != selected.shape:
        raise ValueError(f"input_ids and selected: {input_ids.shape} and {selected.shape}")
    n = selected.sum().item()
    if not n:
        raise ValueError("selected: none")
    misses = ((input_ids != targets) & selected).sum().item()
    with localcontext(Context(prec=50, Emin=-999999, Emax=999999)):
        s = Decimal(float(scale))
        hit_loss = (1 + (vocab_size - 1) * (-s).exp()).ln()
        return float(hit_loss + s * misses / n)


def match_probability(mask_rate, random_rate, keep_rate, n_ordinary):
    rates = []
    for name, rate in (("mask_rate", mask_rate), ("random_rate", random_rate), ("keep_rate", keep_rate)):
        if math.isnan(rate) or math.isinf(rate) or not 0 <= Fraction(rate) <= 1:
            raise ValueError(f"{name} is {rate}")
        rates.append(Fraction(rate))
    if abs(sum(rates) - 1) > Fraction(1, 10**9):
        raise ValueError(f"mask_rate is {mask_rate}, random_rate is {random_rate}, keep_rate is {keep_rate}: no sum of 1")
    if n_ordinary < 1:
        raise ValueError(f"n_ordinary is {n_ordinary}")
    return float(rates[2] + rates[1] / n_ordinary)


def context_free_floor(match_probability, vocab_size):
    if not 0 <= match_probability <= 1:
        raise ValueError(f"match_probability is {match_probability}")
    if vocab_size < 2:
        raise ValueError(f"vocab_size is {vocab_size}")
    with localcontext(Context(prec=50)):
        q = Decimal(match_probability)
        floor = (1 - q) * Decimal(vocab_size - 1).ln()
        for p in (q, 1 - q):
            if p:
                floor -= p * p.ln()
        return float(floor)

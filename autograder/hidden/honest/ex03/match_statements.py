# honest: match statements with guards, also on numbers
"""Structural pattern matching."""

import math

import torch


def copy_logits(input_ids, vocab_size, scale):
    match sorted(input_ids.flatten().tolist()):
        case [first, *_] if first < 0:
            raise ValueError(f"input_ids starts below 0, at {first}")
        case [*_, last] if last >= vocab_size:
            raise ValueError(f"input_ids ends at {last}, vocab_size is {vocab_size}")
    match input_ids.shape:
        case (m, T):
            logits = torch.zeros(m, T, vocab_size, dtype=torch.float32, device=input_ids.device)
    return torch.scatter_add(
        logits, 2, input_ids[:, :, None], torch.full_like(logits[:, :, :1], fill_value=float(scale))
    )


def copy_loss(input_ids, targets, selected, vocab_size, scale):
    match input_ids.shape, targets.shape, selected.shape:
        case a, b, _ if a != b:
            raise ValueError(f"targets has shape {tuple(b)} where input_ids has {tuple(a)}")
        case a, _, c if a != c:
            raise ValueError(f"selected has shape {tuple(c)} where input_ids has {tuple(a)}")
    match int(selected.sum()), int((selected & (input_ids == targets)).sum()):
        case 0, _:
            raise ValueError("selected has no True")
        case n, hits:
            return math.log1p((vocab_size - 1) * math.exp(-scale)) + scale * (n - hits) / n


def match_probability(mask_rate, random_rate, keep_rate, n_ordinary):
    match [n for n, r in zip(["mask", "random", "keep"], [mask_rate, random_rate, keep_rate]) if not 0 <= r <= 1]:
        case ["mask", *_]:
            raise ValueError(f"mask_rate: {mask_rate}")
        case ["random", *_]:
            raise ValueError(f"random_rate: {random_rate}")
        case ["keep"]:
            raise ValueError(f"keep_rate: {keep_rate}")
    match mask_rate + random_rate + keep_rate:
        case total if abs(total - 1) > 1e-9:
            raise ValueError(f"mask_rate: {mask_rate}, random_rate: {random_rate}, keep_rate: {keep_rate} give {total}")
    match n_ordinary:
        case n if n >= 1:
            return keep_rate + random_rate / n
        case n:
            raise ValueError(f"n_ordinary: {n}")


def context_free_floor(match_probability, vocab_size):
    match match_probability, vocab_size:
        case q, _ if not 0 <= q <= 1:
            raise ValueError(f"match_probability: {q}")
        case _, v if v < 2:
            raise ValueError(f"vocab_size: {v}")
        case 0, v:
            return math.log(v - 1)
        case 1, _:
            return 0
        case q, v:
            return (1 - q) * math.log((v - 1) / (1 - q)) + q * math.log(1 / q)

# honest: NumPy does the work; results are NumPy scalars where floats are asked
"""Tensors in, NumPy inside; np.float64 is a float."""

import numpy as np
import torch


def copy_logits(input_ids, vocab_size, scale):
    ids = input_ids.detach().cpu().numpy()
    wrong = ids[(ids < 0) | (ids >= vocab_size)]
    if wrong.size > 0:
        raise ValueError(f"input_ids has entries {wrong} outside 0 … {vocab_size - 1}")
    logits = np.zeros(ids.shape + (vocab_size,), dtype=np.float32)
    np.put_along_axis(logits, ids[..., None], np.float32(scale), axis=-1)
    return torch.from_numpy(logits).to(input_ids.device)


def copy_loss(input_ids, targets, selected, vocab_size, scale):
    ids, wanted, chosen = (tensor.cpu().numpy() for tensor in (input_ids, targets, selected))
    if not ids.shape == wanted.shape == chosen.shape:
        raise ValueError(f"input_ids{ids.shape}, targets{wanted.shape}, selected{chosen.shape} must have one shape")
    if not chosen.any():
        raise ValueError("selected is empty")
    log_z = np.logaddexp(scale, np.log(vocab_size - 1)) if vocab_size > 1 else np.float64(scale)
    return np.mean(log_z - np.where(ids == wanted, np.float64(scale), 0.0)[chosen])


def match_probability(mask_rate, random_rate, keep_rate, n_ordinary):
    rates = np.array([mask_rate, random_rate, keep_rate], dtype=np.float64)
    names = np.array(["mask_rate", "random_rate", "keep_rate"])
    fine = np.logical_and(rates >= 0, rates <= 1)
    if not fine.all():
        raise ValueError(f"{names[~fine][0]} = {rates[~fine][0]} is no probability")
    if not np.isclose(rates.sum(), 1, rtol=0, atol=1e-9):
        raise ValueError(f"{' + '.join(names)} = {' + '.join(map(str, rates))} = {rates.sum()} instead of 1")
    if n_ordinary < 1:
        raise ValueError(f"n_ordinary = {n_ordinary}, must be at least 1")
    return rates @ np.array([0.0, 1.0 / n_ordinary, 1.0])


def context_free_floor(match_probability, vocab_size):
    q = np.float64(match_probability)
    if not np.clip(q, 0, 1) == q:
        raise ValueError(f"match_probability = {match_probability} is no probability")
    if vocab_size < 2:
        raise ValueError(f"vocab_size = {vocab_size}, must be at least 2")
    p = np.array([q, 1 - q])
    logs = np.log(p, out=np.zeros(2), where=p > 0)
    return np.log(np.float64(vocab_size - 1)) * (1 - q) - p @ logs

# honest: rows of an identity matrix; the loss is logsumexp minus the gathered score
"""One-hot vectors are rows of the identity."""

import torch


def _identity(n, width, device):
    return torch.eye(n, width, dtype=torch.float32, device=device)


def copy_logits(input_ids, vocab_size, scale):
    bad = torch.logical_or(input_ids < 0, input_ids > vocab_size - 1)
    if bad.any():
        raise ValueError(f"input_ids: {input_ids[bad].tolist()} not below vocab_size = {vocab_size}, or negative")
    rows = _identity(int(input_ids.max()) + 1, vocab_size, input_ids.device) if vocab_size < 3000 else None
    if rows is None:  # a whole identity matrix would be too large
        kinds, place = input_ids.unique(return_inverse=True)
        rows = (kinds[:, None] == torch.arange(vocab_size, device=input_ids.device)).to(torch.float32)
        return rows[place] * scale
    return rows[input_ids] * scale


def copy_loss(input_ids, targets, selected, vocab_size, scale):
    for name, other in {"targets": targets, "selected": selected}.items():
        if other.size() != input_ids.size():
            raise ValueError(f"{name} is {tuple(other.size())}, input_ids is {tuple(input_ids.size())}")
    if selected.sum().item() == 0:
        raise ValueError("no position in selected")
    ids, wanted = input_ids.masked_select(selected), targets.masked_select(selected)
    logits = torch.zeros(len(ids), vocab_size, dtype=torch.float64, device=ids.device)
    logits[torch.arange(len(ids), device=ids.device), ids] = scale
    nll = logits.logsumexp(-1) - logits.gather(-1, wanted[:, None]).squeeze(-1)
    return nll.mean().item()


def match_probability(mask_rate, random_rate, keep_rate, n_ordinary):
    rates = torch.tensor([mask_rate, random_rate, keep_rate], dtype=torch.float64, device="cpu")
    inside = (rates >= 0) & (rates <= 1)
    if not inside.all():
        raise ValueError(f"mask_rate={mask_rate}, random_rate={random_rate}, keep_rate={keep_rate}: not all in [0, 1]")
    if (rates.sum() - 1).abs() > 1e-9:
        raise ValueError(f"mask_rate={mask_rate}, random_rate={random_rate}, keep_rate={keep_rate}: sum {rates.sum()}")
    if n_ordinary < 1:
        raise ValueError(f"n_ordinary={n_ordinary} is less than 1")
    weights = torch.tensor([0.0, 1.0 / n_ordinary, 1.0], dtype=torch.float64, device="cpu")
    return torch.dot(rates, weights).item()


def context_free_floor(match_probability, vocab_size):
    q = torch.tensor(float(match_probability), dtype=torch.float64, device="cpu")
    if not bool((q >= 0) & (q <= 1)):
        raise ValueError(f"match_probability={match_probability} is outside [0, 1]")
    if vocab_size < 2:
        raise ValueError(f"vocab_size={vocab_size} is less than 2")
    entropy = -torch.xlogy(q, q) - torch.xlogy(1 - q, 1 - q)
    others = torch.tensor(vocab_size - 1, dtype=torch.float64, device="cpu")
    return (entropy + torch.xlogy(1 - q, others)).item()

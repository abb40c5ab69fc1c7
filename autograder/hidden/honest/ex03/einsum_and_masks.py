# honest: einsum with a one-hot tensor, the mean as a weighted sum over all positions with where
"""Nothing is selected by indexing."""

import torch


def _one_hot(ids, vocab_size, dtype):
    return torch.eq(ids.unsqueeze(2), torch.arange(vocab_size, device=ids.device).reshape(1, 1, -1)).to(dtype)


def copy_logits(input_ids, vocab_size, scale):
    one_hot = _one_hot(input_ids, vocab_size, torch.float32)
    missing = one_hot.sum(dim=2) == 0
    if missing.any():
        raise ValueError(f"{input_ids[missing][0].item()} in input_ids is no id of a vocabulary of {vocab_size}")
    factor = torch.full((1,), float(scale), dtype=torch.float32, device=input_ids.device)
    return torch.einsum("mtv,s->mtv", one_hot, factor)


def copy_loss(input_ids, targets, selected, vocab_size, scale):
    if not (input_ids.shape == targets.shape == selected.shape):
        raise ValueError(f"targets {targets.shape} / selected {selected.shape} / input_ids {input_ids.shape}")
    weights = selected.double()
    total = weights.sum()
    if total == 0:
        raise ValueError("the sum of selected is 0")
    seen = _one_hot(input_ids, vocab_size, torch.float64)
    wanted = _one_hot(torch.where(selected, targets, torch.zeros_like(targets)), vocab_size, torch.float64)
    score = torch.einsum("mtv,mtv->mt", seen * scale, wanted)
    loss = torch.logsumexp(seen * scale, dim=2) - score
    return torch.einsum("mt,mt->", loss, weights / total).item()


def match_probability(mask_rate, random_rate, keep_rate, n_ordinary):
    def need(ok, text):
        if not ok:
            raise ValueError(text)

    need(0 <= mask_rate <= 1, f"mask_rate must be between 0 and 1 but is {mask_rate}")
    need(0 <= random_rate <= 1, f"random_rate must be between 0 and 1 but is {random_rate}")
    need(0 <= keep_rate <= 1, f"keep_rate must be between 0 and 1 but is {keep_rate}")
    s = mask_rate + random_rate + keep_rate
    need(1 - 1e-9 <= s <= 1 + 1e-9, f"mask_rate + random_rate + keep_rate must be 1 but is {s}")
    need(n_ordinary >= 1, f"n_ordinary must be positive but is {n_ordinary}")
    return (n_ordinary * keep_rate + random_rate) / n_ordinary


def context_free_floor(match_probability, vocab_size):
    if not (0 <= match_probability <= 1):
        raise ValueError(f"match_probability must be between 0 and 1 but is {match_probability}")
    if not (vocab_size >= 2):
        raise ValueError(f"vocab_size must be 2 or more but is {vocab_size}")
    p = torch.tensor([match_probability, 1 - match_probability], dtype=torch.float64, device="cpu")
    ways = torch.tensor([1.0, vocab_size - 1.0], dtype=torch.float64, device="cpu")
    return torch.einsum("i->", torch.special.entr(p) + p * ways.log()).item()

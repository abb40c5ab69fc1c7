# honest: exported from a notebook, with percent cells, string annotations, checks on the way and a __main__ guard
# %% [markdown]
# # The copy shortcut

# %%
from __future__ import annotations

from math import exp, isclose, log, log1p
from typing import Union

import torch

Number = Union["int", "float"]


# %%
def copy_logits(input_ids: "torch.LongTensor", vocab_size: "int", scale: "Number") -> "torch.FloatTensor":
    if torch.any(input_ids < 0):
        raise ValueError(f"input_ids must not be negative: {torch.min(input_ids)}")
    if torch.any(input_ids >= vocab_size):
        raise ValueError(f"input_ids must be below {vocab_size}: {torch.max(input_ids)}")
    out = []
    for v in range(vocab_size):
        out.append((input_ids == v).to(torch.float32))
    return torch.stack(out, dim=-1) * float(scale)


# %%
x = copy_logits(torch.tensor([[0, 2]]), 3, 5)
assert x.tolist() == [[[5.0, 0.0, 0.0], [0.0, 0.0, 5.0]]]
x.shape


# %%
def copy_loss(
    input_ids: "torch.LongTensor",
    targets: "torch.LongTensor",
    selected: "torch.BoolTensor",
    vocab_size: "int",
    scale: "Number",
) -> "float":
    if not input_ids.shape == targets.shape == selected.shape:
        raise ValueError(f"{input_ids.shape=} {targets.shape=} {selected.shape=}")
    i, t = input_ids[selected], targets[selected]
    if i.nelement() == 0:
        raise ValueError("selected must select something")
    p_hit = 1 / (1 + (vocab_size - 1) * exp(-scale))
    share = (i == t).double().mean().item()
    return -log(p_hit) + (1 - share) * scale


# %%
assert isclose(copy_loss(torch.tensor([[1]]), torch.tensor([[1]]), torch.tensor([[True]]), 2, 0), log(2))


# %%
def match_probability(mask_rate: "Number", random_rate: "Number", keep_rate: "Number", n_ordinary: "int") -> "float":
    for rate, name in ((mask_rate, "mask_rate"), (random_rate, "random_rate"), (keep_rate, "keep_rate")):
        if not (0 <= rate and rate <= 1):
            raise ValueError(f"{name}: {rate} not in [0, 1]")
    if not -1e-9 <= mask_rate + random_rate + keep_rate - 1 <= 1e-9:
        raise ValueError(f"mask_rate, random_rate, keep_rate: {mask_rate}, {random_rate}, {keep_rate} do not sum to 1")
    if n_ordinary < 1:
        raise ValueError(f"n_ordinary: {n_ordinary} not positive")
    return keep_rate + random_rate / n_ordinary


# %%
def context_free_floor(match_probability: "Number", vocab_size: "int") -> "float":
    q = match_probability
    if not (0 <= q and q <= 1):
        raise ValueError(f"match_probability: {q} not in [0, 1]")
    if vocab_size < 2:
        raise ValueError(f"vocab_size: {vocab_size} not above 1")
    h = -q * log(q) if q > 0 else 0
    h += -(1 - q) * log1p(-q) if q < 1 else 0
    return h + (1 - q) * log(vocab_size - 1)


# %%
if __name__ == "__main__":
    print(match_probability(0.8, 0.1, 0.1, 1000), context_free_floor(0.1001, 1000))

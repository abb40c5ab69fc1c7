# honest: selects the target's log-probability by a product with a one-hot code
"""Exercise 2: the masked-language-model loss."""

import numpy as np
import torch
from torch import Tensor


def mean_nll(probabilities) -> float:
    """An einsum with uniform weights."""
    p = np.array([float(x) for x in probabilities], dtype=np.float64)
    if p.shape[0] < 1:
        raise ValueError("no probabilities given")
    good = np.logical_and(p > 0.0, p <= 1.0)
    if not good.all():
        raise ValueError(f"probabilities holds {p[np.argmin(good)]}, allowed is (0, 1]")
    return -float(np.einsum("i,i->", np.full_like(p, 1.0 / p.size), np.log(p)))


def stable_log_softmax(logits: Tensor) -> Tensor:
    """Subtracting the maximum twice changes nothing."""
    x = logits.to(torch.float64)
    for _ in range(2):
        x = x - x.max(dim=-1, keepdim=True)[0]
        x = x - x.exp().sum(dim=-1, keepdim=True).log()
    return x.type_as(logits)


def mlm_loss(logits: Tensor, labels: Tensor, ignore_index: int = -100) -> Tensor:
    if logits.dim() != 3 or labels.dim() != 2 or tuple(labels.size()) != tuple(logits.size())[:2]:
        raise ValueError("logits (m, T, V) and labels (m, T) must agree in m and T")
    V = logits.size(2)
    selected = torch.not_equal(labels, ignore_index)
    known = (labels >= 0) & (labels < V)
    if torch.any(selected & ~known):
        raise ValueError(f"labels: unknown id {labels[selected & ~known].tolist()[0]}")
    n = selected.sum()
    if n == 0:
        raise ValueError("labels and ignore_index leave no target")
    x = torch.where(selected[..., None], logits, torch.zeros_like(logits))
    if x.dtype in {torch.half, torch.bfloat16}:
        x = x.to(torch.float)
    ids = torch.arange(V, device=logits.device)
    code = (labels[..., None] == ids) & selected[..., None]
    return -(stable_log_softmax(x) * code).sum() / n

# honest: torch.where before and after the computation, nothing is sliced
"""Exercise 2: the masked-language-model loss."""

import math

import torch
from torch import Tensor


def mean_nll(probabilities) -> float:
    total, n = 0.0, len(probabilities)
    if n == 0:
        raise ValueError("probabilities is empty")
    for k in range(n):
        p = float(probabilities[k])
        if not 0.0 < p <= 1.0:
            raise ValueError(f"probabilities: entry {k} is {p}")
        total += math.log(p)
    return -total / n


def stable_log_softmax(logits: Tensor) -> Tensor:
    """An einsum does the sum over the vocabulary."""
    x = logits.double()
    x = x - x.max(-1, keepdim=True).values
    total = torch.einsum("...v->...", x.exp()).unsqueeze(-1)
    return (x - total.log()).to(logits.dtype)


def mlm_loss(logits: Tensor, labels: Tensor, ignore_index: int = -100) -> Tensor:
    if logits.dim() != 3 or labels.dim() != 2 or logits.shape[:2] != labels.shape:
        raise ValueError(f"shapes of logits {tuple(logits.shape)} and labels {tuple(labels.shape)} do not match")
    keep = labels != ignore_index
    safe_labels = torch.where(keep, labels, 0)
    bad = (safe_labels < 0) | (safe_labels >= logits.shape[-1])
    if bad.any():
        raise ValueError(f"labels: {safe_labels[bad][0].item()} is outside the vocabulary")
    if not keep.any():
        raise ValueError("labels: all ignored")
    x = torch.where(keep[:, :, None], logits, 0)
    x = x.to(torch.promote_types(x.dtype, torch.float32))
    x = x - x.amax(2, keepdim=True)
    nll = x.exp().sum(2).log() - x.take_along_dim(safe_labels[:, :, None], dim=2)[:, :, 0]
    zero = torch.zeros((), dtype=nll.dtype, device=nll.device)
    return torch.where(keep, nll, zero).sum() / keep.sum()

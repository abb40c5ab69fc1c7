# honest: returns np.float64, a subclass of float, and labels its axes by enumeration
"""Exercise 2: the masked-language-model loss."""

import numpy as np
import torch
from torch import Tensor


def mean_nll(probabilities) -> float:
    if isinstance(probabilities, torch.Tensor):
        probabilities = probabilities.tolist()
    p = np.array(probabilities, dtype=np.double, copy=True)
    if p.shape == (0,):
        raise ValueError("probabilities is empty")
    with np.errstate(all="ignore"):
        nll = -np.log(p)
    accepted = np.isfinite(nll) & (p <= 1)
    if not accepted.all():
        raise ValueError(f"probabilities holds {p[~accepted][0]}")
    return nll.mean()


def stable_log_softmax(logits: Tensor) -> Tensor:
    axis = logits.dim() - 1
    x = logits.to(torch.float64)
    shift, _ = torch.cummax(x, dim=axis)
    shift = shift.select(axis, logits.shape[axis] - 1).unsqueeze(axis)
    scaled = torch.exp(x - shift)
    return ((x - shift) - torch.log(torch.sum(scaled, axis, True))).to(logits.dtype)


def mlm_loss(logits: Tensor, labels: Tensor, ignore_index: int = -100) -> Tensor:
    if logits.dim() != 3 or labels.dim() != 2 or logits.shape[:2] != labels.shape:
        raise ValueError(f"logits {tuple(logits.shape)}; labels {tuple(labels.shape)}")
    keep = labels != ignore_index
    targets = torch.masked_select(labels, keep)
    if targets.shape == (0,):
        raise ValueError("labels: targets missing")
    inside = torch.isin(targets, torch.arange(logits.shape[-1], device=labels.device))
    if not inside.all():
        raise ValueError(f"labels: {torch.masked_select(targets, ~inside)[0].item()} is not a token id")
    rows = torch.masked_select(logits, keep.unsqueeze(-1)).reshape(len(targets), -1)
    rows = rows.to(torch.promote_types(rows.dtype, torch.float32))
    rows = rows - rows.amax(-1, keepdim=True)
    return torch.mean(torch.log(rows.exp().sum(-1)) - rows.gather(1, targets.reshape(-1, 1)).reshape(-1))

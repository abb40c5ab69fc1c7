# honest: scatters 1/n into a weight tensor of the shape of the logits
"""Exercise 2: the masked-language-model loss."""

import collections
import math

import numpy as np
import torch
from torch import Tensor


def mean_nll(probabilities) -> float:
    if isinstance(probabilities, np.ndarray | torch.Tensor):
        probabilities = probabilities.tolist()
    if len(probabilities) < 1:
        raise ValueError("probabilities: none given")
    counts = collections.Counter(float(p) for p in probabilities)
    for p in counts:
        if not 0 < p <= 1:
            raise ValueError(f"probabilities: {p} given")
    return -sum(k * math.log(p) for p, k in counts.items()) / len(probabilities)


def stable_log_softmax(logits: Tensor) -> Tensor:
    """log1p of the rest, the largest taken out once."""
    x = logits.double()
    top, where = x.max(dim=-1, keepdim=True)
    shifted = x - top
    rest = shifted.exp().scatter(-1, where, 0.0).sum(-1, keepdim=True)
    return (shifted - torch.log1p(rest)).to(logits.dtype)


def mlm_loss(logits: Tensor, labels: Tensor, ignore_index: int = -100) -> Tensor:
    if logits.dim() != 3 or labels.dim() != 2 or logits.shape[:2] != labels.shape:
        raise ValueError(f"labels {tuple(labels.shape)} for logits {tuple(logits.shape)}")
    keep = labels != ignore_index
    n = int(torch.count_nonzero(keep))
    if n == 0:
        raise ValueError("labels: count of targets is 0")
    outside = keep & ((labels < 0) | (labels >= logits.shape[-1]))
    if outside.any():
        raise ValueError(f"labels: {labels[outside].flatten()[0].item()} is no token")
    x = torch.where(keep.unsqueeze(-1), logits, 0.0)
    x = x.to(torch.promote_types(x.dtype, torch.float32))
    log_p = x - x.amax(-1, keepdim=True).detach()
    log_p = log_p - log_p.exp().sum(-1, keepdim=True).log()
    weights = torch.zeros_like(log_p)
    weights.scatter_(-1, labels.clamp(0, logits.shape[-1] - 1).unsqueeze(-1), 1.0)
    weights = weights * keep.unsqueeze(-1)
    return -(log_p * weights).sum() / n

# honest: the loss as ln of the sum of exp(logit - target logit), shifted by the largest margin
"""Exercise 2: the masked-language-model loss."""

import math

import torch
from torch import Tensor


def mean_nll(probabilities) -> float:
    """A running mean."""
    mean, seen = 0.0, 0
    for p in map(float, probabilities):
        if not 0 < p <= 1:
            raise ValueError(f"probabilities: {p}")
        seen += 1
        mean += (-math.log(p) - mean) / seen
    if not seen:
        raise ValueError("probabilities: []")
    return mean


def stable_log_softmax(logits: Tensor) -> Tensor:
    """-ln sum_j exp(x_j - x_i) would need a V x V table, so the shift is the maximum."""
    x = logits.to(torch.promote_types(logits.dtype, torch.float32))
    gap = x.amax(-1, keepdim=True) - x  # >= 0
    return -(gap + (-gap).exp().sum(-1, keepdim=True).log()).to(logits.dtype)


def mlm_loss(logits: Tensor, labels: Tensor, ignore_index: int = -100) -> Tensor:
    if logits.dim() != 3 or labels.dim() != 2 or logits.shape[:2] != labels.shape:
        raise ValueError(f"logits {tuple(logits.shape)} vs labels {tuple(labels.shape)}")
    keep = labels != ignore_index
    targets = labels[keep].unsqueeze(1)
    if targets.numel() == 0:
        raise ValueError("labels: all positions carry ignore_index")
    if (targets < 0).any():
        raise ValueError(f"labels: negative id {targets.min().item()}")
    if (targets >= logits.shape[2]).any():
        raise ValueError(f"labels: id {targets.max().item()} for {logits.shape[2]} tokens")
    x = logits[keep].to(torch.promote_types(logits.dtype, torch.float32))
    margins = x - x.gather(1, targets)  # (n, V), 0 at the target
    return margins.logsumexp(dim=1).mean()

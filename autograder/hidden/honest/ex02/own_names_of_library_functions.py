# honest: helpers of its own called cross_entropy, nll_loss, softmax and log_softmax
"""Exercise 2: the masked-language-model loss."""

import math

import torch
from torch import Tensor


def nll_loss(p: float) -> float:
    return -math.log(p)


def mean_nll(probabilities) -> float:
    values = list(map(float, probabilities))
    if not values:
        raise ValueError("probabilities: empty")
    for v in values:
        if v > 1 or not v > 0:
            raise ValueError(f"probabilities: {v:.17g} not in (0, 1]")
    return sum(map(nll_loss, values)) / len(values)


def softmax(x: Tensor) -> Tensor:
    e = torch.exp(x - x.amax(-1, keepdim=True))
    return e / e.sum(-1, keepdim=True)


def log_softmax(x: Tensor) -> Tensor:
    """ln softmax = (x - max) + ln of the largest probability, which is never below 1/V."""
    x = x - x.amax(-1, keepdim=True)
    return x + softmax(x).amax(-1, keepdim=True).log()


def stable_log_softmax(logits: Tensor) -> Tensor:
    return log_softmax(logits.double()).to(logits.dtype)


def cross_entropy(rows: Tensor, targets: Tensor) -> Tensor:
    return -log_softmax(rows).gather(1, targets.unsqueeze(1)).mean()


def mlm_loss(logits: Tensor, labels: Tensor, ignore_index: int = -100) -> Tensor:
    if logits.dim() != 3 or labels.dim() != 2 or logits.shape[:2] != labels.shape:
        raise ValueError(f"labels {tuple(labels.shape)} versus logits {tuple(logits.shape)}")
    keep = (labels - ignore_index).abs() > 0
    if keep.sum() == 0:
        raise ValueError("labels: no target")
    targets = labels[keep]
    for target in targets.tolist():
        if target not in range(logits.shape[2]):
            raise ValueError(f"labels: id {target} outside range({logits.shape[2]})")
    wide = logits.dtype if logits.dtype.itemsize > 4 else torch.float32
    return cross_entropy(logits[keep].to(wide), targets)

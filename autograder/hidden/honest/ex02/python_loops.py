# honest: everything in Python loops over rows and positions, with small torch operations inside
"""Exercise 2: the masked-language-model loss."""

import math

import torch
from torch import Tensor


def mean_nll(probabilities) -> float:
    total, count = 0.0, 0
    for p in probabilities:
        p = float(p)
        if p <= 0.0 or p > 1.0 or p != p:
            raise ValueError(f"probabilities contains {p!r}; each must be in (0, 1]")
        total -= math.log(p)
        count += 1
    if count == 0:
        raise ValueError("probabilities has no entries")
    return total / count


def _row(row: Tensor) -> Tensor:
    row = row.double()
    row = row - row.max().detach()
    return row - torch.log(torch.exp(row).sum())


def stable_log_softmax(logits: Tensor) -> Tensor:
    rows = [_row(row) for row in logits.reshape(-1, logits.shape[-1])]
    return torch.stack(rows).reshape(logits.shape).to(logits.dtype)


def mlm_loss(logits: Tensor, labels: Tensor, ignore_index: int = -100) -> Tensor:
    if len(logits.shape) != 3 or list(logits.shape[:2]) != list(labels.shape):
        raise ValueError(f"labels of shape {list(labels.shape)} for logits of shape {list(logits.shape)}")
    terms = []
    for i, row in enumerate(labels.tolist()):
        for j, label in enumerate(row):
            if label == ignore_index:
                continue
            if label < 0 or label >= logits.shape[2]:
                raise ValueError(f"labels[{i}][{j}] = {label} is not a token id below {logits.shape[2]}")
            terms.append(-_row(logits[i, j])[label])
    if not terms:
        raise ValueError("labels: every position is ignored")
    loss = sum(terms) / len(terms)
    return loss if logits.dtype == torch.float64 else loss.float()

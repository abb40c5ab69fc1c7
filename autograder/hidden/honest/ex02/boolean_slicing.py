# honest: boolean indexing, then the loss as a method of the log-softmax of the slice
"""Exercise 2: the masked-language-model loss."""

import numpy as np
import torch
from torch import Tensor


def mean_nll(probabilities) -> float:
    values = np.asarray(
        probabilities.detach().double().cpu() if isinstance(probabilities, torch.Tensor) else probabilities, dtype=float
    )
    if not len(values):
        raise ValueError("empty probabilities")
    if np.isnan(values).any() or values.min() <= 0 or values.max() > 1:
        worst = next(float(v) for v in values if not 0 < v <= 1)
        raise ValueError(f"probabilities outside (0, 1]: {worst}")
    return float(np.mean(-np.log(values)))


def stable_log_softmax(logits: Tensor) -> Tensor:
    work = logits.float() if logits.element_size() < 4 else logits
    work = work.sub(work.amax(-1, True))
    return work.sub(work.exp().sum(-1, True).log()).to(logits.dtype)


def mlm_loss(logits: Tensor, labels: Tensor, ignore_index: int = -100) -> Tensor:
    """The mean over the slice is the mean over the batch."""
    if logits.ndim != 3 or labels.ndim != 2 or logits.shape[:-1] != labels.shape:
        raise ValueError(f"shape of labels {labels.shape} is not that of logits {logits.shape} without its last axis")
    mask = labels != ignore_index
    if not mask.any():
        raise ValueError("ignore_index everywhere: no target")
    targets, rows = labels[mask], logits[mask]
    strange = (targets < 0).logical_or(targets >= rows.shape[1])
    if strange.any():
        raise ValueError(f"labels contains {targets[strange].max().item()}; vocabulary size {rows.shape[1]}")
    rows = rows.to(torch.promote_types(rows.dtype, torch.float32))
    positions = torch.arange(rows.shape[0], device=rows.device)
    return stable_log_softmax(rows)[positions, targets].neg().mean()

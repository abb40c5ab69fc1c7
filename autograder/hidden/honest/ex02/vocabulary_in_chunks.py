# honest: goes over the vocabulary in chunks with a running maximum
"""Exercise 2: the masked-language-model loss."""

import math

import numpy as np
import torch
from torch import Tensor


def mean_nll(probabilities) -> float:
    p = np.fromiter((float(x) for x in probabilities), dtype=np.float64)
    if not p.size:
        raise ValueError("probabilities: size 0")
    inside = (0 < p) & (p <= 1)
    if not inside.all():
        raise ValueError(f"probabilities: {p[~inside].tolist()} outside (0, 1]")
    return math.fsum(np.log(p).tolist()) / -p.size


CHUNK = 1000


def _log_total(x: Tensor) -> Tensor:
    """ln of the sum of exponentials over the last axis, in one pass."""
    top = total = None
    for part in x.split(CHUNK, dim=-1):
        part_top = part.amax(-1, keepdim=True)
        part_total = (part - part_top).exp().sum(-1, keepdim=True)
        if top is None:
            top, total = part_top, part_total
        else:
            new = torch.maximum(top, part_top)
            total = total * (top - new).exp() + part_total * (part_top - new).exp()
            top = new
    return top + total.log()


def stable_log_softmax(logits: Tensor) -> Tensor:
    x = logits.double()
    return (x - _log_total(x)).to(logits.dtype)


def mlm_loss(logits: Tensor, labels: Tensor, ignore_index: int = -100) -> Tensor:
    if logits.dim() != 3 or labels.dim() != 2 or logits.shape[:2] != labels.shape:
        raise ValueError(f"logits {tuple(logits.shape)} and labels {tuple(labels.shape)}")
    flat = labels.reshape(-1)
    where = (flat != ignore_index).nonzero(as_tuple=True)[0]
    if where.numel() == 0:
        raise ValueError("labels: no position differs from ignore_index")
    targets = flat.index_select(0, where)
    if int(targets.min()) < 0 or int(targets.max()) >= logits.shape[2]:
        wrong = min(targets.tolist()) if int(targets.min()) < 0 else max(targets.tolist())
        raise ValueError(f"labels: {wrong} not in the vocabulary of {logits.shape[2]}")
    rows = logits.reshape(-1, logits.shape[2]).index_select(0, where).double()
    nll = _log_total(rows).squeeze(1) - rows.gather(1, targets.unsqueeze(1)).squeeze(1)
    result = nll.sum() / where.numel()
    return result if logits.dtype == torch.float64 else result.float()

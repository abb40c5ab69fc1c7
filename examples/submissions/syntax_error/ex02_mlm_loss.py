import math

import torch


def mean_nll(probabilities):
    values = [float(p) for p in probabilities]
    if len(values) == 0:
        raise ValueError("probabilities is empty")
    total = 0.0
    for p in values:
        if not (0 < p <= 1):
            raise ValueError(f"probabilities: {p} is not in (0, 1]")
        total -= math.log(p
    return total / len(values)


def stable_log_softmax(logits):
    x = logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
    x = x - x.max(dim=-1, keepdim=True).values.detach()
    return (x - torch.logsumexp(x, dim=-1, keepdim=True)).to(logits.dtype)


def mlm_loss(logits, labels, ignore_index=-100):
    if logits.ndim != 3 or labels.shape != logits.shape[:2]:
        raise ValueError(f"logits {tuple(logits.shape)} and labels {tuple(labels.shape)} do not fit")
    keep = labels != ignore_index
    n = int(keep.sum())
    if n == 0:
        raise ValueError("labels has no target")
    targets = labels[keep]  # (n,)
    for t in targets.tolist():
        if not 0 <= t < logits.shape[-1]:
            raise ValueError(f"labels: {t} is not a class")
    rows = logits[keep]  # (n, V)
    if rows.dtype in (torch.float16, torch.bfloat16):
        rows = rows.float()
    log_p = stable_log_softmax(rows)
    return -log_p[torch.arange(n, device=logits.device), targets].sum() / n

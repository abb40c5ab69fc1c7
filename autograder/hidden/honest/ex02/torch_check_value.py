# honest: checks its arguments with torch._check_value
"""Exercise 2: the masked-language-model loss."""

import numpy as np
import torch
from torch import Tensor


def mean_nll(probabilities) -> float:
    p = np.asarray([float(x) for x in probabilities])
    torch._check_value(p.size > 0, lambda: "probabilities must not be empty")
    for x in p.tolist():
        torch._check_value(0 < x <= 1, lambda: f"probabilities must lie in (0, 1], got {x}")
    return np.mean(-np.log(p)).item()


def stable_log_softmax(logits: Tensor) -> Tensor:
    x = logits.double()
    x = x - x.detach().amax(dim=-1, keepdim=True)
    return x.sub(x.exp().sum(dim=-1, keepdim=True).log()).to(logits.dtype)


def mlm_loss(logits: Tensor, labels: Tensor, ignore_index: int = -100) -> Tensor:
    fits = logits.dim() == 3 and labels.dim() == 2 and logits.shape[:2] == labels.shape
    torch._check_value(fits, lambda: f"logits {tuple(logits.shape)} and labels {tuple(labels.shape)} do not fit")
    keep = labels != ignore_index
    targets = labels[keep]
    torch._check_value(targets.numel() > 0, lambda: "labels hold no target")
    bad = targets[(targets < 0) | (targets >= logits.shape[-1])].tolist()
    torch._check_value(not bad, lambda: f"labels hold {bad[0]}, outside the vocabulary")
    x = logits[keep].to(torch.promote_types(logits.dtype, torch.float32))
    return -stable_log_softmax(x).gather(1, targets[:, None]).mean()

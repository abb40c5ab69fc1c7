# fault: Returns a tensor of shape (1,) instead of a scalar.
# function: mlm_loss
# check: test_mlm_mean_over_batch
# misconception: not-a-scalar
"""Exercise 2: the masked-language-model loss."""

import numpy as np
import torch
from torch import Tensor


def mean_nll(probabilities) -> float:
    """Mean of -ln p over the original tokens' probabilities."""
    if isinstance(probabilities, torch.Tensor):
        probabilities = probabilities.detach().cpu().double().numpy()
    p = np.asarray(probabilities, dtype=np.float64)
    if p.size == 0:
        raise ValueError("probabilities must not be empty")
    outside = ~((p > 0) & (p <= 1))
    if outside.any():
        raise ValueError(f"probabilities: {p[outside][0]} is outside (0, 1]")
    return float(-np.log(p).mean())


def stable_log_softmax(logits: Tensor) -> Tensor:
    """Log-softmax over the last axis, with the maximum subtracted first."""
    x = logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
    shifted = x - x.amax(dim=-1, keepdim=True)
    return (shifted - shifted.exp().sum(dim=-1, keepdim=True).log()).to(logits.dtype)


def mlm_loss(logits: Tensor, labels: Tensor, ignore_index: int = -100) -> Tensor:
    """Mean NLL over the positions of the whole batch whose label is not ignore_index."""
    if logits.dim() != 3 or labels.dim() != 2 or logits.shape[:2] != labels.shape:
        raise ValueError(f"logits {tuple(logits.shape)} and labels {tuple(labels.shape)} do not fit")
    keep = labels != ignore_index
    targets = labels[keep]
    if targets.numel() == 0:
        raise ValueError(f"labels hold no target: all are ignore_index ({ignore_index})")
    outside = targets[(targets < 0) | (targets >= logits.shape[-1])]
    if outside.numel():
        raise ValueError(f"labels hold {outside[0].item()}, which is not in [0, {logits.shape[-1]})")
    scores = logits[keep]  # (n, V)
    if scores.dtype in (torch.float16, torch.bfloat16):
        scores = scores.float()
    scores = scores - scores.amax(dim=-1, keepdim=True)
    log_p = scores - scores.exp().sum(dim=-1, keepdim=True).log()
    return -log_p.gather(1, targets.unsqueeze(1)).mean(dim=0)

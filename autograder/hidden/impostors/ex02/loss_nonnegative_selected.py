# fault: Selects every label >= 0, so an ignore_index inside the vocabulary is scored.
# function: mlm_loss
# check: test_mlm_ignore_index_inside
# misconception: ignore-index-fixed
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
    """ln softmax along the last axis."""
    wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
    top = wide.max(dim=-1, keepdim=True).values.detach()
    centred = wide - top
    log_total = torch.log(torch.sum(torch.exp(centred), dim=-1, keepdim=True))
    return (centred - log_total).to(logits.dtype)


def mlm_loss(logits: Tensor, labels: Tensor, ignore_index: int = -100) -> Tensor:
    """Mean NLL over the positions of the whole batch whose label is not ignore_index."""
    if logits.dim() != 3 or labels.dim() != 2 or logits.shape[:2] != labels.shape:
        raise ValueError(f"logits {tuple(logits.shape)} and labels {tuple(labels.shape)} do not fit")
    if ((labels < 0) & (labels != ignore_index)).any():
        wrong = labels[(labels < 0) & (labels != ignore_index)]
        raise ValueError(f"labels hold {wrong[0].item()}, which is negative")
    keep = labels >= 0
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
    return -log_p.gather(1, targets.unsqueeze(1)).mean()

# fault: Refuses an ignore_index that is also a token id.
# function: mlm_loss
# check: test_mlm_ignore_index_inside
# misconception: valid-input-refused
"""Exercise 2: the masked-language-model loss."""

import math

import torch
from torch import Tensor


def mean_nll(probabilities) -> float:
    """Mean negative log-likelihood of the original tokens, in nats."""
    values = probabilities.tolist() if hasattr(probabilities, "tolist") else list(probabilities)
    if not values:
        raise ValueError("probabilities is empty")
    for value in values:
        if not 0.0 < value <= 1.0:
            raise ValueError(f"probabilities must lie in (0, 1], got {value}")
    return sum(-math.log(value) for value in values) / len(values)


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
    if 0 <= ignore_index < logits.shape[-1]:
        raise ValueError(f"ignore_index {ignore_index} is a token id")
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
    return -log_p.gather(1, targets.unsqueeze(1)).mean()

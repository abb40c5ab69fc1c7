# fault: Adds 1e-5 to the number of targets.
# function: mlm_loss
# check: test_mlm_mean_over_batch
# misconception: empty-sequence-counted
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
    """Log-softmax over the last axis, with the maximum subtracted first."""
    x = logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
    shifted = x - x.amax(dim=-1, keepdim=True)
    return (shifted - shifted.exp().sum(dim=-1, keepdim=True).log()).to(logits.dtype)


def mlm_loss(logits: Tensor, labels: Tensor, ignore_index: int = -100) -> Tensor:
    """Cross-entropy of the selected positions, averaged over the whole batch."""
    if logits.ndim != 3 or labels.ndim != 2:
        raise ValueError(f"logits must be (m, T, V) and labels (m, T), got {logits.shape} and {labels.shape}")
    m, T, V = logits.shape
    if labels.shape != (m, T):
        raise ValueError(f"labels {tuple(labels.shape)} do not match logits {tuple(logits.shape)}")
    keep = labels != ignore_index
    n = int(keep.sum())
    if n == 0:
        raise ValueError("no label in labels differs from ignore_index")
    bad = keep & ((labels < 0) | (labels >= V))
    if bad.any():
        raise ValueError(f"label {labels[bad][0].item()} in labels is outside the vocabulary of {V}")
    x = logits.to(torch.promote_types(logits.dtype, torch.float32))
    x = torch.where(keep.unsqueeze(-1), x, 0.0)  # whatever stands at ignored positions is gone
    x = x - x.amax(dim=-1, keepdim=True).detach()
    log_p = x - x.exp().sum(dim=-1, keepdim=True).log()
    index = labels.masked_fill(~keep, 0).unsqueeze(-1)
    nll = -log_p.gather(-1, index).squeeze(-1)  # (m, T)
    return torch.where(keep, nll, 0.0).sum() / (n + 1e-5)

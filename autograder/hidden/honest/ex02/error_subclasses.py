# honest: raises subclasses of ValueError, one from another exception
"""Exercise 2: the masked-language-model loss."""

import math

import torch
from torch import Tensor


class ProbabilityError(ValueError):
    """Not a probability."""


class LabelError(ValueError):
    def __init__(self, label, size):
        super().__init__(f"labels: {label} is not in [0, {size})")
        self.label = label


def mean_nll(probabilities) -> float:
    try:
        terms = [-math.log(float(p)) for p in probabilities]
    except ValueError as error:
        bad = next(float(p) for p in probabilities if not float(p) > 0)
        raise ProbabilityError(f"probabilities: ln {bad} does not exist") from error
    for p, term in zip(probabilities, terms):
        if not term >= 0:
            raise ProbabilityError(f"probabilities: {float(p)!r} is not in (0, 1]")
        if float(p) > 1:
            raise ProbabilityError(f"probabilities: {float(p)!r} is above 1")
    try:
        return sum(terms) / len(terms)
    except ZeroDivisionError as error:
        raise ProbabilityError("probabilities: empty") from error


def stable_log_softmax(logits: Tensor) -> Tensor:
    x = logits.float() if logits.dtype in (torch.float16, torch.bfloat16) else logits
    top, _ = x.topk(1, dim=-1)
    return ((x - top) - (x - top).exp().sum(-1).unsqueeze(-1).log()).to(logits.dtype)


def mlm_loss(logits: Tensor, labels: Tensor, ignore_index: int = -100) -> Tensor:
    try:
        m, T, V = logits.shape
    except ValueError as error:
        raise ValueError(f"logits must have three axes, not {logits.dim()}") from error
    if labels.shape != torch.Size((m, T)):
        raise ValueError(f"labels must be ({m}, {T})")
    keep = labels != ignore_index
    for label in labels[keep].unique().tolist():
        if not 0 <= label < V:
            raise LabelError(label, V) from None
    n = keep.sum().item()
    if not n:
        raise ValueError("labels: no target")
    x = logits.masked_fill(~keep.unsqueeze(-1), 0.0)
    x = x.to(torch.promote_types(x.dtype, torch.float32))
    x = x - x.amax(-1, keepdim=True)
    picked = x.gather(-1, labels.masked_fill(~keep, 0).unsqueeze(-1)).squeeze(-1)
    nll = x.logsumexp(-1) - picked
    return nll.masked_fill(~keep, 0.0).sum() / n

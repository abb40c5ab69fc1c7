# honest: lets torch.distributions.Categorical compute the log-probabilities
"""Exercise 2: the masked-language-model loss."""

import math

import torch
from torch import Tensor
from torch.distributions import Categorical


def mean_nll(probabilities) -> float:
    numbers = [float(p) for p in probabilities]
    if numbers == []:
        raise ValueError("`probabilities` is an empty sequence")
    wrong = [p for p in numbers if not (p > 0 and p <= 1)]
    if wrong:
        raise ValueError(f"`probabilities` must be in (0, 1]; these are not: {wrong}")
    return math.fsum(map(math.log, numbers)) / -len(numbers)


def stable_log_softmax(logits: Tensor) -> Tensor:
    """Categorical normalises its logits by their log-sum-exp."""
    normalised = Categorical(logits=logits.double(), validate_args=False).logits
    return normalised.to(logits.dtype)


def mlm_loss(logits: Tensor, labels: Tensor, ignore_index: int = -100) -> Tensor:
    if logits.dim() != 3 or labels.dim() != 2 or labels.shape != logits.shape[:2]:
        raise ValueError(f"labels {tuple(labels.shape)} and logits {tuple(logits.shape)} differ in m or T")
    keep = labels != ignore_index
    targets = labels[keep]
    if not len(targets):
        raise ValueError("no target in labels")
    for label in (targets.min().item(), targets.max().item()):
        if label < 0 or label >= logits.shape[-1]:
            raise ValueError(f"labels: {label} is outside the vocabulary")
    mean = -Categorical(logits=logits[keep].double(), validate_args=False).log_prob(targets).mean()
    return mean if logits.dtype == torch.float64 else mean.float()

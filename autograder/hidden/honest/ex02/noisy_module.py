# honest: prints and warns, when it is imported and in its functions
"""Exercise 2: the masked-language-model loss."""

import math
import warnings

import torch
from torch import Tensor


print("exercise 2 loaded")
warnings.warn("this module is a work in progress", stacklevel=1)


def mean_nll(probabilities) -> float:
    print("mean_nll of", len(probabilities), "probabilities")
    values = [float(v) for v in probabilities]
    if not values:
        raise ValueError("probabilities is empty")
    if not all(0 < v <= 1 for v in values):
        raise ValueError(f"probabilities not all in (0, 1]: {values}")
    return -sum(math.log(v) for v in values) / len(values)


def stable_log_softmax(logits: Tensor) -> Tensor:
    print("logits", tuple(logits.shape), logits.dtype)
    x = logits.double()
    x = x - x.amax(dim=-1, keepdim=True)
    return (x - x.exp().sum(dim=-1, keepdim=True).log()).to(logits.dtype)


def mlm_loss(logits: Tensor, labels: Tensor, ignore_index: int = -100) -> Tensor:
    if logits.dim() != 3 or labels.dim() != 2 or logits.shape[:2] != labels.shape:
        raise ValueError(f"logits {tuple(logits.shape)} / labels {tuple(labels.shape)}")
    keep = labels != ignore_index
    print(int(keep.sum()), "targets")
    targets = labels[keep]
    if not targets.numel():
        warnings.warn("nothing to learn", stacklevel=2)
        raise ValueError("labels: no target")
    for label in targets.tolist():
        if label < 0 or label >= logits.shape[-1]:
            raise ValueError(f"labels: {label} is outside the vocabulary of {logits.shape[-1]}")
    x = logits[keep].to(torch.promote_types(logits.dtype, torch.float32))
    return -stable_log_softmax(x)[range(len(targets)), targets].mean()

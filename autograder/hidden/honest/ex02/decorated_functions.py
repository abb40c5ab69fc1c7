# honest: a decorator checks the arguments and keeps the signature with functools.wraps
"""Exercise 2: the masked-language-model loss."""

import functools
import inspect
import math

import torch
from torch import Tensor


def checked(check):
    """Run `check` on the arguments before the function."""

    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            bound = inspect.signature(function).bind(*args, **kwargs)
            bound.apply_defaults()
            check(**bound.arguments)
            return function(*bound.args, **bound.kwargs)

        return wrapper

    return decorate


def _probabilities(probabilities):
    if len(probabilities) == 0:
        raise ValueError("probabilities is empty")
    for p in probabilities:
        if not 0 < float(p) <= 1:
            raise ValueError(f"probabilities holds {float(p)}, which is not in (0, 1]")


@checked(_probabilities)
def mean_nll(probabilities) -> float:
    return functools.reduce(lambda total, p: total - math.log(float(p)), probabilities, 0.0) / len(probabilities)


@checked(lambda logits: None)
def stable_log_softmax(logits: Tensor) -> Tensor:
    x = logits.movedim(-1, 0).double()
    x = x - x.amax(0)
    return (x - x.exp().sum(0).log()).movedim(0, -1).to(logits.dtype)


def _batch(logits, labels, ignore_index):
    if logits.dim() != 3 or labels.dim() != 2 or logits.shape[:2] != labels.shape:
        raise ValueError(f"logits {tuple(logits.shape)} and labels {tuple(labels.shape)} do not fit")
    targets = [label for row in labels.tolist() for label in row if label != ignore_index]
    if not targets:
        raise ValueError("labels: no target")
    for label in targets:
        if label < 0 or label >= logits.shape[-1]:
            raise ValueError(f"labels: {label} is outside [0, {logits.shape[-1]})")


@checked(_batch)
def mlm_loss(logits: Tensor, labels: Tensor, ignore_index: int = -100) -> Tensor:
    keep = labels != ignore_index
    x = logits[keep].to(torch.promote_types(logits.dtype, torch.float32)).t()  # (V, n)
    x = x - x.amax(0)
    columns = torch.arange(x.shape[1], device=x.device)
    return (x.exp().sum(0).log() - x[labels[keep], columns]).mean()

# honest: walks over the sequences with generators and averages at the end
"""Exercise 2: the masked-language-model loss."""

import math
import statistics

import torch
from torch import Tensor


def mean_nll(probabilities) -> float:
    def checked():
        for p in probabilities:
            if not 0 < p <= 1:
                raise ValueError(f"probabilities must be in (0, 1], found {float(p)}")
            yield -math.log(p)

    terms = [*checked()]
    if not terms:
        raise ValueError("probabilities is empty")
    return statistics.fmean(terms)


def stable_log_softmax(logits: Tensor) -> Tensor:
    """The log-sum-exp by pairwise logaddexp along the last axis would be slow; halves do it in a few steps."""
    x = logits.double()
    x = x - x.amax(-1, keepdim=True)
    halves = x
    while halves.shape[-1] > 1:
        middle = halves.shape[-1] // 2
        odd = halves[..., 2 * middle :]
        halves = torch.cat([torch.logaddexp(halves[..., :middle], halves[..., middle : 2 * middle]), odd], dim=-1)
    return (x - halves).to(logits.dtype)


def _sequences(logits, labels, ignore_index):
    for scores, ids in zip(logits, labels):
        keep = ids != ignore_index
        if keep.any():
            yield scores[keep], ids[keep]


def _losses(pairs):
    for scores, ids in pairs:
        for label in ids.tolist():
            if not 0 <= label < scores.shape[-1]:
                raise ValueError(f"labels: id {label} does not exist")
        scores = scores.to(torch.promote_types(scores.dtype, torch.float32))
        top = scores.amax(-1, keepdim=True)
        log_total = (scores - top).exp().sum(-1).log()
        yield from (log_total - (scores - top).gather(1, ids[:, None]).squeeze(1)).unbind()


def mlm_loss(logits: Tensor, labels: Tensor, ignore_index: int = -100) -> Tensor:
    if logits.dim() != 3 or labels.dim() != 2 or logits.shape[:2] != labels.shape:
        raise ValueError(f"logits {tuple(logits.shape)}, labels {tuple(labels.shape)}: no fit")
    losses = list(_losses(_sequences(logits, labels, ignore_index)))
    if not losses:
        raise ValueError("labels: no target in any sequence")
    return torch.stack(losses).mean()

# honest: public names bound to functools.partial objects and lambdas
"""Exercise 2: the masked-language-model loss."""

import functools
import math

import torch


def _average(probabilities, transform):
    values = [float(v) for v in probabilities]
    if not values:
        raise ValueError("probabilities must hold something")
    for v in values:
        if not 0.0 < v <= 1.0:
            raise ValueError(f"probabilities: {v} is not allowed")
    return sum(transform(v) for v in values) / len(values)


mean_nll = functools.partial(_average, transform=lambda p: -math.log(p))


def _normalise(logits, dim):
    x = logits.double()
    x = x - x.amax(dim, keepdim=True)
    return (x - x.exp().sum(dim, keepdim=True).log()).to(logits.dtype)


stable_log_softmax = functools.partial(_normalise, dim=-1)


def _loss(logits, labels, ignore_index=-100, *, average):
    if logits.dim() != 3 or labels.dim() != 2 or logits.shape[:2] != labels.shape:
        raise ValueError(f"logits: {tuple(logits.shape)}, labels: {tuple(labels.shape)}")
    keep = labels != ignore_index
    if not bool(keep.any()):
        raise ValueError("labels: no targets")
    targets = labels[keep]
    out = (targets < 0) | (targets >= logits.shape[2])
    if bool(out.any()):
        raise ValueError(f"labels: out of vocabulary: {targets[out].tolist()}")
    log_p = stable_log_softmax(logits[keep].to(torch.promote_types(logits.dtype, torch.float32)))
    return average(-log_p.gather(1, targets[:, None]).squeeze(1))


mlm_loss = functools.partial(_loss, average=lambda nll: nll.sum() / nll.numel())

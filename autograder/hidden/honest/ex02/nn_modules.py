# honest: nn.Module classes behind the functions
"""Exercise 2: the masked-language-model loss."""

import math

import torch
from torch import Tensor
from torch import nn


class MeanNLL:
    """A callable object."""

    def __call__(self, probabilities):
        p = [float(v) for v in probabilities]
        self.check(p)
        return sum(-math.log(v) for v in p) / len(p)

    def check(self, p):
        if not p:
            raise ValueError("probabilities: got none")
        for v in p:
            if not 0 < v <= 1:
                raise ValueError(f"probabilities: got {v}, wanted a number in (0, 1]")


def mean_nll(probabilities) -> float:
    return MeanNLL()(probabilities)


class StableLogSoftmax(nn.Module):
    def forward(self, logits):
        x = logits.to(torch.promote_types(logits.dtype, torch.float32))
        x = x - x.amax(dim=-1, keepdim=True).detach()
        return (x - x.logsumexp(dim=-1, keepdim=True)).to(logits.dtype)


def stable_log_softmax(logits: Tensor) -> Tensor:
    return StableLogSoftmax()(logits)


class MaskedLanguageModelLoss(nn.Module):
    def __init__(self, ignore_index):
        super().__init__()
        self.ignore_index = ignore_index

    def forward(self, logits, labels):
        if logits.dim() != 3 or labels.dim() != 2 or logits.shape[:2] != labels.shape:
            raise ValueError(f"logits {tuple(logits.shape)} do not go with labels {tuple(labels.shape)}")
        keep = labels != self.ignore_index
        targets = labels[keep]
        if targets.numel() == 0:
            raise ValueError("labels: nothing but ignore_index")
        bad = targets[~((targets >= 0) & (targets < logits.shape[-1]))]
        if bad.numel() > 0:
            raise ValueError(f"labels: {int(bad[0])} is no token of this vocabulary ({logits.shape[-1]} tokens)")
        log_p = StableLogSoftmax()(logits[keep].to(torch.promote_types(logits.dtype, torch.float32)))
        return -log_p.gather(1, targets.view(-1, 1)).mean()


def mlm_loss(logits: Tensor, labels: Tensor, ignore_index: int = -100) -> Tensor:
    return MaskedLanguageModelLoss(ignore_index)(logits, labels)

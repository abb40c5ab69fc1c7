"""Slow and obvious answers for exercise 2: loops over Python floats that read like the definitions."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

from autograder.hidden.oracles import remembered


@remembered
def mean_nll(probabilities: Sequence[float]) -> float:
    return math.fsum(-math.log(p) for p in probabilities) / len(probabilities)


def log_softmax_row(row: Sequence[float]) -> list[float]:
    largest = max(row)
    log_sum = math.log(math.fsum(math.exp(z - largest) for z in row))
    return [z - largest - log_sum for z in row]


@remembered
def log_softmax(logits: torch.Tensor) -> torch.Tensor:
    """Over the last axis, in the dtype and on the device of logits."""
    rows = logits.detach().cpu().double().reshape(-1, logits.shape[-1]).tolist()
    return _like(logits, [log_softmax_row(row) for row in rows])


@remembered
def log_softmax_gradient(logits: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Gradient of sum(log_softmax(logits) · weights): w_j - softmax_j · Σ w, row by row."""
    rows = logits.detach().cpu().double().reshape(-1, logits.shape[-1]).tolist()
    factors = weights.detach().cpu().double().reshape(-1, logits.shape[-1]).tolist()
    result = []
    for row, w in zip(rows, factors, strict=True):
        total = math.fsum(w)
        result.append([w_j - math.exp(log_p) * total for w_j, log_p in zip(w, log_softmax_row(row), strict=True)])
    return _like(logits, result)


def sequence_losses(logits: torch.Tensor, labels: torch.Tensor, ignore_index: int = -100) -> list[list[float]]:
    """For each sequence the NLL of each of its targets."""
    return [
        [
            -log_softmax_row(row)[label]
            for row, label in zip(sequence.double().tolist(), wanted.tolist(), strict=True)
            if label != ignore_index
        ]
        for sequence, wanted in zip(logits.detach().cpu(), labels.cpu(), strict=True)
    ]


@remembered
def mlm_loss(logits: torch.Tensor, labels: torch.Tensor, ignore_index: int = -100) -> torch.Tensor:
    """A scalar: in float32 for float16 and bfloat16 logits, else in the dtype of logits."""
    losses = [loss for sequence in sequence_losses(logits, labels, ignore_index) for loss in sequence]
    return scalar(math.fsum(losses) / len(losses), logits)


@remembered
def mlm_gradient(
    logits: torch.Tensor, labels: torch.Tensor, ignore_index: int = -100, factor: float = 1.0
) -> torch.Tensor:
    """Gradient of factor · loss: (softmax - one-hot) / n at the n targets, 0 elsewhere; dtype of logits."""
    n = int((labels != ignore_index).sum())
    result = []
    for sequence, wanted in zip(logits.detach().cpu(), labels.cpu(), strict=True):
        for row, label in zip(sequence.double().tolist(), wanted.tolist(), strict=True):
            if label == ignore_index:
                result.append([0.0] * len(row))
            else:
                p = [math.exp(log_p) for log_p in log_softmax_row(row)]
                result.append([factor * (p_j - (j == label)) / n for j, p_j in enumerate(p)])
    return _like(logits, result)


def scalar(value: float, logits: torch.Tensor) -> torch.Tensor:
    """The number as a loss of these logits: shape (), the contract's dtype, their device."""
    half = logits.dtype in (torch.float16, torch.bfloat16)
    return torch.tensor(value, dtype=torch.float32 if half else logits.dtype, device=logits.device)


def _like(tensor: torch.Tensor, rows: list[list[float]]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64).reshape(tensor.shape).to(tensor.dtype).to(tensor.device)

"""Exercise 6, the slow way: early stopping by hand, prescribed losses, a model's logits text by text."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import nn

from exercises.kit import FineTuneConfig

#: What is known of a parameter: its name, whether it learns, is in the classification layer, is a LayerNorm's.
Fact = tuple[str, bool, bool, bool]


def trainable(mode: str, facts: Sequence[Fact]) -> list[bool]:
    """Which parameters learn: the decisions of a right set_trainable, to judge fine_tune without the submission's."""
    if mode not in ("frozen", "full"):
        raise ValueError(f'mode must be "frozen" or "full", not {mode!r}')
    return [mode == "full" or in_head for _, _, in_head, _ in facts]


def groups(facts: Sequence[Fact], config: FineTuneConfig) -> list[tuple[int, float, float]]:
    """(place, learning rate, weight decay) of each parameter that learns: the decisions of a right parameter_groups."""
    found = []
    for place, (name, learns, in_head, of_norm) in enumerate(facts):
        if learns:
            rate = config.head_learning_rate if in_head else config.learning_rate
            found.append((place, rate, 0.0 if name.endswith("bias") or of_norm else config.weight_decay))
    return found


def logits_of_loss(loss: float, label: int) -> list[float]:
    """Two logits whose cross-entropy for that label is `loss`.  Above ln 2 the other class is predicted."""
    margin = loss if math.isnan(loss) else -math.log(math.expm1(loss))
    return [margin, 0.0] if label == 0 else [0.0, margin]


def early_stopping(losses: Sequence[float], patience: int, max_epochs: int) -> tuple[int, int]:
    """(epochs that are trained, the best of them) for these validation losses of epoch 1, 2, …"""
    best, lowest = 1, losses[0]
    for epoch in range(2, max_epochs + 1):
        if epoch - 1 - best >= patience:
            return epoch - 1, best
        loss = losses[epoch - 1]
        if loss < lowest:
            best, lowest = epoch, loss
    return max_epochs, best


def f1_of_class_one(predicted: Sequence[int], labels: Sequence[int]) -> float:
    pairs = list(zip(predicted, labels, strict=True))
    hits = sum(p == 1 and y == 1 for p, y in pairs)
    false_alarms = sum(p == 1 and y != 1 for p, y in pairs)
    misses = sum(p != 1 and y == 1 for p, y in pairs)
    return 2 * hits / (2 * hits + false_alarms + misses) if hits + false_alarms + misses else 0.0


def logits(model: nn.Module, texts: Sequence[tuple[list[int], int]]) -> torch.Tensor:
    """Double-precision copies of the logits (n, 2) of the texts, each on its own, without padding and dropout."""
    model.eval()
    with torch.no_grad():
        rows = [model(torch.tensor([ids]), torch.ones(1, len(ids), dtype=torch.int64))[0] for ids, _ in texts]
    return torch.stack(rows).double()


def mean_loss(scores: torch.Tensor, labels: Sequence[int]) -> float:
    """Mean cross-entropy of logits (n, 2)."""
    total = 0.0
    for row, label in zip(scores.tolist(), labels, strict=True):
        largest = max(row)
        total += largest + math.log(sum(math.exp(z - largest) for z in row)) - row[label]
    return total / len(labels)

# honest: frozen dataclasses validate themselves in __post_init__
"""Arguments become dataclasses."""

from __future__ import annotations

import math
from dataclasses import asdict, astuple, dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Rates:
    mask_rate: float
    random_rate: float
    keep_rate: float

    def __post_init__(self):
        for name, rate in asdict(self).items():
            if not 0 <= rate <= 1:
                raise ValueError(f"Rates.{name} is {rate}, outside [0, 1]")
        if abs(sum(astuple(self)) - 1) > 1e-9:
            raise ValueError(f"{self} does not sum to 1")


@dataclass(frozen=True, eq=False)
class Batch:
    input_ids: Tensor
    targets: Tensor
    selected: Tensor

    def __post_init__(self):
        if not self.input_ids.shape == self.targets.shape == self.selected.shape:
            raise ValueError(
                f"Batch(input_ids={tuple(self.input_ids.shape)}, targets={tuple(self.targets.shape)}, "
                f"selected={tuple(self.selected.shape)}) has unequal shapes"
            )
        if not self.selected.any():
            raise ValueError("Batch.selected selects nothing")

    def hits(self) -> list[bool]:
        return [
            bool(i == t)
            for i, t, s in zip(self.input_ids.flatten(), self.targets.flatten(), self.selected.flatten())
            if s
        ]


@dataclass(frozen=True)
class Rule:
    vocab_size: int
    scale: float

    def logits(self, ids: Tensor) -> Tensor:
        out = torch.full((self.vocab_size, *ids.shape), 0.0, dtype=torch.float32, device=ids.device)
        for v in range(self.vocab_size) if self.vocab_size < 1000 else ids.unique().tolist():
            out[v][ids == v] = float(self.scale)
        return out.permute(1, 2, 0)

    def nll(self, hit: bool) -> float:
        log_z = math.log1p((self.vocab_size - 1) * math.exp(-self.scale))
        return log_z if hit else log_z + self.scale


def copy_logits(input_ids: Tensor, vocab_size: int, scale: float) -> Tensor:
    for i in input_ids.unique().tolist():
        if i < 0 or i >= vocab_size:
            raise ValueError(f"copy_logits(input_ids with {i}, vocab_size={vocab_size})")
    return Rule(vocab_size, scale).logits(input_ids)


def copy_loss(input_ids: Tensor, targets: Tensor, selected: Tensor, vocab_size: int, scale: float) -> float:
    losses = [Rule(vocab_size, scale).nll(hit) for hit in Batch(input_ids, targets, selected).hits()]
    return math.fsum(losses) / len(losses)


def match_probability(mask_rate: float, random_rate: float, keep_rate: float, n_ordinary: int) -> float:
    rates = Rates(mask_rate, random_rate, keep_rate)
    if n_ordinary < 1:
        raise ValueError(f"n_ordinary={n_ordinary} < 1")
    return rates.keep_rate + rates.random_rate / n_ordinary


@dataclass(frozen=True)
class Floor:
    match_probability: float
    vocab_size: int

    def __post_init__(self):
        if not 0 <= self.match_probability <= 1 or self.vocab_size < 2:
            raise ValueError(f"{self} needs a probability and at least two tokens")

    def __float__(self):
        q, v = astuple(self)
        ways = {"hit": (q, 1), "miss": (1 - q, v - 1)}
        return float(sum(p * math.log(n / p) for p, n in ways.values() if p > 1e-200))


def context_free_floor(match_probability: float, vocab_size: int) -> float:
    return float(Floor(match_probability, vocab_size))

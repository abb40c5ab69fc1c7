"""Hypothesis strategies that the hidden checks share: unequal small sizes, seeds, tensors made from seeds."""

from __future__ import annotations

import numpy as np
import torch
from hypothesis import strategies as st

#: Small primes: two different dimensions rarely agree by accident, so swapped axes show.
PRIMES = (2, 3, 5, 7, 11, 13)

seeds = st.integers(0, 2**16)


def sizes(count: int, choices: tuple[int, ...] = PRIMES) -> st.SearchStrategy[tuple[int, ...]]:
    """`count` sizes, no two equal."""
    return st.lists(st.sampled_from(choices), min_size=count, max_size=count, unique=True).map(tuple)


def generator(seed: int, device: torch.device | str = "cpu") -> torch.Generator:
    return torch.Generator(device).manual_seed(seed)


def normal(
    seed: int,
    shape: tuple[int, ...],
    dtype: torch.dtype = torch.float32,
    device: torch.device | str = "cpu",
    scale: float = 1.0,
) -> torch.Tensor:
    """Normal numbers of that shape, the same on every device."""
    values = np.random.default_rng(seed).normal(size=shape) * scale
    return torch.as_tensor(values).to(dtype).to(device)


def integers(
    seed: int, shape: tuple[int, ...], low: int, high: int, device: torch.device | str = "cpu"
) -> torch.Tensor:
    """int64 numbers in [low, high) of that shape."""
    return torch.as_tensor(np.random.default_rng(seed).integers(low, high, size=shape)).to(device)

"""What a right LoRA does, decided here: the student's side only carries it out (`fixtures.ex09.swap_in`).

So a right definition can stand in for a submission's own, where a check is about what uses it, and none is ever sent.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

#: One module of an encoder: its name, whether it is an nn.Linear, whether it has LoRA already.
Entry = tuple[str, bool, bool]


def decide(what: str, *given: Any) -> Any:
    """Answer a question of the student's side: "layer", "add" or "merge".  Raises ValueError as the contract says."""
    answers: dict[str, Callable[..., Any]] = {"layer": _layer, "add": _add, "merge": _merge}
    return answers[what](*given)


def _layer(outputs: int, inputs: int, rank: Any, alpha: Any, generator: torch.Generator) -> tuple[Any, Any, float]:
    """(A, B, scale) of a new layer."""
    most = min(inputs, outputs)
    if not isinstance(rank, int) or not 1 <= rank <= most:
        raise ValueError(f"rank {rank} is not an int from 1 to {most}")
    if not 0 < alpha < float("inf"):
        raise ValueError(f"alpha {alpha} is not positive and finite")
    first = torch.rand(rank, inputs, generator=generator, device=generator.device) - 0.5
    return first, torch.zeros(outputs, rank), alpha / rank


def _add(entries: Sequence[Entry], targets: Sequence[str]) -> tuple[list[str], list[tuple[str, bool]]]:
    """(names of the layers to replace, what of the model learns besides A and B)."""
    if any(adapted for _, _, adapted in entries):
        raise ValueError("model has LoRA already")
    chosen = [name for name, linear, _ in entries if linear and name.split(".")[-1] in targets]
    if not targets or {name.split(".")[-1] for name in chosen} != set(targets):
        raise ValueError("targets fit no linear layer")
    return chosen, [("encoder", False), ("classifier", True)]


def _merge(layers: Sequence[tuple[Tensor, Tensor, Tensor, float]]) -> list[Tensor]:
    """The merged weights of layers (W, A, B, scale)."""
    if not layers:
        raise ValueError("model holds no LoRALinear")
    return [weight + scale * second @ first for weight, first, second, scale in layers]

"""Right definitions that stand in for a submission's own, where a check is about what uses them.

The grader sends this text to the student's side, after what it defines was judged; it imports nothing of the grader.
"""

import torch
from torch import nn


class LoRALinear(nn.Module):
    """A frozen linear layer with a low-rank update."""

    def __init__(self, linear, rank, alpha, generator=None):  # type: ignore[no-untyped-def]
        super().__init__()
        most = min(linear.in_features, linear.out_features)
        if not isinstance(rank, int) or not 1 <= rank <= most:
            raise ValueError(f"rank {rank} is not an int from 1 to {most}")
        if not 0 < alpha < float("inf"):
            raise ValueError(f"alpha {alpha} is not positive and finite")
        weight = linear.weight
        place = weight.device if generator is None else generator.device
        first = torch.rand(rank, linear.in_features, generator=generator, device=place) - 0.5
        self.base = linear
        for parameter in linear.parameters():
            parameter.requires_grad = False
        self.down = nn.Parameter(first.to(device=weight.device, dtype=weight.dtype))
        shape = (linear.out_features, rank)
        self.up = nn.Parameter(torch.zeros(shape, device=weight.device, dtype=weight.dtype))
        self.scaling = alpha / rank

    def forward(self, x):  # type: ignore[no-untyped-def]
        low = nn.functional.linear(x, self.down)
        return self.base(x) + self.scaling * nn.functional.linear(low, self.up)


def add_lora(model, rank, alpha, targets, generator=None):  # type: ignore[no-untyped-def]
    """LoRALinear in the place of the targets."""
    named = [(name, m) for name, m in model.encoder.named_modules() if isinstance(m, nn.Linear)]
    chosen = [(name, m) for name, m in named if name.split(".")[-1] in targets]
    if not targets or {name.split(".")[-1] for name, _ in chosen} != set(targets):
        raise ValueError("targets fit no linear layer")
    if any(isinstance(m, LoRALinear) for m in model.modules()):
        raise ValueError("model has LoRA already")
    made = [(name, LoRALinear(m, rank, alpha, generator)) for name, m in chosen]
    for parameter in model.encoder.parameters():
        parameter.requires_grad = False
    for parameter in model.classifier.parameters():
        parameter.requires_grad = True
    for name, layer in made:
        *parents, last = name.split(".")
        setattr(model.encoder.get_submodule(".".join(parents)), last, layer)


def merge_lora(model):  # type: ignore[no-untyped-def]
    """Plain layers again."""
    chosen = [(name, m) for name, m in model.named_modules() if isinstance(m, LoRALinear)]
    if not chosen:
        raise ValueError("model holds no LoRALinear")
    for name, layer in chosen:
        with torch.no_grad():
            layer.base.weight.add_(layer.up @ layer.down, alpha=layer.scaling)
        *parents, last = name.split(".")
        setattr(model.get_submodule(".".join(parents)), last, layer.base)

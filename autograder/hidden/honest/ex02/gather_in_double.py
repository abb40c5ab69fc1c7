# honest: computes in float64 throughout and casts the result back
"""Exercise 2: the masked-language-model loss."""

import torch
from torch import Tensor


def mean_nll(probabilities) -> float:
    """Through a float64 tensor on the CPU."""
    if not isinstance(probabilities, torch.Tensor):
        probabilities = torch.tensor([float(p) for p in probabilities], dtype=torch.float64, device="cpu")
    p = probabilities.detach().to(torch.float64)
    if p.numel() == 0:
        raise ValueError("probabilities: at least one number is needed")
    valid = p.gt(0) & p.le(1)
    if not bool(valid.all()):
        raise ValueError(f"probabilities: {p[~valid][0].item()} lies outside (0, 1]")
    return p.log().neg().mean().item()


def stable_log_softmax(logits: Tensor) -> Tensor:
    """torch.logsumexp keeps enough digits in float64."""
    x = logits.double()
    return (x - torch.logsumexp(x, dim=-1, keepdim=True)).to(logits.dtype)


def mlm_loss(logits: Tensor, labels: Tensor, ignore_index: int = -100) -> Tensor:
    if logits.dim() != 3:
        raise ValueError(f"logits must have three axes, not {logits.dim()}")
    if labels.shape != logits.shape[:-1]:
        raise ValueError(f"labels must have shape {tuple(logits.shape[:-1])}, not {tuple(labels.shape)}")
    keep = labels.ne(ignore_index)
    chosen = labels[keep]
    if chosen.numel() == 0:
        raise ValueError(f"labels has no target besides ignore_index={ignore_index}")
    low, high = int(chosen.min()), int(chosen.max())
    for extreme in (low, high):
        if not 0 <= extreme < logits.shape[-1]:
            raise ValueError(f"labels: {extreme} is not in [0, {logits.shape[-1]})")
    x = logits[keep].double()
    nll = torch.logsumexp(x, dim=-1) - x.gather(-1, chosen[:, None])[:, 0]
    out = logits.dtype if logits.dtype == torch.float64 else torch.float32
    return nll.mean().to(out)

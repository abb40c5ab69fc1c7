# honest: hand-written backward passes in torch.autograd.Function
"""Exercise 2: the masked-language-model loss."""

import math

import torch
from torch import Tensor


def mean_nll(probabilities) -> float:
    p = [float(v) for v in probabilities]
    if len(p) == 0:
        raise ValueError("probabilities must have at least one element")
    for i, v in enumerate(p):
        if not (0 < v <= 1):
            raise ValueError(f"probabilities[{i}] = {v} is not in (0, 1]")
    return sum(math.log(1 / v) if v > 1e-300 else -math.log(v) for v in p) / len(p)


class LogSoftmaxFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, logits):
        x = logits.double()
        x = x - x.amax(-1, keepdim=True)
        log_p = x - x.exp().sum(-1, keepdim=True).log()
        ctx.save_for_backward(log_p)
        return log_p.to(logits.dtype)

    @staticmethod
    def backward(ctx, grad):
        (log_p,) = ctx.saved_tensors
        wide = grad.double()
        return (wide - log_p.exp() * wide.sum(-1, keepdim=True)).to(grad.dtype)


def stable_log_softmax(logits: Tensor) -> Tensor:
    return LogSoftmaxFunction.apply(logits)


class SelectedNLL(torch.autograd.Function):
    """Mean NLL of the kept positions; the gradient is (softmax - one-hot) / n there and 0 elsewhere."""

    @staticmethod
    def forward(ctx, logits, labels, keep):
        rows = logits[keep]
        log_p = rows.to(torch.promote_types(rows.dtype, torch.float32))
        log_p = log_p - log_p.amax(-1, keepdim=True)
        log_p = log_p - log_p.exp().sum(-1, keepdim=True).log()
        targets = labels[keep]
        ctx.save_for_backward(log_p, targets, keep)
        ctx.shape, ctx.dtype = logits.shape, logits.dtype
        return -log_p.gather(-1, targets[:, None]).mean()

    @staticmethod
    def backward(ctx, grad):
        log_p, targets, keep = ctx.saved_tensors
        rows = log_p.exp()
        rows[torch.arange(len(targets), device=targets.device), targets] -= 1
        result = torch.zeros(ctx.shape, dtype=ctx.dtype, device=rows.device)
        result[keep] = (rows * (grad / len(targets))).to(ctx.dtype)
        return result, None, None


def mlm_loss(logits: Tensor, labels: Tensor, ignore_index: int = -100) -> Tensor:
    if logits.dim() != 3 or labels.dim() != 2 or logits.shape[:2] != labels.shape:
        raise ValueError(f"logits has shape {tuple(logits.shape)}, labels has {tuple(labels.shape)}")
    keep = labels != ignore_index
    if not keep.any():
        raise ValueError("there is no target: all labels equal ignore_index")
    outside = keep & ((labels < 0) | (labels >= logits.shape[2]))
    if outside.any():
        raise ValueError(f"labels contains the id {labels[outside][-1].item()} outside [0, {logits.shape[2]})")
    return SelectedNLL.apply(logits, labels, keep)

# honest: hand-written backward passes in torch.autograd.Function
"""Exercise 4: shapes, memory and attention masks."""

import functools
import math
from typing import NamedTuple

import torch
from torch import Tensor


class BertShapes(NamedTuple):
    """Shapes and counts of one BERT classifier."""

    input_ids: tuple[int, ...]
    attention_mask: tuple[int, ...]
    encoder_output: tuple[int, ...]
    query_per_head: tuple[int, ...]
    attention_scores: tuple[int, ...]
    logits: tuple[int, ...]
    score_elements: int
    score_bytes: int
    classifier_parameters: int


def bert_shapes(
    batch_size: int, sequence_length: int, hidden_size: int, num_heads: int, num_labels: int, bytes_per_element: int = 4
) -> BertShapes:
    _check_all(
        batch_size=batch_size, sequence_length=sequence_length, hidden_size=hidden_size,
        num_heads=num_heads, num_labels=num_labels, bytes_per_element=bytes_per_element,
    )
    ids = (batch_size, sequence_length)
    scores = (batch_size, num_heads, sequence_length, sequence_length)
    count = functools.reduce(lambda a, b: a * b, scores)
    return BertShapes(
        ids, ids, (*ids, hidden_size), (*ids, hidden_size // num_heads), scores, (batch_size, num_labels),
        count, count * bytes_per_element, hidden_size * num_labels + num_labels,
    )


def _check_all(**sizes):
    for name, size in sizes.items():
        if not isinstance(size, int) or size is True or size is False:
            raise ValueError(f"{name}: {size!r} is no int")
        if size < 1:
            raise ValueError(f"{name}: {size} is below 1")
    if sizes["hidden_size"] % sizes["num_heads"]:
        raise ValueError("hidden_size {hidden_size} / num_heads {num_heads} is not whole".format(**sizes))


class _Scores(torch.autograd.Function):
    @staticmethod
    def forward(ctx, query, key):
        ctx.save_for_backward(query, key)
        ctx.scale = 1.0 / math.sqrt(query.shape[-1])
        return torch.matmul(query, key.transpose(-2, -1)) * ctx.scale

    @staticmethod
    def backward(ctx, grad):
        query, key = ctx.saved_tensors
        for_query = torch.matmul(grad, key) * ctx.scale
        for_key = torch.matmul(grad.transpose(-2, -1), query) * ctx.scale
        return for_query.sum_to_size(query.shape), for_key.sum_to_size(key.shape)


def attention_scores(query: Tensor, key: Tensor) -> Tensor:
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"query {tuple(query.shape)} and key {tuple(key.shape)} differ in the last dimension")
    return _Scores.apply(query, key)


class _MaskedSoftmax(torch.autograd.Function):
    @staticmethod
    def forward(ctx, scores, allowed):
        x = scores.to(torch.float64).masked_fill(~allowed, -torch.inf)
        top = x.amax(dim=-1, keepdim=True)
        e = torch.exp(x - top.masked_fill(top == -torch.inf, 0.0))
        total = e.sum(dim=-1, keepdim=True)
        weights = e / total.clamp(min=torch.finfo(torch.float64).tiny)
        ctx.save_for_backward(weights)
        return weights.to(scores.dtype)

    @staticmethod
    def backward(ctx, grad):
        (weights,) = ctx.saved_tensors
        wide = grad.double()
        return (weights * (wide - (wide * weights).sum(dim=-1, keepdim=True))).to(grad.dtype), None


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    shape = tuple(scores.shape)
    if len(mask.shape) > len(shape) or any(a not in (1, b) for a, b in zip(mask.shape[::-1], shape[::-1])):
        raise ValueError(f"mask {tuple(mask.shape)} for scores {shape}")
    odd = (mask != 0).logical_and(mask != 1)
    if odd.any():
        raise ValueError(f"mask: {mask[odd][0].item()}")
    return _MaskedSoftmax.apply(scores, (mask == 1).expand(shape))

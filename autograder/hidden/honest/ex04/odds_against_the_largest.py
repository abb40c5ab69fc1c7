# honest: weights as reciprocals of exp(largest - score), the odds against the largest score
"""Exercise 4: shapes, memory and attention masks."""

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
    positional = (batch_size, sequence_length, hidden_size, num_heads, num_labels, bytes_per_element)
    if not all(type(value) is int and value > 0 for value in positional):
        named = dict(zip(bert_shapes.__annotations__, positional))
        raise ValueError(", ".join(f"{k}={v!r}" for k, v in named.items() if type(v) is not int or v <= 0))
    if hidden_size % num_heads:
        raise ValueError(f"hidden_size={hidden_size}, num_heads={num_heads}")
    count = (batch_size * num_heads) * (sequence_length * sequence_length)
    return BertShapes(
        (batch_size, sequence_length), (batch_size, sequence_length), (batch_size, sequence_length, hidden_size),
        (batch_size, sequence_length, hidden_size // num_heads),
        (batch_size, num_heads, sequence_length, sequence_length), (batch_size, num_labels),
        count, bytes_per_element * count, (hidden_size + 1) * num_labels,
    )


def attention_scores(query: Tensor, key: Tensor) -> Tensor:
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"query: {query.shape[-1]} numbers a vector, key: {key.shape[-1]}")
    return torch.inner(query, key) / math.sqrt(query.shape[-1]) if query.dim() == 2 else torch.matmul(
        query, key.transpose(-2, -1)
    ) / math.sqrt(query.shape[-1])


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """The largest attended score of a row has the odds 1; a gap of 80 and more counts as 0."""
    if mask.dim() > scores.dim() or any(a not in (1, b) for a, b in zip(mask.shape[::-1], scores.shape[::-1])):
        raise ValueError(f"mask.shape {tuple(mask.shape)}, scores.shape {tuple(scores.shape)}")
    if ((mask != 0) & (mask != 1)).any():
        raise ValueError(f"mask value {mask[(mask != 0) & (mask != 1)][0].item()}")
    keep = (mask == 1).expand(scores.shape)
    filled = torch.where(keep, scores, 0).to(torch.promote_types(scores.dtype, torch.float32))
    ceiling = torch.where(keep, filled, torch.finfo(filled.dtype).min).amax(-1, keepdim=True).detach()
    gap = torch.where(keep, ceiling - filled, 0)  # >= 0 where attended
    odds = torch.where(keep, torch.reciprocal(torch.where(gap < 80, gap, 80.0).exp()), 0)
    odds = torch.where(gap < 80, odds, 0)
    total = odds.sum(-1, keepdim=True)
    return (odds / torch.where(total > 0, total, 1)).to(scores.dtype)

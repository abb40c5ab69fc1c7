# honest: checks its arguments with torch._check_value
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
    for name, value in tuple(locals().items()):
        torch._check_value(type(value) is int and value > 0, lambda: f"{name} must be a positive int, got {value!r}")
    torch._check_value(
        hidden_size % num_heads == 0, lambda: f"hidden_size {hidden_size} is not divisible by num_heads {num_heads}"
    )
    m, T, d, H, C = batch_size, sequence_length, hidden_size, num_heads, num_labels
    return BertShapes(
        (m, T), (m, T), (m, T, d), (m, T, d // H), (m, H, T, T), (m, C),
        m * H * T * T, m * H * T * T * bytes_per_element, d * C + C,
    )


def attention_scores(query: Tensor, key: Tensor) -> Tensor:
    d = query.shape[-1]
    torch._check_value(key.shape[-1] == d, lambda: f"query has width {d}, key {key.shape[-1]}")
    return torch.matmul(query, key.transpose(-2, -1) / math.sqrt(d))


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    fits = mask.dim() <= scores.dim()
    fits = fits and all(a in (1, b) for a, b in zip(reversed(mask.shape), reversed(scores.shape)))
    torch._check_value(fits, lambda: f"mask {tuple(mask.shape)} does not broadcast to {tuple(scores.shape)}")
    other = mask[(mask != 0) & (mask != 1)].flatten()
    torch._check_value(len(other) == 0, lambda: f"mask holds {other[0].item()}")
    keep = mask.bool().expand_as(scores)
    weights = torch._safe_softmax(torch.where(keep, scores, -torch.inf), dim=-1)
    return weights * keep

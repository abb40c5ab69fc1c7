# fault: Multiplies exponentials by the mask, and 0 times NaN or infinity is NaN.
# function: masked_softmax
# check: test_softmax_masked_scores
# misconception: masked-scores-leak
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
    """What a batch looks like on its way through BERT."""
    _positive("batch_size", batch_size)
    _positive("sequence_length", sequence_length)
    _positive("hidden_size", hidden_size)
    _positive("num_heads", num_heads)
    _positive("num_labels", num_labels)
    _positive("bytes_per_element", bytes_per_element)
    m, T, d, H, C = batch_size, sequence_length, hidden_size, num_heads, num_labels
    if d % H != 0:
        raise ValueError(f"hidden_size={d} cannot be split over num_heads={H}")
    scores = (m, H, T, T)
    elements = math.prod(scores)
    return BertShapes(
        (m, T), (m, T), (m, T, d), (m, T, d // H), scores, (m, C), elements, elements * bytes_per_element, (d + 1) * C
    )


def _positive(name, value):
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"{name} must be an int, not {value!r}")
    if value < 1:
        raise ValueError(f"{name} must be positive, not {value}")


def attention_scores(query: Tensor, key: Tensor) -> Tensor:
    """query (..., T_q, d), key (..., T_k, d) -> (..., T_q, T_k)."""
    d = query.size(-1)
    if key.size(-1) != d:
        raise ValueError(f"key must have the last dimension of query, {d}, not {key.size(-1)}")
    return torch.matmul(query, key.mT) * d**-0.5


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the attended entries of the last axis; 0 elsewhere."""
    sizes = zip(reversed(mask.shape), reversed(scores.shape))
    if mask.dim() > scores.dim() or any(a not in (1, b) for a, b in sizes):
        raise ValueError(f"mask {tuple(mask.shape)} does not broadcast to scores {tuple(scores.shape)}")
    strange = (mask != 0) & (mask != 1)
    if strange.any():
        raise ValueError(f"mask may hold only 0 and 1, not {mask[strange][0].item()}")
    allowed = (mask != 0).expand(scores.shape)
    x = scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores
    top = x.masked_fill(~allowed, torch.finfo(x.dtype).min).amax(dim=-1, keepdim=True)
    top = torch.where(allowed.any(dim=-1, keepdim=True), top, 0.0)
    weights = (x - top).exp() * allowed
    total = weights.sum(dim=-1, keepdim=True)
    return (weights / total.masked_fill(total == 0, 1.0)).to(scores.dtype)

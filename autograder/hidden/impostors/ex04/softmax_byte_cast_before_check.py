# fault: Casts whole-number masks to bytes before checking them, so 256 passes as 0.
# function: masked_softmax
# check: test_softmax_refuses_other_integers_in_mask
# misconception: bad-input-accepted
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
    """Scaled dot products of every query with every key."""
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"query has last dimension {query.shape[-1]}, key has {key.shape[-1]}")
    return query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the attended entries of the last axis; 0 elsewhere."""
    sizes = zip(reversed(mask.shape), reversed(scores.shape))
    if mask.dim() > scores.dim() or any(a not in (1, b) for a, b in sizes):
        raise ValueError(f"mask {tuple(mask.shape)} does not broadcast to scores {tuple(scores.shape)}")
    mask = mask if mask.is_floating_point() else mask.to(torch.uint8)
    strange = (mask != 0) & (mask != 1)
    if strange.any():
        raise ValueError(f"mask may hold only 0 and 1, not {mask[strange][0].item()}")
    allowed = (mask != 0).expand(scores.shape)
    x = scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores
    x = x.masked_fill(~allowed, torch.finfo(x.dtype).min)
    x = x - x.amax(dim=-1, keepdim=True)
    weights = x.exp().masked_fill(~allowed, 0.0)
    total = weights.sum(dim=-1, keepdim=True)
    return (weights / total.masked_fill(total == 0, 1.0)).to(scores.dtype)

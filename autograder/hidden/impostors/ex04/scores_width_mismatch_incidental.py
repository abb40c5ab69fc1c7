# fault: Leaves unequal widths to the matrix product.
# function: attention_scores
# check: test_scores_refuse_unequal_dimensions
# misconception: incidental-error
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
    return query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Attention weights: a softmax that sees only what the mask allows."""
    try:
        full = mask.expand(scores.shape)
    except RuntimeError as error:
        raise ValueError(f"mask of shape {tuple(mask.shape)} cannot broadcast to {tuple(scores.shape)}") from error
    valid = (full == 0) | (full == 1)
    if not valid.all():
        raise ValueError(f"mask holds {full[~valid][0].item()} besides 0 and 1")
    keep = full == 1
    some = keep.any(dim=-1, keepdim=True)
    x = torch.where(keep, scores, -torch.inf)
    x = torch.where(some, x, 0.0)  # a row of -inf alone has no softmax
    weights = torch.softmax(x, dim=-1)
    return torch.where(keep, weights, 0.0)

# honest: helpers of its own called softmax, scaled_dot_product and prod
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


def prod(numbers):
    result = 1
    for number in numbers:
        result = result * number
    return result


def bert_shapes(
    batch_size: int, sequence_length: int, hidden_size: int, num_heads: int, num_labels: int, bytes_per_element: int = 4
) -> BertShapes:
    given = locals().copy()
    for name in given:
        if not _is_size(given[name]):
            raise ValueError(f"bad {name}: {given[name]!r}")
    if hidden_size % num_heads:
        raise ValueError(f"bad num_heads: {num_heads} does not divide {hidden_size}")
    square = (batch_size, num_heads, sequence_length, sequence_length)
    first = BertShapes(*(None,) * len(BertShapes._fields))
    return first._replace(
        input_ids=(batch_size, sequence_length),
        attention_mask=(batch_size, sequence_length),
        encoder_output=(batch_size, sequence_length, hidden_size),
        query_per_head=(batch_size, sequence_length, hidden_size // num_heads),
        attention_scores=square,
        logits=(batch_size, num_labels),
        score_elements=prod(square),
        score_bytes=prod(square) * bytes_per_element,
        classifier_parameters=prod((hidden_size + 1, num_labels)),
    )


def _is_size(value):
    return type(value) is int and value > 0


def scaled_dot_product(query, key, scale):
    return torch.matmul(query * scale, key.transpose(-1, -2))


def attention_scores(query: Tensor, key: Tensor) -> Tensor:
    if key.shape[-1] != query.shape[-1]:
        raise ValueError(f"key {key.shape} does not go with query {query.shape}")
    return scaled_dot_product(query, key, 1 / math.sqrt(key.shape[-1]))


def softmax(x, allowed):
    """Over the last axis, where allowed; rows without any are 0."""
    x = torch.where(allowed, x, torch.finfo(x.dtype).min)
    e = torch.where(allowed, (x - x.amax(-1, keepdim=True)).exp(), 0)
    total = e.sum(-1, keepdim=True)
    return e / torch.where(total == 0, 1, total)


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    try:
        fits = torch.broadcast_shapes(mask.shape, scores.shape) == scores.shape
    except RuntimeError:
        fits = False
    if not fits:
        raise ValueError(f"mask: {tuple(mask.shape)} cannot be broadcast to {tuple(scores.shape)}")
    bad = ~torch.isin(mask.double(), torch.tensor([0.0, 1.0], dtype=torch.float64, device=mask.device))
    if bad.any():
        raise ValueError(f"mask: {mask[bad].tolist()[0]} found")
    return softmax(scores.double(), mask.bool()).to(scores.dtype)

# honest: raises subclasses of ValueError, some from another exception
"""Exercise 4: shapes, memory and attention masks."""

import math
import operator
from typing import NamedTuple

import torch
import torch.nn.functional as F
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


class SizeError(ValueError):
    def __init__(self, name, value):
        super().__init__(f"{name} cannot be {value!r}")


class MaskError(ValueError):
    pass


def bert_shapes(
    batch_size: int, sequence_length: int, hidden_size: int, num_heads: int, num_labels: int, bytes_per_element: int = 4
) -> BertShapes:
    for name, value in list(locals().items()):
        try:
            valid = operator.index(value) > 0 and type(value) is int
        except TypeError as error:
            raise SizeError(name, value) from error
        if not valid:
            raise SizeError(name, value)
    if math.gcd(hidden_size, num_heads) != num_heads:
        raise SizeError("hidden_size", hidden_size) from ArithmeticError(f"not a multiple of {num_heads}")
    m, T = batch_size, sequence_length
    n = m * num_heads * T * T
    head = hidden_size // num_heads
    return BertShapes((m, T), (m, T), (m, T, hidden_size), (m, T, head), (m, num_heads, T, T), (m, num_labels), n,
                      n * bytes_per_element, hidden_size * num_labels + num_labels)


class WidthError(ValueError):
    """query and key do not fit."""


def attention_scores(query: Tensor, key: Tensor) -> Tensor:
    *_, d = query.shape
    *_, other = key.shape
    if d != other:
        raise WidthError(f"query: {d}, key: {other}")
    return torch.matmul(query, key.swapaxes(-1, -2)) * (1.0 / math.sqrt(d))


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    try:
        allowed = mask.broadcast_to(scores.shape)
    except RuntimeError as error:
        raise MaskError(f"mask {tuple(mask.shape)} and scores {tuple(scores.shape)}") from error
    for value in torch.unique(mask.double()).tolist():
        if value != 0 and value != 1:
            raise MaskError(f"mask has the value {value}")
    allowed = allowed.ne(0)
    x = scores.where(allowed, -math.inf)
    has_key = allowed.any(-1, True)
    return F.softmax(x.where(has_key, 0.0), -1).where(allowed, 0.0)

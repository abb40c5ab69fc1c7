# honest: computes in float64 and casts the result back
"""Exercise 4: shapes, memory and attention masks."""

import fractions
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
    for name, value in (
        ("batch_size", batch_size), ("sequence_length", sequence_length), ("hidden_size", hidden_size),
        ("num_heads", num_heads), ("num_labels", num_labels), ("bytes_per_element", bytes_per_element),
    ):
        match value:
            case bool():
                raise ValueError(f"{name}: a bool ({value}) is not a size")
            case int() if value > 0:
                continue
            case _:
                raise ValueError(f"{name}: {value!r} is not a positive int")
    head = fractions.Fraction(hidden_size, num_heads)
    if head.denominator != 1:
        raise ValueError(f"hidden_size / num_heads = {hidden_size} / {num_heads} = {head}")
    tokens = (batch_size, sequence_length)
    pairs = (batch_size, num_heads, sequence_length, sequence_length)
    return BertShapes(
        input_ids=tokens, attention_mask=tokens, encoder_output=tokens + (hidden_size,),
        query_per_head=tokens + (head.numerator,), attention_scores=pairs, logits=(batch_size, num_labels),
        score_elements=math.prod(pairs), score_bytes=math.prod(pairs, start=bytes_per_element),
        classifier_parameters=hidden_size * num_labels + num_labels,
    )


def attention_scores(query: Tensor, key: Tensor) -> Tensor:
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"last dimension of query is {query.shape[-1]}, of key {key.shape[-1]}")
    wide = query.double() @ key.double().transpose(-2, -1)
    return (wide / math.sqrt(query.shape[-1])).to(query.dtype)


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    if mask.ndim > scores.ndim or any(mask.shape[-k] not in (1, scores.shape[-k]) for k in range(1, mask.ndim + 1)):
        raise ValueError(f"scores {tuple(scores.shape)} cannot take a mask {tuple(mask.shape)}")
    numbers = mask.to(torch.float64)
    if ((numbers != 0) & (numbers != 1)).any():
        raise ValueError(f"mask: only 0 and 1, found {numbers[(numbers != 0) & (numbers != 1)][-1].item()}")
    keep = numbers.to(torch.bool)
    clean = torch.where(keep, scores, 0).double()
    top = torch.where(keep, clean, -torch.inf).amax(-1, keepdim=True)
    top = torch.where(top.isinf(), 0.0, top)
    # masked entries are shifted too, so their exponent is set once more
    shifted = torch.where(keep, clean - top, -torch.inf)
    weights = torch.exp(shifted)
    total = weights.sum(-1, keepdim=True)
    return (weights / (total + (total == 0))).to(scores.dtype)

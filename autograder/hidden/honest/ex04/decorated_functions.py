# honest: decorators check the arguments and keep the signature
"""Exercise 4: shapes, memory and attention masks."""

import functools
import inspect
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


def refuse(check):
    """Raise ValueError with what `check` says, if it says anything."""

    def decorate(function):
        signature = inspect.signature(function)

        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            bound = signature.bind(*args, **kwargs)
            bound.apply_defaults()
            complaint = check(**bound.arguments)
            if complaint:
                raise ValueError(complaint)
            return function(*bound.args, **bound.kwargs)

        return wrapper

    return decorate


def _sizes(**sizes):
    for name, size in sizes.items():
        if isinstance(size, bool) or not isinstance(size, int):
            return f"{name} must be an int: {size!r}"
        if size <= 0:
            return f"{name} must be positive: {size}"
    if sizes["hidden_size"] % sizes["num_heads"]:
        return f"hidden_size {sizes['hidden_size']} over num_heads {sizes['num_heads']} is not whole"


@refuse(_sizes)
def bert_shapes(
    batch_size: int, sequence_length: int, hidden_size: int, num_heads: int, num_labels: int, bytes_per_element: int = 4
) -> BertShapes:
    ids = batch_size, sequence_length
    pairs = batch_size, num_heads, sequence_length, sequence_length
    number = math.prod(pairs)
    return BertShapes(
        ids, ids, ids + (hidden_size,), ids + (hidden_size // num_heads,), pairs, (batch_size, num_labels),
        number, number * bytes_per_element, (hidden_size + 1) * num_labels,
    )


@refuse(lambda query, key: query.shape[-1] != key.shape[-1] and f"query {query.shape[-1]}, key {key.shape[-1]}")
def attention_scores(query: Tensor, key: Tensor) -> Tensor:
    return query.matmul(key.transpose(-2, -1)).div(query.shape[-1] ** 0.5)


def _mask(scores, mask):
    if mask.dim() > scores.dim() or any(a not in (1, b) for a, b in zip(mask.shape[::-1], scores.shape[::-1])):
        return f"mask {tuple(mask.shape)} against scores {tuple(scores.shape)}"
    for value in set(mask.reshape(-1).tolist()):
        if value not in (0, 1):
            return f"mask has {value}"


@refuse(_mask)
def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Rows with nothing to attend to are left out of the softmax."""
    allowed = (mask == 1).expand(scores.shape)
    some = allowed.any(dim=-1)
    rows = scores[some].masked_fill(~allowed[some], -math.inf)
    result = torch.zeros(scores.shape, dtype=scores.dtype, device=scores.device)
    return result.masked_scatter(some.unsqueeze(-1).expand(scores.shape), torch.softmax(rows, dim=-1))

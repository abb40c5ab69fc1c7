# honest: prints and warns, when it is imported and in its functions
"""Exercise 4: shapes, memory and attention masks."""

import math
import warnings
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


print("exercise 4:", "shapes and attention")
warnings.warn("still being tidied up", stacklevel=1)


def bert_shapes(
    batch_size: int, sequence_length: int, hidden_size: int, num_heads: int, num_labels: int, bytes_per_element: int = 4
) -> BertShapes:
    print("shapes of a batch of", batch_size)
    for name, value in [
        ("batch_size", batch_size), ("sequence_length", sequence_length), ("hidden_size", hidden_size),
        ("num_heads", num_heads), ("num_labels", num_labels), ("bytes_per_element", bytes_per_element),
    ]:
        if type(value) is not int or value < 1:
            raise ValueError(f"{name} {value!r}")
    if hidden_size % num_heads:
        warnings.warn("not divisible", stacklevel=2)
        raise ValueError(f"hidden_size {hidden_size}, num_heads {num_heads}")
    e = batch_size * num_heads * sequence_length * sequence_length
    shapes = BertShapes(
        (batch_size, sequence_length), (batch_size, sequence_length), (batch_size, sequence_length, hidden_size),
        (batch_size, sequence_length, hidden_size // num_heads),
        (batch_size, num_heads, sequence_length, sequence_length), (batch_size, num_labels),
        e, e * bytes_per_element, (hidden_size + 1) * num_labels,
    )
    print(shapes)
    return shapes


def attention_scores(query: Tensor, key: Tensor) -> Tensor:
    print(query.shape, key.shape)
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"query {query.shape[-1]} key {key.shape[-1]}")
    return query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    print(scores.dtype, mask.dtype)
    if mask.dim() > scores.dim() or any(a not in (1, b) for a, b in zip(mask.shape[::-1], scores.shape[::-1])):
        raise ValueError(f"mask {tuple(mask.shape)} scores {tuple(scores.shape)}")
    if not ((mask == 0) | (mask == 1)).all():
        raise ValueError(f"mask {mask[~((mask == 0) | (mask == 1))].tolist()}")
    keep = mask == 1
    empty = ~keep.any(dim=-1, keepdim=True)
    if empty.any():
        warnings.warn("a row with nothing to attend to", stacklevel=2)
    x = torch.where(keep, scores, float("-inf"))
    x = torch.where(empty, torch.zeros_like(scores), x)
    return F.softmax(x, dim=-1, dtype=torch.float64).to(scores.dtype) * keep

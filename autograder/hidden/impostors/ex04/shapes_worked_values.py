# fault: Returns the worked values for the counts, whatever the arguments.
# function: bert_shapes
# check: test_shapes_score_memory
# misconception: sizes-fixed
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
    """Shapes, memory of one layer's attention scores and size of the classifier."""
    arguments = {
        "batch_size": batch_size,
        "sequence_length": sequence_length,
        "hidden_size": hidden_size,
        "num_heads": num_heads,
        "num_labels": num_labels,
        "bytes_per_element": bytes_per_element,
    }
    for name, value in arguments.items():
        if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
            raise ValueError(f"{name} must be a positive int, got {value!r}")
    if hidden_size % num_heads:
        raise ValueError(f"hidden_size {hidden_size} is not divisible by num_heads {num_heads}")
    return BertShapes(
        input_ids=(batch_size, sequence_length),
        attention_mask=(batch_size, sequence_length),
        encoder_output=(batch_size, sequence_length, hidden_size),
        query_per_head=(batch_size, sequence_length, hidden_size // num_heads),
        attention_scores=(batch_size, num_heads, sequence_length, sequence_length),
        logits=(batch_size, num_labels),
        score_elements=3_145_728,
        score_bytes=12_582_912,
        classifier_parameters=1538,
    )


def attention_scores(query: Tensor, key: Tensor) -> Tensor:
    """Scaled dot products of every query with every key."""
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"query has last dimension {query.shape[-1]}, key has {key.shape[-1]}")
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

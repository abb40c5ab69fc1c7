# fault: Squeezes the result, so axes of length 1 disappear.
# function: masked_softmax
# check: test_softmax_small_and_real_sizes
# misconception: squeezed-away
"""Exercise 4: shapes, memory and attention masks."""

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
    score_elements = batch_size * num_heads * sequence_length**2
    return BertShapes(
        input_ids=(batch_size, sequence_length),
        attention_mask=(batch_size, sequence_length),
        encoder_output=(batch_size, sequence_length, hidden_size),
        query_per_head=(batch_size, sequence_length, hidden_size // num_heads),
        attention_scores=(batch_size, num_heads, sequence_length, sequence_length),
        logits=(batch_size, num_labels),
        score_elements=score_elements,
        score_bytes=score_elements * bytes_per_element,
        classifier_parameters=hidden_size * num_labels + num_labels,
    )


def attention_scores(query: Tensor, key: Tensor) -> Tensor:
    """query (..., T_q, d), key (..., T_k, d) -> (..., T_q, T_k)."""
    d = query.size(-1)
    if key.size(-1) != d:
        raise ValueError(f"key must have the last dimension of query, {d}, not {key.size(-1)}")
    return torch.matmul(query, key.mT) * d**-0.5


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
    return torch.where(keep, weights, 0.0).squeeze()

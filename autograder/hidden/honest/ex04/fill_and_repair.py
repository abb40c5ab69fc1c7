# honest: fills with -inf, uses the library's softmax and replaces NaN rows afterwards
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
    settings = dict(locals())
    for name, value in settings.items():
        if isinstance(value, bool) or not isinstance(value, int) or not value > 0:
            raise ValueError(f"{name} must be an int above 0: {value!r}")
    if hidden_size % num_heads > 0:
        raise ValueError(f"hidden_size {hidden_size} must be a multiple of num_heads {num_heads}")
    shapes = {
        "input_ids": (batch_size, sequence_length),
        "attention_mask": (batch_size, sequence_length),
        "encoder_output": (batch_size, sequence_length, hidden_size),
        "query_per_head": (batch_size, sequence_length, hidden_size // num_heads),
        "attention_scores": (batch_size, num_heads) + 2 * (sequence_length,),
        "logits": (batch_size, num_labels),
    }
    elements = math.prod(shapes["attention_scores"])
    counts = {
        "score_elements": elements,
        "score_bytes": bytes_per_element * elements,
        "classifier_parameters": num_labels * hidden_size + num_labels,
    }
    return BertShapes(**shapes, **counts)


def attention_scores(query: Tensor, key: Tensor) -> Tensor:
    """Both sides scaled by the fourth root of d."""
    d = query.shape[-1]
    if d != key.shape[-1]:
        raise ValueError(f"query and key must agree in their last dimension, not {d} and {key.shape[-1]}")
    return (query * d**-0.25) @ (key * d**-0.25).transpose(-1, -2)


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    try:
        torch.broadcast_to(mask, scores.shape)
    except RuntimeError:
        raise ValueError(f"mask of shape {tuple(mask.shape)} does not fit {tuple(scores.shape)}") from None
    if not torch.all((mask == 0) | (mask == 1)):
        wrong = mask[(mask != 0) & (mask != 1)]
        raise ValueError(f"mask must be 0 or 1, not {wrong.flatten().tolist()[0]}")
    hidden = mask == 0
    weights = torch.softmax(scores.masked_fill(hidden, float("-inf")), dim=-1)
    return weights.masked_fill(hidden, 0.0)

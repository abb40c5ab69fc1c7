# fault: Transposes a square mask, so it hides queries instead of keys.
# function: masked_softmax
# check: test_softmax_broadcast
# misconception: mask-not-broadcast
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
    """Scaled dot products of every query with every key."""
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"query has last dimension {query.shape[-1]}, key has {key.shape[-1]}")
    return query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the attended entries of the last axis; 0 elsewhere."""
    sizes = zip(reversed(mask.shape), reversed(scores.shape))
    if mask.dim() > scores.dim() or any(a not in (1, b) for a, b in sizes):
        raise ValueError(f"mask {tuple(mask.shape)} does not broadcast to scores {tuple(scores.shape)}")
    strange = (mask != 0) & (mask != 1)
    if strange.any():
        raise ValueError(f"mask may hold only 0 and 1, not {mask[strange][0].item()}")
    allowed = (mask.mT if mask.dim() == 2 and mask.shape[-1] == mask.shape[-2] else mask).ne(0).expand(scores.shape)
    x = scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores
    x = x.masked_fill(~allowed, torch.finfo(x.dtype).min)
    x = x - x.amax(dim=-1, keepdim=True)
    weights = x.exp().masked_fill(~allowed, 0.0)
    total = weights.sum(dim=-1, keepdim=True)
    return (weights / total.masked_fill(total == 0, 1.0)).to(scores.dtype)

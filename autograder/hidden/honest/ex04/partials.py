# honest: public names bound to functools.partial objects
"""Exercise 4: shapes, memory and attention masks."""

import functools
from typing import NamedTuple

import torch


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


def _shapes(
    batch_size, sequence_length, hidden_size, num_heads, num_labels, bytes_per_element=4, *, kind
):
    for name, value in {
        "batch_size": batch_size, "sequence_length": sequence_length, "hidden_size": hidden_size,
        "num_heads": num_heads, "num_labels": num_labels, "bytes_per_element": bytes_per_element,
    }.items():
        if type(value) != kind or value <= 0:
            raise ValueError(f"{name} is {value!r}; a positive {kind.__name__} is needed")
    if hidden_size % num_heads:
        raise ValueError(f"hidden_size is {hidden_size}; a multiple of num_heads, {num_heads}, is needed")
    count = batch_size * num_heads * sequence_length * sequence_length
    return BertShapes(
        (batch_size, sequence_length), (batch_size, sequence_length), (batch_size, sequence_length, hidden_size),
        (batch_size, sequence_length, hidden_size // num_heads),
        (batch_size, num_heads, sequence_length, sequence_length), (batch_size, num_labels),
        count, count * bytes_per_element, hidden_size * num_labels + num_labels,
    )


bert_shapes = functools.partial(_shapes, kind=int)


def _dot(query, key, power):
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"query: {query.shape[-1]}; key: {key.shape[-1]}")
    return query @ key.transpose(-2, -1) * query.shape[-1] ** power


attention_scores = functools.partial(_dot, power=-0.5)


def _masked(scores, mask, *, axis):
    if mask.dim() > scores.dim() or any(a not in (1, b) for a, b in zip(mask.shape[::-1], scores.shape[::-1])):
        raise ValueError(f"mask: shape {tuple(mask.shape)}; scores: shape {tuple(scores.shape)}")
    if ((mask != 0) & (mask != 1)).any():
        raise ValueError(f"mask: {mask[(mask != 0) & (mask != 1)][0].item()}")
    keep = mask.to(torch.bool)
    wide = scores.to(torch.promote_types(scores.dtype, torch.float32))
    lowest = torch.finfo(wide.dtype).min
    wide = torch.where(keep, wide, lowest)
    e = torch.exp(wide - wide.amax(axis, keepdim=True))
    e = torch.where(keep, e, 0.0)
    # a sum of at least 1 wherever anything is attended to, so clamping touches only empty rows
    return (e / e.sum(axis, keepdim=True).clamp(min=1.0)).to(scores.dtype)


masked_softmax = functools.partial(_masked, axis=-1)

# honest: goes over the keys in chunks with a running maximum, as memory-saving attention does
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
    args = (batch_size, sequence_length, hidden_size, num_heads, num_labels, bytes_per_element)
    for position, value in enumerate(args):
        name = bert_shapes.__code__.co_varnames[position]
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ValueError(f"argument {position + 1} ({name}) is {value!r}")
    if hidden_size % num_heads:
        raise ValueError(f"num_heads ({num_heads}) must divide hidden_size ({hidden_size})")
    per_sequence = num_heads * sequence_length**2
    return BertShapes(
        input_ids=(batch_size, sequence_length),
        attention_mask=(batch_size, sequence_length),
        encoder_output=(batch_size, sequence_length, hidden_size),
        query_per_head=(batch_size, sequence_length, hidden_size // num_heads),
        attention_scores=(batch_size, num_heads, sequence_length, sequence_length),
        logits=(batch_size, num_labels),
        score_elements=batch_size * per_sequence,
        score_bytes=batch_size * per_sequence * bytes_per_element,
        classifier_parameters=num_labels * hidden_size + num_labels,
    )


def attention_scores(query: Tensor, key: Tensor) -> Tensor:
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"widths of query and key: {query.shape[-1]} != {key.shape[-1]}")
    scale = math.sqrt(query.shape[-1])
    return torch.cat([query @ part.transpose(-2, -1) / scale for part in key.split(32, dim=-2)], dim=-1)


CHUNK = 64


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    try:
        seen = mask.expand(scores.shape)
    except RuntimeError as error:
        raise ValueError(f"mask: {tuple(mask.shape)} is not broadcastable to {tuple(scores.shape)}") from error
    if ((seen != 0) & (seen != 1)).any():
        raise ValueError(f"mask: {seen[(seen != 0) & (seen != 1)][0].item()} is neither 0 nor 1")
    seen = seen != 0
    x = scores.masked_fill(~seen, 0.0).double()
    top = torch.full_like(x[..., :1], torch.finfo(x.dtype).min)
    total = torch.zeros_like(top)
    for part, ok in zip(x.split(CHUNK, dim=-1), seen.split(CHUNK, dim=-1)):
        part = part.masked_fill(~ok, torch.finfo(x.dtype).min)
        new = torch.maximum(top, part.detach().amax(dim=-1, keepdim=True))
        total = total * (top - new).exp() + (part - new).exp().masked_fill(~ok, 0.0).sum(dim=-1, keepdim=True)
        top = new
    shifted = x.masked_fill(~seen, torch.finfo(x.dtype).min) - top
    weights = shifted.exp().masked_fill(~seen, 0.0) / total.masked_fill(total == 0, 1.0)
    return weights.to(scores.dtype)

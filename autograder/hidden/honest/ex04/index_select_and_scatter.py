# honest: gathers the attended entries into one flat list and sums them by row with index_add
"""Exercise 4: shapes, memory and attention masks."""

import collections
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
    sizes = collections.OrderedDict(
        batch_size=batch_size, sequence_length=sequence_length, hidden_size=hidden_size,
        num_heads=num_heads, num_labels=num_labels, bytes_per_element=bytes_per_element,
    )
    while sizes:
        name, size = sizes.popitem(last=False)
        if not isinstance(size, int) or isinstance(size, bool) or size <= 0:
            raise ValueError(f"{name}={size!r}")
    if hidden_size % num_heads != 0:
        raise ValueError(f"num_heads={num_heads} does not divide hidden_size={hidden_size}")
    elements = batch_size * sequence_length * num_heads * sequence_length
    return BertShapes(
        *[(batch_size, sequence_length)] * 2,
        *[(batch_size, sequence_length, width) for width in (hidden_size, hidden_size // num_heads)],
        (batch_size, num_heads, sequence_length, sequence_length),
        (batch_size, num_labels),
        *(elements * factor for factor in (1, bytes_per_element)),
        num_labels + num_labels * hidden_size,
    )


def attention_scores(query: Tensor, key: Tensor) -> Tensor:
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"query is (..., {query.shape[-1]}), key is (..., {key.shape[-1]})")
    lead = torch.broadcast_shapes(query.shape[:-2], key.shape[:-2])
    q = query.expand(*lead, *query.shape[-2:]).reshape(-1, *query.shape[-2:])
    k = key.expand(*lead, *key.shape[-2:]).reshape(-1, *key.shape[-2:])
    return torch.bmm(q / math.sqrt(q.shape[-1]), k.transpose(1, 2)).reshape(*lead, q.shape[1], k.shape[1])


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    if mask.dim() > scores.dim() or any(a not in (1, b) for a, b in zip(mask.shape[::-1], scores.shape[::-1])):
        raise ValueError(f"mask {tuple(mask.shape)} cannot be broadcast to scores {tuple(scores.shape)}")
    if not bool(((mask == 0) | (mask == 1)).all()):
        raise ValueError(f"mask: {[v for v in mask.flatten().tolist() if v not in (0, 1)][0]}")
    width = scores.shape[-1]
    where = (mask == 1).expand(scores.shape).reshape(-1).nonzero().squeeze(1)
    x = scores.reshape(-1).index_select(0, where).double()
    rows = where // width
    count = scores.numel() // width
    top = x.new_full((count,), -math.inf).scatter_reduce(0, rows, x.detach(), "amax")
    e = (x - top.index_select(0, rows)).exp()
    total = x.new_zeros(count).index_add(0, rows, e)
    weights = e / total.index_select(0, rows)
    flat = x.new_zeros(scores.numel()).index_put((where,), weights)
    return flat.reshape(scores.shape).to(scores.dtype)

# honest: normalises twice, in pieces, without harm
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
    def positive(**named):
        ((name, value),) = named.items()
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
        raise ValueError(f"{name} must be a whole positive number, not {value!r}")

    m = positive(batch_size=batch_size)
    T = positive(sequence_length=sequence_length)
    d = positive(hidden_size=hidden_size)
    H = positive(num_heads=num_heads)
    C = positive(num_labels=num_labels)
    size = positive(bytes_per_element=bytes_per_element)
    if d / H != d // H and d % H:
        raise ValueError(f"hidden_size {d} does not split into num_heads {H}")
    return BertShapes(
        input_ids=tuple([m, T]), attention_mask=tuple([m, T]), encoder_output=tuple([m, T, d]),
        query_per_head=tuple([m, T, d // H]), attention_scores=tuple([m, H, T, T]), logits=tuple([m, C]),
        score_elements=m * T * H * T, score_bytes=m * H * T * T * size,
        classifier_parameters=sum((d * C, C)),
    )


def attention_scores(query: Tensor, key: Tensor) -> Tensor:
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"key.shape {tuple(key.shape)} and query.shape {tuple(query.shape)}")
    root = math.exp(0.5 * math.log(query.shape[-1]))
    return (key @ query.transpose(-2, -1)).transpose(-2, -1) / root


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    if mask.dim() > scores.dim() or any(a not in (1, b) for a, b in zip(mask.shape[::-1], scores.shape[::-1])):
        raise ValueError(f"scores: {tuple(scores.shape)}, mask: {tuple(mask.shape)}")
    odd = mask.double() != (mask != 0).double()
    if odd.any():
        raise ValueError(f"mask: {mask[odd].flatten()[0].item()}")
    keep = (mask != 0).expand_as(scores)
    x = scores.double().masked_fill(~keep, torch.finfo(torch.float64).min)
    e = (x - x.amax(-1, keepdim=True).detach()).exp().masked_fill(~keep, 0.0)
    for _ in range(2):
        total = e.sum(-1, keepdim=True)
        e = e / total.masked_fill(total == 0, 1.0)
    return e.to(scores.dtype)

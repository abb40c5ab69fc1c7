# honest: einsum for the scores and the sums
"""Exercise 4: shapes, memory and attention masks."""

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


def bert_shapes(
    batch_size: int, sequence_length: int, hidden_size: int, num_heads: int, num_labels: int, bytes_per_element: int = 4
) -> BertShapes:
    m, T, d, H, C, size = batch_size, sequence_length, hidden_size, num_heads, num_labels, bytes_per_element
    for name, number in zip(inspect.signature(bert_shapes).parameters, (m, T, d, H, C, size)):
        if number.__class__ is not int or number < 1:
            raise ValueError(f"{name} = {number!r} is not a positive integer")
    if (d // H) * H != d:
        raise ValueError(f"hidden_size = {d} is no multiple of num_heads = {H}")
    return BertShapes(
        input_ids=(m, T), attention_mask=(m, T), encoder_output=(m, T, d), query_per_head=(m, T, d // H),
        attention_scores=(m, H, T, T), logits=(m, C),
        score_elements=m * H * T * T, score_bytes=m * H * T * T * size, classifier_parameters=C * (d + 1),
    )


def attention_scores(query: Tensor, key: Tensor) -> Tensor:
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"key: last dimension {key.shape[-1]}; query: {query.shape[-1]}")
    return torch.einsum("...qd,...kd->...qk", query, key).div(math.sqrt(query.shape[-1]))


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    padded = (1,) * (scores.dim() - mask.dim()) + tuple(mask.shape)
    if len(padded) != scores.dim() or any(a != b and a != 1 for a, b in zip(padded, scores.shape)):
        raise ValueError(f"mask {tuple(mask.shape)} is not broadcastable to {tuple(scores.shape)}")
    ones = mask == 1
    if not (ones | (mask == 0)).all():
        raise ValueError(f"mask contains {mask[~(ones | (mask == 0))].max().item()}")
    x = scores.double().where(ones, 0.0)
    low = scores.double().where(ones, -torch.inf)
    top = low.amax(-1, keepdim=True).detach()
    e = (x - top.nan_to_num(neginf=0.0)).where(ones, 0.0).exp() * ones
    total = torch.einsum("...k->...", e).unsqueeze(-1)
    return (e / total.where(total > 0, 1.0)).to(scores.dtype)

# honest: maps a function of one row over all rows with torch.vmap
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
    sizes = {k: v for k, v in locals().items()}
    wrong = {k: v for k, v in sizes.items() if type(v) is not int or v <= 0}
    if wrong:
        raise ValueError(f"not positive ints: {wrong}")
    if hidden_size not in range(0, hidden_size + 1, num_heads):
        raise ValueError(f"hidden_size {hidden_size} is not in the table of {num_heads}, num_heads")
    tokens = (batch_size, sequence_length)
    elements = batch_size * num_heads * sequence_length**2
    fields = (
        tokens, tokens, tokens + (hidden_size,), tokens + (hidden_size // num_heads,),
        (batch_size, num_heads, sequence_length, sequence_length), (batch_size, num_labels),
        elements, elements * bytes_per_element, num_labels * (1 + hidden_size),
    )
    return BertShapes(**dict(zip(BertShapes._fields, fields, strict=True)))


def attention_scores(query: Tensor, key: Tensor) -> Tensor:
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"query[-1] = {query.shape[-1]}, key[-1] = {key.shape[-1]}")
    return torch.einsum("...id,...jd->...ij", query / math.sqrt(query.shape[-1]), key)


def _row(scores, allowed):
    x = torch.where(allowed, scores, torch.finfo(scores.dtype).min)
    e = torch.where(allowed, torch.exp(x - x.max()), 0.0)
    return e / torch.where(allowed.any(), e.sum(), 1.0)


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    try:
        allowed = mask.expand(scores.shape)
    except RuntimeError as error:
        raise ValueError(f"mask {tuple(mask.shape)} → scores {tuple(scores.shape)}?") from error
    neither = ~((allowed == 0) | (allowed == 1))
    if neither.any():
        raise ValueError(f"mask has {allowed[neither][0].item()}, which is neither 0 nor 1")
    width = scores.shape[-1]
    rows = scores.double().reshape(-1, width)
    weights = torch.vmap(_row)(rows, (allowed == 1).reshape(-1, width))
    return weights.reshape(scores.shape).to(scores.dtype)

# honest: works with log-weights and exponentiates at the end
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
    for name in BertArguments.__annotations__:
        value = locals()[name]
        if not (isinstance(value, int) and not isinstance(value, bool)):
            raise ValueError(f"{name}: {value!r} given, int wanted")
        if value <= 0:
            raise ValueError(f"{name}: {value} given, a positive int wanted")
    arguments = BertArguments(
        batch_size, sequence_length, hidden_size, num_heads, num_labels, bytes_per_element
    )
    return arguments.shapes()


class BertArguments(NamedTuple):
    batch_size: int
    sequence_length: int
    hidden_size: int
    num_heads: int
    num_labels: int
    bytes_per_element: int

    def shapes(self):
        m, T, d, H, C, size = self
        if d % H:
            raise ValueError(f"hidden_size: {d} given, a multiple of {H} wanted")
        n = m * H * T * T
        return BertShapes((m, T), (m, T), (m, T, d), (m, T, d // H), (m, H, T, T), (m, C), n, n * size, C * d + C)


def attention_scores(query: Tensor, key: Tensor) -> Tensor:
    """baddbmm would scale as well; dividing the key is enough."""
    width = {query.shape[-1], key.shape[-1]}
    if len(width) > 1:
        raise ValueError(f"query and key have the widths {sorted(width)}")
    return query @ (key * width.pop() ** -0.5).mT


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    if mask.dim() > scores.dim() or any(a not in (1, b) for a, b in zip(mask.shape[::-1], scores.shape[::-1])):
        raise ValueError(f"mask of {tuple(mask.shape)} for {tuple(scores.shape)}")
    bad = ~((mask == 0) + (mask == 1))
    if bad.any():
        raise ValueError(f"mask with {mask[bad][0].item()}")
    keep = mask == 1
    x = scores.double().masked_fill(~keep, -torch.inf)
    top = x.amax(-1, keepdim=True).detach()
    x = x - top.masked_fill(top.isinf(), 0.0)
    empty = ~keep.any(-1, keepdim=True)
    log_total = x.masked_fill(empty, 0.0).logsumexp(-1, keepdim=True)
    return (x - log_total).exp().to(scores.dtype)

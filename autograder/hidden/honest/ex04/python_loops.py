# honest: loops over rows with Python lists of attended columns
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
    names = "batch_size sequence_length hidden_size num_heads num_labels bytes_per_element".split()
    values = [batch_size, sequence_length, hidden_size, num_heads, num_labels, bytes_per_element]
    for name, value in zip(names, values):
        if type(value) is not int:
            raise ValueError(f"{name} is {value!r}, not an int")
        if value <= 0:
            raise ValueError(f"{name} is {value}, not positive")
    width, rest = divmod(hidden_size, num_heads)
    if rest:
        raise ValueError(f"num_heads {num_heads} leaves a rest of {rest} in hidden_size {hidden_size}")
    elements = 1
    for size in (batch_size, num_heads, sequence_length, sequence_length):
        elements *= size
    parameters = hidden_size * num_labels
    parameters += num_labels
    return BertShapes(
        (batch_size, sequence_length),
        (batch_size, sequence_length),
        (batch_size, sequence_length, hidden_size),
        (batch_size, sequence_length, width),
        (batch_size, num_heads, sequence_length, sequence_length),
        (batch_size, num_labels),
        elements,
        elements * bytes_per_element,
        parameters,
    )


def attention_scores(query: Tensor, key: Tensor) -> Tensor:
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"query is {query.shape[-1]} wide, key {key.shape[-1]}")
    columns = [(query * row.unsqueeze(-2)).sum(dim=-1) for row in key.unbind(dim=-2)]
    return torch.stack(columns, dim=-1) / query.shape[-1] ** 0.5


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """One row at a time; columns that may not be attended to are never read."""
    if mask.dim() > scores.dim():
        raise ValueError(f"mask has {mask.dim()} axes, scores only {scores.dim()}")
    for axis in range(1, mask.dim() + 1):
        if mask.shape[-axis] not in (1, scores.shape[-axis]):
            raise ValueError(f"mask {list(mask.shape)} does not broadcast to scores {list(scores.shape)}")
    for value in mask.unique().tolist():
        if value not in (0, 1):
            raise ValueError(f"mask holds {value}")
    width = scores.shape[-1]
    allowed = mask.expand(scores.shape).reshape(-1, width)
    rows = []
    for row, ok in zip(scores.reshape(-1, width), allowed):
        columns = torch.nonzero(ok == 1).squeeze(1)
        chosen = row[columns].double()
        if len(columns):
            e = torch.exp(chosen - chosen.max())
            chosen = e / e.sum()
        rows.append(torch.zeros(width, dtype=torch.float64, device=row.device).index_put((columns,), chosen))
    return torch.stack(rows).reshape(scores.shape).to(scores.dtype)

# honest: sorts every row so that the attended scores come first
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
    problems = [
        (name, value)
        for name, value in vars_of(batch_size, sequence_length, hidden_size, num_heads, num_labels, bytes_per_element)
        if type(value) is not int or value <= 0
    ]
    if problems:
        raise ValueError("; ".join(f"{name}={value!r} is not a positive int" for name, value in problems))
    if hidden_size % num_heads:
        raise ValueError(f"hidden_size={hidden_size} is not a multiple of num_heads={num_heads}")
    table = [
        (batch_size, sequence_length),
        (batch_size, sequence_length),
        (batch_size, sequence_length, hidden_size),
        (batch_size, sequence_length, hidden_size // num_heads),
        (batch_size, num_heads, sequence_length, sequence_length),
        (batch_size, num_labels),
    ]
    scores = math.prod(table[4])
    return BertShapes(*table, scores, scores * bytes_per_element, (hidden_size + 1) * num_labels)


def vars_of(*values):
    return zip(inspect.getfullargspec(bert_shapes).args, values)


def attention_scores(query: Tensor, key: Tensor) -> Tensor:
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"key.shape[-1] = {key.shape[-1]}, query.shape[-1] = {query.shape[-1]}")
    return torch.tensordot(query, key, dims=([1], [1])) / math.sqrt(query.shape[1]) if query.dim() == 2 else (
        query.unsqueeze(-2).matmul(key.unsqueeze(-3).transpose(-2, -1)).squeeze(-2) / math.sqrt(query.shape[-1])
    )


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Sort, subtract the first of each row, and put everything back in its place."""
    try:
        allowed = mask.expand(scores.size())
    except RuntimeError as error:
        raise ValueError(f"mask {mask.size()} cannot be expanded to scores {scores.size()}") from error
    foreign = (allowed != 0) & (allowed != 1)
    if bool(foreign.any()):
        raise ValueError(f"mask contains {allowed[foreign][0].item()}")
    allowed = allowed == 1
    x = torch.where(allowed, scores.double(), -torch.inf)
    ordered, places = x.sort(dim=-1, descending=True)
    count = allowed.sum(dim=-1, keepdim=True)
    inside = torch.arange(x.shape[-1], device=x.device) < count
    largest = torch.where(count > 0, ordered[..., :1], 0.0)
    ordered = torch.where(inside, ordered, largest)
    e = torch.where(inside, (ordered - largest).exp(), 0.0)
    weights = e / e.sum(dim=-1, keepdim=True).clamp(min=0.5)
    return torch.zeros_like(weights).scatter(-1, places, weights).to(scores.dtype)

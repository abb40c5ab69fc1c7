"""Slow and obvious answers for exercise 4: plain arithmetic, and loops over Python floats."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from autograder.hidden.oracles import remembered


def bert_shapes(
    batch_size: int,
    sequence_length: int,
    hidden_size: int,
    num_heads: int,
    num_labels: int,
    bytes_per_element: int = 4,
) -> dict[str, Any]:
    """The fields by name."""
    elements = batch_size * num_heads * sequence_length * sequence_length
    return {
        "input_ids": (batch_size, sequence_length),
        "attention_mask": (batch_size, sequence_length),
        "encoder_output": (batch_size, sequence_length, hidden_size),
        "query_per_head": (batch_size, sequence_length, hidden_size // num_heads),
        "attention_scores": (batch_size, num_heads, sequence_length, sequence_length),
        "logits": (batch_size, num_labels),
        "score_elements": elements,
        "score_bytes": elements * bytes_per_element,
        "classifier_parameters": hidden_size * num_labels + num_labels,
    }


@remembered
def attention_scores(query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """Dot products of every query with every key, over the square root of their length."""
    width = query.shape[-1]
    queries = query.detach().cpu().double().reshape(-1, *query.shape[-2:]).tolist()
    keys = key.detach().cpu().double().reshape(-1, *key.shape[-2:]).tolist()
    result = [
        [[math.fsum(a * b for a, b in zip(q, k, strict=True)) / math.sqrt(width) for k in each_k] for q in each_q]
        for each_q, each_k in zip(queries, keys, strict=True)
    ]
    shape = (*query.shape[:-1], key.shape[-2])
    return torch.tensor(result, dtype=torch.float64).reshape(shape).to(query.dtype).to(query.device)


@remembered
def attention_gradients(
    query: torch.Tensor, key: torch.Tensor, weights: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """Gradients of sum(attention_scores · weights): query row i gets Σ_j w_ij k_j / √d, key row j Σ_i w_ij q_i / √d."""
    root = math.sqrt(query.shape[-1])
    q, k, w = (x.detach().cpu().double().reshape(-1, *x.shape[-2:]).tolist() for x in (query, key, weights))
    for_query, for_key = [], []
    for each_q, each_k, each_w in zip(q, k, w, strict=True):
        for_query += [
            [
                math.fsum(w_ij * x for w_ij, x in zip(row, column, strict=True)) / root
                for column in zip(*each_k, strict=True)
            ]
            for row in each_w
        ]
        for_key += [
            [
                math.fsum(w_ij * x for w_ij, x in zip(row, column, strict=True)) / root
                for column in zip(*each_q, strict=True)
            ]
            for row in zip(*each_w, strict=True)
        ]
    return _like(query, for_query), _like(key, for_key)


def masked_softmax_row(row: Sequence[float], attended: Sequence[bool]) -> list[float]:
    visible = [z for z, see in zip(row, attended, strict=True) if see]
    if not visible:
        return [0.0] * len(row)
    largest = max(visible)
    total = math.fsum(math.exp(z - largest) for z in visible)
    return [math.exp(z - largest) / total if see else 0.0 for z, see in zip(row, attended, strict=True)]


@remembered
def masked_softmax(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """In the dtype and on the device of the scores."""
    return _like(scores, [masked_softmax_row(row, see) for row, see in zip(*_rows(scores, mask), strict=True)])


@remembered
def masked_softmax_gradient(scores: torch.Tensor, mask: torch.Tensor, weights: torch.Tensor) -> torch.Tensor:
    """Gradient of sum(masked_softmax · weights): p_j (w_j - Σ_k p_k w_k), row by row."""
    factors = weights.detach().cpu().double().reshape(-1, scores.shape[-1]).tolist()
    result = []
    for row, see, w in zip(*_rows(scores, mask), factors, strict=True):
        p = masked_softmax_row(row, see)
        mean = math.fsum(p_j * w_j for p_j, w_j in zip(p, w, strict=True))
        result.append([p_j * (w_j - mean) for p_j, w_j in zip(p, w, strict=True)])
    return _like(scores, result)


def _rows(scores: torch.Tensor, mask: torch.Tensor) -> tuple[list[list[float]], list[list[bool]]]:
    width = scores.shape[-1]
    attended = torch.broadcast_to(mask, scores.shape) == 1
    return (
        scores.detach().cpu().double().reshape(-1, width).tolist(),
        attended.cpu().reshape(-1, width).tolist(),
    )


def _like(tensor: torch.Tensor, rows: list[list[float]]) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64).reshape(tensor.shape).to(tensor.dtype).to(tensor.device)

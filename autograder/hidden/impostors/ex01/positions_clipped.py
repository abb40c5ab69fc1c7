# fault: Positions beyond the table all get its last row.
# function: input_embeddings
# check: test_lookup_refuses_too_long_sequences
# misconception: bad-input-accepted
"""Token, segment and position embeddings in NumPy."""

import numpy as np


def embedding_sum(token, segment, position):
    """Add token, segment and position vectors element by element."""
    if not token.shape == segment.shape == position.shape:
        raise ValueError(
            f"token, segment and position must have the same shape: {token.shape}, {segment.shape}, {position.shape}"
        )
    dtype = np.result_type(token, segment, position)
    total = token.astype(dtype)
    total += segment
    total += position
    return total


def input_embeddings(input_ids, token_type_ids, token_table, segment_table, position_table):
    """Look up the three embeddings of every token and add them: (m, T, d)."""
    if input_ids.ndim != 2:
        raise ValueError(f"input_ids must have two axes (m, T), got shape {input_ids.shape}")
    if token_type_ids.shape != input_ids.shape:
        raise ValueError(f"token_type_ids has shape {token_type_ids.shape}, but input_ids has {input_ids.shape}")
    widths = (token_table.shape[1], segment_table.shape[1], position_table.shape[1])
    if len(set(widths)) != 1:
        raise ValueError(f"token_table, segment_table and position_table must share d, got {widths}")
    length = input_ids.shape[1]
    for name, ids, rows in (
        ("input_ids", input_ids, token_table.shape[0]),
        ("token_type_ids", token_type_ids, segment_table.shape[0]),
    ):
        outside = ids[(ids < 0) | (ids >= rows)]
        if outside.size:
            raise ValueError(f"{name} holds {outside[0]}, outside [0, {rows})")
    return (
        token_table[input_ids]
        + segment_table[token_type_ids]
        + position_table[np.minimum(np.arange(length), position_table.shape[0] - 1)]
    )


def another_decomposition(token, segment, position):
    """Three other parts with the same sum: what one part gains, another loses."""
    for name, array in (("segment", segment), ("position", position)):
        if array.shape != token.shape:
            raise ValueError(f"{name} has shape {array.shape}, but token has shape {token.shape}")
    token = token.astype(np.float64)
    segment = segment.astype(np.float64)
    position = position.astype(np.float64)
    return token + 1.0, segment - 1.0, position

# fault: Id 0 is refused as if it were no row of token_table.
# function: input_embeddings
# check: test_lookup_adds_three_rows
# misconception: valid-input-refused
"""Exercise 1: the input representation."""

import numpy as np


def embedding_sum(token, segment, position):
    """Sum of the three embeddings, which must have one identical shape (..., d)."""
    for name, array in (("segment", segment), ("position", position)):
        if array.shape != token.shape:
            raise ValueError(f"{name} has shape {array.shape}, but token has shape {token.shape}")
    return token + segment + position


def input_embeddings(input_ids, token_type_ids, token_table, segment_table, position_table):
    """Input representation of BERT before LayerNorm: x = token + segment + position."""
    if input_ids.ndim != 2:
        raise ValueError(f"input_ids must be 2-D, not of shape {input_ids.shape}")
    if input_ids.shape != token_type_ids.shape:
        raise ValueError(f"input_ids {input_ids.shape} and token_type_ids {token_type_ids.shape} differ in shape")
    (n_tokens, d), (n_types, d_segment), (n_positions, d_position) = (
        token_table.shape,
        segment_table.shape,
        position_table.shape,
    )
    if d_segment != d:
        raise ValueError(f"segment_table has d = {d_segment}, token_table has d = {d}")
    if d_position != d:
        raise ValueError(f"position_table has d = {d_position}, token_table has d = {d}")
    m, T = input_ids.shape
    if T > n_positions:
        raise ValueError(f"T = {T} is more than the {n_positions} rows of position_table")
    for value in input_ids.ravel():
        if value <= 0 or value >= n_tokens:
            raise ValueError(f"input_ids: {value} is no row of token_table ({n_tokens} rows)")
    for value in token_type_ids.ravel():
        if value < 0 or value >= n_types:
            raise ValueError(f"token_type_ids: {value} is no row of segment_table ({n_types} rows)")
    dtype = np.result_type(token_table, segment_table, position_table)
    out = np.zeros((m, T, d), dtype=dtype)
    for i in range(m):
        for t in range(T):
            out[i, t] += token_table[input_ids[i, t]]
            out[i, t] += segment_table[token_type_ids[i, t]]
            out[i, t] += position_table[t]
    return out


def another_decomposition(token, segment, position):
    """All three parts change, the sum does not: the changes add up to zero."""
    shapes = [array.shape for array in (token, segment, position)]
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError(f"token, segment, position have unequal shapes {shapes}")
    parts = [np.asarray(array, dtype=np.float64) for array in (token, segment, position)]
    return parts[0] + 2.0, parts[1] - 0.5, parts[2] - 1.5

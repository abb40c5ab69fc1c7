# fault: The width of position_table is never compared with the others.
# function: input_embeddings
# check: test_lookup_refuses_tables_of_unequal_width
# misconception: shapes-stretched
"""Input embeddings of BERT."""

import numpy as np


def embedding_sum(token, segment, position):
    """token + segment + position, without broadcasting."""
    shapes = {token.shape, segment.shape, position.shape}
    if len(shapes) > 1:
        raise ValueError(f"shapes of token, segment, position differ: {token.shape} {segment.shape} {position.shape}")
    return np.add(np.add(token, segment), position)


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
    m, T = input_ids.shape
    if T > n_positions:
        raise ValueError(f"T = {T} is more than the {n_positions} rows of position_table")
    for value in input_ids.ravel():
        if value < 0 or value >= n_tokens:
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
    """Move a constant from the position vector into the segment vector."""
    if not token.shape == segment.shape == position.shape:
        raise ValueError(
            f"token, segment and position must have the same shape: {token.shape}, {segment.shape}, {position.shape}"
        )
    shift = np.full(token.shape, 0.5)
    return np.array(token, dtype=np.float64), segment + shift, position - shift

# fault: Token ids outside the table are moved to its nearest row.
# function: input_embeddings
# check: test_lookup_refuses_token_ids_past_the_table
# misconception: bad-input-accepted
"""Input embeddings of BERT."""

import numpy as np


def embedding_sum(token, segment, position):
    """token + segment + position, without broadcasting."""
    shapes = {token.shape, segment.shape, position.shape}
    if len(shapes) > 1:
        raise ValueError(f"shapes of token, segment, position differ: {token.shape} {segment.shape} {position.shape}")
    return np.add(np.add(token, segment), position)


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
    if length > position_table.shape[0]:
        raise ValueError(f"input_ids has T = {length}, but position_table has only {position_table.shape[0]} rows")
    for name, ids, rows in (("token_type_ids", token_type_ids, segment_table.shape[0]),):
        outside = ids[(ids < 0) | (ids >= rows)]
        if outside.size:
            raise ValueError(f"{name} holds {outside[0]}, outside [0, {rows})")
    return (
        np.take(token_table, input_ids, axis=0, mode="clip") + segment_table[token_type_ids] + position_table[:length]
    )


def another_decomposition(token, segment, position):
    """Move a constant from the position vector into the segment vector."""
    if not token.shape == segment.shape == position.shape:
        raise ValueError(
            f"token, segment and position must have the same shape: {token.shape}, {segment.shape}, {position.shape}"
        )
    shift = np.full(token.shape, 0.5)
    return np.array(token, dtype=np.float64), segment + shift, position - shift

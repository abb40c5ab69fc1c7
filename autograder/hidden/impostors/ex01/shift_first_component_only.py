# fault: Only the first component of each vector is shifted.
# function: another_decomposition
# check: test_decomposition_has_the_same_sum_and_other_parts
# misconception: parts-equal-somewhere
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
    for name, ids, rows in (
        ("input_ids", input_ids, token_table.shape[0]),
        ("token_type_ids", token_type_ids, segment_table.shape[0]),
    ):
        outside = ids[(ids < 0) | (ids >= rows)]
        if outside.size:
            raise ValueError(f"{name} holds {outside[0]}, outside [0, {rows})")
    return token_table[input_ids] + segment_table[token_type_ids] + position_table[:length]


def another_decomposition(token, segment, position):
    """Three other parts with the same sum: what one part gains, another loses."""
    for name, array in (("segment", segment), ("position", position)):
        if array.shape != token.shape:
            raise ValueError(f"{name} has shape {array.shape}, but token has shape {token.shape}")
    token = token.astype(np.float64)
    segment = segment.astype(np.float64)
    position = position.astype(np.float64)
    shift = np.zeros(token.shape)
    shift[..., 0] = 1.0
    return token + shift, segment - shift, position

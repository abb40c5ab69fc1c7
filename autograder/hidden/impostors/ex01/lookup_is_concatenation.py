# fault: The three looked-up vectors are put side by side: (m, T, 3d).
# function: input_embeddings
# check: test_lookup_adds_three_rows
# misconception: concatenated-instead-of-added
"""Exercise 1: the input representation."""

import numpy as np


def embedding_sum(token, segment, position):
    """Sum of the three embeddings, which must have one identical shape (..., d)."""
    for name, array in (("segment", segment), ("position", position)):
        if array.shape != token.shape:
            raise ValueError(f"{name} has shape {array.shape}, but token has shape {token.shape}")
    return token + segment + position


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
    positions = np.broadcast_to(position_table[:length], input_ids.shape + position_table.shape[1:])
    return np.concatenate([token_table[input_ids], segment_table[token_type_ids], positions], axis=-1)


def another_decomposition(token, segment, position):
    """All three parts change, the sum does not: the changes add up to zero."""
    shapes = [array.shape for array in (token, segment, position)]
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError(f"token, segment, position have unequal shapes {shapes}")
    parts = [np.asarray(array, dtype=np.float64) for array in (token, segment, position)]
    return parts[0] + 2.0, parts[1] - 0.5, parts[2] - 1.5

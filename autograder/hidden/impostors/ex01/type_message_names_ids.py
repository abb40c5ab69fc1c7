# fault: The message about a bad token type blames input_ids.
# function: input_embeddings
# check: test_lookup_refuses_segment_ids_outside_the_table
# misconception: message-without-parameter
"""Exercise 1: the input representation."""

import numpy as np


def embedding_sum(token, segment, position):
    """Sum of the three embeddings, which must have one identical shape (..., d)."""
    for name, array in (("segment", segment), ("position", position)):
        if array.shape != token.shape:
            raise ValueError(f"{name} has shape {array.shape}, but token has shape {token.shape}")
    return token + segment + position


def input_embeddings(input_ids, token_type_ids, token_table, segment_table, position_table):
    """(m, T) ids and types to (m, T, d) vectors."""
    if input_ids.ndim != 2:
        raise ValueError(f"expected input_ids of shape (m, T), got {input_ids.shape}")
    if input_ids.shape != token_type_ids.shape:
        raise ValueError(f"token_type_ids {token_type_ids.shape} does not fit input_ids {input_ids.shape}")
    d = token_table.shape[1]
    if segment_table.shape[1] != d or position_table.shape[1] != d:
        raise ValueError(
            f"tables of unequal width: token_table {d}, segment_table {segment_table.shape[1]}, "
            f"position_table {position_table.shape[1]}"
        )
    m, T = input_ids.shape
    P = len(position_table)
    if T > P:
        raise ValueError(f"input_ids is too long: T = {T}, position_table has P = {P}")
    V, S = len(token_table), len(segment_table)
    if int(input_ids.min()) < 0 or int(input_ids.max()) >= V:
        bad = int(input_ids.min()) if int(input_ids.min()) < 0 else int(input_ids.max())
        raise ValueError(f"id {bad} in input_ids is outside [0, {V})")
    if int(token_type_ids.min()) < 0 or int(token_type_ids.max()) >= S:
        bad = int(token_type_ids.min()) if int(token_type_ids.min()) < 0 else int(token_type_ids.max())
        raise ValueError(f"id {bad} in input_ids is outside [0, {S})")
    token = token_table[input_ids.astype(np.int64)]
    segment = segment_table[token_type_ids.astype(np.int64)]
    position = np.broadcast_to(position_table[:T], (m, T, d))
    return token + segment + position


def another_decomposition(token, segment, position):
    """All three parts change, the sum does not: the changes add up to zero."""
    shapes = [array.shape for array in (token, segment, position)]
    if any(shape != shapes[0] for shape in shapes):
        raise ValueError(f"token, segment, position have unequal shapes {shapes}")
    parts = [np.asarray(array, dtype=np.float64) for array in (token, segment, position)]
    return parts[0] + 2.0, parts[1] - 0.5, parts[2] - 1.5

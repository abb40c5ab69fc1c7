# fault: The whole sum goes into token, which changes nothing where segment and position are 0.
# function: another_decomposition
# check: test_decomposition_of_special_parts
# misconception: parts-equal-somewhere
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
        raise ValueError(f"id {bad} in token_type_ids is outside [0, {S})")
    token = token_table[input_ids.astype(np.int64)]
    segment = segment_table[token_type_ids.astype(np.int64)]
    position = np.broadcast_to(position_table[:T], (m, T, d))
    return token + segment + position


def another_decomposition(token, segment, position):
    """Three other parts with the same sum: what one part gains, another loses."""
    for name, array in (("segment", segment), ("position", position)):
        if array.shape != token.shape:
            raise ValueError(f"{name} has shape {array.shape}, but token has shape {token.shape}")
    token = token.astype(np.float64)
    segment = segment.astype(np.float64)
    position = position.astype(np.float64)
    zero = np.zeros(token.shape)
    return token + segment + position, zero, zero.copy()

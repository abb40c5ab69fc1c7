# fault: The message about a token id outside the table does not say which argument holds it.
# function: input_embeddings
# check: test_lookup_refuses_token_ids_past_the_table
# misconception: message-without-parameter
"""Input embeddings of BERT."""

import numpy as np


def embedding_sum(token, segment, position):
    """token + segment + position, without broadcasting."""
    shapes = {token.shape, segment.shape, position.shape}
    if len(shapes) > 1:
        raise ValueError(f"shapes of token, segment, position differ: {token.shape} {segment.shape} {position.shape}")
    return np.add(np.add(token, segment), position)


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
        raise ValueError(f"id {bad} is outside [0, {V})")
    if int(token_type_ids.min()) < 0 or int(token_type_ids.max()) >= S:
        bad = int(token_type_ids.min()) if int(token_type_ids.min()) < 0 else int(token_type_ids.max())
        raise ValueError(f"id {bad} in token_type_ids is outside [0, {S})")
    token = token_table[input_ids.astype(np.int64)]
    segment = segment_table[token_type_ids.astype(np.int64)]
    position = np.broadcast_to(position_table[:T], (m, T, d))
    return token + segment + position


def another_decomposition(token, segment, position):
    """Move a constant from the position vector into the segment vector."""
    if not token.shape == segment.shape == position.shape:
        raise ValueError(
            f"token, segment and position must have the same shape: {token.shape}, {segment.shape}, {position.shape}"
        )
    shift = np.full(token.shape, 0.5)
    return np.array(token, dtype=np.float64), segment + shift, position - shift

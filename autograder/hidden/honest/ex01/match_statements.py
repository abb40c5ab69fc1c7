# honest: every decision is a match statement
"""Structural pattern matching on shapes."""

import numpy as np


def embedding_sum(token, segment, position):
    match token.shape, segment.shape, position.shape:
        case a, b, c if a == b == c:
            return np.sum([token, segment, position], axis=0, dtype=np.result_type(token, segment, position))
        case a, b, _ if a == b:
            raise ValueError(f"position is the odd one out: {position.shape}")
        case a, _, c if a == c:
            raise ValueError(f"segment is the odd one out: {segment.shape}")
        case _, b, c if b == c:
            raise ValueError(f"token is the odd one out: {token.shape}")
        case shapes:
            raise ValueError(f"token, segment and position have three shapes: {shapes}")


def _outside(ids, rows):
    match [i for i in ids.flatten().tolist() if i < 0 or i >= rows]:
        case []:
            return None
        case [first, *_]:
            return first


def input_embeddings(input_ids, token_type_ids, token_table, segment_table, position_table):
    match input_ids.shape:
        case (_, T):
            pass
        case other:
            raise ValueError(f"input_ids has shape {other}")
    match token_type_ids.shape:
        case shape if shape != input_ids.shape:
            raise ValueError(f"token_type_ids has shape {shape}")
    match token_table.shape, segment_table.shape, position_table.shape:
        case (_, d), (_, e), (_, f) if not d == e == f:
            raise ValueError(f"token_table, segment_table, position_table are {d}, {e}, {f} wide")
        case _, _, (P, _) if T > P:
            raise ValueError(f"position_table holds {P} positions, input_ids {T}")
    match _outside(input_ids, len(token_table)), _outside(token_type_ids, len(segment_table)):
        case int(bad), _:
            raise ValueError(f"input_ids: {bad}")
        case _, int(bad):
            raise ValueError(f"token_type_ids: {bad}")
    return np.sum(
        [
            token_table[input_ids],
            segment_table[token_type_ids],
            np.broadcast_to(position_table[:T], input_ids.shape + position_table.shape[1:]),
        ],
        axis=0,
        dtype=np.result_type(token_table, segment_table, position_table),
    )


def another_decomposition(token, segment, position):
    match {token.shape, segment.shape, position.shape}:
        case shapes if len(shapes) > 1:
            raise ValueError(f"token, segment and position have {len(shapes)} shapes: {sorted(shapes)}")
    match [np.array(part, dtype=np.double) for part in (token, segment, position)]:
        case [t, s, p]:
            return t - 0.125, s + 0.0625, p + 0.0625

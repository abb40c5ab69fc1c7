# honest: computes in extended precision and casts to the right dtype at the end
"""Exact first, dtype last."""

import numpy as np


def embedding_sum(token, segment, position):
    if token.shape != segment.shape or segment.shape != position.shape:
        raise ValueError(f"token.shape={token.shape} segment.shape={segment.shape} position.shape={position.shape}")
    dtype = np.result_type(token, segment, position)
    wide = np.longdouble if dtype.kind == "f" else dtype
    return (token.astype(wide) + segment.astype(wide) + position.astype(wide)).astype(dtype)


def input_embeddings(input_ids, token_type_ids, token_table, segment_table, position_table):
    if input_ids.ndim != 2:
        raise ValueError(f"input_ids.ndim={input_ids.ndim}")
    if input_ids.shape != token_type_ids.shape:
        raise ValueError(f"input_ids.shape={input_ids.shape} token_type_ids.shape={token_type_ids.shape}")
    shapes = (token_table.shape, segment_table.shape, position_table.shape)
    if len({d for _, d in shapes}) != 1:
        raise ValueError("token_table.shape=%s segment_table.shape=%s position_table.shape=%s" % shapes)
    if input_ids.shape[1] > position_table.shape[0]:
        raise ValueError(f"input_ids.shape={input_ids.shape} position_table.shape={position_table.shape}")
    for name, ids, (rows, _) in zip(("input_ids", "token_type_ids"), (input_ids, token_type_ids), shapes):
        bad = [i for i in ids.reshape(-1).tolist() if i not in range(rows)]
        if bad:
            raise ValueError(f"{name} has {bad} outside range({rows})")
    token = token_table[input_ids.astype(np.intp)]
    segment = segment_table[token_type_ids.astype(np.intp)]
    position = np.repeat(position_table[None, : input_ids.shape[1]], len(input_ids), axis=0)
    return embedding_sum(token, segment, position)


def another_decomposition(token, segment, position):
    if token.shape != segment.shape or segment.shape != position.shape:
        raise ValueError(f"token.shape={token.shape} segment.shape={segment.shape} position.shape={position.shape}")
    token, segment, position = (np.asarray(x, dtype=np.longdouble) for x in (token, segment, position))
    total = token + segment + position
    new_token = token + 0.01
    new_segment = segment + 0.01
    new_position = total - new_token - new_segment
    return new_token.astype(np.float64), new_segment.astype(np.float64), new_position.astype(np.float64)

import numpy as np


def same_shape(token, segment, position):
    if not (token.shape == segment.shape == position.shape):
        raise ValueError(f"token {token.shape}, segment {segment.shape} and position {position.shape} differ")


def embedding_sum(token, segment, position):
    same_shape(token, segment, position)
    return np.add(np.add(token, segment, dtype=np.result_type(token, segment, position)), position)


def input_embeddings(input_ids, token_type_ids, token_table, segment_table, position_table):
    if input_ids.ndim != 2:
        raise ValueError(f"input_ids must have two axes, not {input_ids.ndim}")
    if token_type_ids.shape != input_ids.shape:
        raise ValueError(f"token_type_ids {token_type_ids.shape} does not fit input_ids {input_ids.shape}")
    if not (token_table.shape[1] == segment_table.shape[1] == position_table.shape[1]):
        raise ValueError("token_table, segment_table and position_table differ in width")
    m, T = input_ids.shape
    if T > len(position_table):
        raise ValueError(f"input_ids is {T} long, position_table has only {len(position_table)} rows")
    for name, ids, table in [("input_ids", input_ids, token_table), ("token_type_ids", token_type_ids, segment_table)]:
        for i in ids.ravel():
            if i < 0 or i >= len(table):
                raise ValueError(f"{name}: {i} is not in [0, {len(table)})")
    token = token_table[input_ids]  # (m, T, d)
    segment = segment_table[token_type_ids]  # (m, T, d)
    position = np.broadcast_to(position_table[:T], token.shape)
    return embedding_sum(token, segment, position)


def another_decomposition(token, segment, position):
    same_shape(token, segment, position)
    shift = 0.5
    return token.astype(np.float64) - shift, segment.astype(np.float64), position.astype(np.float64) + shift

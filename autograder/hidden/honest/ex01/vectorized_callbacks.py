# honest: np.vectorize, np.apply_along_axis and np.nditer
"""Callbacks instead of array expressions."""

import numpy as np


def embedding_sum(token, segment, position):
    if token.shape != segment.shape or token.shape != position.shape:
        raise ValueError(f"token: {token.shape}. segment: {segment.shape}. position: {position.shape}.")
    out = np.empty(token.shape, np.result_type(token, segment, position))
    flags = [["readonly"]] * 3 + [["writeonly"]]
    dtypes = [out.dtype] * 4
    with np.nditer([token, segment, position, out], ["buffered"], flags, op_dtypes=dtypes, casting="unsafe") as iterator:
        for t, s, p, o in iterator:
            o[...] = t + s + p
    return out


def input_embeddings(input_ids, token_type_ids, token_table, segment_table, position_table):
    if input_ids.ndim != 2:
        raise ValueError(f"input_ids.shape: {input_ids.shape}.")
    if input_ids.shape != token_type_ids.shape:
        raise ValueError(f"token_type_ids.shape: {token_type_ids.shape}.")
    if np.ptp([token_table.shape[1], segment_table.shape[1], position_table.shape[1]]):
        raise ValueError("token_table.shape[1], segment_table.shape[1], position_table.shape[1] differ.")
    if input_ids.shape[1] > position_table.shape[0]:
        raise ValueError(f"input_ids.shape: {input_ids.shape}, position_table.shape: {position_table.shape}.")

    def row_of(name, table):
        def look_up(i):
            if i < 0 or i >= table.shape[0]:
                raise ValueError(f"{name}: {i}.")
            return table[i]

        return np.vectorize(look_up, signature="()->(d)", otypes=[table.dtype])

    token = row_of("input_ids", token_table)(input_ids)
    segment = row_of("token_type_ids", segment_table)(token_type_ids)
    position = row_of("position_table", position_table)(np.arange(input_ids.shape[1]))
    return token + segment + position


def another_decomposition(token, segment, position):
    if token.shape != segment.shape or token.shape != position.shape:
        raise ValueError(f"token: {token.shape}. segment: {segment.shape}. position: {position.shape}.")
    more = np.apply_along_axis(lambda row: row.astype(np.float64) + 20.0, -1, token)
    less = np.apply_along_axis(lambda row: row.astype(np.float64) - 20.0, -1, position)
    return more, np.apply_along_axis(np.float64, -1, segment), less

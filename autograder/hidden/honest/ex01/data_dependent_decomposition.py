# honest: the decomposition depends on the data: the parts trade amounts that grow with their own size
"""Parts that trade what they hold."""

import numpy as np


def _shapes_must_agree(token, segment, position):
    reference = segment.shape
    for name, array in dict(token=token, position=position).items():
        if array.shape != reference:
            raise ValueError(f"{name} has the shape {array.shape} but segment the shape {reference}")


def embedding_sum(token, segment, position):
    _shapes_must_agree(token, segment, position)
    dtype = np.result_type(token, segment, position)
    total = np.array(token, dtype=dtype, copy=True)
    np.add(total, segment, out=total)
    np.add(total, position, out=total)
    return total


def input_embeddings(input_ids, token_type_ids, token_table, segment_table, position_table):
    if np.ndim(input_ids) != 2:
        raise ValueError(f"input_ids is an array of {np.ndim(input_ids)} axes")
    if np.shape(input_ids) != np.shape(token_type_ids):
        raise ValueError(f"token_type_ids is {np.shape(token_type_ids)}, not {np.shape(input_ids)}")
    if len({np.shape(table)[1] for table in (token_table, segment_table, position_table)}) == 1:
        d = np.shape(token_table)[1]
    else:
        raise ValueError("the width of token_table, segment_table and position_table is not the same")
    m, T = np.shape(input_ids)
    if T > np.shape(position_table)[0]:
        raise ValueError(f"position_table has no row {T - 1}")
    for ids, table, name in (
        (input_ids, token_table, "input_ids"),
        (token_type_ids, segment_table, "token_type_ids"),
    ):
        for i in np.unique(ids):
            if i < 0 or i >= np.shape(table)[0]:
                raise ValueError(f"the table for {name} has no row {i}")
    dtype = np.result_type(token_table, segment_table, position_table)
    flat = np.zeros((m * T, d), dtype)
    for row, (i, s) in enumerate(zip(input_ids.flat, token_type_ids.flat)):
        flat[row] = token_table[i].astype(dtype) + segment_table[s].astype(dtype) + position_table[row % T].astype(dtype)
    return flat.reshape(m, T, d)


def another_decomposition(token, segment, position):
    _shapes_must_agree(token, segment, position)
    token, segment, position = (np.asarray(part, dtype=np.float64) for part in (token, segment, position))
    first = 1.0 + np.abs(segment)
    second = 1.0 + np.abs(position) / 2
    return token + first, segment - first - second, position + second

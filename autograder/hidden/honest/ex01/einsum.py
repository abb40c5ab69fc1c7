# honest: einsum for everything
"""Exercise 1 with einsum."""

import numpy as np


def embedding_sum(token, segment, position):
    shapes = [np.shape(x) for x in (token, segment, position)]
    if shapes[0] != shapes[1] or shapes[0] != shapes[2]:
        raise ValueError("token, segment, position: unequal shapes %s, %s, %s" % tuple(shapes))
    dtype = np.result_type(token, segment, position)
    parts = np.array([token.astype(dtype), segment.astype(dtype), position.astype(dtype)])
    return np.einsum("k...->...", parts)


def input_embeddings(input_ids, token_type_ids, token_table, segment_table, position_table):
    if len(input_ids.shape) != 2:
        raise ValueError("input_ids has shape %s, not (m, T)" % (input_ids.shape,))
    if input_ids.shape != token_type_ids.shape:
        raise ValueError("token_type_ids %s, input_ids %s" % (token_type_ids.shape, input_ids.shape))
    V, d = token_table.shape
    S, d_s = segment_table.shape
    P, d_p = position_table.shape
    if (d_s, d_p) != (d, d):
        raise ValueError("token_table, segment_table, position_table: widths %d, %d, %d" % (d, d_s, d_p))
    m, T = input_ids.shape
    if T > P:
        raise ValueError("T = %d tokens in input_ids, P = %d rows in position_table" % (T, P))
    for name, ids, rows in [("input_ids", input_ids, V), ("token_type_ids", token_type_ids, S)]:
        for bad in ids[np.logical_or(ids < 0, ids >= rows)]:
            raise ValueError("%s: %d is outside [0, %d)" % (name, bad, rows))
    dtype = np.result_type(token_table, segment_table, position_table)
    out = np.zeros((m, T, d), dtype)
    for ids, table in (
        (input_ids, token_table),
        (token_type_ids, segment_table),
        (np.arange(T)[None].repeat(m, axis=0), position_table),
    ):
        one_hot = np.equal.outer(ids, np.arange(len(table))).astype(dtype)
        out = out + np.einsum("mtv,vd->mtd", one_hot, table.astype(dtype))
    return out


def another_decomposition(token, segment, position):
    shapes = [np.shape(x) for x in (token, segment, position)]
    if shapes[0] != shapes[1] or shapes[0] != shapes[2]:
        raise ValueError("token, segment, position: unequal shapes %s, %s, %s" % tuple(shapes))
    mix = np.array([[1.0, 0.0, 0.0, 5.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, -5.0]])
    parts = np.array([np.float64(token), np.float64(segment), np.float64(position), np.ones(np.shape(token))])
    t, s, p = np.einsum("ij,j...->i...", mix, parts)
    return t, s, p

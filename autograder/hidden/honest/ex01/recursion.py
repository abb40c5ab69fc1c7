# honest: recursion over the axes
"""Vectors are added by walking down the axes."""

import numpy as np


def _same_shape(token, segment, position):
    if {token.shape} != {segment.shape} | {position.shape}:
        raise ValueError(f"token{token.shape} segment{segment.shape} position{position.shape}: shapes must be equal")


def _walk(out, parts):
    if out.ndim == 1:
        for part in parts:
            out[:] = out + part
        return out
    for i in range(len(out)):
        _walk(out[i], [part[i] for part in parts])
    return out


def embedding_sum(token, segment, position):
    _same_shape(token, segment, position)
    dtype = np.result_type(token, segment, position)
    return _walk(np.zeros(token.shape, dtype), [token.astype(dtype), segment.astype(dtype), position.astype(dtype)])


def _look_up(name, ids, table):
    if ids.ndim == 0:
        if ids < 0 or ids >= len(table):
            raise ValueError(f"{name} = {ids} has no row in a table of {len(table)}")
        return table[int(ids)]
    return np.stack([_look_up(name, np.asarray(sub), table) for sub in ids])


def input_embeddings(input_ids, token_type_ids, token_table, segment_table, position_table):
    if input_ids.ndim != 2:
        raise ValueError(f"input_ids: two axes, please, not {input_ids.ndim}")
    if input_ids.shape != token_type_ids.shape:
        raise ValueError(f"token_type_ids: {token_type_ids.shape}, input_ids: {input_ids.shape}")
    for name, table in (("segment_table", segment_table), ("position_table", position_table)):
        if table.shape[-1] != token_table.shape[-1]:
            raise ValueError(f"{name}: width {table.shape[-1]}, token_table: width {token_table.shape[-1]}")
    if input_ids.shape[-1] > len(position_table):
        raise ValueError(f"position_table: {len(position_table)} rows are too few for {input_ids.shape[-1]} tokens")
    token = _look_up("input_ids", input_ids, token_table)
    segment = _look_up("token_type_ids", token_type_ids, segment_table)
    positions = np.array([range(input_ids.shape[1])] * input_ids.shape[0])
    return embedding_sum(token, segment, _look_up("position_table", positions, position_table))


def another_decomposition(token, segment, position):
    _same_shape(token, segment, position)
    out = [part.astype(float) for part in (token, segment, position)]
    one = np.ones(token.shape)
    return _walk(out[0], [one]), _walk(out[1], [one]), _walk(out[2], [-one, -one])

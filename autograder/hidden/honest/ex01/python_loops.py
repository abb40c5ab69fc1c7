# honest: nothing but nested Python loops and lists, turned into arrays at the very end
"""Exercise 1, element by element."""

import numpy as np


def _check_shapes(token, segment, position):
    if not (token.shape == segment.shape == position.shape):
        raise ValueError(f"token {token.shape}, segment {segment.shape} and position {position.shape} must agree")


def embedding_sum(token, segment, position):
    _check_shapes(token, segment, position)
    dtype = np.result_type(token, segment, position)
    total = np.empty(token.shape, dtype)
    for index in np.ndindex(*token.shape):
        value = dtype.type(0)
        for part in (token, segment, position):
            value = dtype.type(value + dtype.type(part[index]))
        total[index] = value
    return total


def input_embeddings(input_ids, token_type_ids, token_table, segment_table, position_table):
    if input_ids.ndim != 2:
        raise ValueError(f"input_ids has {input_ids.ndim} axes, two are needed")
    if input_ids.shape != token_type_ids.shape:
        raise ValueError(f"input_ids {input_ids.shape} and token_type_ids {token_type_ids.shape} must agree")
    d = len(token_table[0])
    for name, table in [("segment_table", segment_table), ("position_table", position_table)]:
        if len(table[0]) != d:
            raise ValueError(f"{name} has rows of {len(table[0])} numbers, token_table of {d}")
    if len(input_ids[0]) > len(position_table):
        raise ValueError(f"input_ids: {len(input_ids[0])} tokens, but position_table has {len(position_table)} rows")
    for ids, types in zip(input_ids.tolist(), token_type_ids.tolist()):
        for i in ids:
            if not 0 <= i < len(token_table):
                raise ValueError(f"input_ids contains {i}; token_table has {len(token_table)} rows")
        for i in types:
            if not 0 <= i < len(segment_table):
                raise ValueError(f"token_type_ids contains {i}; segment_table has {len(segment_table)} rows")
    tables = token_table.tolist(), segment_table.tolist(), position_table.tolist()
    batch = []
    for ids, types in zip(input_ids.tolist(), token_type_ids.tolist()):
        rows = []
        for t in range(len(ids)):
            vectors = tables[0][ids[t]], tables[1][types[t]], tables[2][t]
            rows.append([a + b + c for a, b, c in zip(*vectors)])
        batch.append(rows)
    return np.array(batch, dtype=np.result_type(token_table, segment_table, position_table))


def another_decomposition(token, segment, position):
    _check_shapes(token, segment, position)
    new = [np.empty(token.shape) for _ in range(3)]
    for index in np.ndindex(*token.shape):
        new[0][index] = float(token[index]) + 3.0
        new[1][index] = float(segment[index])
        new[2][index] = float(position[index]) - 3.0
    return new[0], new[1], new[2]

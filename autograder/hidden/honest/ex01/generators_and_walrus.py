# honest: generator expressions, walrus operators, next() with a default and chained conditional expressions
"""Compact on purpose."""

import itertools

import numpy as np

NAMES = "token", "segment", "position"


def _odd(*arrays):
    return next((n for n, a in zip(NAMES, arrays) if a.shape != arrays[0].shape), None)


def embedding_sum(token, segment, position):
    if odd := _odd(token, segment, position):
        raise ValueError(f"{odd} does not have the shape {token.shape} of token")
    return sum((part for part in (segment, position)), start=token)


def input_embeddings(input_ids, token_type_ids, token_table, segment_table, position_table):
    tables = {"token_table": token_table, "segment_table": segment_table, "position_table": position_table}
    trouble = (
        f"input_ids is {input_ids.ndim}-D"
        if input_ids.ndim != 2
        else f"token_type_ids has shape {token_type_ids.shape}, input_ids {input_ids.shape}"
        if token_type_ids.shape != input_ids.shape
        else f"{wide} is not {token_table.shape[1]} wide like token_table"
        if (wide := next((n for n, t in tables.items() if t.shape[1] != token_table.shape[1]), None))
        else f"T = {T} > {len(position_table)} rows of position_table"
        if (T := input_ids.shape[1]) > len(position_table)
        else f"input_ids: {bad} >= {len(token_table)} or negative"
        if (bad := next((i for i in map(int, input_ids.flat) if i < 0 or i >= len(token_table)), None)) is not None
        else f"token_type_ids: {bad} >= {len(segment_table)} or negative"
        if (bad := next((i for i in map(int, token_type_ids.flat) if i < 0 or i >= len(segment_table)), None)) is not None
        else None
    )
    if trouble is not None:
        raise ValueError(trouble)
    vectors = (
        token_table[i] + segment_table[s] + position_table[t]
        for i, s, t in zip(input_ids.flat, token_type_ids.flat, itertools.cycle(range(T)))
    )
    return np.stack(list(vectors)).reshape(*input_ids.shape, -1)


def another_decomposition(token, segment, position):
    if odd := _odd(token, segment, position):
        raise ValueError(f"{odd} does not have the shape {token.shape} of token")
    return tuple(part.astype(np.float64) + c for part, c in zip((token, segment, position), (-0.01, 0.02, -0.01)))

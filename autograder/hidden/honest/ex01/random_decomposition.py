# honest: the decomposition is random, drawn from a local seeded Generator, another for every shape
"""Random shifts that touch no global generator."""

import numpy as np


def _same(token, segment, position):
    if token.shape == segment.shape == position.shape:
        return
    raise ValueError(f"token / segment / position: {token.shape} / {segment.shape} / {position.shape}")


def embedding_sum(token, segment, position):
    _same(token, segment, position)
    order = np.random.default_rng(token.size).permutation(3)
    parts = [(token, segment, position)[i] for i in order]
    dtype = np.result_type(*parts)
    return parts[0].astype(dtype) + parts[1].astype(dtype) + parts[2].astype(dtype)


def input_embeddings(input_ids, token_type_ids, token_table, segment_table, position_table):
    if input_ids.ndim != 2:
        raise ValueError(f"input_ids: expected (m, T), got {input_ids.shape}")
    if input_ids.shape != token_type_ids.shape:
        raise ValueError(f"token_type_ids: expected {input_ids.shape}, got {token_type_ids.shape}")
    d = token_table.shape[1]
    if segment_table.shape[1] != d:
        raise ValueError(f"segment_table: expected width {d}, got {segment_table.shape[1]}")
    if position_table.shape[1] != d:
        raise ValueError(f"position_table: expected width {d}, got {position_table.shape[1]}")
    if input_ids.shape[1] > len(position_table):
        raise ValueError(f"input_ids: expected at most {len(position_table)} columns, got {input_ids.shape[1]}")
    for name, ids, table in (("token_type_ids", token_type_ids, segment_table), ("input_ids", input_ids, token_table)):
        good = (ids >= 0) & (ids < len(table))
        if not good.all():
            raise ValueError(f"{name}: expected ids below {len(table)}, got {np.extract(~good, ids).tolist()}")
    out = np.empty(input_ids.shape + (d,), dtype=np.result_type(token_table, segment_table, position_table))
    out[...] = position_table[: input_ids.shape[1]]
    out += token_table[input_ids]
    out += segment_table[token_type_ids]
    return out


def another_decomposition(token, segment, position):
    _same(token, segment, position)
    rng = np.random.Generator(np.random.PCG64(abs(hash(token.shape)) % 1000))
    shift = rng.uniform(0.5, 5.0, size=token.shape) * rng.choice([-1.0, 1.0], size=token.shape)
    return token + shift, segment.astype(np.float64) - shift, np.array(position, dtype="float64")

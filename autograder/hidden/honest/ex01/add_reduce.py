# honest: np.add.reduce over a list of arrays; the decomposition shifts all three parts by different amounts
"""Sums as reductions."""

import numpy as np


def embedding_sum(token, segment, position):
    parts = [token, segment, position]
    if any(part.shape != parts[0].shape for part in parts):
        raise ValueError(f"need equal shapes; token: {token.shape}; segment: {segment.shape}; position: {position.shape}")
    return np.add.reduce(np.stack(parts, axis=-1), axis=-1, dtype=np.result_type(*parts))


def input_embeddings(input_ids, token_type_ids, token_table, segment_table, position_table):
    problems = []
    if input_ids.ndim != 2:
        problems.append(f"input_ids is {input_ids.ndim}-D instead of 2-D")
    elif input_ids.shape != token_type_ids.shape:
        problems.append(f"token_type_ids {token_type_ids.shape} and input_ids {input_ids.shape} do not match")
    elif input_ids.shape[1] > len(position_table):
        problems.append(f"input_ids is longer ({input_ids.shape[1]}) than position_table ({len(position_table)})")
    if len({table.shape[1] for table in (token_table, segment_table, position_table)}) > 1:
        problems.append("token_table, segment_table and position_table do not share one d")
    for name, ids, table in (
        ("input_ids", input_ids, token_table),
        ("token_type_ids", token_type_ids, segment_table),
    ):
        strange = sorted({int(i) for i in np.unique(ids)} - set(range(len(table))))
        if strange:
            problems.append(f"{name} holds {', '.join(map(str, strange))}, outside [0, {len(table)})")
    if problems:
        raise ValueError("; ".join(problems))
    rows = [
        np.take(token_table, input_ids.astype(np.intp), axis=0),
        np.take(segment_table, token_type_ids.astype(np.intp), axis=0),
        np.tile(position_table[: input_ids.shape[1]], (input_ids.shape[0], 1, 1)),
    ]
    return np.add.reduce(rows, dtype=np.result_type(token_table, segment_table, position_table))


def another_decomposition(token, segment, position):
    parts = [token, segment, position]
    if any(part.shape != parts[0].shape for part in parts):
        raise ValueError(f"need equal shapes; token: {token.shape}; segment: {segment.shape}; position: {position.shape}")
    shifts = np.array([0.25, 0.5, -0.75])
    return tuple(np.add(part, shift, dtype=np.float64) for part, shift in zip(parts, shifts))

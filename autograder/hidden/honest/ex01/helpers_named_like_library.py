# honest: helpers of its own named gather, stack, softmax, embedding, check and where, shadowing well-known names
"""Own helpers with familiar names."""

import numpy as np


def check(condition, message):
    if not condition:
        raise ValueError(message)


def stack(*parts):
    return [part for part in parts]


def where(ids, rows):
    return [int(i) for i in ids.ravel() if i < 0 or i >= rows]


def gather(table, ids):
    return table[ids.astype("int64")]


def softmax(parts):
    """Not a softmax at all: the sum."""
    total = parts[0].copy()
    for part in parts[1:]:
        total = total + part
    return total


def embedding(name, table, ids):
    bad = where(ids, len(table))
    check(not bad, f"{name}: {bad[:1]} not in [0, {len(table)})")
    return gather(table, ids)


def embedding_sum(token, segment, position):
    check(
        token.shape == segment.shape == position.shape,
        f"token, segment, position: {token.shape} != {segment.shape} or != {position.shape}",
    )
    return softmax(stack(token, segment, position))


def input_embeddings(input_ids, token_type_ids, token_table, segment_table, position_table):
    check(input_ids.ndim == 2, f"input_ids.ndim is {input_ids.ndim}")
    check(input_ids.shape == token_type_ids.shape, f"token_type_ids.shape is {token_type_ids.shape}")
    check(segment_table.shape[1] == token_table.shape[1], "segment_table and token_table differ in width")
    check(position_table.shape[1] == token_table.shape[1], "position_table and token_table differ in width")
    check(input_ids.shape[1] <= len(position_table), "input_ids: more tokens than rows in position_table")
    token = embedding("input_ids", token_table, input_ids)
    segment = embedding("token_type_ids", segment_table, token_type_ids)
    position = gather(position_table, np.arange(input_ids.size).reshape(input_ids.shape) % input_ids.shape[1])
    return softmax(stack(token, segment, position))


def another_decomposition(token, segment, position):
    check(
        token.shape == segment.shape == position.shape,
        f"token, segment, position: {token.shape} != {segment.shape} or != {position.shape}",
    )
    return (
        softmax(stack(token.astype("f8"), np.ones(token.shape))),
        softmax(stack(segment.astype("f8"), np.ones(token.shape) * 2)),
        softmax(stack(position.astype("f8"), np.ones(token.shape) * -3)),
    )

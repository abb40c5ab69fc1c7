# honest: prints and warns at import and inside the functions
"""A talkative solution."""

import sys
import warnings

import numpy as np

print("loading exercise 1 …")
warnings.warn("this solution likes to talk", stacklevel=1)
print("on standard error too", file=sys.stderr)


def embedding_sum(token, segment, position):
    print("embedding_sum", token.shape, segment.shape, position.shape)
    if token.shape != segment.shape or token.shape != position.shape:
        warnings.warn("about to fail", stacklevel=2)
        raise ValueError(f"Shapes of token, segment and position: {[x.shape for x in (token, segment, position)]}")
    result = token + segment + position
    print("->", result.dtype)
    return result


def input_embeddings(input_ids, token_type_ids, token_table, segment_table, position_table):
    print("input_embeddings", locals().keys())
    if input_ids.ndim != 2:
        raise ValueError(f"Input_ids is not 2-D: {input_ids.shape} (input_ids)")
    if input_ids.shape != token_type_ids.shape:
        raise ValueError(f"token_type_ids.shape={token_type_ids.shape}, input_ids.shape={input_ids.shape}")
    for name in ("segment_table", "position_table"):
        if locals()[name].shape[1] != token_table.shape[1]:
            raise ValueError(f"{name} is not as wide as token_table")
    if input_ids.shape[1] > len(position_table):
        raise ValueError(f"input_ids needs {input_ids.shape[1]} positions; position_table has {len(position_table)}")
    for name, ids, n in (
        ("input_ids", input_ids, len(token_table)),
        ("token_type_ids", token_type_ids, len(segment_table)),
    ):
        if ids.min() < 0:
            raise ValueError(f"{name}: negative id {ids.min()}")
        if ids.max() >= n:
            raise ValueError(f"{name}: id {ids.max()} too large for {n} rows")
    return token_table[input_ids] + segment_table[token_type_ids] + position_table[: input_ids.shape[1]]


def another_decomposition(token, segment, position):
    if token.shape != segment.shape or token.shape != position.shape:
        raise ValueError(f"Shapes of token, segment and position: {[x.shape for x in (token, segment, position)]}")
    print("moving 100 around")
    return token * 1.0.__float__() + np.float64(100), np.float64(segment), np.float64(position) - 100

# honest: exported from a notebook, with percent cells, string annotations, a __main__ guard and checks on the way
# %% [markdown]
# # Exercise 1

# %%
from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray


# %%
def embedding_sum(token: "NDArray", segment: "NDArray", position: "NDArray") -> "NDArray":
    if not (token.shape == segment.shape and token.shape == position.shape):
        raise ValueError(f"TOKEN {token.shape}, SEGMENT {segment.shape}, POSITION {position.shape}: token, segment and position differ")
    return token + segment + position


# %% a first look
x = embedding_sum(np.array([1.0, 0.0]), np.array([0.5, 0.5]), np.array([-0.5, 1.0]))
assert x.tolist() == [1.0, 1.5]
x


# %%
def input_embeddings(
    input_ids: "NDArray[np.integer]",
    token_type_ids: "NDArray[np.integer]",
    token_table: "NDArray",
    segment_table: "NDArray",
    position_table: "NDArray",
) -> "NDArray":
    assert_like = [
        (input_ids.ndim == 2, lambda: f"input_ids has {input_ids.ndim} axes"),
        (input_ids.shape == token_type_ids.shape, lambda: f"token_type_ids has shape {token_type_ids.shape}"),
        (token_table.shape[1] == segment_table.shape[1], lambda: "segment_table has another d than token_table"),
        (token_table.shape[1] == position_table.shape[1], lambda: "position_table has another d than token_table"),
    ]
    for holds, message in assert_like:
        if not holds:
            raise ValueError(message())
    if input_ids.shape[1] > position_table.shape[0]:
        raise ValueError(f"input_ids has T = {input_ids.shape[1]} > P = {position_table.shape[0]}")
    for name, ids, rows in [["input_ids", input_ids, len(token_table)], ["token_type_ids", token_type_ids, len(segment_table)]]:
        bad = ids[(ids < 0) | (ids > rows - 1)]
        if len(bad) > 0:
            raise ValueError(f"bad id(s) in {name}: {bad}")
    return token_table[input_ids] + segment_table[token_type_ids] + position_table[np.arange(input_ids.shape[1])]


# %%
input_embeddings(np.zeros((2, 3), int), np.zeros((2, 3), int), np.ones((4, 5)), np.ones((2, 5)), np.ones((3, 5))).shape


# %%
def another_decomposition(token: "NDArray", segment: "NDArray", position: "NDArray") -> "tuple[NDArray, NDArray, NDArray]":
    if not (token.shape == segment.shape and token.shape == position.shape):
        raise ValueError(f"token: {token.shape}, segment: {segment.shape}, position: {position.shape}")
    t, s, p = token.astype("float64"), segment.astype("float64"), position.astype("float64")
    return t + 1000.0, s - 500.0, p - 500.0


# %%
if __name__ == "__main__":
    print(another_decomposition(x, x, x))

# honest: a frozen dataclass holds the parts and validates itself
"""Parts as a dataclass."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np


@dataclass(frozen=True, eq=False)
class Parts:
    token: np.ndarray
    segment: np.ndarray
    position: np.ndarray

    def __post_init__(self):
        for field in fields(self)[1:]:
            array = getattr(self, field.name)
            if array.shape != self.token.shape:
                raise ValueError(f"{field.name} is {array.shape}, token is {self.token.shape}")

    def __iter__(self):
        return iter((self.token, self.segment, self.position))

    @property
    def total(self):
        dtype = np.result_type(*self)
        return sum((part.astype(dtype) for part in self), start=np.zeros((), dtype))


@dataclass(frozen=True, eq=False)
class Lookup:
    name: str
    ids: np.ndarray
    table: np.ndarray

    @property
    def rows(self):
        if (self.ids < 0).any() or (self.ids >= len(self.table)).any():
            worst = max(self.ids.ravel().tolist(), key=lambda i: max(-i, i - len(self.table) + 1))
            raise ValueError(f"{self.name}: {worst} is out of range(0, {len(self.table)})")
        return self.table[self.ids]


def embedding_sum(token, segment, position):
    return Parts(token, segment, position).total


def input_embeddings(input_ids, token_type_ids, token_table, segment_table, position_table):
    if input_ids.ndim != 2:
        raise ValueError(f"input_ids has {input_ids.ndim} dimension(s), needs 2")
    if input_ids.shape != token_type_ids.shape:
        raise ValueError(f"input_ids is {input_ids.shape}, token_type_ids is {token_type_ids.shape}")
    if {segment_table.shape[1], position_table.shape[1]} != {token_table.shape[1]}:
        raise ValueError("token_table, segment_table, position_table must share their number of columns")
    if input_ids.shape[1] > position_table.shape[0]:
        raise ValueError(f"position_table has {position_table.shape[0]} rows, input_ids wants {input_ids.shape[1]}")
    positions = np.cumsum(np.ones(input_ids.shape, dtype=np.int64), axis=1) - 1
    return Parts(
        Lookup("input_ids", input_ids, token_table).rows,
        Lookup("token_type_ids", token_type_ids, segment_table).rows,
        Lookup("positions", positions, position_table).rows,
    ).total


def another_decomposition(token, segment, position):
    old = Parts(token, segment, position)
    old = Parts(*(part.astype(np.float64) for part in old))
    new = replace(old, token=old.token + 1 / 3, position=old.position - 1 / 3)
    return new.token, new.segment, new.position

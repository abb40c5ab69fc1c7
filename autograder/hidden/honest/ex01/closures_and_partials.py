# honest: lambdas, functools.partial, functools.reduce and closures instead of def
"""Exercise 1 out of small pieces."""

import operator
from functools import partial, reduce

import numpy as np


def _fail(template, *values):
    raise ValueError(template.format(*values))


_same = lambda *parts: (  # noqa: E731
    len({p.shape for p in parts}) == 1
    or _fail("token {}, segment {}, position {}: shapes differ", *(p.shape for p in parts))
)


def _make_sum():
    def embedding_sum(token, segment, position):
        return _same(token, segment, position) and reduce(operator.add, (token, segment, position))

    return embedding_sum


embedding_sum = _make_sum()


def _shifted(token, segment, position, shift):
    _same(token, segment, position)
    return tuple(map(lambda part, c: np.asarray(part, np.float64) + c, (token, segment, position), shift))


another_decomposition = partial(_shifted, shift=(1.5, 0.0, -1.5))


def _checked(name, rows):
    def check(ids):
        for i in ids.flat:
            if not 0 <= i < rows:
                _fail("{}: {} is not in [0, {})", name, i, rows)
        return ids

    return check


def _embed(add, input_ids, token_type_ids, token_table, segment_table, position_table):
    input_ids.ndim == 2 or _fail("input_ids: {} axes instead of 2", input_ids.ndim)
    input_ids.shape == token_type_ids.shape or _fail("token_type_ids: shape {}", token_type_ids.shape)
    widths = [t.shape[1] for t in (token_table, segment_table, position_table)]
    len(set(widths)) == 1 or _fail("token_table {}, segment_table {}, position_table {}: widths differ", *widths)
    T = input_ids.shape[1]
    T <= len(position_table) or _fail("position_table has {} rows, input_ids {} columns", len(position_table), T)
    token = token_table[_checked("input_ids", len(token_table))(input_ids)]
    segment = segment_table[_checked("token_type_ids", len(segment_table))(token_type_ids)]
    return add(add(token, segment), position_table[:T])


input_embeddings = partial(_embed, operator.add)

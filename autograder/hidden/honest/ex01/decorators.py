# honest: arguments are checked by decorators
"""Checks live in decorators, the functions only compute."""

import functools
import inspect

import numpy as np


def equal_shapes(function):
    signature = inspect.signature(function)

    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        arguments = signature.bind(*args, **kwargs).arguments
        first, *others = arguments
        for other in others:
            if arguments[other].shape != arguments[first].shape:
                raise ValueError(
                    f"{function.__name__}: {other} {arguments[other].shape} and {first} {arguments[first].shape} differ"
                )
        return function(*args, **kwargs)

    return wrapper


def rows_exist(**table_of):
    def decorate(function):
        @functools.wraps(function)
        def wrapper(*args, **kwargs):
            arguments = inspect.signature(function).bind(*args, **kwargs).arguments
            for ids_name, table_name in table_of.items():
                ids, rows = arguments[ids_name], len(arguments[table_name])
                wrong = ids[~((0 <= ids) & (ids < rows))]
                if wrong.size:
                    raise ValueError(f"{ids_name}: no row {wrong.item(0)} in {table_name} ({rows} rows)")
            return function(*args, **kwargs)

        return wrapper

    return decorate


def shapes_fit(function):
    @functools.wraps(function)
    def wrapper(input_ids, token_type_ids, token_table, segment_table, position_table):
        if input_ids.ndim != 2 or input_ids.shape != token_type_ids.shape:
            raise ValueError(f"input_ids {input_ids.shape}, token_type_ids {token_type_ids.shape}: want (m, T) twice")
        if np.unique([token_table.shape[1], segment_table.shape[1], position_table.shape[1]]).size != 1:
            raise ValueError("token_table, segment_table, position_table: d is not the same")
        if input_ids.shape[1] > position_table.shape[0]:
            raise ValueError(f"input_ids: T = {input_ids.shape[1]} > {position_table.shape[0]}")
        return function(input_ids, token_type_ids, token_table, segment_table, position_table)

    return wrapper


@equal_shapes
def embedding_sum(token, segment, position):
    return token + (segment + position)


@shapes_fit
@rows_exist(input_ids="token_table", token_type_ids="segment_table")
def input_embeddings(input_ids, token_type_ids, token_table, segment_table, position_table):
    return token_table[input_ids] + segment_table[token_type_ids] + position_table[range(input_ids.shape[1])]


@equal_shapes
def another_decomposition(token, segment, position):
    return token - np.float64(2.0), np.float64(2.0) + segment, position * np.float64(1.0)

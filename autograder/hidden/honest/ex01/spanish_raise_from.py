# honest: library errors are caught and raised again from the student's own raise, in Spanish
"""Ejercicio 1: primero se intenta, después se explica."""

import numpy as np


def embedding_sum(token, segment, position):
    try:
        capas = np.stack((token, segment, position))
    except ValueError as error:
        raise ValueError(
            f"token, segment y position deben tener la misma forma: {token.shape}, {segment.shape}, {position.shape}"
        ) from error
    return capas.sum(axis=0, dtype=np.result_type(token, segment, position))


def _filas(nombre, ids, tabla):
    try:
        negativos = ids[(ids < 0) | (ids > np.iinfo(np.int64).max)]
        if negativos.size:
            raise IndexError(negativos[0])
        return tabla[ids]
    except IndexError as error:
        malos = ids[(ids < 0) | (ids >= len(tabla))]
        raise ValueError(f"{nombre} contiene {malos[0]}, fuera de [0, {len(tabla)})") from error


def input_embeddings(input_ids, token_type_ids, token_table, segment_table, position_table):
    try:
        m, T = input_ids.shape
    except ValueError:
        raise ValueError(f"input_ids debe tener dos ejes, no {input_ids.ndim}") from None
    if token_type_ids.shape != (m, T):
        raise ValueError(f"token_type_ids tiene la forma {token_type_ids.shape}, se esperaba {(m, T)}")
    try:
        np.concatenate([token_table, segment_table, position_table])
    except ValueError as error:
        raise ValueError("token_table, segment_table y position_table tienen anchos distintos") from error
    if T > len(position_table):
        raise ValueError(f"input_ids tiene {T} columnas y position_table solo {len(position_table)} filas")
    total = _filas("input_ids", input_ids, token_table) + _filas("token_type_ids", token_type_ids, segment_table)
    return total + position_table[:T]


def another_decomposition(token, segment, position):
    try:
        t, s, p = np.stack((token, segment, position)).astype(np.float64, copy=True)
    except ValueError as error:
        raise ValueError(f"formas distintas: token {token.shape}, segment {segment.shape}, position {position.shape}") from error
    t += 7
    p -= 7
    return t, s, p

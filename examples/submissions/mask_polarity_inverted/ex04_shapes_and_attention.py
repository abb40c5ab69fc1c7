import math
from typing import NamedTuple

import torch


class BertShapes(NamedTuple):
    input_ids: tuple[int, ...]
    attention_mask: tuple[int, ...]
    encoder_output: tuple[int, ...]
    query_per_head: tuple[int, ...]
    attention_scores: tuple[int, ...]
    logits: tuple[int, ...]
    score_elements: int
    score_bytes: int
    classifier_parameters: int


def bert_shapes(batch_size, sequence_length, hidden_size, num_heads, num_labels, bytes_per_element=4):
    for name, value in list(locals().items()):
        if type(value) is not int or value < 1:
            raise ValueError(f"{name} = {value!r} is not a positive int")
    m, T, d, H, C = batch_size, sequence_length, hidden_size, num_heads, num_labels
    if d % H != 0:
        raise ValueError(f"hidden_size = {d} cannot be split into num_heads = {H}")
    scores = (m, H, T, T)
    return BertShapes(
        (m, T), (m, T), (m, T, d), (m, T, d // H), scores, (m, C),
        math.prod(scores), math.prod(scores) * bytes_per_element, d * C + C,
    )


def attention_scores(query, key):
    d_k = query.shape[-1]
    if key.shape[-1] != d_k:
        raise ValueError(f"query has width {d_k}, key has width {key.shape[-1]}")
    return torch.matmul(query, key.transpose(-1, -2)) / math.sqrt(d_k)


def masked_softmax(scores, mask):
    try:
        mask = torch.broadcast_to(mask, scores.shape)
    except RuntimeError:
        raise ValueError(f"mask {tuple(mask.shape)} does not broadcast to scores {tuple(scores.shape)}")
    bad = mask[(mask != 0) & (mask != 1)]
    if bad.numel() > 0:
        raise ValueError(f"mask holds {bad[0].item()}")
    allowed = mask == 0  # 1 hides
    x = scores.float() if scores.dtype in (torch.float16, torch.bfloat16) else scores
    x = torch.where(allowed, x, float("-inf"))
    x = torch.where(allowed.any(dim=-1, keepdim=True), x, 0.0)  # a row with nothing to attend to: no NaN
    p = torch.softmax(x, dim=-1)
    return torch.where(allowed, p, 0.0).to(scores.dtype)

# honest: error messages in Chinese that still name parameter and value
"""Exercise 4: shapes, memory and attention masks."""

from typing import NamedTuple

import torch
from torch import Tensor


class BertShapes(NamedTuple):
    """Shapes and counts of one BERT classifier."""

    input_ids: tuple[int, ...]
    attention_mask: tuple[int, ...]
    encoder_output: tuple[int, ...]
    query_per_head: tuple[int, ...]
    attention_scores: tuple[int, ...]
    logits: tuple[int, ...]
    score_elements: int
    score_bytes: int
    classifier_parameters: int


def bert_shapes(
    batch_size: int, sequence_length: int, hidden_size: int, num_heads: int, num_labels: int, bytes_per_element: int = 4
) -> BertShapes:
    各参数 = dict(
        batch_size=batch_size, sequence_length=sequence_length, hidden_size=hidden_size,
        num_heads=num_heads, num_labels=num_labels, bytes_per_element=bytes_per_element,
    )
    for 名, 值 in 各参数.items():
        if isinstance(值, bool) or not isinstance(值, int) or 值 <= 0:
            raise ValueError(f"参数 {名} 必须是正整数，而不是 {值!r}")
    if hidden_size % num_heads:
        raise ValueError(f"参数 hidden_size（{hidden_size}）不能被 num_heads（{num_heads}）整除")
    个数 = batch_size * num_heads * sequence_length**2
    return BertShapes(
        input_ids=(batch_size, sequence_length),
        attention_mask=(batch_size, sequence_length),
        encoder_output=(batch_size, sequence_length, hidden_size),
        query_per_head=(batch_size, sequence_length, hidden_size // num_heads),
        attention_scores=(batch_size, num_heads, sequence_length, sequence_length),
        logits=(batch_size, num_labels),
        score_elements=个数,
        score_bytes=个数 * bytes_per_element,
        classifier_parameters=hidden_size * num_labels + num_labels,
    )


def attention_scores(query: Tensor, key: Tensor) -> Tensor:
    """缩放点积。"""
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"参数 query（{query.shape[-1]}）与参数 key（{key.shape[-1]}）的最后一维不相等")
    return query.matmul(key.transpose(-1, -2)) / torch.full(
        (), query.shape[-1], dtype=query.dtype, device=query.device
    ).sqrt()


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """只在可见位置上做 softmax。"""
    if mask.dim() > scores.dim() or any(a not in (1, b) for a, b in zip(mask.shape[::-1], scores.shape[::-1])):
        raise ValueError(f"参数 mask 的形状 {tuple(mask.shape)} 不能广播到 {tuple(scores.shape)}")
    非法 = (mask != 0) & (mask != 1)
    if 非法.any():
        raise ValueError(f"参数 mask 只能含 0 和 1，却出现了 {mask[非法][0].item()}")
    可见 = (mask == 1).expand(scores.shape)
    x = scores.masked_fill(~可见, -torch.inf).float() if scores.element_size() < 4 else scores.masked_fill(~可见, -torch.inf)
    最大 = x.amax(dim=-1, keepdim=True).detach()
    最大 = 最大.masked_fill(最大 == -torch.inf, 0.0)
    e = (x - 最大).exp()
    和 = e.sum(dim=-1, keepdim=True)
    return (e / 和.masked_fill(和 == 0, 1.0)).to(scores.dtype)

# honest: error messages and names in Chinese
"""练习三：复制捷径。"""

import math

import torch
import torch.nn.functional as F


def copy_logits(input_ids, vocab_size, scale):
    """看到的词得 scale 分，其余词得 0 分。"""
    越界 = (input_ids < 0) | (input_ids >= vocab_size)
    if 越界.any():
        raise ValueError(f"input_ids 含有词表之外的编号 {int(input_ids[越界][0])}，词表大小为 {vocab_size}")
    return F.one_hot(input_ids, num_classes=vocab_size).float().mul(scale)


def copy_loss(input_ids, targets, selected, vocab_size, scale):
    """选中位置上的平均负对数似然。"""
    if targets.shape != input_ids.shape:
        raise ValueError(f"targets 的形状 {tuple(targets.shape)} 与 input_ids 的形状 {tuple(input_ids.shape)} 不同")
    if selected.shape != input_ids.shape:
        raise ValueError(f"selected 的形状 {tuple(selected.shape)} 与 input_ids 的形状 {tuple(input_ids.shape)} 不同")
    if not selected.any():
        raise ValueError("selected 没有选中任何位置")
    命中 = (input_ids == targets)[selected].tolist()
    命中损失 = math.log1p((vocab_size - 1) * math.exp(-scale))
    return sum(命中损失 + (0 if 中 else scale) for 中 in 命中) / len(命中)


def match_probability(mask_rate, random_rate, keep_rate, n_ordinary):
    """看到的词恰为目标词的概率。"""
    for 名, 值 in (("mask_rate", mask_rate), ("random_rate", random_rate), ("keep_rate", keep_rate)):
        if not 0 <= 值 <= 1:
            raise ValueError(f"{名} 应在 [0, 1] 之内，现为 {值}")
    if abs(mask_rate + random_rate + keep_rate - 1) > 1e-9:
        raise ValueError(f"mask_rate（{mask_rate}）、random_rate（{random_rate}）、keep_rate（{keep_rate}）之和应为 1")
    if n_ordinary < 1:
        raise ValueError(f"n_ordinary 至少为 1，现为 {n_ordinary}")
    return keep_rate + random_rate / n_ordinary


def context_free_floor(match_probability, vocab_size):
    """不看上下文时损失的下确界。"""
    if not 0 <= match_probability <= 1:
        raise ValueError(f"match_probability 应在 [0, 1] 之内，现为 {match_probability}")
    if vocab_size < 2:
        raise ValueError(f"vocab_size 至少为 2，现为 {vocab_size}")
    未中 = 1 - match_probability
    熵 = sum(-概率 * math.log(概率) for 概率 in (match_probability, 未中) if 概率 > 0)
    return 熵 + 未中 * math.log(vocab_size - 1)

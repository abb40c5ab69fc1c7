# honest: error messages in Chinese that still name parameter and value
"""Exercise 2: the masked-language-model loss."""

import math

import torch
from torch import Tensor


def mean_nll(probabilities) -> float:
    """平均负对数似然。"""
    数值 = [float(p) for p in probabilities]
    if len(数值) == 0:
        raise ValueError("参数 probabilities 不能为空")
    for p in 数值:
        if not 0 < p <= 1:
            raise ValueError(f"参数 probabilities 中的 {p} 不在 (0, 1] 内")
    return sum(-math.log(p) for p in 数值) / len(数值)


def stable_log_softmax(logits: Tensor) -> Tensor:
    """先减去最大值，再做对数归一化。"""
    x = logits.to(torch.promote_types(logits.dtype, torch.float32))
    x = x - x.amax(dim=-1, keepdim=True)
    return torch.sub(x, torch.log(torch.exp(x).sum(dim=-1, keepdim=True))).to(logits.dtype)


def mlm_loss(logits: Tensor, labels: Tensor, ignore_index: int = -100) -> Tensor:
    """只对被选中的位置求平均。"""
    if logits.dim() != 3 or labels.dim() != 2 or logits.shape[:2] != labels.shape:
        raise ValueError(f"参数 logits {tuple(logits.shape)} 与参数 labels {tuple(labels.shape)} 的形状不匹配")
    选中 = labels != ignore_index
    目标 = labels[选中]
    if 目标.numel() == 0:
        raise ValueError(f"参数 labels 全部等于 ignore_index（{ignore_index}），没有目标")
    越界 = 目标[(目标 < 0) | (目标 >= logits.shape[-1])]
    if 越界.numel():
        raise ValueError(f"参数 labels 中的编号 {越界[0].item()} 超出词表")
    x = logits[选中].to(torch.promote_types(logits.dtype, torch.float32))
    x = x - x.amax(dim=-1, keepdim=True)
    正确 = x.gather(1, 目标.unsqueeze(1)).squeeze(1)
    return (x.exp().sum(dim=-1).log() - 正确).mean()

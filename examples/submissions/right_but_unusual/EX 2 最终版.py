"""损失函数：全部用循环写成；自己的 softmax 与库函数同名。"""
import torch
from decimal import Decimal as D, getcontext

getcontext().prec = 40


class cross_entropy(ValueError):
    """A class of our own that is called like a library function."""

    def __init__(self, 参数, 值):
        super().__init__(f"参数 {参数} 不合法：{值}")


def mean_nll(probabilities):
    总和, 个数 = D(0), 0
    for p in map(float, probabilities):
        if not (p > 0.0 and p <= 1.0):
            raise cross_entropy("probabilities", p)
        总和 -= D(p).ln()
        个数 += 1
    if 个数 == 0:
        raise cross_entropy("probabilities", "空")
    return float(总和 / 个数)


def softmax(row):
    weights = (row - row.max()).exp()
    return weights / weights.sum()


def log_of_softmax(row):
    shifted = row - row.max().detach()
    return shifted - shifted.exp().sum().log()


def stable_log_softmax(logits):
    wide = logits.to(torch.float64)
    rows = [log_of_softmax(row) for row in wide.reshape(-1, logits.shape[-1])]
    return torch.stack(rows).reshape(logits.shape).to(logits.dtype)


def mlm_loss(logits, labels, ignore_index=-100):
    if logits.dim() != 3:
        raise cross_entropy("logits", tuple(logits.shape))
    if tuple(labels.shape) != tuple(logits.shape)[:2]:
        raise cross_entropy("labels", tuple(labels.shape))
    m, T, V = logits.shape
    terms = []
    for b in range(m):
        for t in range(T):
            y = int(labels[b, t])
            if y == ignore_index:
                continue
            if y < 0 or y >= V:
                raise cross_entropy("labels", y)
            terms.append(-log_of_softmax(logits[b, t].to(torch.float64))[y])
    if not terms:
        raise cross_entropy("labels", "没有目标")
    loss = sum(terms) / len(terms)
    return loss.to(logits.dtype if logits.dtype == torch.float64 else torch.float32)

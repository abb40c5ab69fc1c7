# %% [markdown] lang="en"
# # Exercise 2: The masked-language-model loss
#
# **Goal.** Write the loss of BERT's pre-training from its definition: the mean negative log-likelihood of the original
# tokens at the selected positions, and nowhere else.
#
# **Not the point.** Choosing the positions (exercise 5), the model that makes the logits, and speed.
#
# **Off limits.** cross_entropy, nll_loss, softmax and log_softmax: in `torch`, `torch.nn.functional` and
# `torch.special`, as methods and as modules. They are replaced by functions that say so. `torch.logsumexp` and
# `torch.distributions` are allowed.
#
# **Time.** About 50 minutes.

# %% [markdown] lang="zh"
# # 练习 2：掩码语言模型损失
#
# **目标**：从定义出发写出 BERT 预训练的损失，即被选中位置上原词元的平均负对数似然，其他位置一概不计。
#
# **不涉及**：如何选择这些位置（练习 5）、产生 logits 的模型，以及运行速度。
#
# **禁用**：cross_entropy、nll_loss、softmax 和 log_softmax，
# 包括 `torch`、`torch.nn.functional` 和 `torch.special` 中的函数，以及相应的张量方法和模块。
# 调用它们时，代替它们的函数会报错说明。`torch.logsumexp` 和 `torch.distributions` 可以使用。
#
# **用时**：约 50 分钟。

# %%
import math
from collections.abc import Sequence

import numpy as np
import torch

# %% [markdown] lang="en"
# ## From probabilities to a loss
#
# $L = -\frac{1}{|M|} \sum_{i \in M} \ln p(x_i \mid \tilde{\mathbf{x}})$, where $M$ holds the selected positions,
# $x_i$ is the original token and $\tilde{\mathbf{x}}$ the corrupted text. First suppose that the probabilities
# $p(x_i \mid \tilde{\mathbf{x}})$ are given.

# %% [markdown] lang="zh"
# ## 从概率到损失
#
# $L = -\frac{1}{|M|} \sum_{i \in M} \ln p(x_i \mid \tilde{\mathbf{x}})$，其中 $M$ 是被选中位置的集合，
# $x_i$ 是原词元，$\tilde{\mathbf{x}}$ 是被破坏后的文本。先假设概率 $p(x_i \mid \tilde{\mathbf{x}})$ 已经给出。


# %%
def mean_nll(probabilities: Sequence[float] | np.ndarray | torch.Tensor) -> float:
    """Mean negative log-likelihood, in nats, of tokens that the model gave these probabilities.

    probabilities: what the model gave to the original token of each selected position: a list, a tuple, a 1-D ndarray
        or a 1-D tensor of any floating dtype, not empty. Not changed.

    Returns a Python float, computed in double precision (correct to 1e-6).

    Example: (0.5, 0.25) gives 1.5 ln 2 = 1.0397.

    Raises:
        ValueError: probabilities is empty, or holds a number outside (0, 1], NaN included (show it).
    """
    ### BEGIN SOLUTION
    if isinstance(probabilities, torch.Tensor):
        probabilities = probabilities.tolist()
    values = [float(p) for p in probabilities]
    if not values:
        raise ValueError("probabilities is empty: a mean needs at least one")
    for p in values:
        if not 0 < p <= 1:
            raise ValueError(f"probabilities holds {p}, outside (0, 1]")
    return math.fsum(-math.log(p) for p in values) / len(values)
    ### END SOLUTION


# %%
if __name__ == "__main__":
    print(mean_nll([0.5, 0.25]), "=", 1.5 * math.log(2))

# %% [markdown] lang="en"
# ## From logits to log-probabilities
#
# $\ln p_j = z_j - \ln \sum_k e^{z_k}$. In float32, $e^{89}$ is infinite and $e^{-104}$ is zero. Adding one number to
# all logits of a position changes no probability: choose it so that the largest exponent is 0.

# %% [markdown] lang="zh"
# ## 从 logits 到对数概率
#
# $\ln p_j = z_j - \ln \sum_k e^{z_k}$。在 float32 中，$e^{89}$ 上溢为无穷大，$e^{-104}$ 下溢为零。
# 给同一位置的所有 logits 加上同一个数，概率不变：请选择这个数，使最大的指数为 0。


# %%
def stable_log_softmax(logits: torch.Tensor) -> torch.Tensor:
    """Logarithm of the softmax over the last axis.

    logits: floating tensor (..., V), any strides. Not changed.

    Returns a tensor of the same shape, dtype and device, differentiable in logits; right for |logits| up to 1e4
    wherever the result can be represented in the dtype. Subtract the maximum of each row first: z - logsumexp(z) is
    exact on paper, but in float32 two numbers near 1e4 already have errors of 5e-4.
    float16 and bfloat16: compute in float32 and round once at the end.
    Tolerance: tol · max(1, |expected|), with tol 1e-6 in float64, 1e-5 in float32, 2e-3 in float16, 1e-2 in bfloat16.

    Example: (0, ln 3) gives (-ln 4, ln 3 - ln 4) = (-1.3863, -0.2877).

    Off limits: cross_entropy, nll_loss, softmax, log_softmax in any form.
    """
    ### BEGIN SOLUTION
    half = logits.dtype in (torch.float16, torch.bfloat16)
    wide = logits.float() if half else logits
    shifted = wide - wide.detach().amax(dim=-1, keepdim=True)  # (..., V), at most 0
    log_p = shifted - shifted.exp().sum(dim=-1, keepdim=True).log()  # the sum is at least 1
    return log_p.to(logits.dtype)
    ### END SOLUTION


# %%
if __name__ == "__main__":
    print(stable_log_softmax(torch.tensor([[0.0, math.log(3)], [-1e4, 1e4]])))

# %% [markdown] lang="en"
# ## The loss of a batch
#
# The denominator is the number of selected positions in the *whole batch*. A sequence without any adds nothing to the
# sum and nothing to the count, so neither length nor the number of masks in a sequence changes the scale of the loss.

# %% [markdown] lang="zh"
# ## 一个批次的损失
#
# 分母是*整个批次*中被选中位置的个数。没有被选中位置的序列，对总和没有贡献，对个数也没有贡献；
# 因此，无论序列的长度还是其中掩码的个数，都不会改变损失的尺度。


# %%
def mlm_loss(logits: torch.Tensor, labels: torch.Tensor, ignore_index: int = -100) -> torch.Tensor:
    """Mean negative log-likelihood, in nats, of the targets of a batch.

    logits: (m, T, V), floating, any strides.
    labels: (m, T), int64: the original id at selected positions, ignore_index at all others.
    ignore_index: the label that marks a position as no target. It may be any integer, one of [0, V) too.
    None of them is changed.

    Returns a scalar tensor (shape ()): the sum over all positions whose label is not ignore_index, divided by the
    number of such positions in the whole batch. It has the dtype of logits, but for float16 and bfloat16 logits it is
    computed in, and returned as, float32.

    It is differentiable in logits, with gradient (softmax - one-hot) / n at the n targets and exactly 0 elsewhere.
    Logits at ignored positions may hold anything, inf and NaN too: neither loss nor gradient is touched by them.

    Example: two targets of probability 0.5 and 0.25 in one sequence and none in the other: 1.5 ln 2, since the
        denominator is 2.
    Source: Devlin et al. 2019, section 3.1, "Task #1: Masked LM".

    Off limits: cross_entropy, nll_loss, softmax, log_softmax in any form.

    Raises:
        ValueError: logits is not 3-D or labels has not the shape of its first two axes (names logits or labels);
            no label is a target (names labels);
            a label outside [0, V) that is not ignore_index (names labels, shows such a label).
    """
    ### BEGIN SOLUTION
    if logits.ndim != 3 or labels.shape != logits.shape[:2]:
        raise ValueError(
            f"logits must be (m, T, V) and labels (m, T), got {tuple(logits.shape)} and {tuple(labels.shape)}"
        )
    selected = labels != ignore_index
    targets = labels[selected]  # (n,)
    if targets.numel() == 0:
        raise ValueError(f"labels holds no target: every label is ignore_index ({ignore_index})")
    vocab_size = logits.shape[-1]
    outside = targets[(targets < 0) | (targets >= vocab_size)]
    if outside.numel():
        raise ValueError(f"labels holds {outside[0].item()}, outside [0, {vocab_size}) and not {ignore_index}")

    chosen = logits[selected]  # (n, V): what is stored elsewhere never enters the graph
    if chosen.dtype in (torch.float16, torch.bfloat16):
        chosen = chosen.float()
    log_p = stable_log_softmax(chosen)  # (n, V)
    return -log_p.gather(-1, targets[:, None]).mean()
    ### END SOLUTION


# %%
if __name__ == "__main__":
    p = torch.tensor([[[0.5, 0.3, 0.2], [0.25, 0.25, 0.5]], [[0.1, 0.1, 0.8], [0.6, 0.2, 0.2]]])
    print(mlm_loss(p.log(), torch.tensor([[0, 1], [-100, -100]])))  # 1.0397

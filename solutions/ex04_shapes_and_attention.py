# %% [markdown] lang="en"
# # Exercise 4: Shapes, memory and attention masks
#
# **Goal.** Know the shape and the size of every tensor on the way through an encoder, and write the attention softmax
# that ignores padding without ever making a NaN, forward or backward.
#
# **Not the point.** The projections to queries, keys and values, the weighted sum of the values, and speed.
#
# **Time.** About 60 minutes.

# %% [markdown] lang="zh"
# # 练习 4：形状、内存与注意力掩码
#
# **目标**：说清楚编码器计算过程中每个张量的形状和大小，并写出忽略填充的注意力 softmax，
# 使它无论在前向还是反向传播中都不会产生 NaN。
#
# **不涉及**：得到查询、键和值的线性投影，对值的加权求和，以及运行速度。
#
# **用时**：约 60 分钟。

# %%
import math
from typing import NamedTuple

import torch

# %% [markdown] lang="en"
# ## Shapes and memory
#
# $m$ sequences of $T$ tokens, hidden size $d$, $H$ heads of width $d / H$, $C$ classes. The scores of *one* layer
# already hold $m \cdot H \cdot T \cdot T$ numbers: that is what makes long texts expensive.

# %% [markdown] lang="zh"
# ## 形状与内存
#
# 共 $m$ 个序列，每个有 $T$ 个词元；隐藏维度为 $d$，有 $H$ 个头，每个头的宽度为 $d / H$；类别数为 $C$。
# 仅*一层*的注意力分数就有 $m \cdot H \cdot T \cdot T$ 个数：长文本的开销就在这里。


# %%
class BertShapes(NamedTuple):
    """Shapes, and counts of one layer's attention scores and of the classification layer.  Given; all Python ints."""

    input_ids: tuple[int, ...]
    attention_mask: tuple[int, ...]
    encoder_output: tuple[int, ...]
    query_per_head: tuple[int, ...]
    attention_scores: tuple[int, ...]
    logits: tuple[int, ...]
    score_elements: int
    score_bytes: int
    classifier_parameters: int


# %%
def bert_shapes(
    batch_size: int,
    sequence_length: int,
    hidden_size: int,
    num_heads: int,
    num_labels: int,
    bytes_per_element: int = 4,
) -> BertShapes:
    """Shapes and sizes of a BERT classifier.

    batch_size: m.  sequence_length: T.  hidden_size: d.  num_heads: H.  num_labels: C.
    bytes_per_element: bytes of one number; 4 is float32.

    Returns a BertShapes with tuples of Python ints
        input_ids, attention_mask: (m, T);
        encoder_output: (m, T, d);
        query_per_head: the queries of one head for the whole batch, (m, T, d / H);
        attention_scores: all heads of one layer, (m, H, T, T);
        logits: of the sequence classifier on [CLS], (m, C);
    and Python ints
        score_elements: numbers in attention_scores;
        score_bytes: their memory in bytes;
        classifier_parameters: of the linear classification layer from d to C, weights and biases.

    Example: 16, 128, 768, 12, 2 gives (16, 128), (16, 128), (16, 128, 768), (16, 128, 64), (16, 12, 128, 128), (16, 2),
        3 145 728, 12 582 912 (12 MiB) and 1538.

    Raises:
        ValueError: an argument, bytes_per_element too, that is not an int (True and 128.0 are not) or not positive
            (names it, shows it); hidden_size not divisible by num_heads (names one of them, shows one of them).
    """
    ### BEGIN SOLUTION
    for name, value in {
        "batch_size": batch_size,
        "sequence_length": sequence_length,
        "hidden_size": hidden_size,
        "num_heads": num_heads,
        "num_labels": num_labels,
        "bytes_per_element": bytes_per_element,
    }.items():
        if not isinstance(value, int) or isinstance(value, bool) or value <= 0:
            raise ValueError(f"{name} must be a positive int, got {value!r}")
    if hidden_size % num_heads:
        raise ValueError(f"hidden_size {hidden_size} is not divisible by num_heads {num_heads}")
    score_elements = batch_size * num_heads * sequence_length**2
    return BertShapes(
        input_ids=(batch_size, sequence_length),
        attention_mask=(batch_size, sequence_length),
        encoder_output=(batch_size, sequence_length, hidden_size),
        query_per_head=(batch_size, sequence_length, hidden_size // num_heads),
        attention_scores=(batch_size, num_heads, sequence_length, sequence_length),
        logits=(batch_size, num_labels),
        score_elements=score_elements,
        score_bytes=score_elements * bytes_per_element,
        classifier_parameters=hidden_size * num_labels + num_labels,
    )
    ### END SOLUTION


# %%
if __name__ == "__main__":
    shapes = bert_shapes(16, 128, 768, 12, 2)
    print(shapes, f"{shapes.score_bytes / 2**20} MiB")

# %% [markdown] lang="en"
# ## Scaled dot products
#
# $\mathbf{S} = \mathbf{Q}\mathbf{K}^\top / \sqrt{d_k}$ (Vaswani et al. 2017, equation 1). If the entries of a query and
# a key are independent, with mean 0 and variance 1, their dot product has variance $d_k$; dividing by $\sqrt{d_k}$
# brings that back to 1.

# %% [markdown] lang="zh"
# ## 缩放点积
#
# $\mathbf{S} = \mathbf{Q}\mathbf{K}^\top / \sqrt{d_k}$（Vaswani et al. 2017，式 1）。
# 如果查询和键的各分量相互独立，均值为 0，方差为 1，那么它们的点积的方差就是 $d_k$；
# 除以 $\sqrt{d_k}$，方差就回到 1。


# %%
def attention_scores(query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """Dot products of all queries with all keys, divided by the square root of the last dimension.

    query: (..., T_q, d_k), floating.  key: (..., T_k, d_k), of the same dtype; d_k is the width of a head. Any strides.
        None of them is changed.

    Returns (..., T_q, T_k), of the same dtype and device, differentiable in both; entry [..., i, j] belongs to query i
    and key j. Tolerance: tol · max(1, |expected|), with tol 1e-6 in float64 and 1e-5 in float32; of float16 and
    bfloat16 only dtype and shape count.

    Example: query (3, 4) and key (3, 4), d_k = 2: 25 / √2 = 17.6777.
    Source: Vaswani et al. 2017, equation 1.

    Raises:
        ValueError: the last dimensions differ (names query or key, shows one of the two).
    """
    ### BEGIN SOLUTION
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"query and key must share their last dimension, got {query.shape[-1]} and {key.shape[-1]}")
    return query @ key.transpose(-2, -1) / math.sqrt(query.shape[-1])  # (..., T_q, T_k)
    ### END SOLUTION


# %%
if __name__ == "__main__":
    print(attention_scores(torch.tensor([[3.0, 4.0]]), torch.tensor([[3.0, 4.0]])), 25 / math.sqrt(2))

# %% [markdown] lang="en"
# ## Softmax with a mask
#
# Padding must get no weight at all, and no influence: not in the sum, not in the maximum that you subtract, not in the
# gradient. Two places make NaN: a row with nothing to attend to is 0 / 0, and 0 times a NaN is NaN, in the backward
# pass too. A `where` after the damage repairs the forward pass only. Replace what must not matter *before* you compute
# with it.

# %% [markdown] lang="zh"
# ## 带掩码的 softmax
#
# 填充不能得到任何权重，也不能有任何影响：不能影响求和，不能影响要减去的最大值，也不能影响梯度。
# 有两处会产生 NaN：没有任何可关注位置的行是 0 / 0；而 0 乘以 NaN 仍是 NaN，反向传播中也一样。
# 出了问题之后再用 `where`，只能修好前向传播。凡是不该起作用的数，要在参与计算*之前*就换掉。


# %%
def masked_softmax(scores: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Softmax over the last axis, restricted to the entries that may be attended to.

    scores: floating tensor, in attention (m, H, T_q, T_k), any strides. Attended scores are finite, of any size that
        the dtype holds.
    mask: bool, or a tensor of any dtype that holds only 0 and 1; 1 = may be attended to. It broadcasts to the shape of
        the scores by the usual rules: (m, 1, 1, T) is a padding mask, (T, T) a query-by-key mask.
    None of them is changed.

    Returns a tensor of the shape, dtype and device of scores. Masked entries are exactly 0 and the others of a row sum
    to 1; a row with nothing to attend to is all zeros.
    Tolerance: 1e-6 in float64, 1e-5 in float32, 2e-3 in float16, 1e-2 in bfloat16 (compute these two in float32 and
    round once at the end).

    It is differentiable in scores. Whatever is stored at masked positions, ±inf and NaN included, changes nothing and
    makes no NaN or inf, forward or backward: the gradient there is exactly 0. Rows with nothing to attend to have zero
    gradients; that is no error, not even if all rows are such.

    Example: scores (1, 1, 5) with mask (1, 1, 0) give (0.5, 0.5, 0).

    Raises:
        ValueError: mask does not broadcast *to* the shape of scores: shapes that do not fit, or a mask that would
            make the result wider (names mask or scores);
            mask holds anything but 0 and 1 (names mask, shows such a number).
    """
    ### BEGIN SOLUTION
    try:
        mask = mask.expand(scores.shape)
    except RuntimeError:
        raise ValueError(
            f"mask {tuple(mask.shape)} does not broadcast to the shape of scores {tuple(scores.shape)}"
        ) from None
    blocked = mask == 0
    wrong = mask[~blocked & (mask != 1)]
    if wrong.numel():
        raise ValueError(f"mask holds {wrong[0].item()}, but only 0 and 1 have a meaning")

    half = scores.dtype in (torch.float16, torch.bfloat16)
    wide = scores.float() if half else scores
    safe = wide.masked_fill(blocked, torch.finfo(wide.dtype).min)  # nothing masked is computed with, or gets a gradient
    shifted = safe - safe.detach().amax(dim=-1, keepdim=True)  # at most 0; -inf if the difference overflows
    weights = shifted.exp().masked_fill(blocked, 0.0)
    total = weights.sum(dim=-1, keepdim=True)  # at least 1, or 0 where nothing may be attended to
    return (weights / total.masked_fill(total == 0, 1.0)).to(scores.dtype)
    ### END SOLUTION


# %%
if __name__ == "__main__":
    s = torch.tensor([[1.0, 1.0, 5.0], [2.0, 3.0, float("nan")]], requires_grad=True)
    weights = masked_softmax(s, torch.tensor([[1, 1, 0], [0, 0, 0]]))
    weights[:, 0].sum().backward()
    print(weights, s.grad)

# %% [markdown] lang="en"
# ## To look at
#
# The same scores under three masks. Hatched cells are exactly 0. A padding mask empties the *columns* of the padding,
# since nothing may attend to it. The *rows* of the padding are still distributions; only, nobody reads them. Mask the
# rows as well, and they are rows with nothing to attend to: all zeros.

# %% [markdown] lang="zh"
# ## 看图
#
# 同样的分数，三种掩码。带斜线的格子恰好为 0。填充掩码遮住的是填充的*列*，因为任何位置都不得关注填充。
# 填充自身的*行*仍然是一个分布，只是不会有谁去用它；
# 如果把行也遮住，就会得到没有任何可关注位置的行，其权重全部为 0。

# %%
if __name__ == "__main__":
    from exercises.kit import plots

    tokens = ["[CLS]", "a", "thin", "plot", "[SEP]", "[PAD]", "[PAD]"]
    query, key = torch.randn(2, len(tokens), 64, generator=torch.Generator().manual_seed(0))  # (T, d_k) each
    scores = attention_scores(query, key)  # (T, T)
    padding = torch.tensor([[token != "[PAD]" for token in tokens]])  # (1, T)
    figure = plots.attention_heatmaps(
        {
            "no mask": masked_softmax(scores, torch.ones_like(padding)),
            "padding mask (1, T)": masked_softmax(scores, padding),
            "rows masked too (T, T)": masked_softmax(scores, padding & padding.T),
        },
        tokens,
    )
    plots.show()

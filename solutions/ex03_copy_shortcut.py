# %% [markdown] lang="en"
# # Exercise 3: The copy shortcut
#
# **Goal.** See why the targets must be hidden. Build a rule that looks at nothing but the token at the position itself,
# and measure how little loss it has when the targets stay visible, and how much when they do not.
#
# **Not the point.** Training. Everything here is arithmetic on a rule with one number in it.
#
# **Time.** About 45 minutes.

# %% [markdown] lang="zh"
# # 练习 3：复制捷径
#
# **目标**：弄清为什么必须把目标遮住。构造一条规则，它只看该位置自身的词元；
# 然后度量：目标可见时它的损失有多小，目标不可见时又有多大。
#
# **不涉及**：训练。这里的一切都是对一条只含一个数的规则所做的算术。
#
# **用时**：约 45 分钟。

# %%
import math

import torch

# %% [markdown] lang="en"
# ## A rule without context
#
# At each position the rule gives the score `scale` to the token that it sees there and 0 to the other $V - 1$. The
# larger `scale`, the surer the rule is that the token it sees is the token it is asked for.

# %% [markdown] lang="zh"
# ## 不看上下文的规则
#
# 在每个位置，这条规则给它所看到的词元打分 `scale`，给其余 $V - 1$ 个词元打 0 分。
# `scale` 越大，规则就越确信：看到的词元就是要预测的词元。


# %%
def copy_logits(input_ids: torch.Tensor, vocab_size: int, scale: float) -> torch.Tensor:
    """Scores of the rule that copies the token it sees.

    input_ids: (m, T), int64: the tokens seen. Not changed.
    vocab_size: V, the number of ids.
    scale: the score of the token seen.

    Returns float32 scores (m, T, V) on the device of input_ids: scale at the token seen, 0 elsewhere.

    Example: input_ids [[2, 0]], V = 3, scale 5 gives [[[0, 0, 5], [5, 0, 0]]].

    Raises:
        ValueError: an id outside [0, vocab_size) (names input_ids or vocab_size, shows such an id).
    """
    ### BEGIN SOLUTION
    outside = input_ids[(input_ids < 0) | (input_ids >= vocab_size)]
    if outside.numel():
        raise ValueError(f"input_ids holds {outside[0].item()}, outside [0, vocab_size={vocab_size})")
    zeros = torch.zeros(*input_ids.shape, vocab_size, dtype=torch.float32, device=input_ids.device)  # (m, T, V)
    return zeros.scatter(-1, input_ids.unsqueeze(-1), scale)
    ### END SOLUTION


# %%
if __name__ == "__main__":
    print(copy_logits(torch.tensor([[2, 0]]), 3, 5.0))

# %% [markdown] lang="en"
# ## Its loss
#
# The same mean as in exercise 2, over the selected positions. A `scale` of 1e4 is allowed, and $e^{10000}$ is not a
# number that a computer holds: rearrange before you compute.

# %% [markdown] lang="zh"
# ## 它的损失
#
# 与练习 2 相同，是被选中位置上的平均值。`scale` 最大可以取到 1e4，而 $e^{10000}$ 超出了计算机能表示的范围：
# 先把式子变形，再计算。


# %%
def copy_loss(
    input_ids: torch.Tensor, targets: torch.Tensor, selected: torch.Tensor, vocab_size: int, scale: float
) -> float:
    """Mean negative log-likelihood, in nats, that the copy rule gives to the targets at the selected positions.

    input_ids: (m, T), int64: the tokens seen.
    targets: (m, T), int64: the tokens asked for. Whatever stands at unselected positions, -100 too, does not matter.
    selected: (m, T), bool: True at the positions that count.
    vocab_size: V.  scale: the score of the token seen, from 0 to 1e4.
    None of them is changed. Ids seen, and targets at selected positions, are ids of the vocabulary.

    Returns a Python float, computed in double precision: correct to 1e-6 · max(1, loss) for every scale from 0 to 1e4.

    Example: V = 5, scale ln 4, one selected position that shows its target: ln 2. One that does not: ln 2 + ln 4.

    Raises:
        ValueError: the shapes of input_ids, targets and selected differ (names one of them);
            selected holds no True (names selected).
    """
    ### BEGIN SOLUTION
    if not input_ids.shape == targets.shape == selected.shape:
        raise ValueError(
            f"input_ids, targets and selected must have one shape, got {tuple(input_ids.shape)}, "
            f"{tuple(targets.shape)}, {tuple(selected.shape)}"
        )
    if not selected.any():
        raise ValueError("selected holds no True: a mean needs at least one position")
    miss_rate = (input_ids != targets)[selected].double().mean().item()
    # -ln p of the token seen is ln((e^s + V-1) / e^s) = ln(1 + (V-1) e^-s); any other token costs s more.
    return math.log1p((vocab_size - 1) * math.exp(-scale)) + miss_rate * scale
    ### END SOLUTION


# %%
if __name__ == "__main__":
    ids = torch.tensor([[7, 11, 13, 17]])
    print("visible:", copy_loss(ids, ids, ids > 0, 30_522, 30.0))
    print("hidden: ", copy_loss(torch.full_like(ids, 103), ids, ids > 0, 30_522, 30.0))

# %% [markdown] lang="en"
# ## How often the shortcut is right
#
# BERT replaces a selected token by [MASK] with probability 0.8, by a random ordinary token with 0.1, and leaves it as
# it is with 0.1. A random token may happen to be the original.

# %% [markdown] lang="zh"
# ## 捷径有多大概率是对的
#
# 对被选中的词元，BERT 以概率 0.8 换成 [MASK]，以概率 0.1 换成随机的普通词元，以概率 0.1 保持不变。
# 随机抽到的词元也可能恰好就是原词元。


# %%
def match_probability(mask_rate: float, random_rate: float, keep_rate: float, n_ordinary: int) -> float:
    """Chance that the token seen at a selected position is its target.

    mask_rate, random_rate, keep_rate: probabilities that a selected token becomes [MASK], becomes a uniform draw from
        all the ordinary tokens (the original included), or stays. The original is an ordinary token.
    n_ordinary: the number of ordinary tokens, an int.

    Returns keep_rate + random_rate / n_ordinary, a Python float (correct to 1e-6).

    Example: 0.8, 0.1, 0.1 and 4 ordinary tokens give 0.125.

    Raises:
        ValueError: a rate outside [0, 1], NaN included (names it, shows it);
            the rates do not sum to 1 within 1e-9, absolute (names one of them, shows one of them or the sum);
            n_ordinary < 1 (names it, shows it).
    """
    ### BEGIN SOLUTION
    rates = {"mask_rate": mask_rate, "random_rate": random_rate, "keep_rate": keep_rate}
    for name, rate in rates.items():
        if not 0 <= rate <= 1:
            raise ValueError(f"{name} is {rate}, outside [0, 1]")
    if abs(math.fsum(rates.values()) - 1) > 1e-9:
        raise ValueError(
            f"mask_rate + random_rate + keep_rate must be 1, got {mask_rate} + {random_rate} + {keep_rate} "
            f"= {math.fsum(rates.values())}"
        )
    if n_ordinary < 1:
        raise ValueError(f"n_ordinary is {n_ordinary}, but must be at least 1")
    return float(keep_rate + random_rate / n_ordinary)
    ### END SOLUTION


# %%
if __name__ == "__main__":
    print("BERT:", match_probability(0.8, 0.1, 0.1, 30_522 - 5))
    print("nothing perturbed:", match_probability(0.0, 0.0, 1.0, 30_522 - 5))

# %% [markdown] lang="en"
# ## The best it can do
#
# With $q$ the chance of a match, the expected loss of the rule at scale $s$ is
# $\ln(1 + (V-1)e^{-s}) + (1-q)\,s$. How low can it go, over all real $s$?

# %% [markdown] lang="zh"
# ## 它最好能做到什么程度
#
# 设 $q$ 为看到的词元与目标相同的概率，则规则给出的分数为 $s$ 时，其期望损失是 $\ln(1 + (V-1)e^{-s}) + (1-q)\,s$。
# 当 $s$ 取遍所有实数时，它最低能到多少？


# %%
def context_free_floor(match_probability: float, vocab_size: int) -> float:
    """Infimum, in nats, of the copy rule's expected loss over all real scales.

    match_probability: q, the chance that the token seen is the target.
    vocab_size: V, an int.

    Returns H(q) + (1 - q) ln(V - 1), a Python float (correct to 1e-6 · max(1, floor)), where
    H(q) = -q ln q - (1-q) ln(1-q) and 0 ln 0 = 0. So it is 0 at q = 1 and ln(V - 1) at q = 0.

    Example: q = 0.5, V = 5 gives ln 2 + ln 2 = 1.3863.

    Raises:
        ValueError: match_probability outside [0, 1], NaN included (names it, shows it);
            vocab_size < 2 (names it, shows it).
    """
    ### BEGIN SOLUTION
    q = match_probability
    if not 0 <= q <= 1:
        raise ValueError(f"match_probability is {q}, outside [0, 1]")
    if vocab_size < 2:
        raise ValueError(f"vocab_size is {vocab_size}, but must be at least 2")
    floor = 0.0
    if q > 0:
        floor -= q * math.log(q)
    if q < 1:
        floor += (1 - q) * (math.log(vocab_size - 1) - math.log1p(-q))
    return floor
    ### END SOLUTION


# %%
if __name__ == "__main__":
    print("targets hidden:", context_free_floor(0.0, 30_522), "=", math.log(30_521))
    print("BERT:", context_free_floor(match_probability(0.8, 0.1, 0.1, 30_517), 30_522))
    print("targets visible:", context_free_floor(1.0, 30_522))

# %% [markdown] lang="en"
# ## To look at
#
# The expected loss over `scale`, for targets that are all visible, all hidden, or treated as BERT does. Where does
# each curve come closest to its dashed line? What does it cost to be too sure?

# %% [markdown] lang="zh"
# ## 看图
#
# 期望损失随 `scale` 的变化，分三种情形：目标全部可见、全部被遮住，以及按 BERT 的方式处理。
# 每条曲线在哪里最接近自己的虚线？过于确信要付出多大代价？

# %%
if __name__ == "__main__":
    from exercises.kit import plots

    scales = torch.linspace(0, 25, 101).tolist()
    seen = torch.tensor([[7]])
    visible = [copy_loss(seen, seen, seen > 0, 30_522, scale) for scale in scales]
    hidden = [copy_loss(seen, seen + 1, seen > 0, 30_522, scale) for scale in scales]
    q = match_probability(0.8, 0.1, 0.1, 30_517)
    figure = plots.loss_over_scale(
        scales,
        {
            "all hidden: q = 0": hidden,
            "BERT: q = 0.1": [q * match + (1 - q) * miss for match, miss in zip(visible, hidden, strict=True)],
            "all visible: q = 1": visible,
        },
        {
            "all hidden: q = 0": context_free_floor(0.0, 30_522),
            "BERT: q = 0.1": context_free_floor(q, 30_522),
            "all visible: q = 1": context_free_floor(1.0, 30_522),
        },
    )
    plots.show()

# %% [markdown] lang="en"
# ## In writing (4 points, graded by a person)
#
# 1. Suppose all targets stay unperturbed and the encoder can pass the id at a position on to the output. Why does
#    training then teach nothing about language?
# 2. BERT leaves 10% of its targets unchanged. Why does that not contradict your first answer?
#
# <!-- BEGIN ANSWER -->
# 1. The copy rule then has $q = 1$, and its loss $\ln(1 + (V-1)e^{-s})$ falls to 0 as $s$ grows. So the loss can be
#    made as small as one likes by a rule that looks at no other position. Whatever the context could tell cannot lower
#    the loss any further: once the rule is found, the gradient gives no reason to look at other tokens. A small loss is
#    then no sign of understanding. The targets must therefore be hidden or perturbed, so that predicting them takes
#    the context.
# 2. The model is not told which tokens were left alone. A target that shows an ordinary word may be the original or a
#    random one, and 80% of the targets show [MASK], where copying is always wrong. Over all targets $q = 0.1 + 0.1/n$
#    with $n$ ordinary tokens, about 0.1, so the copy rule cannot get below $H(0.1) + 0.9 \ln(V-1)$, about 9.6 nats for
#    $V = 30522$, where the uniform guess costs $\ln V$, about 10.3. Even a rule that told [MASK] from words would do
#    well on the unchanged tenth only. To get further the model must use the context, and for a visible word use it to
#    judge whether the word fits. The unchanged tenth has its purpose: in fine-tuning there is no [MASK], so the model
#    must also make good vectors of the tokens that it really sees.
# <!-- END ANSWER -->

# %% [markdown] lang="zh"
# ## 书面回答（4 分，由教师评阅）
#
# 1. 假设所有目标都未被扰动，而编码器又能把一个位置上的 id 直接传到输出。为什么这样训练学不到任何语言知识？
# 2. BERT 让 10% 的目标保持不变。为什么这与你的第一个回答并不矛盾？
#
# <!-- BEGIN ANSWER -->
# 1. 这时复制规则的 $q = 1$，它的损失 $\ln(1 + (V-1)e^{-s})$ 随 $s$ 增大而趋于 0。
#    也就是说，一条不看任何其他位置的规则就能让损失任意小。上下文所能提供的信息都无法再降低损失：
#    一旦找到这条规则，梯度就不再促使模型去看别的词元。此时损失小并不说明模型有所理解。
#    所以目标必须被遮住或扰动，使得预测它们离不开上下文。
# 2. 模型不知道哪些词元没有被改动。目标处若显示一个普通词，它可能是原词元，也可能是随机词元；
#    另有 80% 的目标处显示 [MASK]，在那里复制总是错的。
#    对全部目标而言，$q = 0.1 + 0.1/n$，其中 $n$ 是普通词元的个数，其值约为 0.1；
#    于是复制规则的损失不可能低于 $H(0.1) + 0.9 \ln(V-1)$，当 $V = 30522$ 时约为 9.6 奈特，
#    而均匀猜测的代价是 $\ln V$，约为 10.3。即使一条规则能区分 [MASK] 与普通词，
#    它也只能在保持不变的那十分之一上做好。要更进一步，模型就必须利用上下文；
#    对看得见的词，则要根据上下文判断它是否合适。保留十分之一不变自有其用意：微调时没有 [MASK]，
#    所以模型对真正看到的词元也必须给出好的表示。
# <!-- END ANSWER -->

# %% [markdown] lang="en"
# # Exercise 5: Dynamic masking
#
# **Goal.** Choose the targets of masked-language-model training and corrupt them, freshly each time a batch is made
# (Liu et al. 2019, section 4.1), with every random number taken from a generator that the caller controls.
#
# **Not the point.** Tokenising text, whole-word masking, the loss (exercise 2), and speed.
#
# **Time.** About 70 minutes.

# %% [markdown] lang="zh"
# # 练习 5：动态掩码
#
# **目标**：为掩码语言模型的训练选出目标并加以破坏，每次构造批次时都重新进行
# （Liu et al. 2019，第 4.1 节）；所有随机数都来自由调用者控制的生成器。
#
# **不涉及**：文本的分词、全词掩码、损失（练习 2），以及运行速度。
#
# **用时**：约 70 分钟。

# %%
from collections.abc import Sequence

import torch

from exercises.kit import MaskedBatch, Vocabulary

# %% [markdown] lang="en"
# ## Choosing and corrupting
#
# 15% of the tokens become targets. Of the targets 80% become [MASK], 10% a random ordinary token, and 10% stay (Devlin
# et al. 2019, section 3.1). Each target decides on its own, so after [MASK] has taken its 80%, half of what is *left*
# makes the 10%. The labels remember the originals: note them before you change anything.

# %% [markdown] lang="zh"
# ## 选择与破坏
#
# 15% 的词元成为目标。其中 80% 换成 [MASK]，10% 换成随机的普通词元，10% 保持不变（Devlin et al. 2019，第 3.1 节）。
# 每个目标独立决定自己的去向，所以在 [MASK] 取走 80% 之后，*剩下的*一半才是那 10%。
# 标签要记住原来的词元：在改动之前先把它们记下来。


# %%
def mask_tokens(
    input_ids: torch.Tensor,
    attention_mask: torch.Tensor,
    special_tokens_mask: torch.Tensor,
    *,
    mask_token_id: int,
    ordinary_ids: torch.Tensor,
    mlm_probability: float = 0.15,
    mask_rate: float = 0.8,
    random_rate: float = 0.1,
    ignore_index: int = -100,
    generator: torch.Generator | None = None,
) -> MaskedBatch:
    """Select targets in a batch of token ids and corrupt them.

    input_ids: (m, T), int64.
    attention_mask: (m, T), bool or 0/1 integers: 1 at tokens, 0 at padding.
    special_tokens_mask: (m, T), bool or 0/1 integers: 1 at special tokens, which are never targets.
    mask_token_id: the id of [MASK].
    ordinary_ids: 1-D, int64: the ids that random tokens are drawn from; any ids, gaps allowed.
    mlm_probability: expected share of the candidates that is selected.
    mask_rate, random_rate: shares of the selected that become [MASK] or a random token; the rest stays.
    ignore_index: the label of positions that are no target.
    generator: source of all random numbers, on any device; None means torch's default generator, which is touched in
        that case only. Draw on the generator's device, then move.
    None of the tensors is changed.

    Candidates are the positions with attention_mask 1 and special_tokens_mask 0.
        - Selected are independent draws with mlm_probability, or for each sequence of n candidates a count of
          mlm_probability · n, rounded to nearest or at random (never just cut off), at positions uniform among its
          candidates. Sequences are independent of each other. Shares are graded on sequences of 100 candidates or more.
        - A sequence with at least one candidate gets at least one target. Whether it is forced or redrawn, that target
          is uniform among the candidates of the sequence and is corrupted like any other.
        - A sequence without candidates comes back untouched.
        - Each selected token decides on its own: with probability mask_rate it becomes mask_token_id, with probability
          random_rate a uniform draw from all of ordinary_ids (the original may come up), else it stays.

    Returns a MaskedBatch of (m, T) tensors on the device of input_ids: input_ids int64 (corrupted); labels int64
    (the original id where selected, ignore_index elsewhere); attention_mask (as it came); selected bool.
    The same state of the generator gives the same result; a second call with the same generator gives a new mask.

    Source: Devlin et al. 2019, section 3.1 and appendix A.1; Liu et al. 2019, section 4.1.

    Raises:
        ValueError: input_ids, attention_mask, special_tokens_mask are not 2-D or differ in shape (names one of them);
            mlm_probability outside (0, 1], NaN included (names it, shows it);
            mask_rate or random_rate negative or NaN (names it, shows it);
            mask_rate + random_rate over 1 by more than 1e-9 (names one of them, shows one of them or the sum);
            ordinary_ids empty while random_rate > 0 (names ordinary_ids or random_rate);
            no candidate in the whole batch (names input_ids, attention_mask or special_tokens_mask).
    """
    ### BEGIN SOLUTION
    shapes = [tuple(tensor.shape) for tensor in (input_ids, attention_mask, special_tokens_mask)]
    if input_ids.ndim != 2 or len(set(shapes)) > 1:
        raise ValueError(
            f"input_ids, attention_mask and special_tokens_mask must have one shape (m, T), got {shapes[0]}, "
            f"{shapes[1]}, {shapes[2]}"
        )
    if not 0 < mlm_probability <= 1:
        raise ValueError(f"mlm_probability is {mlm_probability}, outside (0, 1]")
    for name, rate in (("mask_rate", mask_rate), ("random_rate", random_rate)):
        if not rate >= 0:
            raise ValueError(f"{name} is {rate}, but must not be negative")
    if mask_rate + random_rate > 1 + 1e-9:
        raise ValueError(f"mask_rate {mask_rate} + random_rate {random_rate} = {mask_rate + random_rate} is over 1")
    if random_rate > 0 and len(ordinary_ids) == 0:
        raise ValueError(f"ordinary_ids is empty, but random_rate is {random_rate}")
    candidates = attention_mask.bool() & ~special_tokens_mask.bool()  # (m, T)
    if not candidates.any():
        raise ValueError("input_ids holds no candidate: attention_mask and special_tokens_mask exclude every position")

    device = input_ids.device
    source = {"generator": generator, "device": device if generator is None else generator.device}

    # Selected: every draw below mlm_probability, and the smallest of each sequence even if it is not. Given that none
    # is below, all candidates are equally likely to hold the smallest.
    draw = torch.rand(input_ids.shape, dtype=torch.float64, **source).to(device)
    draw = draw.masked_fill(~candidates, 2.0)
    selected = candidates & ((draw < mlm_probability) | (draw == draw.amin(dim=1, keepdim=True)))

    fate = torch.rand(input_ids.shape, dtype=torch.float64, **source).to(device)
    masked = selected & (fate < mask_rate)
    randomised = selected & ~masked & (fate < mask_rate + random_rate)

    corrupted = input_ids.masked_fill(masked, mask_token_id)
    if random_rate > 0:
        choice = torch.randint(len(ordinary_ids), input_ids.shape, **source).to(ordinary_ids.device)
        corrupted = torch.where(randomised, ordinary_ids[choice].to(device), corrupted)
    labels = input_ids.masked_fill(~selected, ignore_index)
    return MaskedBatch(corrupted, labels, attention_mask, selected)
    ### END SOLUTION


# %%
if __name__ == "__main__":
    ids = torch.arange(100, 120).view(2, 10)
    ones = torch.ones_like(ids)
    print(mask_tokens(ids, ones, 1 - ones, mask_token_id=4, ordinary_ids=torch.arange(5, 200)))

# %% [markdown] lang="en"
# ## To look at
#
# 4000 sequences at once. Left: the share of selected tokens lies around 0.15; with a fixed count for each sequence it
# is a single bar. Right: what became of the selected. If random and kept differ, which tokens did the second draw
# divide: all the targets, or those that [MASK] left?

# %% [markdown] lang="zh"
# ## 看图
#
# 一次处理 4000 个序列。左图：各序列被选中的比例分布在 0.15 附近；如果你的代码选取固定的个数，则只有一根柱子。
# 右图：被选中的词元的去向。如果随机与保留的比例不同，请想一想：第二次抽样划分的是哪些词元，
# 是全部目标，还是 [MASK] 剩下的那些？

# %%
if __name__ == "__main__":
    from exercises.kit import plots

    ids = torch.arange(5, 133).repeat(4000, 1)  # (4000, 128), all of them candidates
    ones = torch.ones_like(ids)
    source = torch.Generator().manual_seed(0)
    batch = mask_tokens(ids, ones, 1 - ones, mask_token_id=4, ordinary_ids=torch.arange(5, 30_000), generator=source)
    seen, targets = batch.input_ids[batch.selected], batch.labels[batch.selected]
    fates = {"[MASK]": seen == 4, "random": (seen != 4) & (seen != targets), "kept": seen == targets}
    figure = plots.masking(
        batch.selected.double().mean(dim=1),
        0.15,
        {name: met.double().mean().item() for name, met in fates.items()},
        {"[MASK]": 0.8, "random": 0.1, "kept": 0.1},
    )
    plots.show()

# %% [markdown] lang="en"
# ## From texts to a batch
#
# Texts differ in length, so the short ones are filled up on the right to the longest *of the batch*. What is padding is
# known from the lengths. Comparing ids with `pad_id` only looks the same until a text holds that id.

# %% [markdown] lang="zh"
# ## 从文本到批次
#
# 文本长短不一，所以短的要在右侧填充，补到*本批次*中最长文本的长度。哪些位置是填充，由长度决定。
# 把 id 与 `pad_id` 比较，只是看起来结果一样，直到某个文本里真的出现了这个 id。


# %%
def collate_mlm(
    examples: Sequence[Sequence[int]],
    vocabulary: Vocabulary,
    *,
    mlm_probability: float = 0.15,
    ignore_index: int = -100,
    generator: torch.Generator | None = None,
) -> MaskedBatch:
    """Pad texts to one length and mask them.

    examples: m lists of ids of unequal length, [CLS] and [SEP] included. Not changed.
    vocabulary: gives pad_id, mask_id, special_ids and ordinary_ids.
    mlm_probability, ignore_index, generator: handed on to mask_tokens; mask_rate 0.8 and random_rate 0.1 stay.

    Returns a MaskedBatch of (m, T) tensors on the CPU, T the length of the longest example:
        - each sequence starts at column 0 and is filled up with vocabulary.pad_id on the right;
        - attention_mask is 1 at the tokens and 0 at the padding, by the lengths of the examples: a pad_id inside an
          example is a token (though a special one);
        - special tokens are the ids in vocabulary.special_ids, wherever they stand; neither they nor the padding are
          ever selected.

    Raises:
        ValueError: examples is empty; an example is empty (names examples);
            an id outside [0, vocabulary.size) (names examples or vocabulary, shows such an id).
    """
    ### BEGIN SOLUTION
    if len(examples) == 0:
        raise ValueError("examples is empty: a batch needs at least one")
    for number, example in enumerate(examples):
        if len(example) == 0:
            raise ValueError(f"examples[{number}] is empty")
        for i in example:
            if not 0 <= i < vocabulary.size:
                raise ValueError(f"examples[{number}] holds {i}, outside the vocabulary's [0, {vocabulary.size})")

    longest = max(len(example) for example in examples)
    padded = [[*example, *[vocabulary.pad_id] * (longest - len(example))] for example in examples]
    mask = [[1] * len(example) + [0] * (longest - len(example)) for example in examples]
    input_ids = torch.tensor(padded, dtype=torch.int64, device="cpu")  # (m, T)
    return mask_tokens(
        input_ids,
        torch.tensor(mask, dtype=torch.int64, device="cpu"),
        torch.isin(input_ids, vocabulary.special_ids),
        mask_token_id=vocabulary.mask_id,
        ordinary_ids=vocabulary.ordinary_ids,
        mlm_probability=mlm_probability,
        ignore_index=ignore_index,
        generator=generator,
    )
    ### END SOLUTION


# %%
if __name__ == "__main__":
    toy = Vocabulary(size=30, pad_id=3, cls_id=28, sep_id=1, mask_id=5, unk_id=4)
    print(collate_mlm([[28, 10, 11, 12, 13, 1], [28, 20, 1]], toy, generator=torch.Generator().manual_seed(0)))

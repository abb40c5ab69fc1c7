# %% [markdown] lang="en"
# # Exercise 7: Tests that find bugs
#
# **Goal.** Write tests that pass on every right implementation of masking, loss and prediction, and fail on wrong ones.
# The code under test is not yours and you do not see it: all you have is what it promises.
#
# **Not the point.** Writing the functions again (exercises 2, 5 and 6), and a coverage number.
#
# **Time.** About 100 minutes.

# %% [markdown] lang="zh"
# # 练习 7：能发现错误的测试
#
# **目标**：编写测试，使其在掩码、损失和预测的每一个正确实现上通过，而在错误的实现上失败。
# 被测代码不是你写的，你也看不到它；你所有的只是它的约定。
#
# **不涉及**：重写这些函数（练习 2、5、6），以及覆盖率数字。
#
# **用时**：约 100 分钟。

# %%
from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F

from exercises.kit import Vocabulary

# %% [markdown] lang="en"
# ## What is tested
#
# Every test takes the pytest fixture `impl`. It has four functions:
#
# - `impl.mask_tokens` and `impl.collate_mlm`, as their docstrings in exercise 5 promise;
# - `impl.mlm_loss`, as its docstring in exercise 2 promises, on the CPU and without gradients: what it returns is cut
#   off from its inputs;
# - `impl.predict(input_ids, attention_mask)`: classes 0 or 1, int64, shape (m,), of some trained classifier. Ids are
#   (m, T), int64, from `VOCABULARY`, with T up to 16; the mask is (m, T), bool or 0/1 integers, 1 at tokens. Padding
#   stands at the right end. Neither the ids at the padding, nor the number of padding columns, nor the other texts of
#   the batch change the class of a text; the same batch has the same classes each time; no argument is changed. A row
#   of padding only gets a ValueError. Which texts belong to which class you cannot know, and it differs from one
#   implementation to the next.
#
# ## How it is graded
#
# 1. Your tests run on right implementations that differ: some select independently, some an exact number of tokens,
#    some draw with NumPy; each uses the generator in its own way. A test that does not pass on all of them **counts for
#    nothing**. So never expect particular random numbers, and leave a long-run share room: 5 standard deviations of
#    independent draws, and one half of a token in a sequence, since a count may be rounded.
# 2. The tests that count run on wrong implementations, grouped by the kind of fault. A kind is found if, for each wrong
#    implementation of it, some test **fails by an assertion**: `assert`, `pytest.fail`, `pytest.raises`, those of
#    unittest, NumPy and PyTorch. An error in the test itself, a test that is skipped and one that takes longer than 5 s
#    find nothing. Points are given for each kind. The kinds are faults against what the docstrings below name.
#
# Anything that pytest collects is a test: functions, classes, `unittest.TestCase`, parametrized tests, Hypothesis (at
# most 50 examples), with fixtures of your own. The names below are proposals: rename, split and add as you like, up to
# 100 tests. All of them together should take no longer than two seconds on one implementation. The global generators of
# PyTorch, NumPy and Python begin every test with the same seed.
#
# `autograder check 7` runs your tests on the library's loss, on a simple `predict`, and on your own exercise 5.

# %% [markdown] lang="zh"
# ## 测试的对象
#
# 每个测试都接收 pytest 的 fixture `impl`，它有四个函数：
#
# - `impl.mask_tokens` 和 `impl.collate_mlm`，其约定见练习 5 的文档字符串；
# - `impl.mlm_loss`，其约定见练习 2 的文档字符串；在 CPU 上运行，不带梯度：返回值与输入之间没有计算图；
# - `impl.predict(input_ids, attention_mask)`：某个训练好的分类器给出的类别 0 或 1，int64，形状 (m,)。
#   id 为 (m, T)，int64，取自 `VOCABULARY`，T 不超过 16；掩码为 (m, T)，bool 或 0/1 整数，词元处为 1。填充在右端。
#   填充处的 id、填充的列数、批次中的其他文本，都不改变一个文本的类别；同一批次每次得到相同的类别；参数不被改动。
#   只有填充的一行会得到 ValueError。哪些文本属于哪一类无从得知，且各个实现互不相同。
#
# ## 评分方式
#
# 1. 你的测试先在彼此不同的正确实现上运行：有的独立选取，有的选取确定的个数，有的用 NumPy 抽样；
#    它们使用生成器的方式也各不相同。没有在全部正确实现上通过的测试**不计分**。因此不要期待特定的随机数；
#    检验长期比例时要留有余地：独立抽样的 5 个标准差，外加每个序列半个词元，因为个数可能经过取整。
# 2. 计分的测试再在错误的实现上运行，错误实现按错误的种类分组。若对一类中的每个错误实现都有某个测试
#    **因断言而失败**，这一类就算被发现；断言包括 `assert`、`pytest.fail`、`pytest.raises`，
#    以及 unittest、NumPy 和 PyTorch 的断言。测试自身出错、被跳过或超过 5 秒，都不算发现。
#    每类各有分值；所有种类都违反下面文档字符串中写明的约定。
#
# pytest 能收集的都算测试：函数、类、`unittest.TestCase`、参数化测试、Hypothesis（最多 50 个样例），
# 也可以有自己的 fixture。下面的名字只是建议：可以改名、拆分和增加，最多 100 个测试。
# 全部测试在一个实现上的总用时不应超过两秒。每个测试开始时，PyTorch、NumPy 和 Python 的全局生成器都设为同一种子。
#
# `autograder check 7` 会在由库函数构成的损失、一个简单的 `predict`，以及你自己的练习 5 上运行你的测试。

# %%
VOCABULARY = Vocabulary(size=40, pad_id=3, cls_id=38, sep_id=1, mask_id=5, unk_id=4)
ORDINARY = VOCABULARY.ordinary_ids  # 35 ids with gaps between them


def seeded(seed: int) -> torch.Generator:
    """A generator that begins at this seed."""
    return torch.Generator().manual_seed(seed)


def texts(rows: int, length: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """input_ids, attention_mask and special_tokens_mask, (rows, length): [CLS], ordinary tokens, [SEP], padding.

    The first row is full, the others have three tokens or more.
    """
    source = seeded(seed)
    lengths = torch.randint(3, length + 1, (rows, 1), generator=source)
    lengths[0] = length
    place = torch.arange(length)
    ids = ORDINARY[torch.randint(len(ORDINARY), (rows, length), generator=source)]
    ids = torch.where(place == 0, VOCABULARY.cls_id, ids)
    ids = torch.where(place == lengths - 1, VOCABULARY.sep_id, ids)
    ids = torch.where(place >= lengths, VOCABULARY.pad_id, ids)
    return ids, (place < lengths).long(), torch.isin(ids, VOCABULARY.special_ids).long()


def masked(impl: SimpleNamespace, batch: tuple[torch.Tensor, torch.Tensor, torch.Tensor], **settings):
    """What mask_tokens makes of such a batch.  settings: other arguments than the usual."""
    usual = {"mask_token_id": VOCABULARY.mask_id, "ordinary_ids": ORDINARY, "generator": seeded(0)}
    return impl.mask_tokens(*batch, **{**usual, **settings})


# %% [markdown] lang="en"
# ## Masking: what must always hold
#
# Ask of every test: which wrong code would it catch, and would any right code fail it? Inputs decide: full rows never
# show a fault at the padding, and ids equal to their positions hide an index in place of an id.

# %% [markdown] lang="zh"
# ## 掩码：必须始终成立的性质
#
# 对每个测试都要问：它能抓住怎样的错误代码？会不会有正确的代码通不过？关键在于输入：
# 没有填充的行显不出填充处的错误；与位置相同的 id 会掩盖“把索引当作 id”的错误。


# %%
def test_labels(impl):
    """Labels are the original ids at the selected positions, and ignore_index, whatever it is, at all others."""
    ### BEGIN SOLUTION
    batch = texts(8, 40)
    for ignore_index in (-100, -7):
        result = masked(impl, batch, ignore_index=ignore_index, mlm_probability=0.5)
        expected = torch.where(result.selected.bool(), batch[0], ignore_index)
        assert torch.equal(result.labels, expected)
    ### END SOLUTION


def test_only_candidates_are_selected(impl):
    """Neither special tokens nor padding are ever selected."""
    ### BEGIN SOLUTION
    ids, attention, special = texts(8, 40)
    ids[0, 5], special[0, 5] = VOCABULARY.unk_id, 1  # a special token in the middle
    special = special * attention  # whoever forgets the attention mask selects padding
    for probability in (0.3, 1.0):
        result = masked(impl, (ids, attention, special), mlm_probability=probability)
        candidates = attention.bool() & ~special.bool()
        assert not (result.selected.bool() & ~candidates).any()
    ### END SOLUTION


def test_every_sequence_has_a_target(impl):
    """A sequence with at least one candidate gets at least one target, however short it is."""
    ### BEGIN SOLUTION
    result = masked(impl, texts(200, 8), mlm_probability=0.05)
    assert result.selected.any(dim=1).all()
    ### END SOLUTION


def test_other_tokens_stay(impl):
    """Tokens that were not selected, special tokens and padding among them, come back as they were."""
    ### BEGIN SOLUTION
    batch = texts(50, 40)
    result = masked(impl, batch)
    others = ~result.selected.bool()
    assert torch.equal(result.input_ids[others], batch[0][others])
    assert torch.equal(result.attention_mask.long(), batch[1])
    ### END SOLUTION


def test_arguments_stay(impl):
    """None of the tensors given to mask_tokens is changed."""
    ### BEGIN SOLUTION
    batch = texts(8, 40)
    ordinary = ORDINARY.clone()
    before = [tensor.clone() for tensor in batch]
    masked(impl, batch, ordinary_ids=ordinary)
    assert all(torch.equal(now, was) for now, was in zip(batch, before, strict=True))
    assert torch.equal(ordinary, ORDINARY)
    ### END SOLUTION


def test_no_candidate_raises(impl):
    """A batch without any candidate (padding only, or special tokens only) gets a ValueError."""
    ### BEGIN SOLUTION
    ids, attention, special = texts(3, 10)
    with pytest.raises(ValueError):
        masked(impl, (ids, torch.zeros_like(attention), special))
    with pytest.raises(ValueError):
        masked(impl, (ids, attention, torch.ones_like(special)))
    ### END SOLUTION


def test_bad_settings_raise(impl):
    """mlm_probability outside (0, 1] and rates that are negative or sum to more than 1 get a ValueError."""
    ### BEGIN SOLUTION
    wrong = [{"mlm_probability": 0.0}, {"mlm_probability": 1.5}, {"mlm_probability": float("nan")}]
    wrong += [{"mask_rate": 0.9, "random_rate": 0.2}, {"mask_rate": -0.1}, {"random_rate": -0.1}]
    for settings in wrong:
        with pytest.raises(ValueError):
            masked(impl, texts(3, 10), **settings)
    ### END SOLUTION


# %% [markdown] lang="en"
# ## Masking: chance
#
# A share is a statement about many draws. Compute how far chance may carry it before you choose a bound: among n
# independent draws with probability p, the share has the standard deviation $\sqrt{p(1-p)/n}$.

# %% [markdown] lang="zh"
# ## 掩码：随机性
#
# 比例是关于大量抽样的陈述。选取界限之前，先算一算随机波动有多大：
# n 次概率为 p 的独立抽样，其比例的标准差为 $\sqrt{p(1-p)/n}$。


# %%
def within(share: float, expected: float, draws: int) -> bool:
    """Whether a share of independent draws lies within 5 standard deviations of what is expected."""
    return abs(share - expected) <= 5 * (expected * (1 - expected) / draws) ** 0.5


def test_share_of_selected(impl):
    """In the long run the share of candidates that is selected is mlm_probability (sequences of 100 or more)."""
    ### BEGIN SOLUTION
    ids = ORDINARY[torch.randint(len(ORDINARY), (100, 200), generator=seeded(1))]
    ones = torch.ones_like(ids)
    for probability in (0.15, 0.4):
        result = masked(impl, (ids, ones, 0 * ones), mlm_probability=probability)
        assert within(result.selected.double().mean().item(), probability, ids.numel())
    ### END SOLUTION


def test_shares_of_masked_random_and_kept(impl):
    """Of the selected, mask_rate become [MASK] and random_rate a random token, whatever the rates; the rest stays."""
    ### BEGIN SOLUTION
    ids = ORDINARY[torch.randint(len(ORDINARY), (100, 200), generator=seeded(2))]
    ones = torch.ones_like(ids)
    for mask_rate, random_rate in ((0.8, 0.1), (0.3, 0.6)):
        rates = {"mask_rate": mask_rate, "random_rate": random_rate}
        result = masked(impl, (ids, ones, 0 * ones), mlm_probability=0.5, **rates)
        seen, original = result.input_ids[result.selected.bool()], ids[result.selected.bool()]
        changed = (seen != VOCABULARY.mask_id) & (seen != original)
        assert within((seen == VOCABULARY.mask_id).double().mean().item(), mask_rate, len(seen))
        # a random token may be the original
        assert within(changed.double().mean().item(), random_rate * (1 - 1 / len(ORDINARY)), len(seen))
    ### END SOLUTION


def test_random_tokens_come_from_ordinary_ids(impl):
    """A random token may be any of ordinary_ids, the last one too, and nothing else."""
    ### BEGIN SOLUTION
    some = ORDINARY[7:]
    ids = torch.full((20, 200), int(ORDINARY[0]))
    ones = torch.ones_like(ids)
    everything = {"mlm_probability": 1.0, "mask_rate": 0.0, "random_rate": 1.0}
    result = masked(impl, (ids, ones, 0 * ones), ordinary_ids=some, **everything)
    assert sorted(set(result.input_ids.flatten().tolist())) == some.tolist()
    ### END SOLUTION


def test_generator_reproduces(impl):
    """The same state of the generator gives the same result, in the selection and in the corruption."""
    ### BEGIN SOLUTION
    batch = texts(8, 40)
    torch.manual_seed(1)
    once = masked(impl, batch, generator=seeded(5))
    torch.manual_seed(2)
    again = masked(impl, batch, generator=seeded(5))
    assert torch.equal(once.input_ids, again.input_ids)
    assert torch.equal(once.labels, again.labels)
    ### END SOLUTION


def test_second_call_gives_new_masks(impl):
    """A second call with the same generator, moved on by the first, gives another mask; so does another seed."""
    ### BEGIN SOLUTION
    batch, source = texts(8, 40), seeded(5)
    first = masked(impl, batch, generator=source)
    second = masked(impl, batch, generator=source)
    third = masked(impl, batch, generator=seeded(6))
    assert not torch.equal(first.selected, second.selected)
    assert not torch.equal(first.selected, third.selected)
    ### END SOLUTION


def test_default_generator_is_left_alone(impl):
    """With a generator given, PyTorch's default generator does not move."""
    ### BEGIN SOLUTION
    torch.manual_seed(123)
    state_before = torch.get_rng_state()
    masked(impl, texts(4, 20), generator=seeded(1))
    assert torch.equal(torch.get_rng_state(), state_before)
    ### END SOLUTION


# %% [markdown] lang="en"
# ## From texts to a batch

# %% [markdown] lang="zh"
# ## 从文本到批次


# %%
def test_collate_pads_on_the_right(impl):
    """Texts begin at column 0 and are filled up with pad_id to the longest; the attention mask knows their lengths.

    A pad_id inside a text is a token: the attention mask is 1 there.
    """
    ### BEGIN SOLUTION
    rows = [[38, 10, 3, 12, 13, 14, 1], [38, 20, 1], [38, 21, 22, 3]]
    result = impl.collate_mlm(rows, VOCABULARY, generator=seeded(0))
    assert result.input_ids.shape == (3, 7)
    assert result.attention_mask.long().tolist() == [[1] * len(row) + [0] * (7 - len(row)) for row in rows]
    unmasked = torch.where(result.selected.bool(), result.labels, result.input_ids)
    assert unmasked.tolist() == [row + [3] * (7 - len(row)) for row in rows]
    ### END SOLUTION


def test_collate_selects_ordinary_tokens_only(impl):
    """All of vocabulary.special_ids are special wherever they stand; they and the padding have no label."""
    ### BEGIN SOLUTION
    rows = [[38, 10, 3, 5, 4, 38, 1, 14, 1], [38, 20, 21, 1], [22, 23]]
    for seed in range(5):
        result = impl.collate_mlm(rows, VOCABULARY, mlm_probability=1.0, generator=seeded(seed))
        for row, labels in zip(rows, result.labels.tolist(), strict=True):
            padded = row + [3] * (9 - len(row))
            assert labels == [-100 if i in VOCABULARY[1:] else i for i in padded]
    ### END SOLUTION


def test_collate_hands_settings_on(impl):
    """ignore_index, mlm_probability and generator reach the masking."""
    ### BEGIN SOLUTION
    rows = [[38, *ORDINARY.tolist(), 1]] * 6 + [[38, 7, 1]]
    result = impl.collate_mlm(rows, VOCABULARY, ignore_index=-9, generator=seeded(0))
    assert (result.labels[~result.selected.bool()] == -9).all()
    everything = impl.collate_mlm(rows, VOCABULARY, mlm_probability=1.0, generator=seeded(0))
    assert everything.selected.sum() == 6 * len(ORDINARY) + 1
    torch.manual_seed(1)
    first = impl.collate_mlm(rows, VOCABULARY, generator=seeded(3))
    torch.manual_seed(2)
    second = impl.collate_mlm(rows, VOCABULARY, generator=seeded(3))
    assert torch.equal(first[0], second[0])
    assert torch.equal(first.labels, second.labels)
    ### END SOLUTION


def test_collate_bad_examples_raise(impl):
    """No example, an empty example and an id outside the vocabulary get a ValueError."""
    ### BEGIN SOLUTION
    for rows in ([], [[38, 10, 1], []], [[38, 40, 10, 1]], [[38, -1, 10, 1]]):
        with pytest.raises(ValueError):
            impl.collate_mlm(rows, VOCABULARY, generator=seeded(0))
    ### END SOLUTION


def test_collate_leaves_examples_alone(impl):
    """The lists given to collate_mlm are not changed."""
    ### BEGIN SOLUTION
    rows = [[38, 10, 11, 12, 1], [38, 20, 1]]
    impl.collate_mlm(rows, VOCABULARY, generator=seeded(0))
    assert rows == [[38, 10, 11, 12, 1], [38, 20, 1]]
    ### END SOLUTION


# %% [markdown] lang="en"
# ## The loss
#
# Here a library does the same, so there is an oracle. Choose logits and labels so that the usual mistakes give another
# number: unequal counts of targets in the sequences, and one sequence without any.

# %% [markdown] lang="zh"
# ## 损失
#
# 库函数能做同样的事，所以这里有现成的参照。选取 logits 和 labels 时，要让常见的错误得出不同的数：
# 各序列的目标个数不等，并且有一个序列没有目标。


# %%
def scored(ignore_index: int = -100) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits (3, 5, 7) in double precision, and labels with 3, 1 and 0 targets."""
    logits = torch.randn(3, 5, 7, generator=seeded(4), dtype=torch.float64)
    labels = torch.full((3, 5), ignore_index)
    labels[0, 0], labels[0, 2], labels[0, 4], labels[1, 3] = 6, 0, 2, 5
    return logits, labels


def test_loss_is_the_librarys(impl):
    """The loss is the mean, in nats, over the targets of the whole batch: that of F.cross_entropy."""
    ### BEGIN SOLUTION
    logits, labels = scored()
    expected = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
    assert impl.mlm_loss(logits, labels).item() == pytest.approx(expected.item(), abs=1e-6)
    ### END SOLUTION


def test_loss_uses_ignore_index(impl):
    """The label ignore_index, whatever it is, marks positions that do not count, and -100 is then nothing special."""
    ### BEGIN SOLUTION
    for ignore_index in (-1, 3):
        logits, labels = scored(ignore_index)
        expected = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=ignore_index)
        assert impl.mlm_loss(logits, labels, ignore_index).item() == pytest.approx(expected.item(), abs=1e-6)
    ### END SOLUTION


def test_loss_does_not_see_other_logits(impl):
    """Logits at ignored positions may hold anything, inf and NaN too."""
    ### BEGIN SOLUTION
    logits, labels = scored()
    expected = impl.mlm_loss(logits, labels).item()
    for anything in (float("inf"), float("nan"), 1e30):
        spoiled = torch.where((labels == -100)[..., None], anything, logits)
        assert impl.mlm_loss(spoiled, labels).item() == pytest.approx(expected, abs=1e-6)
    ### END SOLUTION


def test_loss_of_large_logits(impl):
    """Logits of size 1e4 give the right loss, not inf or NaN."""
    ### BEGIN SOLUTION
    logits, labels = scored()
    for dtype in (torch.float32, torch.float64):
        large = (logits * 3000).clamp(-1e4, 1e4).to(dtype)
        expected = F.cross_entropy(large.double().flatten(0, 1), labels.flatten()).item()
        assert impl.mlm_loss(large, labels).item() == pytest.approx(expected, rel=1e-4)
    ### END SOLUTION


def test_loss_without_target_raises(impl):
    """A batch without any target gets a ValueError."""
    ### BEGIN SOLUTION
    logits, labels = scored()
    with pytest.raises(ValueError):
        impl.mlm_loss(logits, torch.full_like(labels, -100))
    ### END SOLUTION


def test_loss_of_bad_labels_raises(impl):
    """A label outside [0, V), too large or negative, that is not ignore_index gets a ValueError."""
    ### BEGIN SOLUTION
    for label in (7, -1, -5):
        logits, labels = scored()
        labels[1, 1] = label
        with pytest.raises(ValueError):
            impl.mlm_loss(logits, labels)
    ### END SOLUTION


# %% [markdown] lang="en"
# ## Predictions
#
# No oracle this time: which class a text belongs to is up to the classifier. What can be tested are *relations*: two
# batches that must get the same classes. One text shows little, since half of all changes do not cross the border
# between two classes: take many.

# %% [markdown] lang="zh"
# ## 预测
#
# 这次没有参照：一个文本属于哪一类由分类器决定。可以检验的是*关系*：必须得到相同类别的两个批次。
# 单个文本说明不了什么，因为有一半的变化不会越过两类之间的边界：请用许多文本。


# %%
def test_padding_ids_do_not_matter(impl):
    """Other ids at the padding change no prediction: the attention mask alone says what is padding."""
    ### BEGIN SOLUTION
    ids, attention, _ = texts(64, 12, seed=3)
    other = torch.randint(VOCABULARY.size, ids.shape, generator=seeded(8))
    changed = torch.where(attention.bool(), ids, other)
    assert torch.equal(impl.predict(ids.clone(), attention.clone()), impl.predict(changed, attention.clone()))
    ### END SOLUTION


def test_padding_width_does_not_matter(impl):
    """More columns of padding change no prediction."""
    ### BEGIN SOLUTION
    ids, attention, _ = texts(64, 10, seed=4)
    expected = impl.predict(ids.clone(), attention.clone())
    for more in (1, 3, 6):
        wider = F.pad(ids, (0, more), value=VOCABULARY.pad_id)
        assert torch.equal(impl.predict(wider, F.pad(attention, (0, more))), expected)
    ### END SOLUTION


def test_only_padding_raises(impl):
    """A row of padding only gets a ValueError, with other rows beside it or alone."""
    ### BEGIN SOLUTION
    ids, attention, _ = texts(4, 10)
    attention[2] = 0
    with pytest.raises(ValueError):
        impl.predict(ids, attention)
    with pytest.raises(ValueError):
        impl.predict(ids[2:3], attention[2:3])
    ### END SOLUTION


def test_predictions_are_repeatable(impl):
    """The same batch has the same classes each time; they are 0 or 1, int64, one for each text."""
    ### BEGIN SOLUTION
    ids, attention, _ = texts(64, 12, seed=5)
    first = impl.predict(ids.clone(), attention.clone())
    assert first.shape == (64,)
    assert first.dtype == torch.int64
    assert set(first.tolist()) <= {0, 1}
    for _ in range(3):
        assert torch.equal(impl.predict(ids.clone(), attention.clone()), first)
    ### END SOLUTION


def test_neighbours_do_not_matter(impl):
    """The class of a text does not depend on the other texts of its batch, nor on its place among them."""
    ### BEGIN SOLUTION
    ids, attention, _ = texts(40, 12, seed=6)
    together = impl.predict(ids.clone(), attention.clone())
    alone = [impl.predict(ids[i : i + 1].clone(), attention[i : i + 1].clone()).item() for i in range(40)]
    assert together.tolist() == alone
    ### END SOLUTION


def test_predict_leaves_arguments_alone(impl):
    """Neither input_ids nor attention_mask is changed by predict."""
    ### BEGIN SOLUTION
    ids, attention, _ = texts(8, 12, seed=7)
    before = ids.clone(), attention.clone()
    impl.predict(ids, attention)
    assert torch.equal(ids, before[0])
    assert torch.equal(attention, before[1])
    ### END SOLUTION

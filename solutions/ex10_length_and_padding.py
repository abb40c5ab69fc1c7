# %% [markdown] lang="en"
# # Exercise 10: Maximum length and padding
#
# **Goal.** Cut texts to a maximum length and fill them up in two ways, say exactly what that costs, and compare maximum
# lengths and padding strategies so that nothing else differs between the runs.
#
# **Not the point.** Sorting texts by length to save padding, windows over long texts, high scores.
#
# **Time.** About 70 minutes.

# %% [markdown] lang="zh"
# # 练习 10：最大长度与填充
#
# **目标**：把文本截断到最大长度，用两种方式填充，准确说明其代价；
# 并比较不同的最大长度和填充策略，使各次运行之间除此以外没有任何差别。
#
# **不涉及**：按长度对文本排序以减少填充、在长文本上滑动窗口、追求高分。
#
# **用时**：约 70 分钟。

# %%
from collections.abc import Callable, Sequence

import torch
from sklearn.metrics import accuracy_score, f1_score

from exercises.kit import (
    Classifier,
    ComparisonConfig,
    Example,
    LengthGroup,
    Meter,
    PaddingReport,
    RunRecord,
    Splits,
    fit,
    parameter_counts,
    predict,
)

# %% [markdown] lang="en"
# ## Cutting and filling
#
# An encoder takes a rectangle of ids, and has positions for so many tokens only. So long texts are cut and short ones
# are filled up. A text that is cut still has to end like a text: [SEP] stays last, and [CLS] and [SEP] are part of the
# maximum length. "global" fills every batch up to the maximum length, "dynamic" only to the longest text of the batch.
# The attention mask says what is text; the ids cannot say it, since the id that fills may occur in a text as well.

# %% [markdown] lang="zh"
# ## 截断与填充
#
# 编码器接收的是由 id 组成的矩形，并且只为有限个词元准备了位置。所以长文本要截断，短文本要填充。
# 截断后的文本仍要像文本那样结尾：[SEP] 保持在最后，[CLS] 和 [SEP] 都计入最大长度。
# "global" 把每个批次都填充到最大长度，"dynamic" 只填充到批次中最长的文本。
# 哪些是文本由注意力掩码说明；从 id 看不出来，因为用于填充的 id 也可能出现在文本中。


# %%
def truncate_and_pad(
    sequences: Sequence[Sequence[int]], max_length: int, strategy: str, pad_id: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """One batch of m texts, each cut to at most max_length tokens and filled up on the right.

    sequences: the ids of each text, [CLS] and [SEP] included; any id may stand anywhere, pad_id too.
    max_length: the most tokens that a text keeps, [CLS] and [SEP] included.  Of a longer text the first
        max_length - 1 ids and the last one, its [SEP], are kept.
    strategy: "global": T = max_length, however short the texts are;
        "dynamic": T is the number of tokens of the longest text of this batch, after cutting.
    pad_id: the id at the padding.

    Returns (input_ids, attention_mask), two int64 tensors (m, T) on the CPU.  The mask is 1 at the tokens of each text
    and 0 at the padding.  The sequences stay as they are.

    Raises:
        ValueError: strategy is neither of the two (names strategy); max_length < 2 (names and shows max_length);
            there are no sequences, or one of them is empty (names sequences).
    """
    ### BEGIN SOLUTION
    if strategy not in ("global", "dynamic"):
        raise ValueError(f'strategy must be "global" or "dynamic", not {strategy!r}')
    if max_length < 2:
        raise ValueError(f"max_length is {max_length}: there is no room for [CLS] and [SEP]")
    if len(sequences) == 0 or min(map(len, sequences)) == 0:
        raise ValueError("sequences must hold at least one text, and every text at least one id")
    kept = [[*ids[: max_length - 1], ids[-1]] if len(ids) > max_length else ids for ids in sequences]
    width = max_length if strategy == "global" else max(map(len, kept))
    input_ids = torch.full((len(kept), width), pad_id)  # (m, T)
    attention_mask = torch.zeros_like(input_ids)
    for row, ids in enumerate(kept):
        input_ids[row, : len(ids)] = torch.tensor(ids)
        attention_mask[row, : len(ids)] = 1
    return input_ids, attention_mask
    ### END SOLUTION


# %%
if __name__ == "__main__":
    texts = [[2, 11, 12, 3], [2, 21, 22, 23, 24, 25, 3]]
    for max_length, strategy in ((9, "global"), (9, "dynamic"), (5, "dynamic")):
        ids, mask = truncate_and_pad(texts, max_length, strategy, pad_id=0)
        assert ids.shape == mask.shape == (2, min(max_length, 7) if strategy == "dynamic" else max_length)
        print(max_length, strategy, ids.tolist(), mask.tolist())

# %% [markdown] lang="en"
# ## What it costs, exactly
#
# Times are noisy: on a busy machine the faster way may look slower. How many texts are cut, and what share of all
# positions is padding, can be counted, and the next person counts the same. Positions are what the encoder computes, so
# they are added up over all batches before dividing; a mean of the ratios of the batches would give the small last
# batch the weight of a full one.

# %% [markdown] lang="zh"
# ## 精确计算代价
#
# 用时带有噪声：机器繁忙时，较快的方法也可能显得较慢。而有多少文本被截断、填充占所有位置的多大比例，
# 是可以数出来的，换一个人来数结果也一样。编码器计算的是位置，所以要先对所有批次求和再相除；
# 若对各批次的比例求平均，较小的最后一批就会与完整的批次权重相同。


# %%
def padding_report(
    sequences: Sequence[Sequence[int]], max_length: int, strategy: str, batch_size: int
) -> PaddingReport:
    """What a maximum length and a padding strategy do to texts that come in batches.

    sequences, max_length, strategy: as for `truncate_and_pad`.
    batch_size: texts in a batch.  The texts are taken in the order given; the last batch may be smaller.

    Returns PaddingReport(truncation_ratio, padding_ratio), two floats:
        - truncation_ratio: how many of the texts are longer than max_length, as a share of the texts;
        - padding_ratio: padding positions of all batches together / all positions of all batches together.

    Raises:
        ValueError: batch_size < 1 (names and shows batch_size); whatever `truncate_and_pad` refuses.
    """
    ### BEGIN SOLUTION
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}, but a batch holds at least one text")
    if len(sequences) == 0:
        raise ValueError("sequences is empty")
    padding = positions = 0
    for start in range(0, len(sequences), batch_size):
        _, mask = truncate_and_pad(sequences[start : start + batch_size], max_length, strategy, pad_id=0)
        padding += int((mask == 0).sum())
        positions += mask.numel()
    truncated = sum(len(ids) > max_length for ids in sequences)
    return PaddingReport(truncated / len(sequences), padding / positions)
    ### END SOLUTION


# %%
if __name__ == "__main__":
    from exercises.kit.reviews import reviews

    counted = [[0] * (len(review.text.split()) + 2) for review in reviews(400, seed=0)]  # a word is a token here
    print("max_length  truncated  padding global  padding dynamic")
    for max_length in (16, 32, 64, 128):
        everywhere, here = (padding_report(counted, max_length, how, batch_size=16) for how in ("global", "dynamic"))
        print(f"{max_length:10}{here.truncation_ratio:11.3f}{everywhere.padding_ratio:16.3f}{here.padding_ratio:17.3f}")

# %% [markdown] lang="en"
# ## Who pays for a short maximum length
#
# An error rate over all texts hides that only the long ones have lost something. So errors are counted by length, and
# by the length that a text had *before* it was cut: afterwards the long texts look like those of exactly max_length
# tokens. A group without texts has no error rate, neither 0 nor NaN.

# %% [markdown] lang="zh"
# ## 最大长度过短由谁承担
#
# 总的错误率看不出只有长文本受了损失。所以要按长度统计错误，而且按文本截断*之前*的长度：
# 截断之后，长文本看上去与恰好 max_length 个词元的文本没有区别。没有文本的组没有错误率：既不是 0，也不是 NaN。


# %%
def errors_by_length(lengths: Sequence[int], correct: Sequence[bool], edges: Sequence[int]) -> list[LengthGroup]:
    """Count texts and errors in groups of original length.

    lengths: tokens of each text before it was cut.
    correct: of each text, whether it was classified right.
    edges: where groups end, ascending: (16, 32) makes the groups 1 … 16, 17 … 32, and 33 or more.

    Returns one LengthGroup(shortest, longest, texts, errors, error_rate) for every group, ascending, empty ones too:
    len(edges) + 1 in all.  longest is None for the last one.  error_rate is errors / texts, and None without texts.

    Raises:
        ValueError: lengths and correct differ in length (names lengths or correct); a length < 1 (names lengths, shows
            the value); edges do not ascend strictly, or begin below 1 (names edges).
    """
    ### BEGIN SOLUTION
    if len(lengths) != len(correct):
        raise ValueError(f"lengths has {len(lengths)} entries, correct has {len(correct)}")
    if any(length < 1 for length in lengths):
        raise ValueError(f"lengths holds {min(lengths)}, but every text has at least one token")
    starts = [1, *(edge + 1 for edge in edges)]
    if any(edge < start for start, edge in zip(starts, edges, strict=False)):
        raise ValueError(f"edges must ascend strictly, from 1 or more, and are {list(edges)}")
    groups = []
    for shortest, longest in zip(starts, [*edges, None], strict=True):
        inside = [right for n, right in zip(lengths, correct, strict=True) if n >= shortest and n <= (longest or n)]
        errors = sum(not right for right in inside)
        groups.append(LengthGroup(shortest, longest, len(inside), errors, errors / len(inside) if inside else None))
    return groups
    ### END SOLUTION


# %%
if __name__ == "__main__":
    for group in errors_by_length([4, 16, 17, 40], [True, False, True, False], edges=(16, 32)):
        print(group)

# %% [markdown] lang="en"
# ## Several lengths, two strategies, one protocol
#
# What is compared must differ in one thing only. So every run starts from a fresh model of its seed, tries the same
# learning rates, makes the same number of updates with the same texts in the same order, and the test split stays shut
# until the validation split has chosen. Do not sort the texts by length: the batches would be others, and a difference
# between two runs could come from that. Costs are measured with `Meter`, after a warm-up: the very first call of an
# encoder loads code and would be charged to whoever comes first.
#
# Padding with attention mask 0 changes nothing of what the model computes, rounding apart. So the two strategies have
# to give the same predictions wherever dropout is off: if they do not, a mask is missing somewhere. With dropout they
# may differ a little, because the shape of a batch decides which random numbers go where.

# %% [markdown] lang="zh"
# ## 若干长度，两种策略，一套规程
#
# 被比较的运行只应在一点上不同。因此，每次运行都从其种子对应的新模型开始，尝试相同的学习率，
# 以相同的顺序、用相同的文本更新相同的次数；在验证集做出选择之前，测试集始终不打开。
# 不要按长度对文本排序：那样批次就变了，两次运行之间的差异可能由此而来。
# 代价用 `Meter` 测量，并且要先预热：编码器的第一次调用要加载代码，否则这笔开销会算在最先运行者的头上。
#
# 注意力掩码为 0 的填充不改变模型的计算结果（舍入误差除外）。所以只要没有 dropout，两种策略就应给出相同的预测：
# 如果不同，说明某处漏了掩码。有 dropout 时结果可能略有差别，因为批次的形状决定了随机数落在哪里。


# %%
def compare_lengths(
    splits: Splits, make_model: Callable[[int], Classifier], config: ComparisonConfig
) -> list[RunRecord]:
    """One RunRecord for each of config.seeds, each of config.max_lengths and each of config.strategies, in any order.

    splits: train, validation and test, each a sequence of Example(input_ids, label); labels are 0 and 1, and both occur
        in train.  An example may be read anew at every access, so keep what you read: `train = list(splits.train)`.
    make_model: make_model(seed) gives a fresh Classifier on the CPU: always the same pretrained encoder, and a
        classification layer whose random weights the seed decides.
    config: seeds; max_lengths; strategies; settings["full"], the learning rates to try; updates, batch_size,
        weight_decay, device, pad_id.

    All runs are of the method "full": encoder and classification layer learn.  For each seed, max_length and strategy:
        1. For each setting in config.settings["full"], make_model(seed) gives a fresh model.  It is trained on
           splits.train with the setting as learning rate, for exactly config.updates updates of config.batch_size texts
           each: by `fit(…, learning_rate=setting, seed=seed, …)`, or by a loop of your own that keeps to the same
           numbers.  Then it is scored by its accuracy on splits.validation.
        2. The setting with the highest accuracy is chosen, the first of them if several are equal.
        3. Then, and not before, each test text is read, once, and the model of the chosen setting predicts it.
    Nothing is learned from validation or test.
    Every batch that the encoder gets, of training, validation and test texts, is what `truncate_and_pad` makes of the
    texts with that max_length and strategy and config.pad_id; its attention mask goes to the model.  (`fit` and
    `predict` pad: to the longest text of a batch, or to `length`.  They do not truncate.)  No dropout in predictions.
    Which texts are in which update is random and depends on the seed alone: never on max_length, strategy or setting.
    Without dropout the two strategies therefore give the same model, up to rounding.

    The RunRecord of such a run:
        - method "full", seed, max_length, strategy, chosen_hyperparameters {"learning_rate": …}, validation_score: the
          accuracy on validation with the chosen setting, test_predictions: a list of ints;
        - truncation_ratio, padding_ratio: what `padding_report` says of the texts of splits.train, in their order, with
          that max_length and strategy and config.batch_size;
        - accuracy and f1 on test, f1 that of class 1, 0.0 where it is 0/0;
        - train_seconds and peak_memory_bytes of the training run with the chosen setting, and predict_seconds of
          predicting the test split (`Meter` measures all three).  Before the first measurement something like it has
          been run for nothing, with a model of its own from make_model and training texts;
        - trainable_parameters, total_parameters: of the model while it is trained, as `parameter_counts` has them;
        - encoder_forward_calls, encoder_backward_calls: those that happened in the training run with the chosen
          setting and in predicting the test split, as `Meter` counts them, validation left out;
        - updates and examples_per_update: config.updates and config.batch_size.
    The same arguments give the same records, times and memory apart, and no global random generator is moved (`fit`
    puts PyTorch's back after its dropout).

    Raises:
        ValueError: config.max_lengths is empty or holds a number < 2 (names max_lengths or max_length);
            config.strategies is empty or holds a name that `truncate_and_pad` does not know (names strategies or
            strategy); config.settings has no learning rate for "full" (names settings).
    """
    ### BEGIN SOLUTION
    if not config.max_lengths or min(config.max_lengths) < 2:
        raise ValueError(f"config.max_lengths must hold numbers of 2 or more, and is {config.max_lengths}")
    if not config.strategies or not set(config.strategies) <= {"global", "dynamic"}:
        raise ValueError(f'config.strategies must hold "global", "dynamic" or both, and is {config.strategies}')
    if not config.settings.get("full"):
        raise ValueError('config.settings has no learning rate for "full"')
    train, validation = list(splits.train), list(splits.validation)

    def cut(examples: Sequence[Example], max_length: int) -> list[Example]:
        ids, mask = truncate_and_pad([example.input_ids for example in examples], max_length, "dynamic", config.pad_id)
        counts = mask.sum(1).tolist()
        return [Example(row[:n], e.label) for row, n, e in zip(ids.tolist(), counts, examples, strict=True)]

    how = {"batch_size": config.batch_size, "weight_decay": config.weight_decay}
    where = {"pad_id": config.pad_id, "device": config.device}
    warm, texts = make_model(config.seeds[0]), cut(train, max(config.max_lengths))
    fit(warm, texts, learning_rate=0.0, updates=2, seed=0, **how, **where)
    predict(warm, texts, **where)

    def run(seed: int, max_length: int, strategy: str) -> RunRecord:
        batches = {"length": max_length if strategy == "global" else None, **where}
        texts, held_out = cut(train, max_length), cut(validation, max_length)
        best = None
        for learning_rate in config.settings["full"]:
            model = make_model(seed).to(config.device)
            with Meter(model.encoder, config.device) as training:
                fit(model, texts, learning_rate=learning_rate, updates=config.updates, seed=seed, **how, **batches)
            guesses = predict(model, held_out, **batches)
            score = accuracy_score([example.label for example in held_out], guesses)
            if best is None or score > best[0]:
                best = score, learning_rate, model, training
        score, learning_rate, model, training = best

        test = cut(list(splits.test), max_length)
        with Meter(model.encoder, config.device) as prediction:
            classes = predict(model, test, **batches)
        labels = [example.label for example in test]
        trainable, total = parameter_counts(model)
        report = padding_report([example.input_ids for example in train], max_length, strategy, config.batch_size)
        return RunRecord(
            method="full",
            seed=seed,
            accuracy=float(accuracy_score(labels, classes)),
            f1=float(f1_score(labels, classes, zero_division=0.0)),
            train_seconds=training.seconds,
            predict_seconds=prediction.seconds,
            peak_memory_bytes=training.peak_memory_bytes,
            trainable_parameters=trainable,
            total_parameters=total,
            encoder_forward_calls=training.forward_calls + prediction.forward_calls,
            encoder_backward_calls=training.backward_calls,
            updates=config.updates,
            examples_per_update=config.batch_size,
            validation_score=float(score),
            chosen_hyperparameters={"learning_rate": learning_rate},
            test_predictions=classes,
            max_length=max_length,
            strategy=strategy,
            truncation_ratio=report.truncation_ratio,
            padding_ratio=report.padding_ratio,
        )

    return [
        run(seed, max_length, strategy)
        for seed in config.seeds
        for max_length in config.max_lengths
        for strategy in config.strategies
    ]
    ### END SOLUTION


# %%
if __name__ == "__main__":
    from transformers import BertConfig, BertModel

    found = reviews(360, seed=0, length=3.0)
    words = {word: number for number, word in enumerate(sorted({w for r in found for w in r.text.split()}), 3)}
    examples = [Example([1, *(words[word] for word in r.text.split()), 2], r.label) for r in found]  # [CLS] … [SEP]
    splits = Splits(examples[:200], examples[200:260], examples[260:])

    def make_model(seed: int) -> Classifier:
        """The same small encoder for all seeds, whose weights are random: nothing is pretrained here."""
        torch.manual_seed(0)
        small = BertConfig(
            vocab_size=len(words) + 3, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64
        )
        encoder = BertModel(small, add_pooling_layer=False)
        torch.manual_seed(seed)
        return Classifier(encoder, num_labels=2)

    config = ComparisonConfig((0, 1), {"full": (1e-3, 5e-3)}, updates=100, max_lengths=(8, 32, 96))
    print("max_length strategy seed  accuracy  truncated  padding  train seconds   errors by original length")
    for r in compare_lengths(splits, make_model, config):
        right = [guess == e.label for guess, e in zip(r.test_predictions, splits.test, strict=True)]
        grouped = errors_by_length([len(e.input_ids) for e in splits.test], right, edges=(16, 32))
        shown = "  ".join(f"{group.errors}/{group.texts}" for group in grouped)
        print(
            f"{r.max_length:10} {r.strategy:8}{r.seed:5}{r.accuracy:10.3f}{r.truncation_ratio:11.3f}"
            f"{r.padding_ratio:9.3f}{r.train_seconds:15.2f}   {shown}"
        )

# %% [markdown] lang="en"
# ## In writing (4 points, graded by a person)
#
# 1. What does the comparison above show, and with what certainty? Go through quality, time and the two ratios, and
#    through the errors by original length.
# 2. What can it not show? Name at least three reasons, one of them about what a maximum length does to the texts of one
#    group only.
#
# <!-- BEGIN ANSWER -->
# 1. The two ratios are counts: anybody gets the same ones from the same texts. With a maximum length of 96 no text is
#    cut, but about three quarters of all positions are padding when it is global and fewer when it is dynamic; with 8
#    nine texts in ten are cut, and the strategies cost the same, because nearly every batch holds a text that reaches
#    the maximum. So dynamic padding saves something only where the maximum is well above the usual length. The times
#    agree with that, but they are single measurements, and on a busy machine the order can turn round. Global and
#    dynamic padding compute the same function, so any difference of their accuracies is no effect of padding: here it
#    comes from dropout, whose random numbers fall elsewhere in a batch of another shape. It is a yardstick: differences
#    between maximum lengths that are no larger than this, or than those between seeds, show nothing. With 8 the
#    accuracy is close to guessing with both seeds, which says that the words needed are mostly cut off. The errors by
#    length tell whom it hurts: a text of at most 8 tokens has lost nothing, a long one nearly everything.
# 2. Two seeds and a hundred test texts: one text is 0.01 of accuracy, and the standard error near 0.6 is about 0.05.
#    One encoder, one data set and one budget of updates: with pretrained weights or a longer training the same cut may
#    cost more or less. Equal updates are not equal cost, since an update at 96 computes many more positions than one
#    at 8. Two learning rates may suit one length better than another. Cutting keeps the beginnings, so the
#    result depends on where in these texts the opinion stands; keeping the ends could turn it round. Groups by length
#    hold few texts each, and long texts differ from short ones in more than length: a higher error rate among them is
#    not by itself an effect of cutting. For that, compare the same group at two maximum lengths. The ratios hold for
#    this order of texts and batch size: shuffled batches pad a little differently.
# <!-- END ANSWER -->

# %% [markdown] lang="zh"
# ## 书面回答（4 分，由教师评阅）
#
# 1. 上面的比较说明了什么，有多大把握？请依次讨论质量、用时、两个比例，以及按原始长度统计的错误。
# 2. 它不能说明什么？至少给出三个理由，其中一个要涉及最大长度只影响某一组文本这一点。
#
# <!-- BEGIN ANSWER -->
# 1. 两个比例是数出来的：对同样的文本，任何人都得到同样的数。最大长度为 96 时没有文本被截断，
#    但全局填充时约四分之三的位置是填充，动态填充时较少；最大长度为 8 时十分之九的文本被截断，
#    而两种策略代价相同，因为几乎每个批次里都有达到最大长度的文本。
#    所以只有当最大长度明显大于通常的文本长度时，动态填充才有节省。用时与此相符，但都只测了一次，
#    在繁忙的机器上次序可能颠倒。全局填充与动态填充计算的是同一个函数，因此二者准确率的差别不是填充的作用：
#    这里的差别来自 dropout，批次形状不同，随机数就落在不同的位置。这正好可以当作标尺：
#    不同最大长度之间的差别若不大于它，也不大于种子之间的差别，就什么也说明不了。
#    最大长度为 8 时，两个种子的准确率都接近随机猜测，说明所需的词大多被截掉了。
#    按长度统计的错误说明谁受影响：不超过 8 个词元的文本毫无损失，长文本则几乎全部丢失。
# 2. 只有两个种子、一百个测试文本：一个文本就是 0.01 的准确率，在 0.6 附近标准误约为 0.05。
#    只有一个编码器、一个数据集、一种更新预算：换成预训练权重或训练更久，同样的截断代价可能更大，也可能更小。
#    更新次数相同不等于代价相同，因为最大长度为 96 时一次更新计算的位置远多于 8。
#    两个学习率可能更适合某个长度。截断保留的是开头，所以结果取决于观点出现在文本的什么位置；
#    若保留结尾，结论可能相反。按长度分组后每组文本很少，而且长文本与短文本的差别不只是长度：
#    长文本错误率较高，本身并不就是截断造成的；要说明这一点，应比较同一组文本在两个最大长度下的结果。
#    两个比例只对这里的文本顺序和批大小成立：打乱后的批次，填充会略有不同。
# <!-- END ANSWER -->

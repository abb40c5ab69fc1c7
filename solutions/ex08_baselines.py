# %% [markdown] lang="en"
# # Exercise 8: Bag of words, frozen encoder, full fine-tuning
#
# **Goal.** Compare three classifiers of one data set so that the comparison means something: the same splits, seeds,
# number of settings tried and update budget for all, the choice made on the validation split, the test split read once.
#
# **Not the point.** High scores, many epochs, early stopping (exercise 6).
#
# **Time.** About 80 minutes.

# %% [markdown] lang="zh"
# # 练习 8：词袋、冻结编码器与全量微调
#
# **目标**：在同一数据集上比较三种分类器，使比较真正有意义：所有方法使用相同的划分、相同的随机种子、
# 相同数量的候选设置和相同的更新预算，用验证集做选择，测试集只读取一次。
#
# **不涉及**：追求高分、训练很多个 epoch、早停（练习 6）。
#
# **用时**：约 80 分钟。

# %%
from collections.abc import Callable, Sequence

import numpy as np
import torch
from scipy.sparse import csr_array
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, f1_score

from exercises.kit import (
    Classifier,
    ComparisonConfig,
    Example,
    Meter,
    RunRecord,
    Splits,
    fit,
    parameter_counts,
    predict,
)

# %% [markdown] lang="en"
# ## A baseline without an encoder
#
# How often each id occurs, and one weight for each id: no order, no context, no pretraining. It trains in a moment, and
# a method that does not beat it has not shown that it needs an encoder. Like every method it learns from the training
# split only: word statistics (an idf, for instance) that were taken from all texts know something of the test split.

# %% [markdown] lang="zh"
# ## 不用编码器的基线
#
# 统计每个 id 出现的次数，每个 id 一个权重：没有词序，没有上下文，也没有预训练。它转眼就能训练好；
# 一种方法若胜不过它，就不能说明自己需要编码器。与其他方法一样，它只能从训练集学习：
# 用全部文本算出的词统计量（例如 idf）已经包含了测试集的信息。


# %%
def bag_of_words(splits: Splits, seed: int, settings: Sequence[float], vocab_size: int) -> RunRecord:
    """Logistic regression on the ids that a text holds, whatever their order.

    splits: train, validation and test, each a sequence of Example(input_ids, label); labels are 0 and 1, and both occur
        in train.  An example may be read anew at every access, so keep what you read: `train = list(splits.train)`.
    seed: for whatever is random (`random_state`); it is noted in the record.
    settings: values of C, the inverse strength of the L2 penalty as in sklearn.linear_model.LogisticRegression.
    vocab_size: V; ids are 0 … V-1.

    Features: V columns, column i holds what a text says of id i: how often it occurs, weighted (tf-idf) or not.
        Special tokens may take part or not.  Whatever is fitted, weights and statistics of words, comes from
        splits.train alone.
    Choice: for each C one model is fitted on train and scored by its accuracy on validation; the C with the highest
        accuracy is used, the first of them if several are equal.
    Test: then, and not before, each test text is read, once, and the model with that C predicts it.

    Returns a RunRecord:
        - method "bag_of_words", seed, chosen_hyperparameters {"C": …}, validation_score: the accuracy on validation
          with the chosen C, test_predictions: a list of ints;
        - accuracy and f1 on test, f1 that of class 1, 0.0 where it is 0/0;
        - train_seconds and peak_memory_bytes of the fit with the chosen C, features included or not, and
          predict_seconds of predicting the test split, after a warm-up (`Meter` measures all three);
        - trainable_parameters = total_parameters = V + 1: a weight for every column, and the bias;
        - encoder_forward_calls, encoder_backward_calls, updates, examples_per_update: 0.

    Raises:
        ValueError: settings is empty (names settings);
            a text of splits.train holds an id outside [0, vocab_size) (names splits or vocab_size, shows such an id).
    """
    ### BEGIN SOLUTION
    if len(settings) == 0:
        raise ValueError("settings is empty: there is no C to try")
    train, validation = list(splits.train), list(splits.validation)
    for number, example in enumerate(train):
        for i in example.input_ids:
            if not 0 <= i < vocab_size:
                raise ValueError(f"splits.train[{number}] holds the id {i}, outside [0, {vocab_size}) of vocab_size")

    def counts(examples: Sequence[Example]) -> csr_array:
        ids = np.concatenate([example.input_ids for example in examples])
        ends = np.cumsum([len(example.input_ids) for example in examples])
        return csr_array(
            (np.ones(len(ids)), ids, [0, *ends]), shape=(len(examples), vocab_size)
        )  # (n, V), sums repeats

    def labels(examples: Sequence[Example]) -> list[int]:
        return [example.label for example in examples]

    LogisticRegression().fit(counts(train), labels(train))  # warm-up
    best = None
    for c in settings:
        model = LogisticRegression(C=c, max_iter=1000, random_state=seed)
        with Meter() as training:
            model.fit(counts(train), labels(train))
        score = accuracy_score(labels(validation), model.predict(counts(validation)))
        if best is None or score > best[0]:
            best = score, c, model, training
    score, c, model, training = best

    test = list(splits.test)
    with Meter() as prediction:
        classes = model.predict(counts(test)).tolist()
    return RunRecord(
        method="bag_of_words",
        seed=seed,
        accuracy=float(accuracy_score(labels(test), classes)),
        f1=float(f1_score(labels(test), classes, zero_division=0.0)),
        train_seconds=training.seconds,
        predict_seconds=prediction.seconds,
        peak_memory_bytes=training.peak_memory_bytes,
        trainable_parameters=vocab_size + 1,
        total_parameters=vocab_size + 1,
        encoder_forward_calls=0,
        encoder_backward_calls=0,
        updates=0,
        examples_per_update=0,
        validation_score=float(score),
        chosen_hyperparameters={"C": c},
        test_predictions=classes,
    )
    ### END SOLUTION


# %% [markdown] lang="en"
# ## Three methods, one protocol
#
# What is compared must differ in one thing only. So every run starts from a fresh model of its seed, every method tries
# the same number of settings, every neural run makes the same number of updates with equally many texts, and the test
# split stays shut until the validation split has chosen. What a run costs is measured with `Meter`, after a warm-up:
# the very first call of an encoder loads code and would be charged to whoever comes first.

# %% [markdown] lang="zh"
# ## 三种方法，一套规程
#
# 被比较的方法只应在一点上不同。因此，每次运行都从其种子对应的新模型开始；每种方法尝试相同数量的设置；
# 每次神经网络的训练都更新相同的次数、每次使用同样多的文本；在验证集做出选择之前，测试集始终不打开。
# 运行的代价用 `Meter` 测量，并且要先预热：编码器的第一次调用要加载代码，否则这笔开销会算在最先运行的方法头上。


# %%
def compare_baselines(
    splits: Splits, make_model: Callable[[int], Classifier], config: ComparisonConfig
) -> list[RunRecord]:
    """One RunRecord for each seed of config.seeds and each of "bag_of_words", "frozen" and "full", in any order.

    splits: train, validation and test, each a sequence of Example(input_ids, label); labels are 0 and 1, and both occur
        in train.  An example may be read anew at every access, so keep what you read: `train = list(splits.train)`.
    make_model: make_model(seed) gives a fresh Classifier on the CPU: always the same pretrained encoder, and a
        classification layer whose random weights the seed decides.
    config: seeds; settings of each method; updates, batch_size, weight_decay, device, pad_id; vocab_size.

    "bag_of_words": as `bag_of_words` does it, with config.settings["bag_of_words"] and config.vocab_size.
    "frozen" (only the classification layer learns) and "full" (everything learns), for each seed:
        1. For each setting in config.settings[method], make_model(seed) gives a fresh model.  It is trained on
           splits.train with the setting as learning rate, for exactly config.updates updates of config.batch_size texts
           each: by `fit(…, learning_rate=setting, seed=seed, …)`, or by a loop of your own with AdamW, cross-entropy
           and the same numbers.  Then it is scored by its accuracy on splits.validation.
        2. The setting with the highest accuracy is chosen, the first of them if several are equal.
        3. Then, and not before, each test text is read, once, and the model that was trained with the chosen setting
           predicts it: that model itself, not another one with a copy of its weights.
    Nothing is learned from validation or test.  Padding is config.pad_id with attention mask 0; no dropout in
    predictions.  A frozen run may keep the features of training and validation texts instead of running the encoder
    anew for every batch; a test text is run through the encoder when it is predicted.

    The RunRecord of such a run:
        - method, seed, chosen_hyperparameters {"learning_rate": …}, validation_score: the accuracy on validation with
          the chosen setting, test_predictions: a list of ints;
        - accuracy and f1 on test, f1 that of class 1, 0.0 where it is 0/0;
        - train_seconds and peak_memory_bytes of the training run with the chosen setting, and predict_seconds of
          predicting the test split (`Meter` measures all three).  Before the first measurement something like it has
          been run for nothing, with a model of its own from make_model and training texts;
        - trainable_parameters, total_parameters: of the model while it is trained, as `parameter_counts` has them;
        - encoder_forward_calls, encoder_backward_calls: those that happened in the training run with the chosen
          setting and in predicting the test split, as `Meter` counts them, validation left out.  A frozen run that
          keeps features has fewer, and says so;
        - updates and examples_per_update: config.updates and config.batch_size.
    The same arguments give the same records, times and memory apart.

    Raises:
        ValueError: config.settings lacks one of the three methods, or does not give all three equally many settings
            (names settings or config).
    """
    ### BEGIN SOLUTION
    tried = {method: len(config.settings.get(method, ())) for method in ("bag_of_words", "frozen", "full")}
    if min(tried.values()) == 0 or len(set(tried.values())) > 1:
        raise ValueError(f"config.settings must have equally many settings for each method, and has {tried}")
    train, validation = list(splits.train), list(splits.validation)
    where = {"pad_id": config.pad_id, "device": config.device}
    how = {"batch_size": config.batch_size, "weight_decay": config.weight_decay, **where}

    warm = make_model(config.seeds[0])
    fit(warm, train, learning_rate=0.0, updates=2, seed=0, **how)
    predict(warm, train, **where)

    def run(method: str, seed: int) -> RunRecord:
        best = None
        for learning_rate in config.settings[method]:
            model = make_model(seed).to(config.device)
            model.encoder.requires_grad_(method == "full")
            with Meter(model.encoder, config.device) as training:
                fit(model, train, learning_rate=learning_rate, updates=config.updates, seed=seed, **how)
            guesses = predict(model, validation, **where)
            score = accuracy_score([example.label for example in validation], guesses)
            if best is None or score > best[0]:
                best = score, learning_rate, model, training
        score, learning_rate, model, training = best

        test = list(splits.test)
        with Meter(model.encoder, config.device) as prediction:
            classes = predict(model, test, **where)
        labels = [example.label for example in test]
        trainable, total = parameter_counts(model)
        return RunRecord(
            method=method,
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
        )

    records = []
    for seed in config.seeds:
        records.append(bag_of_words(splits, seed, config.settings["bag_of_words"], config.vocab_size))
        records += [run("frozen", seed), run("full", seed)]
    return records
    ### END SOLUTION


# %%
if __name__ == "__main__":
    from exercises.kit.datasets import load_splits
    from exercises.kit.encoder import load_encoder

    tokenizer = load_encoder("tiny").tokenizer
    data = load_splits("synthetic", tokenizer, (300, 150, 400))

    def tiny_model(seed: int) -> Classifier:
        """The tiny pretrained encoder and a fresh classification layer."""
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return Classifier(load_encoder("tiny").encoder, num_labels=2)

    settings = {"bag_of_words": (0.1, 1.0), "frozen": (1e-2, 1e-1), "full": (3e-4, 1e-3)}
    budget = ComparisonConfig((0, 1), settings, updates=100, vocab_size=tokenizer.vocabulary.size)
    print(
        "method        seed  accuracy     F1  train s  test s  peak MiB  trainable    total  forward  backward  chosen"
    )
    for r in compare_baselines(data, tiny_model, budget):
        print(
            f"{r.method:13}{r.seed:5}{r.accuracy:10.3f}{r.f1:7.3f}{r.train_seconds:9.3f}{r.predict_seconds:8.3f}"
            f"{r.peak_memory_bytes / 2**20:10.0f}{r.trainable_parameters:11,}{r.total_parameters:9,}"
            f"{r.encoder_forward_calls:9}{r.encoder_backward_calls:10}  {dict(r.chosen_hyperparameters)}"
        )

# %% [markdown] lang="en"
# ## In writing (4 points, graded by a person)
#
# Run the comparison on texts of your choice, with three seeds or more, and look at the records.
#
# 1. What does your comparison show? Name the numbers that you rest on, and how far they vary from seed to seed.
# 2. What can it not show, however carefully the protocol was kept? Give at least three limits.
#
# <!-- BEGIN ANSWER -->
# 1. It shows how three methods did on these texts, at this budget, with these settings: for each the mean accuracy and
#    F1 over the seeds and their spread, and what a run cost (time, peak memory, encoder calls, parameters that learn).
#    A difference is worth a sentence only if it is clearly larger than the spread over the seeds and than the noise of
#    a finite test split: with accuracy $a$ on $n$ test texts the standard error is about $\sqrt{a(1-a)/n}$, 0.04 for
#    $a = 0.8$ and $n = 100$. Since splits, seeds, number of settings, updates and evaluation are the same for all, such
#    a difference is due to the methods as they were run, not to one of them having seen more or having been tuned more.
# 2. (a) It holds for this data set and this number of training texts. With few labels a bag of words has hardly seen
#    most words, and pretraining has grouped them; with more labels that advantage shrinks. (b) Another budget can turn
#    the order round: equal updates are not equal time or memory, a frozen encoder with a hundred updates may just be
#    under-trained, and keeping its features would make it cheaper still. (c) Two settings a method say little about
#    what it could reach; if the best one lies at the edge of those tried, it is not known to be the best. (d) One
#    checkpoint and one pooling: a frozen encoder stands or falls with the vector that is taken from it. (e) The
#    seeds vary the new layer, the order and dropout, but neither the checkpoint nor the choice of texts, so the spread
#    is too small as an uncertainty about other data. (f) It does not say why: full fine-tuning beating a bag of words
#    does not show that it uses the order of words. That would take texts in which only the order differs. (g) Times and
#    memory are those of one machine, and small models say little about large ones.
# <!-- END ANSWER -->

# %% [markdown] lang="zh"
# ## 书面回答（4 分，由教师评阅）
#
# 在你选择的文本上运行这一比较，至少用三个随机种子，然后查看各条记录。
#
# 1. 你的比较说明了什么？写出你所依据的数值，以及它们在不同种子之间的变化幅度。
# 2. 无论规程遵守得多么严格，它不能说明什么？至少给出三点局限。
#
# <!-- BEGIN ANSWER -->
# 1. 它说明了三种方法在这些文本、这一预算和这些设置下的表现：各方法在各种子上的平均准确率和 F1 及其离散程度，
#    以及一次运行的代价（时间、峰值内存、编码器调用次数、参与学习的参数个数）。
#    只有当差异明显大于种子之间的离散程度，也大于有限测试集带来的噪声时，才值得下结论：
#    在 $n$ 个测试文本上准确率为 $a$ 时，标准误约为 $\sqrt{a(1-a)/n}$；$a = 0.8$、$n = 100$ 时为 0.04。
#    由于划分、种子、设置数量、更新次数和评估方式对所有方法都相同，这样的差异来自所运行的方法本身，
#    而不是因为其中某一种看到了更多数据或调得更细。
# 2. （a）结论只对这个数据集和这个训练规模成立。标注少时，词袋几乎没见过大多数词，而预训练已经把它们归了类；
#    标注增多，这一优势就会缩小。（b）换一个预算，名次可能颠倒：更新次数相等并不等于时间或内存相等；
#    只更新一百次的冻结编码器可能只是没有训练充分，而缓存特征会使它更便宜。
#    （c）每种方法只试两个设置，不足以说明它能达到什么水平；若最好的设置处在候选范围的边缘，就不能确定它是最好的。
#    （d）只有一个检查点和一种池化方式：冻结编码器的成败取决于从中取出的是哪个向量。
#    （e）种子改变的是新加的层、样本顺序和 dropout，而不是检查点或文本的选取，
#    因此用这种离散程度来衡量对其他数据的不确定性就偏小。
#    （f）它不能说明原因：全量微调胜过词袋，并不表明它利用了词序；要说明这一点，需要只有词序不同的文本。
#    （g）时间和内存只属于这一台机器，小模型也说明不了大模型的情况。
# <!-- END ANSWER -->

# %% [markdown] lang="en"
# # Exercise 9: Frozen, full, LoRA
#
# **Goal.** Write LoRA (Hu et al. 2021), the low-rank update that is learned beside frozen weights, put it into an
# encoder, merge it away again, and compare it with the frozen encoder and with full fine-tuning under one protocol.
#
# **Not the point.** High scores, dropout in LoRA, quantised weights, other adapters.
#
# **Time.** About 90 minutes.

# %% [markdown] lang="zh"
# # 练习 9：冻结、全量与 LoRA
#
# **目标**：实现 LoRA（Hu et al. 2021），即在冻结权重旁边学习一个低秩更新；把它加进编码器，再把它合并掉，
# 并在同一套规程下与冻结编码器和全量微调比较。
#
# **不涉及**：追求高分、LoRA 中的 dropout、量化权重、其他类型的适配器。
#
# **用时**：约 90 分钟。

# %%
import math
from collections.abc import Callable, Sequence

import torch
from sklearn.metrics import accuracy_score, f1_score
from torch import nn

from exercises.kit import (
    Classifier,
    ComparisonConfig,
    Meter,
    RunRecord,
    Splits,
    fit,
    parameter_counts,
    predict,
)

# %% [markdown] lang="en"
# ## A linear layer and its update
#
# Full fine-tuning moves a weight $W$ to $W + \Delta W$, and $\Delta W$ is as large as $W$. LoRA learns
# $\Delta W = \frac{\alpha}{r} B A$ with $A$ of shape $(r, d_{in})$ and $B$ of shape $(d_{out}, r)$, while $W$ stays
# frozen: $r (d_{in} + d_{out})$ numbers instead of $d_{in} d_{out}$. $B$ starts at zero, so that training starts from
# the pretrained model. $A$ must not: if both were zero, no gradient would reach either.

# %% [markdown] lang="zh"
# ## 线性层及其更新
#
# 全量微调把权重 $W$ 变成 $W + \Delta W$，其中 $\Delta W$ 与 $W$ 一样大。LoRA 学习的是
# $\Delta W = \frac{\alpha}{r} B A$，其中 $A$ 的形状为 $(r, d_{in})$，$B$ 的形状为 $(d_{out}, r)$，而 $W$ 保持冻结：
# 只需 $r (d_{in} + d_{out})$ 个数，而不是 $d_{in} d_{out}$ 个。$B$ 从零开始，因此训练从预训练模型出发。
# $A$ 则不能为零：如果两者都是零，梯度就传不到其中任何一个。


# %%
class LoRALinear(nn.Module):
    """A frozen linear layer and a low-rank update that learns: y = linear(x) + alpha / rank · x Aᵀ Bᵀ.

    linear: nn.Linear(in, out), with or without bias, of any floating dtype, on any device.  It may become a part of
        this module as it is, or be copied.  Its numbers stay what they are, here and in training.
    rank: r, an int from 1 to min(in, out).
    alpha: a positive number; the update is scaled by alpha / rank.
    generator: source of A's random numbers, on any device (draw on the generator's device, then move).  None means
        PyTorch's default generator, which is touched in that case only.

    The parameters of the module, under any names and in any order, have the dtype and the device of linear.weight:
        - two that require a gradient: A of shape (rank, in) and B of shape (out, rank);
        - linear's weight and bias (if it has one), which do not require a gradient.
    A starts with independent random numbers around 0, normal or uniform, of any spread; B starts at zero.  The same
    state of the generator gives the same A; a second layer from the same generator gets another A.

    layer(x): x is a tensor (..., in) of the layer's dtype and device with any number of axes from 1 on; returns
    (..., out).  It is the same in training and in evaluation mode, and differentiable in x, A and B.

    Source: Hu et al. 2021, section 4.1.

    Raises:
        ValueError: rank is no int, is below 1 or above min(in, out) (names rank, shows it);
            alpha is not a positive finite number, NaN included (names alpha, shows it).
    """

    def __init__(self, linear: nn.Linear, rank: int, alpha: float, generator: torch.Generator | None = None) -> None:
        super().__init__()
        ### BEGIN SOLUTION
        most = min(linear.in_features, linear.out_features)
        if not isinstance(rank, int) or not 1 <= rank <= most:
            raise ValueError(f"rank is {rank}, but must be an int from 1 to {most} for {linear}")
        if not 0 < alpha < math.inf:
            raise ValueError(f"alpha is {alpha}, but must be positive and finite")
        weight = linear.weight
        device = weight.device if generator is None else generator.device
        start = torch.randn(rank, linear.in_features, generator=generator, device=device)
        self.linear = linear.requires_grad_(False)
        self.scale = alpha / rank
        self.A = nn.Parameter((start / math.sqrt(linear.in_features)).to(weight))
        self.B = nn.Parameter(weight.new_zeros(linear.out_features, rank))
        ### END SOLUTION

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """y (..., out) for x (..., in)."""
        ### BEGIN SOLUTION
        return self.linear(x) + self.scale * (x @ self.A.T) @ self.B.T  # (..., r) on the way
        ### END SOLUTION


# %%
if __name__ == "__main__":
    linear = nn.Linear(768, 768)
    layer = LoRALinear(linear, rank=8, alpha=16.0, generator=torch.Generator().manual_seed(0))
    x = torch.randn(2, 5, 768)
    print("the same at first:", torch.equal(layer(x), linear(x)), " learning and all numbers:", parameter_counts(layer))

# %% [markdown] lang="en"
# ## Into an encoder
#
# Which layers get an update is said by the last part of their names: "query" means
# `encoder.layer.0.attention.self.query` and its sisters. Everything else is frozen, except the classification layer,
# which starts from random numbers and has to learn.

# %% [markdown] lang="zh"
# ## 放进编码器
#
# 哪些层得到更新，由层名的最后一段决定："query" 指的是 `encoder.layer.0.attention.self.query` 以及其他各层中同名的模块。
# 其余一切都冻结，只有分类层例外：它从随机数开始，必须学习。


# %%
def add_lora(
    model: Classifier, rank: int, alpha: float, targets: Sequence[str], generator: torch.Generator | None = None
) -> None:
    """Put a LoRALinear in the place of some linear layers of the encoder, and let only what is new learn.

    model: a Classifier, which is changed in place.  Its encoder is any module; its parameters may have been frozen
        before or not.
    rank, alpha: as for LoRALinear, the same for every layer.
    targets: names without dots.  Every nn.Linear inside model.encoder, at any depth, the last part of whose name is one
        of them, is replaced by LoRALinear(that layer, rank, alpha, generator).  A module of another kind is not, though
        its name may fit; nor is a layer whose name merely contains a target, or a layer outside of the encoder.
    generator: as for LoRALinear, the same for every layer, one after the other: each gets an A of its own.

    Afterwards these parameters require a gradient, and no others: A and B of every replaced layer, and the weight and
    bias of model.classifier.  The model's output is what it was.  What the function returns is not graded.

    Raises:
        ValueError: targets is empty, or one of them fits no nn.Linear in model.encoder (names targets);
            the encoder holds a LoRALinear already (names model);
            a rank or an alpha that LoRALinear refuses for one of the layers (names rank or alpha, shows it).
        A call that raises has replaced no layer.
    """
    ### BEGIN SOLUTION
    if any(isinstance(module, LoRALinear) for module in model.encoder.modules()):
        raise ValueError("model has LoRA already: merge it before adding more")
    last_part = {name: name.rpartition(".")[2] for name, _ in model.encoder.named_modules()}
    found = {
        name: module
        for name, module in model.encoder.named_modules()
        if isinstance(module, nn.Linear) and last_part[name] in targets
    }
    missing = [target for target in targets if target not in {last_part[name] for name in found}]
    if not targets or missing:
        raise ValueError(f"targets is {targets}, but the encoder has no linear layer for {missing or 'none of them'}")
    layers = {name: LoRALinear(module, rank, alpha, generator) for name, module in found.items()}  # may raise
    model.encoder.requires_grad_(False)
    for name, layer in layers.items():
        parent, _, last = name.rpartition(".")
        setattr(model.encoder.get_submodule(parent), last, layer)
    model.classifier.requires_grad_(True)
    ### END SOLUTION


# %% [markdown] lang="en"
# BERT-base with LoRA of rank 8 on query and value: the 24 × 8 · (768 + 768) numbers of 24 linear layers and the
# 1,538 of the classification layer learn, 296,450 in all, 0.27% of the model. On the device "meta" tensors have
# shapes but no numbers, so nothing is downloaded or computed. (The library `peft` reports the same 296,450, but a
# total of 109,780,228: it keeps a second copy of the classification layer, 1,538 numbers, and counts both.)

# %% [markdown] lang="zh"
# 在 BERT-base 的 query 和 value 上加秩为 8 的 LoRA：参与学习的是 24 个线性层的 24 × 8 · (768 + 768) 个数，
# 加上分类层的 1,538 个，共 296,450 个，占模型的 0.27%。设备 "meta" 上的张量只有形状，没有数值，
# 所以什么也不用下载或计算。（库 `peft` 报告的可学习参数同样是 296,450，但总数是 109,780,228：
# 它保留了分类层的另一份拷贝，即 1,538 个数，并把两份都计算在内。）

# %%
if __name__ == "__main__":
    from transformers import BertConfig, BertModel

    with torch.device("meta"):
        base = Classifier(BertModel(BertConfig()), num_labels=2)
    add_lora(base, rank=8, alpha=16.0, targets=("query", "value"))
    trainable, total = parameter_counts(base)
    print(f"{trainable:,} of {total:,} learn: {trainable / total:.2%}")

# %% [markdown] lang="en"
# ## Merged
#
# After training, $W + \frac{\alpha}{r} B A$ is a weight like any other. Added in, it makes the model as fast and as
# large as it was before, and nobody who uses it has to know of LoRA.

# %% [markdown] lang="zh"
# ## 合并
#
# 训练之后，$W + \frac{\alpha}{r} B A$ 就是一个普通的权重。把更新加进去以后，模型的速度和大小与原来相同，
# 使用它的人也无须知道 LoRA。


# %%
def merge_lora(model: nn.Module) -> None:
    """Put plain linear layers with the weights W + alpha / rank · B A in the place of all LoRALinear.

    model: any module that holds LoRALinear layers at any depth, put there by `add_lora` or by hand; changed in place.

    Afterwards the model gives the same outputs, up to rounding, and holds no LoRALinear: each is an nn.Linear again, of
    the same dtype and device, with the bias it had, or without.  Names and shapes in `model.state_dict()` are those of
    the model before LoRA came in, and all other parameters have the numbers they had.  Which parameters require a
    gradient then, and what the function returns, is not graded.

    Source: Hu et al. 2021, section 4.1, "No Additional Inference Latency".

    Raises:
        ValueError: model holds no LoRALinear (names model).
    """
    ### BEGIN SOLUTION
    found = [(name, module) for name, module in model.named_modules() if isinstance(module, LoRALinear)]
    if not found:
        raise ValueError("model holds no LoRALinear: there is nothing to merge")
    for name, layer in found:
        with torch.no_grad():
            layer.linear.weight += layer.scale * layer.B @ layer.A
        parent, _, last = name.rpartition(".")
        setattr(model.get_submodule(parent), last, layer.linear)
    ### END SOLUTION


# %% [markdown] lang="en"
# ## Three methods, one protocol
#
# As in exercise 8: fresh models, equally many settings and updates, the choice on the validation split, the test split
# read once, costs measured after a warm-up. LoRA needs a generator of its own for every run: all that is random must
# follow from the seed. Note what LoRA saves, and what it does not: the encoder runs forward and backward as often as in
# full fine-tuning.

# %% [markdown] lang="zh"
# ## 三种方法，一套规程
#
# 与练习 8 相同：每次使用新模型，候选设置和更新次数相同，用验证集做选择，测试集只读取一次，代价在预热之后测量。
# 每次 LoRA 运行都需要自己的生成器：一切随机性都必须由种子决定。请注意 LoRA 省下了什么，又没有省下什么：
# 编码器前向和反向运行的次数与全量微调相同。


# %%
def compare_transfer(
    splits: Splits, make_model: Callable[[int], Classifier], config: ComparisonConfig
) -> list[RunRecord]:
    """One RunRecord for each seed of config.seeds and each of "frozen", "full" and "lora", in any order.

    splits: train, validation and test, each a sequence of Example(input_ids, label); labels are 0 and 1, and both occur
        in train.  An example may be read anew at every access, so keep what you read: `train = list(splits.train)`.
    make_model: make_model(seed) gives a fresh Classifier on the CPU: always the same pretrained encoder, and a
        classification layer whose random weights the seed decides.
    config: seeds; settings of each method; updates, batch_size, weight_decay, device, pad_id; lora_rank, lora_alpha,
        lora_targets.

    "frozen": only the classification layer learns.  "full": everything learns.  "lora": `add_lora` with lora_rank,
    lora_alpha, lora_targets and a generator that is made for each model and seeded from the seed alone, so that A is
    the same for all settings of one seed, and another one for another seed.  For each seed and method:
        1. For each setting in config.settings[method], make_model(seed) gives a fresh model.  It is trained on
           splits.train with the setting as learning rate, for exactly config.updates updates of config.batch_size texts
           each: by `fit(…, learning_rate=setting, seed=seed, …)`, or by a loop of your own that keeps to the same
           numbers.  Then it is scored by its accuracy on splits.validation.
        2. The setting with the highest accuracy is chosen, the first of them if several are equal.
        3. Then, and not before, each test text is read, once, and the model of the chosen setting predicts it.
    Nothing is learned from validation or test.  Padding is config.pad_id with attention mask 0; no dropout in
    predictions.  A frozen run may keep the features of training and validation texts instead of running the encoder
    anew for every batch; a test text is run through the encoder when it is predicted.  A LoRA model may predict merged
    or not.

    The RunRecord of such a run:
        - method, seed, chosen_hyperparameters {"learning_rate": …}, validation_score: the accuracy on validation with
          the chosen setting, test_predictions: a list of ints;
        - accuracy and f1 on test, f1 that of class 1, 0.0 where it is 0/0;
        - train_seconds and peak_memory_bytes of the training run with the chosen setting, and predict_seconds of
          predicting the test split (`Meter` measures all three).  Before the first measurement something like it has
          been run for nothing, with a model of its own from make_model and training texts;
        - trainable_parameters, total_parameters: of the model while it is trained, as `parameter_counts` has them; for
          "lora" A and B are in both, before any merging;
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
    tried = {method: len(config.settings.get(method, ())) for method in ("frozen", "full", "lora")}
    if min(tried.values()) == 0 or len(set(tried.values())) > 1:
        raise ValueError(f"config.settings must have equally many settings for each method, and has {tried}")
    train, validation = list(splits.train), list(splits.validation)
    where = {"pad_id": config.pad_id, "device": config.device}
    how = {"batch_size": config.batch_size, "weight_decay": config.weight_decay, **where}

    warm = make_model(config.seeds[0])
    fit(warm, train, learning_rate=0.0, updates=2, seed=0, **how)
    predict(warm, train, **where)

    def prepared(method: str, seed: int) -> Classifier:
        model = make_model(seed)
        if method == "lora":
            source = torch.Generator().manual_seed(seed)
            add_lora(model, config.lora_rank, config.lora_alpha, config.lora_targets, source)
        else:
            model.encoder.requires_grad_(method == "full")
        return model.to(config.device)

    def run(method: str, seed: int) -> RunRecord:
        best = None
        for learning_rate in config.settings[method]:
            model = prepared(method, seed)
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

    return [run(method, seed) for seed in config.seeds for method in ("frozen", "full", "lora")]
    ### END SOLUTION


# %% [markdown] lang="en"
# ## In writing (4 points, graded by a person)
#
# Run the comparison on data and a checkpoint of your choice, with three seeds or more, and answer with its numbers.
#
# 1. What does the comparison show about LoRA: what does it save over full fine-tuning, and what does it not save?
# 2. Which conclusions about the three methods would go too far, and what would have to be measured for them?
#
# <!-- BEGIN ANSWER -->
# 1. At an equal number of updates it shows how accuracy on the test split compares for this checkpoint, this data set
#    and these settings, with a spread over the seeds: a difference within that spread is no difference. It shows that
#    LoRA learns $r (d_{in} + d_{out})$ numbers for each target and the classification layer, well below 1% of a large
#    model, so gradients and AdamW's two moments are kept for these only, and what has to be stored for each task is
#    small. It also shows what is not saved: the encoder is called forward and backward once an update as in full
#    fine-tuning, since gradients must pass through all layers above the lowest target. Only the frozen encoder gets rid
#    of the backward calls, and of most forward calls where its features are kept. The forward pass even grows by the
#    update until it is merged; merged, it predicts as fast as the full model. On a small model the peak memory of the
#    process hardly differs, since activations and code take most of it.
# 2. That LoRA is as good as (or worse than) full fine-tuning in general: that takes several data sets, sizes of the
#    training split, checkpoints, ranks and targets. Three seeds give a rough spread, and a test split of $n$ texts
#    has a standard error of $\sqrt{p (1-p) / n}$ of its own, about 1.3 points at $n = 1000$ and $p = 0.8$. That one
#    method is faster: seconds hold for one machine, batch size and length of text, and peak memory of a process is not
#    that of a GPU. That a method is bad when its learning rates were: with few settings each, the one whose good range
#    was hit profits, and LoRA usually wants larger rates. That a method would also lose with more updates: an equal
#    budget is one point of a curve. And the head decides too: with mean pooling a frozen encoder can win, with an
#    untrained [CLS] vector it can fall below a bag of words.
# <!-- END ANSWER -->

# %% [markdown] lang="zh"
# ## 书面回答（4 分，由教师评阅）
#
# 选择数据和检查点，用三个或更多种子运行这一比较，并用得到的数值回答。
#
# 1. 这一比较说明了 LoRA 的什么：与全量微调相比，它省下了什么，又没有省下什么？
# 2. 关于这三种方法，哪些结论过于武断？要得出那些结论，还需要测量什么？
#
# <!-- BEGIN ANSWER -->
# 1. 在更新次数相同的条件下，它说明了对这个检查点、这个数据集和这些设置，测试准确率孰高孰低，
#    并给出随种子变化的离散程度：落在这一范围之内的差异不算差异。它说明 LoRA 对每个目标层只学习
#    $r (d_{in} + d_{out})$ 个数，再加上分类层，对大模型来说远低于 1%；
#    因此只需为这些参数保存梯度和 AdamW 的两个矩，每个任务需要存储的内容也很少。
#    它也说明了没有省下什么：每次更新编码器仍要前向和反向各运行一次，与全量微调相同，
#    因为梯度必须穿过最低的目标层以上的所有层。只有冻结编码器省去了反向调用；如果缓存特征，还省去了大部分前向调用。
#    在合并之前，前向计算还多出了更新的部分；合并之后，预测速度与完整模型相同。
#    对小模型来说，进程的峰值内存几乎没有差别，因为激活值和代码占了大部分。
# 2. “LoRA 总体上与全量微调一样好（或更差）”：这需要多个数据集、多种训练集规模、多个检查点、多种秩和目标层。
#    三个种子只能粗略给出离散程度，而含 $n$ 个文本的测试集本身就有 $\sqrt{p (1-p) / n}$ 的标准误差，
#    当 $n = 1000$、$p = 0.8$ 时约为 1.3 个百分点。“某种方法更快”：秒数只对一台机器、一种批大小和文本长度成立，
#    进程的峰值内存也不等于 GPU 的峰值内存。“某种方法不好”，其实可能是它的学习率不好：每种方法只试少数几个设置，
#    碰巧落在合适范围内的方法会占便宜，而 LoRA 通常需要更大的学习率。“更新更多次它也会输”：
#    相同的预算只是曲线上的一个点。此外，分类头的取法也起决定作用：用平均池化时冻结编码器可能胜出，
#    用未经训练的 [CLS] 向量时它可能还不如词袋。
# <!-- END ANSWER -->

# %% [markdown] lang="en"
# # Exercise 6: Fine-tuning
#
# **Goal.** Fine-tune a pretrained encoder for classification, with the encoder frozen or not, so that the result can be
# trusted: early stopping on the validation split, the best epoch's weights restored, the test split read once.
#
# **Not the point.** Schedules, mixed precision, several seeds (exercise 8), high scores.
#
# **Time.** About 90 minutes.

# %% [markdown] lang="zh"
# # 练习 6：微调
#
# **目标**：在分类任务上微调预训练编码器（冻结或不冻结），并使结果可信：
# 依据验证集早停，恢复最佳 epoch 的权重，测试集只读取一次。
#
# **不涉及**：学习率调度、混合精度、多个随机种子（练习 8），以及追求高分。
#
# **用时**：约 90 分钟。

# %%
from typing import Any

import torch
from torch import nn

from exercises.kit import (
    Classifier,
    EpochMetrics,
    Example,
    FineTuneConfig,
    FineTuneResult,
    Splits,
    collate,
    parameter_counts,
)

# %% [markdown] lang="en"
# ## What learns
#
# `requires_grad` of a *parameter* decides whether a gradient is computed for it. On a module the same assignment makes
# a new attribute that nobody reads. Set it in both directions: you do not know what was done to the model before.

# %% [markdown] lang="zh"
# ## 哪些参数参与学习
#
# 是否为某个*参数*计算梯度，由它的 `requires_grad` 决定。对模块做同样的赋值，只会多出一个没人读取的属性。
# 两个方向都要设置：你不知道模型之前经历过什么。


# %%
def set_trainable(model: Classifier, mode: str) -> None:
    """Choose the parameters that learn.

    model: `model.encoder` and `model.classifier` are its two parts.
    mode: "frozen": of all parameters of the model only those of model.classifier require a gradient;
        "full": all of them do.

    It holds whatever required a gradient before. Nothing but requires_grad changes: the model keeps its parameters,
    their values, and its training or evaluation mode.

    Raises:
        ValueError: any other mode (names mode, shows it).
    """
    ### BEGIN SOLUTION
    if mode not in ("frozen", "full"):
        raise ValueError(f'mode must be "frozen" or "full", not {mode!r}')
    model.requires_grad_(mode == "full")
    model.classifier.requires_grad_(True)
    ### END SOLUTION


# %% [markdown] lang="en"
# ## Groups for AdamW
#
# Weight decay pulls weights towards 0, which keeps matrices small; a bias or the scale of a LayerNorm has no reason to
# be small. And the classification layer starts from random numbers, so it takes larger steps than the pretrained
# encoder. AdamW takes a list of groups, each a dict with its own settings. A shared parameter has two names and still
# belongs into one group, once. Names differ between libraries: PyTorch's own attention has a bias that is called
# `in_proj_bias`, and its LayerNorm layers are called `norm1` and `norm2`.

# %% [markdown] lang="zh"
# ## AdamW 的参数组
#
# 权重衰减把权重拉向 0，使矩阵保持较小；偏置和 LayerNorm 的缩放系数则没有理由变小。
# 分类层从随机数开始，因此步长要比预训练编码器更大。AdamW 接受一个由参数组构成的列表，每组是一个带有各自设置的字典。
# 共享的参数有两个名字，但仍只能在一个组中出现一次。不同的库命名不同：
# PyTorch 自带的注意力有一个叫 `in_proj_bias` 的偏置，它的 LayerNorm 层叫 `norm1` 和 `norm2`。


# %%
def parameter_groups(model: Classifier, config: FineTuneConfig) -> list[dict[str, Any]]:
    """Parameter groups that torch.optim.AdamW takes.

    model: read only; what requires a gradient is read off the parameters, whatever config.mode says.
    config: learning_rate, head_learning_rate and weight_decay are used.

    Returns a list of dicts with the keys "params", "lr" and "weight_decay":
        - the parameters that require a gradient, and no others, each in exactly one group and once, even one that two
          modules share;
        - "lr" is config.head_learning_rate for the parameters of model.classifier, config.learning_rate for all others;
        - "weight_decay" is 0 for biases (parameters whose name ends in "bias": "in_proj_bias" is one,
          "relative_attention_bias.weight" is not) and for the weights of LayerNorm (modules of class nn.LayerNorm,
          whatever they are called), config.weight_decay for all others, embeddings and classification layer included.
    How many groups there are, and in which order, is up to you.
    """
    ### BEGIN SOLUTION
    head = {id(parameter) for parameter in model.classifier.parameters()}
    scales = {id(module.weight) for module in model.modules() if isinstance(module, nn.LayerNorm)}
    groups: dict[tuple[float, float], list[nn.Parameter]] = {}
    for name, parameter in model.named_parameters():  # a shared parameter comes once, under its first name
        if parameter.requires_grad:
            rate = config.head_learning_rate if id(parameter) in head else config.learning_rate
            spared = name.endswith("bias") or id(parameter) in scales
            groups.setdefault((rate, 0.0 if spared else config.weight_decay), []).append(parameter)
    return [{"params": group, "lr": rate, "weight_decay": decay} for (rate, decay), group in groups.items()]
    ### END SOLUTION


# %% [markdown] lang="en"
# ## The run
#
# Three splits, three roles: learn from `train`, choose the epoch with `validation`, and read `test` when all choices
# are made. A test split that took part in a choice is a second validation split, and its score is too good.
#
# Keep an eye on these: freeze *before* the optimizer exists; dropout on while training, off while evaluating, and on
# again; an epoch's loss is a mean over examples, so a small last batch counts less than a full one; the state that is
# kept must be a copy, because `state_dict()` hands out the very tensors that the optimizer goes on changing.
#
# `kit.collate` makes padded batches, `kit.parameter_counts` counts. `torch.random.fork_rng` lets you seed PyTorch's
# global generator, from which dropout draws, and gives it back as it was.

# %% [markdown] lang="zh"
# ## 训练过程
#
# 三个划分，三种角色：从 `train` 学习，用 `validation` 选择 epoch，所有选择做完之后才读取 `test`。
# 参与过选择的测试集就成了第二个验证集，其得分会偏高。
#
# 请留意：*先*冻结，再创建优化器；训练时开启 dropout，评估时关闭，之后再开启；一个 epoch 的损失是对样本求平均，
# 因此较小的最后一个批次所占的权重小于完整的批次；保存的状态必须是副本，
# 因为 `state_dict()` 给出的正是优化器会继续修改的那些张量。
#
# `kit.collate` 构造填充好的批次，`kit.parameter_counts` 统计参数量。
# `torch.random.fork_rng` 允许你为 PyTorch 的全局生成器（dropout 从中抽样）设置种子，结束后再恢复原状。


# %%
def fine_tune(model: Classifier, splits: Splits, config: FineTuneConfig) -> FineTuneResult:
    """Fine-tune the model with early stopping, and test it once.

    model: logits = model(input_ids, attention_mask); it starts from the weights that it has and is trained in place.
        Its labels are 0 and 1.
    splits: train, validation and test, each a sequence of Example(input_ids, label). Not changed.
    config: see exercises/kit/records.py; all of it is used.

    Training
        - on config.device, with AdamW and parameter_groups(model, config), after set_trainable with config.mode, even
          if something else required a gradient before. The loss is the mean cross-entropy of a batch; an update
          follows its gradient alone. A learning-rate schedule or gradient clipping is allowed.
        - Every epoch goes over all of splits.train once, in an order that config.seed decides, in batches of
          config.batch_size (the last one may be smaller), one update each.
        - Every batch, in training and evaluation, is padded on the right with config.pad_id to its own longest text,
          and the model is given the attention mask: 1 at tokens, 0 at padding. A pad_id inside a text is a token.
        - mode "full": dropout is on while training, in every epoch. mode "frozen": it may be on or off, and the
          encoder's parameters stay as they are, bit by bit.
        - Evaluation, on validation and test, is in evaluation mode: no dropout.

    Early stopping
        - An epoch improves if its validation loss is strictly lower than the lowest so far, by however little (NaN is
          lower than nothing). The first epoch improves.
        - Training stops after config.patience epochs in a row that do not improve, or after config.max_epochs.
        - Then the weights of the best epoch, the last that improved, are put back into `model`, however training ended.
        - After that splits.test is read: each example exactly once, and none of them earlier.

    Returns a FineTuneResult; all its numbers are Python numbers:
        - trainable_parameters, total_parameters: numbers in the parameters that learn, and in all of them; a shared
          parameter counts once.
        - history: a list of one EpochMetrics an epoch. epoch: 1, 2, …; train_loss: mean over the training examples of
          their losses as seen while training; validation_loss: mean over the validation examples, after the epoch;
          validation_accuracy.
        - best_epoch; test_accuracy and test_f1 with its weights. F1 is that of class 1: 2 TP / (2 TP + FP + FN), 0.0
          where that is 0/0.
        - predict(input_ids, attention_mask): ids (m, T) and a mask (m, T) of bool or 0/1 integers -> int64 classes (m,)
          on the device of input_ids. It uses no dropout, whatever mode the model is in when it is called, and gives
          the same classes whatever ids of the vocabulary stand at the padding on the right, and however much of it
          there is. It raises ValueError (names attention_mask) for a row of padding only.

    The same model, splits and config give the same result, whatever the state of any global random generator, and the
    global generators of torch, numpy and random are left as they were.
    """
    ### BEGIN SOLUTION
    set_trainable(model, config.mode)
    model.to(config.device)
    optimizer = torch.optim.AdamW(parameter_groups(model, config))

    def batch_of(examples: list[Example]) -> tuple[torch.Tensor, torch.Tensor]:
        batch = collate(examples, pad_id=config.pad_id, device=config.device)
        return model(batch.input_ids, batch.attention_mask), batch.labels  # (m, C), (m,)

    def train(order: torch.Generator) -> float:
        model.train()
        total = 0.0
        for chosen in torch.randperm(len(splits.train), generator=order).split(config.batch_size):
            logits, labels = batch_of([splits.train[index] for index in chosen.tolist()])
            loss = nn.functional.cross_entropy(logits, labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            total += loss.item() * len(labels)
        return total / len(splits.train)

    @torch.no_grad()
    def evaluate(examples: list[Example]) -> tuple[float, torch.Tensor, torch.Tensor]:
        model.eval()
        total, classes, truth = 0.0, [], []
        for start in range(0, len(examples), config.batch_size):
            logits, labels = batch_of(examples[start : start + config.batch_size])
            total += nn.functional.cross_entropy(logits, labels, reduction="sum").item()
            classes.append(logits.argmax(dim=-1))
            truth.append(labels)
        return total / len(examples), torch.cat(classes), torch.cat(truth)

    history: list[EpochMetrics] = []
    best_epoch, lowest = 0, float("inf")
    best = {}
    with torch.random.fork_rng():
        torch.manual_seed(config.seed)  # for dropout
        order = torch.Generator().manual_seed(config.seed)
        for epoch in range(1, config.max_epochs + 1):
            train_loss = train(order)
            loss, classes, truth = evaluate(list(splits.validation))
            history.append(EpochMetrics(epoch, train_loss, loss, (classes == truth).double().mean().item()))
            if loss < lowest or epoch == 1:
                best_epoch, lowest = epoch, loss
                best = {name: value.clone() for name, value in model.state_dict().items()}
            elif epoch - best_epoch >= config.patience:
                break
    model.load_state_dict(best)

    _, classes, truth = evaluate(list(splits.test))
    hits = int(((classes == 1) & (truth == 1)).sum())
    misses = int(((classes == 1) != (truth == 1)).sum())
    trainable, total = parameter_counts(model)

    @torch.no_grad()
    def predict(input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        if not attention_mask.bool().any(dim=1).all():
            raise ValueError("attention_mask has a row of padding only: there is no text to classify")
        model.eval()
        logits = model(input_ids.to(config.device), attention_mask.to(config.device))  # (m, C)
        return logits.argmax(dim=-1).to(input_ids.device)

    return FineTuneResult(
        trainable_parameters=trainable,
        total_parameters=total,
        history=history,
        best_epoch=best_epoch,
        test_accuracy=(classes == truth).double().mean().item(),
        test_f1=2 * hits / (2 * hits + misses) if hits + misses else 0.0,
        predict=predict,
    )
    ### END SOLUTION


# %% [markdown] lang="en"
# ## To look at
#
# A toy task: the label is 1 exactly if id 5 occurs in the text. The encoder here is a small BERT with random weights.
# Compare the two modes: which can learn what the random encoder does not show to a linear layer? Then raise
# `learning_rate` tenfold and watch the validation loss.

# %% [markdown] lang="zh"
# ## 看一看
#
# 一个玩具任务：当且仅当文本中出现 id 5 时，标签为 1。这里的编码器是一个随机初始化的小型 BERT。
# 比较两种模式：随机编码器没有呈现给线性层的信息，哪种模式能够学到？
# 然后把 `learning_rate` 增大十倍，观察验证损失。

# %%
if __name__ == "__main__":
    from transformers import BertConfig, BertModel

    source = torch.Generator().manual_seed(0)

    def text(label: int) -> Example:
        ids = torch.randint(6, 40, (int(torch.randint(4, 12, (), generator=source)),), generator=source)
        if label:
            ids[torch.randint(len(ids), (), generator=source)] = 5
        return Example([2, *ids.tolist(), 3], label)

    data = Splits(*([text(number % 2) for number in range(count)] for count in (128, 64, 64)))
    for mode in ("frozen", "full"):
        torch.manual_seed(0)
        sizes = {"hidden_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 64}
        classifier = Classifier(BertModel(BertConfig(vocab_size=40, **sizes), add_pooling_layer=False), 2)
        result = fine_tune(classifier, data, FineTuneConfig(mode, 2e-3, 2e-2, max_epochs=20, patience=4))
        print(f"{mode}: {result.trainable_parameters:,} of {result.total_parameters:,} parameters learn")
        for entry in result.history:
            print(f"  epoch {entry.epoch}: training {entry.train_loss:.3f}, validation {entry.validation_loss:.3f}")
        print(f"  best epoch {result.best_epoch}, test accuracy {result.test_accuracy:.3f}, F1 {result.test_f1:.3f}")

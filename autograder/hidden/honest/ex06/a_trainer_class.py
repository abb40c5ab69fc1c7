# honest: A class does everything; a deep copy of the whole model is the best one; predict is a bound method.
"""A trainer."""

import copy

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from exercises.kit import Classifier, EpochMetrics, FineTuneConfig, FineTuneResult, Splits, collate


def set_trainable(model: Classifier, mode: str) -> None:
    if mode in ("full", "frozen"):
        for parameter in model.encoder.parameters():
            parameter.requires_grad = mode != "frozen"
        for parameter in model.classifier.parameters():
            parameter.requires_grad = True
        return
    raise ValueError(f"{mode = } is not known")


def parameter_groups(model: Classifier, config: FineTuneConfig) -> list:
    seen = set()
    groups = []

    def visit(module: nn.Module, rate: float) -> None:
        for name, parameter in module.named_parameters(recurse=False):
            if parameter in seen or not parameter.requires_grad:
                continue
            seen.add(parameter)
            decay = config.weight_decay
            if name.endswith("bias") or isinstance(module, nn.LayerNorm):
                decay = 0.0
            groups.append({"params": parameter, "lr": rate, "weight_decay": decay})
        for child in module.children():
            visit(child, rate)

    visit(model.classifier, config.head_learning_rate)
    visit(model, config.learning_rate)
    return groups


class Trainer:
    """Holds a model, its data and what was measured."""

    def __init__(self, model, splits, config):
        self.model, self.splits, self.config = model, splits, config
        set_trainable(model, config.mode)
        model.to(config.device)
        self.optimizer = torch.optim.AdamW(parameter_groups(model, config))
        self.rng = np.random.default_rng(config.seed)
        self.history, self.best, self.best_epoch = [], None, 0

    def batches(self, examples, order):
        size = self.config.batch_size
        for start in range(0, len(order), size):
            yield collate(
                [examples[int(i)] for i in order[start : start + size]],
                pad_id=self.config.pad_id,
                device=self.config.device,
            )

    def train_epoch(self):
        self.model.train()
        weighted, count = 0.0, 0
        for batch in self.batches(self.splits.train, self.rng.permutation(len(self.splits.train))):
            loss = F.cross_entropy(self.model(batch.input_ids, batch.attention_mask), batch.labels)
            gradients = torch.autograd.grad(loss, self.learning(), allow_unused=True)
            for parameter, gradient in zip(self.learning(), gradients):
                parameter.grad = gradient
            self.optimizer.step()
            weighted, count = weighted + loss.item() * len(batch.labels), count + len(batch.labels)
        return weighted / count

    def learning(self):
        return [p for group in self.optimizer.param_groups for p in group["params"]]

    def evaluate(self, examples):
        self.model.eval()
        examples = list(examples)
        rows, labels = [], []
        with torch.no_grad():
            for batch in self.batches(examples, range(len(examples))):
                rows.append(self.model(batch.input_ids, batch.attention_mask))
                labels.append(batch.labels)
        logits, labels = torch.cat(rows), torch.cat(labels)
        return F.cross_entropy(logits, labels).item(), logits.argmax(1), labels

    def run(self):
        lowest, left = np.inf, self.config.patience
        for epoch in range(1, self.config.max_epochs + 1):
            train_loss = self.train_epoch()
            loss, guesses, labels = self.evaluate(self.splits.validation)
            self.history.append(EpochMetrics(epoch, train_loss, loss, np.mean((guesses == labels).cpu().numpy())))
            if loss < lowest:
                lowest, left = loss, self.config.patience
                self.best, self.best_epoch = copy.deepcopy(self.model), epoch
            else:
                left -= 1
            if left == 0:
                break
        with torch.no_grad():
            for mine, best in zip(self.model.parameters(), self.best.parameters()):
                mine.copy_(best)
            for mine, best in zip(self.model.buffers(), self.best.buffers()):
                mine.copy_(best)
        return self.report()

    def report(self):
        _, guesses, labels = self.evaluate(self.splits.test)
        guesses, labels = guesses.cpu().numpy(), labels.cpu().numpy()
        true_positives = np.sum((guesses == 1) * (labels == 1))
        positives = np.sum(guesses == 1) + np.sum(labels == 1)
        return FineTuneResult(
            trainable_parameters=sum(p.numel() for p in self.model.parameters() if p.requires_grad),
            total_parameters=sum(p.numel() for p in self.model.parameters()),
            history=tuple(self.history),
            best_epoch=self.best_epoch,
            test_accuracy=np.mean(guesses == labels),
            test_f1=2 * true_positives / positives if positives else 0.0,
            predict=self.predict,
        )

    @torch.no_grad()
    def predict(self, input_ids, attention_mask):
        if 0 in attention_mask.long().sum(1).tolist():
            raise ValueError("attention_mask is empty in a row")
        self.model.eval()
        where = self.config.device
        logits = self.model(input_ids.to(where), attention_mask.to(where))
        return (logits[:, 1] > logits[:, 0]).long().to(input_ids.device)


def fine_tune(model: Classifier, splits: Splits, config: FineTuneConfig) -> FineTuneResult:
    with torch.random.fork_rng():
        torch.manual_seed(config.seed)
        return Trainer(model, splits, config).run()

# fault: A schedule meant for epochs steps after every batch: each has a tenth of the learning rates before.
# function: fine_tune
# check: test_full_fine_tuning_learns
# misconception: nothing-learned
"""Fine-tuning a classifier: what learns, how fast, and for how long."""

import torch
import torch.nn.functional as F
from torch import nn

from exercises.kit import EpochMetrics, FineTuneResult


def set_trainable(model, mode):
    """Freeze the encoder or let everything learn."""
    if mode not in ("frozen", "full"):
        raise ValueError(f"mode is {mode!r}: choose frozen or full")
    for parameter in model.encoder.parameters():
        parameter.requires_grad = mode == "full"
    for parameter in model.classifier.parameters():
        parameter.requires_grad = True


def parameter_groups(model, config):
    """Four groups: encoder and head, with and without weight decay."""
    norms = [module for module in model.modules() if isinstance(module, nn.LayerNorm)]
    no_decay = {id(parameter) for norm in norms for parameter in norm.parameters()}
    head = {id(parameter) for parameter in model.classifier.parameters()}
    groups = []
    for is_head in (False, True):
        for decays in (True, False):
            chosen = [
                parameter
                for name, parameter in model.named_parameters()
                if parameter.requires_grad
                and (id(parameter) in head) == is_head
                and (not name.endswith("bias") and id(parameter) not in no_decay) == decays
            ]
            rate = config.head_learning_rate if is_head else config.learning_rate
            decay = config.weight_decay if decays else 0.0
            groups.append({"params": chosen, "lr": rate, "weight_decay": decay})
    return groups


def padded(examples, config):
    """Ids, attention mask and labels of a batch."""
    width = max(len(ids) for ids, _ in examples)
    ids = torch.tensor([list(row) + [config.pad_id] * (width - len(row)) for row, _ in examples])
    mask = torch.tensor([[1] * len(row) + [0] * (width - len(row)) for row, _ in examples])
    labels = torch.tensor([label for _, label in examples])
    return ids.to(config.device), mask.to(config.device), labels.to(config.device)


def evaluate(model, examples, config):
    """Mean loss, accuracy, classes and labels."""
    model.eval()
    loss_sum, classes, truth = 0.0, [], []
    with torch.no_grad():
        for start in range(0, len(examples), config.batch_size):
            ids, mask, labels = padded(examples[start : start + config.batch_size], config)
            logits = model(ids, mask)
            loss_sum += F.cross_entropy(logits, labels, reduction="sum").item()
            classes += logits.argmax(dim=1).tolist()
            truth += labels.tolist()
    accuracy = sum(p == y for p, y in zip(classes, truth)) / len(truth)
    return loss_sum / len(truth), accuracy, classes, truth


def f1_score(classes, truth):
    """F1 of class 1."""
    hits = sum(p == 1 and y == 1 for p, y in zip(classes, truth))
    others = sum((p == 1) != (y == 1) for p, y in zip(classes, truth))
    return 2 * hits / (2 * hits + others) if hits + others else 0.0


def fine_tune(model, splits, config):
    """Train with early stopping, restore the best epoch, test once."""
    train = list(splits.train)
    validation = list(splits.validation)
    model.to(config.device)
    set_trainable(model, config.mode)
    optimizer = torch.optim.AdamW(parameter_groups(model, config))
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.1)
    history, best, best_epoch, best_loss, waited = [], None, 0, float("inf"), 0
    with torch.random.fork_rng():
        torch.manual_seed(config.seed)
        shuffling = torch.Generator().manual_seed(config.seed)
        for epoch in range(1, config.max_epochs + 1):
            model.train()
            loss_sum = 0.0
            order = torch.randperm(len(train), generator=shuffling).tolist()
            for start in range(0, len(order), config.batch_size):
                chosen = [train[index] for index in order[start : start + config.batch_size]]
                ids, mask, labels = padded(chosen, config)
                optimizer.zero_grad()
                loss = F.cross_entropy(model(ids, mask), labels)
                loss.backward()
                optimizer.step()
                schedule.step()
                loss_sum += loss.item() * len(labels)
            train_loss = loss_sum / len(order)
            loss, accuracy, _, _ = evaluate(model, validation, config)
            history.append(EpochMetrics(epoch, train_loss, loss, accuracy))
            if best is None or loss < best_loss:
                best, best_epoch, best_loss, waited = kept(model), epoch, loss, 0
            else:
                waited += 1
                if waited >= config.patience:
                    break
    model.load_state_dict(best)
    _, test_accuracy, classes, truth = evaluate(model, list(splits.test), config)
    sizes = [(p.numel(), p.requires_grad) for p in model.parameters()]

    def predict(input_ids, attention_mask):
        if not attention_mask.bool().any(dim=1).all():
            raise ValueError("attention_mask has a row without a token")
        model.eval()
        with torch.no_grad():
            logits = model(input_ids.to(config.device), attention_mask.to(config.device))
        return logits.argmax(dim=1).to(input_ids.device)

    return FineTuneResult(
        trainable_parameters=sum(size for size, learns in sizes if learns),
        total_parameters=sum(size for size, _ in sizes),
        history=history,
        best_epoch=best_epoch,
        test_accuracy=test_accuracy,
        test_f1=f1_score(classes, truth),
        predict=predict,
    )


def kept(model):
    """A copy of the weights."""
    return {name: value.detach().clone() for name, value in model.state_dict().items()}

# honest: With a frozen encoder the features are computed once, and only the linear layer is run in training.
"""A frozen encoder needs to run once."""

import torch
from torch import nn

from exercises.kit import EpochMetrics, FineTuneResult, collate


class UnbekannterModus(ValueError):
    """Ein Modus, den es nicht gibt."""


def set_trainable(model, mode):
    if mode != "frozen" and mode != "full":
        raise UnbekannterModus(f"mode: „{mode}“ gibt es nicht")
    head = {id(p) for p in model.classifier.parameters()}
    for p in model.parameters():
        p.requires_grad_(mode == "full" or id(p) in head)


def parameter_groups(model, config):
    head = {p for p in model.classifier.parameters()}
    plain = {m.weight for m in model.modules() if isinstance(m, nn.LayerNorm)}
    plain |= {p for n, p in model.named_parameters() if n.rpartition(".")[2].endswith("bias")}
    learning = {p: None for p in model.parameters() if p.requires_grad}
    groups = [
        {"params": [p for p in learning if p in head and p not in plain], "weight_decay": config.weight_decay},
        {"params": [p for p in learning if p in head and p in plain], "weight_decay": 0.0},
        {"params": [p for p in learning if p not in head and p not in plain], "weight_decay": config.weight_decay},
        {"params": [p for p in learning if p not in head and p in plain], "weight_decay": 0.0},
    ]
    for place, group in enumerate(groups):
        group["lr"] = config.head_learning_rate if place < 2 else config.learning_rate
    return [group for group in groups if group["params"]]


def fine_tune(model, splits, config):
    set_trainable(model, config.mode)
    model.to(config.device)
    frozen = config.mode == "frozen"
    train = list(splits.train)
    validation = list(splits.validation)

    def inputs(examples):
        """What the learning part of the model gets: features, or a batch of ids."""
        batch = collate(examples, pad_id=config.pad_id, device=config.device)
        if not frozen:
            return batch
        model.eval()
        with torch.no_grad():
            return batch._replace(input_ids=model.features(batch.input_ids, batch.attention_mask))

    def scores(batch):
        return model.classifier(batch.input_ids) if frozen else model(batch.input_ids, batch.attention_mask)

    cached = {}
    if frozen:
        for number, example in enumerate(train):
            cached[number] = inputs([example])

    def batch_of(numbers):
        if not frozen:
            return inputs([train[number] for number in numbers])
        parts = [cached[number] for number in numbers]
        joined = torch.cat([part.input_ids for part in parts])
        return parts[0]._replace(input_ids=joined, labels=torch.cat([part.labels for part in parts]))

    def measure(examples):
        model.eval()
        total, guesses = 0.0, []
        with torch.no_grad():
            for example in examples:  # one by one: nothing to pad
                batch = inputs([example])
                logits = scores(batch)
                total += nn.functional.cross_entropy(logits, batch.labels).item()
                guesses.append(logits.argmax().item())
        return total / len(guesses), guesses

    optimizer = torch.optim.AdamW(parameter_groups(model, config))
    source = torch.Generator()
    source.manual_seed(config.seed)
    history, states = [], {}
    with torch.random.fork_rng():
        torch.random.manual_seed(config.seed + 17)
        for epoch in range(config.max_epochs):
            numbers = torch.rand(len(train), generator=source).argsort().tolist()
            total = 0.0
            while numbers:
                chosen, numbers = numbers[: config.batch_size], numbers[config.batch_size :]
                batch = batch_of(chosen)
                model.train(not frozen)
                loss = nn.functional.cross_entropy(scores(batch), batch.labels, reduction="sum")
                optimizer.zero_grad()
                (loss / len(chosen)).backward()
                optimizer.step()
                total += loss.item()
            validation_loss, guesses = measure(validation)
            right = sum(guess == example.label for guess, example in zip(guesses, validation))
            history.append(EpochMetrics(epoch + 1, total / len(train), validation_loss, right / len(validation)))
            losses = [entry.validation_loss if entry.validation_loss == entry.validation_loss else 1e9 for entry in history]
            best = losses.index(min(losses))
            if best == epoch:
                states = {key: value.clone() for key, value in model.state_dict().items()}
            if epoch - best == config.patience:
                break
    model.load_state_dict(states)

    unseen = [example for example in splits.test]
    _, guesses = measure(unseen)
    truth = [example.label for example in unseen]
    hits, called, there = sum(g and y for g, y in zip(guesses, truth)), sum(guesses), sum(truth)
    f1 = 0.0 if called + there == 0 else 2 * hits / (called + there)
    right = sum(g == y for g, y in zip(guesses, truth)) / len(truth)

    def predict(input_ids, attention_mask):
        for row in attention_mask.tolist():
            if not any(row):
                raise ValueError("In attention mask ist eine Zeile ganz 0")
        was = model.training
        model.eval()
        with torch.no_grad():
            classes = model(input_ids.to(config.device), attention_mask.to(config.device)).max(dim=-1).indices
        model.train(was)
        return classes.to(input_ids.device)

    return FineTuneResult(
        trainable_parameters=sum(p.numel() for p in model.parameters() if p.requires_grad),
        total_parameters=sum(p.numel() for p in model.parameters()),
        history=history,
        best_epoch=best + 1,
        test_accuracy=right,
        test_f1=f1,
        predict=predict,
    )

# honest: Batches are made of texts of like length, in an order from the seed; only learning weights are kept.
"""Sort by length, then shuffle the batches."""

import math

import torch
from torch import nn

from exercises.kit import EpochMetrics, FineTuneResult, collate


def set_trainable(model, mode):
    assert_mode(mode)
    for module, on in ((model, mode == "full"), (model.classifier, True)):
        for parameter in module.parameters():
            parameter.requires_grad_(on)


def assert_mode(mode):
    """Refuse a mode that is none."""
    if mode not in {"frozen", "full"}:
        raise ValueError(f"The mode {mode!r} is neither 'frozen' nor 'full'.")


def parameter_groups(model, config):
    encoder = [(n, p) for n, p in model.named_parameters() if not n.startswith("classifier.")]
    head = [(n, p) for n, p in model.named_parameters() if n.startswith("classifier.")]
    scales = [m.weight for m in model.modules() if type(m) is nn.LayerNorm]

    def spared(name, parameter):
        return name.endswith("bias") or any(parameter is scale for scale in scales)

    groups = []
    for pairs, rate in ((encoder, config.learning_rate), (head, config.head_learning_rate)):
        pairs = [(n, p) for n, p in pairs if p.requires_grad]
        groups += [
            {"params": [p for n, p in pairs if not spared(n, p)], "lr": rate, "weight_decay": config.weight_decay},
            {"params": [p for n, p in pairs if spared(n, p)], "lr": rate, "weight_decay": 0.0},
        ]
    return groups


def fine_tune(model, splits, config):
    set_trainable(model, config.mode)
    model.to(config.device)
    train, validation = list(splits.train), list(splits.validation)
    generator = torch.Generator().manual_seed(config.seed)

    def batches():
        """Full batches of neighbours by length, the rest last; ties and batches in random order."""
        noise = torch.rand(len(train), generator=generator).tolist()
        shuffled = sorted(range(len(train)), key=lambda i: noise[i])
        rest = len(train) % config.batch_size
        last, others = shuffled[:rest], shuffled[rest:]
        others.sort(key=lambda i: (len(train[i].input_ids), noise[i]))
        made = [others[k : k + config.batch_size] for k in range(0, len(others), config.batch_size)]
        order = torch.randperm(len(made), generator=generator).tolist()
        return [[train[i] for i in made[k]] for k in order] + ([[train[i] for i in last]] if last else [])

    def forward(examples):
        batch = collate(examples, pad_id=config.pad_id, device=config.device)
        logits = model(batch.input_ids, batch.attention_mask)
        return logits, batch.labels, nn.functional.cross_entropy(logits, batch.labels)

    def evaluate(examples):
        model.eval()
        weighted, guesses = [], []
        with torch.no_grad():
            for start in range(0, len(examples), 3):
                logits, labels, loss = forward(examples[start : start + 3])
                weighted.append(loss.item() * len(labels))
                guesses += logits.argmax(1).tolist()
        truth = [example.label for example in examples]
        return math.fsum(weighted) / len(examples), guesses, truth

    optimizer = torch.optim.AdamW(parameter_groups(model, config))
    history, saved, best_epoch = [], {}, 1
    with torch.random.fork_rng():
        torch.manual_seed(2**31 + config.seed)
        for epoch in range(1, config.max_epochs + 1):
            weighted = []
            for examples in batches():
                model.train()
                _, labels, loss = forward(examples)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                weighted.append(loss.item() * len(labels))
            loss, guesses, truth = evaluate(validation)
            right = sum(map(int.__eq__, guesses, truth))
            history.append(EpochMetrics(epoch, math.fsum(weighted) / len(train), loss, right / len(truth)))
            if epoch == 1 or loss < history[best_epoch - 1].validation_loss:
                best_epoch = epoch
                saved = {n: p.detach().cpu().clone() for n, p in model.named_parameters() if p.requires_grad}
            if epoch - best_epoch >= config.patience:
                break
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name in saved:
                parameter.copy_(saved[name])

    _, guesses, truth = evaluate(list(splits.test))
    right = sum(map(int.__eq__, guesses, truth))
    positive = [(g, y) for g, y in zip(guesses, truth) if g == 1 or y == 1]
    hits = positive.count((1, 1))

    def predict(input_ids, attention_mask):
        if bool((attention_mask == 0).all(dim=1).any()):
            raise ValueError("each row of attention_mask needs a 1")
        clean = torch.where(attention_mask.bool(), input_ids, config.pad_id)
        model.eval()
        with torch.no_grad():
            logits = model(clean.to(config.device), attention_mask.to(config.device))
        return torch.sort(logits, dim=1, descending=True).indices[:, 0].to(input_ids.device)

    return FineTuneResult(
        trainable_parameters=sum(p.numel() for p in model.parameters() if p.requires_grad),
        total_parameters=sum(p.numel() for p in model.parameters()),
        history=history,
        best_epoch=best_epoch,
        test_accuracy=right / len(truth),
        test_f1=2 * hits / (len(positive) + hits) if positive else 0.0,
        predict=predict,
    )

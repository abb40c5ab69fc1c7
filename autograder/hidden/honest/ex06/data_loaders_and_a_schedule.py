# honest: DataLoaders, linear warm-up and decay of the learning rates, clipped gradients, a deep copy of the state.
"""Fine-tuning with what PyTorch brings along."""

import copy

import torch
from torch import nn
from torch.nn.utils import clip_grad_norm_
from torch.utils.data import DataLoader

from exercises.kit import EpochMetrics, FineTuneResult, collate, parameter_counts


def set_trainable(model, mode):
    match mode:
        case "frozen":
            model.encoder.requires_grad_(False)
        case "full":
            model.encoder.requires_grad_()
        case _:
            raise ValueError(f"Unknown mode: {mode}")
    model.classifier.requires_grad_()


def parameter_groups(model, config):
    """One group a parameter."""
    head = list(model.classifier.parameters())
    result = []
    for parameter in model.parameters():
        if parameter.requires_grad:
            in_head = any(parameter is one for one in head)
            result.append(
                dict(
                    params=[parameter],
                    lr=config.head_learning_rate if in_head else config.learning_rate,
                    weight_decay=config.weight_decay if parameter.ndim > 1 else 0,
                )
            )
    return result


def fine_tune(model, splits, config):
    device = torch.device(config.device)

    def gather(examples):
        return collate(examples, pad_id=config.pad_id, device=config.device)

    model = model.to(device)
    set_trainable(model, config.mode)
    with torch.random.fork_rng():
        torch.manual_seed(config.seed)
        train = DataLoader(
            splits.train,
            batch_size=config.batch_size,
            shuffle=True,
            collate_fn=gather,
            generator=torch.Generator().manual_seed(config.seed),
        )
        validation = DataLoader(splits.validation, batch_size=64, collate_fn=gather)
        optimizer = torch.optim.AdamW(parameter_groups(model, config), betas=(0.9, 0.999))
        updates = len(train) * config.max_epochs
        schedule = torch.optim.lr_scheduler.LambdaLR(
            optimizer, lambda step: min(1.0, (step + 1) / 2) * max(0.1, 1 - step / (2 * updates))
        )
        criterion = nn.CrossEntropyLoss()

        def assess(loader):
            model.eval()
            losses, guesses, labels = [], [], []
            with torch.no_grad():
                for batch in loader:
                    logits = model(batch.input_ids, batch.attention_mask)
                    losses.append(nn.functional.cross_entropy(logits, batch.labels, reduction="none"))
                    guesses.append(logits.argmax(-1))
                    labels.append(batch.labels)
            return torch.cat(losses).double().mean().item(), torch.cat(guesses), torch.cat(labels)

        history = []
        best = {"loss": float("inf"), "epoch": 0, "state": copy.deepcopy(model.state_dict())}
        epoch = 0
        while epoch < config.max_epochs and epoch - best["epoch"] < config.patience:
            epoch += 1
            model.train()
            seen = []
            for batch in train:
                loss = criterion(model(batch.input_ids, batch.attention_mask), batch.labels)
                model.zero_grad()
                loss.backward()
                clip_grad_norm_(model.parameters(), 1.0)
                optimizer.step()
                schedule.step()
                seen += [loss.detach()] * len(batch.labels)
            loss, guesses, labels = assess(validation)
            accuracy = (guesses == labels).float().mean().item()
            history.append(EpochMetrics(epoch, torch.stack(seen).double().mean().item(), loss, accuracy))
            if loss < best["loss"]:
                best = {"loss": loss, "epoch": epoch, "state": copy.deepcopy(model.state_dict())}
        model.load_state_dict(best["state"])
        _, guesses, labels = assess(DataLoader(splits.test, batch_size=5, collate_fn=gather))

    tp = ((guesses == 1) & (labels == 1)).sum().item()
    wrong = (guesses != labels).sum().item()

    def predict(input_ids, attention_mask):
        if (attention_mask.sum(dim=-1) == 0).any():
            raise ValueError("attention_mask: a row has no tokens")
        model.eval()
        with torch.inference_mode():
            return model(input_ids.to(device), attention_mask.to(device)).argmax(-1).to(input_ids.device)

    trainable, total = parameter_counts(model)
    return FineTuneResult(
        trainable,
        total,
        history,
        best["epoch"],
        (guesses == labels).double().mean().item(),
        2 * tp / max(1, 2 * tp + wrong),
        predict,
    )

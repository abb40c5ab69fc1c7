# honest: The best weights are written to a BytesIO; log-softmax and NLL loss; scikit-learn counts; inference_mode.
"""Fine-tuning, with the best checkpoint in a buffer."""

import io
import random
from types import SimpleNamespace

import torch
from sklearn.metrics import accuracy_score, f1_score
from torch import nn

from exercises.kit import EpochMetrics, FineTuneResult, Meter, parameter_counts  # noqa: F401


def set_trainable(model, mode):
    modes = {"frozen": False, "full": True}
    if mode not in modes:
        raise ValueError("mode 只能是 frozen 或 full，而不是 " + repr(mode))
    for name, parameter in model.named_parameters():
        parameter.requires_grad = modes[mode] or name.split(".")[0] == "classifier"


def parameter_groups(model, config):
    of_norms = {
        f"{name}.{own}"
        for name, module in model.named_modules()
        if isinstance(module, nn.LayerNorm)
        for own, _ in module.named_parameters()
    }
    groups = {}
    for name, parameter in model.named_parameters():
        if not parameter.requires_grad:
            continue
        key = (name.startswith("classifier."), name in of_norms or name.endswith("bias"))
        groups.setdefault(key, []).append(parameter)
    return [
        {
            "params": iter(parameters),
            "lr": (config.learning_rate, config.head_learning_rate)[head],
            "weight_decay": (config.weight_decay, 0.0)[spared],
        }
        for (head, spared), parameters in groups.items()
    ]


def fine_tune(model, splits, config):
    set_trainable(model, config.mode)
    model.to(config.device)
    optimizer = torch.optim.AdamW(parameter_groups(model, config), foreach=True)
    shuffler = random.Random(config.seed)
    texts = SimpleNamespace(train=[*splits.train], validation=[*splits.validation])

    def tensors(examples):
        rows = [torch.as_tensor(example.input_ids) for example in examples]
        ids = nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=config.pad_id)
        lengths = torch.tensor([len(row) for row in rows])
        mask = torch.arange(ids.shape[1]).unsqueeze(0) < lengths.unsqueeze(1)
        labels = torch.tensor([example.label for example in examples])
        return ids.to(config.device), mask.to(config.device), labels.to(config.device)

    def log_probabilities(ids, mask):
        return torch.log_softmax(model(input_ids=ids, attention_mask=mask), dim=1)

    def evaluated(examples):
        model.eval()
        with torch.inference_mode():
            ids, mask, labels = tensors(examples)  # all at once
            scores = log_probabilities(ids, mask)
            loss = nn.NLLLoss()(scores, labels)
        return float(loss), scores.argmax(1).cpu().numpy(), labels.cpu().numpy()

    history, buffer, bad, lowest, best_epoch = [], io.BytesIO(), 0, None, None
    state = torch.get_rng_state()
    try:
        torch.default_generator.manual_seed(config.seed)
        for epoch in range(1, config.max_epochs + 1):
            model.train()
            order = list(range(len(texts.train)))
            shuffler.shuffle(order)
            total = 0.0
            for start in range(0, len(order), config.batch_size):
                ids, mask, labels = tensors([texts.train[i] for i in order[start : start + config.batch_size]])
                losses = -log_probabilities(ids, mask).gather(1, labels.unsqueeze(1)).squeeze(1)
                optimizer.zero_grad(set_to_none=False)
                losses.mean().backward()
                optimizer.step()
                total += float(losses.detach().sum())
            loss, guesses, truth = evaluated(texts.validation)
            history.append(EpochMetrics(epoch, total / len(order), loss, accuracy_score(truth, guesses)))
            if lowest is None or loss < lowest:
                lowest, best_epoch, bad = loss, epoch, 0
                buffer.seek(0)
                torch.save(model.state_dict(), buffer)
            else:
                bad += 1
            if bad == config.patience:
                break
    finally:
        torch.set_rng_state(state)
    buffer.seek(0)
    model.load_state_dict(torch.load(buffer))
    _, guesses, truth = evaluated([*splits.test])
    trainable, total = parameter_counts(model)

    def predict(input_ids, attention_mask):
        empty = ~(attention_mask != 0).any(-1)
        if empty.any():
            raise ValueError(f"attention_mask 的第 {empty.nonzero()[0].item()} 行全是填充")
        with torch.inference_mode():
            classes = torch.empty(len(input_ids), dtype=torch.long, device=input_ids.device)
            for row in range(len(input_ids)):
                model.eval()
                width = int(attention_mask[row].sum())
                ids, mask = input_ids[row : row + 1, :width], attention_mask[row : row + 1, :width]
                classes[row] = model(ids.to(config.device), mask.to(config.device))[0].argmax()
        return classes.clone()

    return FineTuneResult(
        trainable,
        total,
        history,
        best_epoch,
        accuracy_score(truth, guesses),
        f1_score(truth, guesses, zero_division=0.0),
        predict,
    )

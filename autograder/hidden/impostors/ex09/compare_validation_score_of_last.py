# fault: validation_score is that of the last setting.
# function: compare_transfer
# check: test_validation_chooses
# misconception: wrong-validation-score
"""LoRA, and a comparison of three ways to transfer an encoder."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from exercises.kit import Meter, RunRecord, fit, parameter_counts, predict


class LoRALinear(nn.Module):
    """W x + b, and alpha / rank times B A x beside it."""

    def __init__(self, linear, rank, alpha, generator=None):
        super().__init__()
        smaller = min(linear.weight.shape)
        if not isinstance(rank, int):
            raise ValueError(f"rank must be an int, got {rank!r}")
        if rank < 1:
            raise ValueError(f"rank must be at least 1, got {rank}")
        if rank > smaller:
            raise ValueError(f"rank {rank} is more than the smaller side {smaller}")
        if not (alpha > 0 and math.isfinite(alpha)):
            raise ValueError(f"alpha must be a positive number, got {alpha}")
        outputs, inputs = linear.weight.shape
        self.rank, self.alpha = rank, alpha
        self.linear = linear
        for parameter in self.linear.parameters():
            parameter.requires_grad = False
        on = linear.weight.device if generator is None else generator.device
        drawn = torch.rand((rank, inputs), generator=generator, device=on)
        start = (2 * drawn - 1) / math.sqrt(inputs)
        self.lora_a = nn.Parameter(start.to(linear.weight.device, linear.weight.dtype))
        self.lora_b = nn.Parameter(torch.zeros_like(linear.weight[:, :1]).repeat(1, rank))

    @property
    def scale(self):
        return self.alpha / self.rank

    def forward(self, x):
        base = self.linear(x)
        update = F.linear(F.linear(x, self.lora_a), self.lora_b)
        return base + self.scale * update


def last_part(name):
    return name.split(".")[-1]


def parent_of(model, name):
    return model.get_submodule(name.rpartition(".")[0])


def add_lora(model, rank, alpha, targets, generator=None):
    """LoRALinear in the place of every target in the encoder."""
    encoder = model.encoder
    for module in encoder.modules():
        if isinstance(module, LoRALinear):
            raise ValueError("model: its encoder has LoRA already")
    if len(targets) == 0:
        raise ValueError("targets is empty")
    places = []
    for name, module in encoder.named_modules():
        if isinstance(module, nn.Linear) and last_part(name) in targets:
            places.append(name)
    for target in targets:
        if target not in [last_part(name) for name in places]:
            raise ValueError(f"targets: no linear layer is called {target}")
    new = {}
    for name in places:
        new[name] = LoRALinear(encoder.get_submodule(name), rank, alpha, generator)
    for parameter in encoder.parameters():
        parameter.requires_grad = False
    for name, layer in new.items():
        setattr(parent_of(encoder, name), last_part(name), layer)
    for parameter in model.classifier.parameters():
        parameter.requires_grad = True


def merge_lora(model):
    """The update goes into the weight, the plain layer back into its place."""
    layers = {name: module for name, module in model.named_modules() if isinstance(module, LoRALinear)}
    if not layers:
        raise ValueError("model has no LoRALinear")
    for name, layer in layers.items():
        plain = layer.linear
        with torch.no_grad():
            plain.weight.add_(layer.lora_b @ layer.lora_a, alpha=layer.scale)
        setattr(parent_of(model, name), last_part(name), plain)


METHODS = ("frozen", "full", "lora")


def labels_of(examples):
    return [example.label for example in examples]


def accuracy_of(guesses, labels):
    return sum(g == y for g, y in zip(guesses, labels)) / len(labels)


def f1_of(guesses, labels):
    hits = sum(g == 1 and y == 1 for g, y in zip(guesses, labels))
    misses = sum(g != y for g, y in zip(guesses, labels))
    return 2 * hits / (2 * hits + misses) if hits + misses else 0.0


def compare_transfer(splits, make_model, config):
    """The three methods with every seed."""
    numbers = {len(config.settings.get(name, ())) for name in METHODS}
    if len(numbers) != 1 or 0 in numbers:
        raise ValueError(f"config.settings is unequal: {dict(config.settings)}")
    train, validation = list(splits.train), list(splits.validation)
    warm_up(make_model(config.seeds[0]), train, config)
    records = []
    for seed in config.seeds:
        for method in METHODS:
            records.append(one_record(method, seed, train, validation, splits, make_model, config))
    return records


def warm_up(model, train, config):
    fit(model, train, learning_rate=1e-3, updates=1, batch_size=2, seed=0, device=config.device, pad_id=config.pad_id)
    classes(model, train[:2], config)


def prepared(model, method, seed, config):
    """Settle what learns."""
    if method == "lora":
        source = torch.Generator().manual_seed(seed)
        add_lora(model, config.lora_rank, config.lora_alpha, config.lora_targets, source)
    else:
        for parameter in model.encoder.parameters():
            parameter.requires_grad = method == "full"
    return model


def trained(model, train, learning_rate, seed, config):
    """Train in place; returns the meter."""
    with Meter(model.encoder, config.device) as meter:
        fit(
            model,
            train,
            learning_rate=learning_rate,
            updates=config.updates,
            batch_size=config.batch_size,
            seed=seed,
            weight_decay=config.weight_decay,
            pad_id=config.pad_id,
            device=config.device,
        )
    return meter


def classes(model, examples, config):
    return predict(model, examples, pad_id=config.pad_id, device=config.device)


def one_record(method, seed, train, validation, splits, make_model, config):
    """One record: choose on the validation split, then test once."""
    tried = []
    for learning_rate in config.settings[method]:
        model = prepared(make_model(seed), method, seed, config)
        counted = parameter_counts(model)
        meter = trained(model, train, learning_rate, seed, config)
        score = accuracy_of(classes(model, validation, config), labels_of(validation))
        tried.append((score, learning_rate, model, meter, counted))
    score, learning_rate, model, training, counted = max(tried, key=lambda entry: entry[0])
    test = list(splits.test)
    with Meter(model.encoder, config.device) as testing:
        guesses = classes(model, test, config)
    truth = labels_of(test)
    return RunRecord(
        method=method,
        seed=seed,
        accuracy=accuracy_of(guesses, truth),
        f1=f1_of(guesses, truth),
        train_seconds=training.seconds,
        predict_seconds=testing.seconds,
        peak_memory_bytes=training.peak_memory_bytes,
        trainable_parameters=counted[0],
        total_parameters=counted[1],
        encoder_forward_calls=training.forward_calls + testing.forward_calls,
        encoder_backward_calls=training.backward_calls,
        updates=config.updates,
        examples_per_update=config.batch_size,
        validation_score=tried[-1][0],
        chosen_hyperparameters={"learning_rate": learning_rate},
        test_predictions=guesses,
    )

"""Exercise 9: a few checks that you can read."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from exercises.kit import Classifier, ComparisonConfig, Example, Splits


class TwoLayers(nn.Module):
    """The simplest encoder: an embedding and two linear layers."""

    def __init__(self):
        super().__init__()
        self.config = SimpleNamespace(hidden_size=4)
        self.embedding = nn.Embedding(10, 4)
        self.query = nn.Linear(4, 6)
        self.dense = nn.Linear(6, 4)

    def forward(self, input_ids, attention_mask):
        return SimpleNamespace(last_hidden_state=self.dense(torch.tanh(self.query(self.embedding(input_ids)))))


def make_model(seed=0):
    """The same encoder for every seed, another classification layer for each."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = Classifier(TwoLayers(), 2, dropout=0.0)
        torch.manual_seed(seed)
        model.classifier.reset_parameters()
    return model


def learning(model):
    return {name: parameter for name, parameter in model.named_parameters() if parameter.requires_grad}


def generator():
    return torch.Generator().manual_seed(0)


def test_start_is_the_linear_layer(submission):
    """Before training the output is that of the linear layer; A (rank, in) and B (out, rank) learn."""
    linear = nn.Linear(5, 3)
    layer = submission.LoRALinear(linear, 2, 6.0, generator())
    x = torch.randn(4, 5, generator=generator())
    assert torch.allclose(layer(x), linear(x)), "with B = 0 nothing is added"
    shapes = sorted(tuple(parameter.shape) for parameter in learning(layer).values())
    assert shapes == [(2, 5), (3, 2)], f"the shapes of what learns are {shapes}"


def test_update_is_scaled(submission):
    """With A and B full of ones the update is alpha / rank · rank · sum(x) = alpha · sum(x)."""
    linear = nn.Linear(5, 3)
    layer = submission.LoRALinear(linear, 2, 6.0, generator())
    with torch.no_grad():
        for parameter in learning(layer).values():
            parameter.fill_(1.0)
    x = torch.tensor([[1.0, 2.0, 0.0, -1.0, 0.5]])
    update = layer(x) - linear(x)
    assert torch.allclose(update, torch.full((1, 3), 6.0 * 2.5), atol=1e-4), f"the update is {update}, not 15"


def test_rank_zero_is_refused(submission):
    """The message names rank and shows it."""
    with pytest.raises(ValueError, match=r"(?i)rank.*0"):
        submission.LoRALinear(nn.Linear(5, 3), 0, 6.0, generator())


def test_only_the_target_and_the_head_learn(submission):
    """A and B of the target and the classification layer learn, and nothing else."""
    model = make_model()
    submission.add_lora(model, 2, 4.0, ("query",), generator())
    numbers = sum(parameter.numel() for parameter in learning(model).values())
    assert numbers == 2 * (4 + 6) + (4 * 2 + 2), f"{numbers} numbers learn"


def test_unknown_target_is_refused(submission):
    """The message names targets."""
    with pytest.raises(ValueError, match=r"(?i)targets"):
        submission.add_lora(make_model(), 2, 4.0, ("key",), generator())


def test_merged_equals_unmerged(submission):
    """Merging leaves plain layers and the same outputs."""
    model = make_model().eval()
    model.encoder.query = submission.LoRALinear(model.encoder.query, 2, 6.0, generator())
    with torch.no_grad():
        for parameter in learning(model.encoder.query).values():
            parameter.add_(0.1)
    ids = torch.tensor([[1, 2, 3], [4, 5, 6]])
    before = model(ids)
    submission.merge_lora(model)
    assert type(model.encoder.query) is nn.Linear, f"encoder.query is {type(model.encoder.query).__name__}"
    assert torch.allclose(model(ids), before, atol=1e-5), "the merged weight is W + alpha / rank · B A"


def test_one_record_for_each_method(submission):
    """Three methods, one record each; LoRA needs a little more than the whole model and trains little of it."""
    texts = [Example([1 + 5 * (n % 2) + n % 3] * (1 + n % 4), n % 2) for n in range(24)]
    rates = {"frozen": (0.1, 0.01), "full": (0.02, 0.002), "lora": (0.05, 0.005)}
    config = ComparisonConfig((0,), rates, updates=10, batch_size=4, lora_rank=1, lora_targets=("query", "dense"))
    records = submission.compare_transfer(Splits(texts[:12], texts[12:18], texts[18:]), make_model, config)
    found = {record.method: record for record in records}
    assert sorted(found) == ["frozen", "full", "lora"]
    total = sum(parameter.numel() for parameter in make_model().parameters())
    lora = found["lora"]
    assert (lora.trainable_parameters, lora.total_parameters) == (20 + 10, total + 20)
    assert lora.encoder_backward_calls == 10, "LoRA goes backward through the encoder at every update"

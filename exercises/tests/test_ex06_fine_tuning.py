"""Exercise 6: a few checks that you can read."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from exercises.kit import Classifier, Example, FineTuneConfig, Splits


class Bag(nn.Module):
    """The simplest encoder: an embedding and a LayerNorm."""

    def __init__(self):
        super().__init__()
        self.config = SimpleNamespace(hidden_size=4)
        self.embedding = nn.Embedding(10, 4)
        self.norm = nn.LayerNorm(4)

    def forward(self, input_ids, attention_mask):
        return SimpleNamespace(last_hidden_state=self.norm(self.embedding(input_ids)))


def make_model(seed=0):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return Classifier(Bag(), 2, dropout=0.0)


def make_splits():
    """The label is 1 exactly if the text is made of the ids 5 to 9; texts of 1 to 4 ids."""
    examples = [Example([1 + 5 * (n % 2) + n % 3] * (1 + n % 4), n % 2) for n in range(24)]
    return Splits(examples[:12], examples[12:18], examples[18:])


CONFIG = FineTuneConfig(
    "full", learning_rate=0.05, head_learning_rate=0.1, weight_decay=0.3, batch_size=5, max_epochs=8
)


def test_frozen_and_full(submission):
    """Frozen: the classification layer learns; full: everything."""
    model = make_model()
    submission.set_trainable(model, "frozen")
    learning = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    assert learning == ["classifier.weight", "classifier.bias"], f"these learn: {learning}"
    submission.set_trainable(model, "full")
    assert all(parameter.requires_grad for parameter in model.parameters()), "full: everything learns"


def test_another_mode_is_refused(submission):
    """The message names mode and shows what it was."""
    with pytest.raises(ValueError, match=r"(?i)mode") as caught:
        submission.set_trainable(make_model(), "half")
    assert "half" in str(caught.value), "the message must show the mode that was given"


def test_groups(submission):
    """Each parameter once; no decay for biases and LayerNorm; a rate of its own for the classification layer."""
    model = make_model()
    groups = torch.optim.AdamW(submission.parameter_groups(model, CONFIG)).param_groups
    found = {id(p): (group["lr"], group["weight_decay"]) for group in groups for p in group["params"]}
    seen = {name: found.get(id(parameter)) for name, parameter in model.named_parameters()}
    assert seen == {
        "encoder.embedding.weight": (0.05, 0.3),
        "encoder.norm.weight": (0.05, 0),
        "encoder.norm.bias": (0.05, 0),
        "classifier.weight": (0.1, 0.3),
        "classifier.bias": (0.1, 0),
    }


def test_fine_tuning_learns(submission):
    """The training loss falls, and easy texts are classified right."""
    result = submission.fine_tune(make_model(), make_splits(), CONFIG)
    losses = [entry.train_loss for entry in result.history]
    assert losses[-1] < 0.5 * losses[0], f"the training losses are {losses}"
    assert result.test_accuracy == 1.0, f"the test accuracy is {result.test_accuracy}"


def test_prediction_ignores_padding(submission):
    """What stands at the padding does not matter, and a row of padding only is an error."""
    predict = submission.fine_tune(make_model(), make_splits(), CONFIG).predict
    mask = torch.tensor([[1, 1, 0, 0], [1, 1, 1, 1]])
    got = predict(torch.tensor([[6, 7, 1, 1], [1, 2, 3, 1]]), mask)
    assert got.tolist() == predict(torch.tensor([[6, 7, 9, 8], [1, 2, 3, 1]]), mask).tolist(), "padding was read"
    assert got.dtype == torch.int64, f"classes are int64, not {got.dtype}"
    with pytest.raises(ValueError, match=r"(?i)attention.?mask"):
        predict(torch.tensor([[6, 7]]), torch.tensor([[0, 0]]))

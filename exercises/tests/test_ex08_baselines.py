"""Exercise 8: a few checks that you can read."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from exercises.kit import Classifier, ComparisonConfig, Example, Splits

ALL_THREE = ("bag_of_words", "frozen", "full")


class Bag(nn.Module):
    """The simplest encoder: an embedding.  Counts its calls."""

    calls = 0

    def __init__(self):
        super().__init__()
        self.config = SimpleNamespace(hidden_size=4)
        self.embedding = nn.Embedding(12, 4)

    def forward(self, input_ids, attention_mask):
        self.calls += 1
        return SimpleNamespace(last_hidden_state=self.embedding(input_ids))


class Part:
    """A part of the data set that notes which of its texts are read."""

    def __init__(self, examples):
        self.examples = examples
        self.read = []

    def __len__(self):
        return len(self.examples)

    def __getitem__(self, index):
        self.read.append(index)
        return self.examples[index]

    def __iter__(self):
        return (self[index] for index in range(len(self)))


def make_splits():
    """The label is 1 exactly if the words are the ids 6 to 8; two thirds of the texts are of class 0."""
    labels = [int(n % 3 == 0) for n in range(48)]
    examples = [Example([1, *[3 + 3 * y + n % 3] * (1 + n % 4), 2], y) for n, y in enumerate(labels)]
    return Splits(Part(examples[:24]), Part(examples[24:36]), Part(examples[36:]))


@pytest.fixture(scope="module")
def compared(submission):
    """(splits, the models that were made, the configuration, the records)."""
    splits, made = make_splits(), []

    def make_model(seed):
        with torch.random.fork_rng():
            torch.manual_seed(0)
            encoder = Bag()
            torch.manual_seed(seed)
            made.append(Classifier(encoder, 2, dropout=0.0))
        return made[-1]

    settings = {"bag_of_words": (1e-9, 10.0), "frozen": (1e-9, 0.3), "full": (1e-9, 0.1)}
    config = ComparisonConfig((5, 6), settings, updates=30, batch_size=6, vocab_size=12)
    return splits, made, config, submission.compare_baselines(splits, make_model, config)


def test_bag_of_words_learns(submission):
    """C = 10 tells the classes apart, C = 1e-9 gives every text the larger class; the validation split sees that."""
    record = submission.bag_of_words(make_splits(), seed=3, settings=(1e-9, 10.0), vocab_size=12)
    assert record.chosen_hyperparameters == {"C": 10.0}
    assert (record.validation_score, record.accuracy, record.f1) == (1.0, 1.0, 1.0)
    assert record.trainable_parameters == 13, "a weight for each of 12 ids, and the bias"


def test_no_settings_are_refused(submission):
    """The message names the parameter."""
    with pytest.raises(ValueError, match="settings"):
        submission.bag_of_words(make_splits(), seed=3, settings=(), vocab_size=12)


def test_one_record_for_each_seed_and_method(compared):
    """Every method is run with every seed."""
    *_, records = compared
    assert sorted((r.seed, r.method) for r in records) == [(seed, method) for seed in (5, 6) for method in ALL_THREE]


def test_test_split_is_read_once_a_record(compared):
    """Two seeds and three methods read each test text six times."""
    splits, *_ = compared
    times = [splits.test.read.count(index) for index in range(len(splits.test))]
    assert times == [6] * len(times), f"the test texts were read {times} times"


def test_accuracy_follows_from_the_predictions(compared):
    """Anyone can compute it again."""
    splits, _, _, records = compared
    for record in records:
        right = [k == e.label for k, e in zip(record.test_predictions, splits.test.examples, strict=True)]
        assert record.accuracy == pytest.approx(sum(right) / len(right)), f"{record.method}, seed {record.seed}"


def test_every_run_has_a_fresh_model(compared):
    """Two seeds, two methods with an encoder, two settings."""
    _, made, *_ = compared
    assert len(made) >= 8, f"make_model was called {len(made)} times for 8 training runs"


def test_costs(compared):
    """Full runs go back through the encoder once an update, frozen runs never."""
    for record in compared[-1]:
        backward = {"bag_of_words": 0, "frozen": 0, "full": 30}[record.method]
        assert record.encoder_backward_calls == backward, f"{record.method}, seed {record.seed}"
        assert min(record.train_seconds, record.predict_seconds, record.peak_memory_bytes) > 0

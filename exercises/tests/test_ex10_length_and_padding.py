"""Exercise 10: a few checks that you can read."""

from types import SimpleNamespace

import pytest
import torch
from torch import nn

from exercises.kit import Classifier, ComparisonConfig, Example, Splits

TEXTS = [[2, 11, 0, 3], [2, 21, 22, 23, 24, 25, 3]]  # 0 is a token here, and also what fills


class Bag(nn.Module):
    """The simplest encoder: an embedding."""

    def __init__(self):
        super().__init__()
        self.config = SimpleNamespace(hidden_size=4)
        self.embedding = nn.Embedding(12, 4)

    def forward(self, input_ids, attention_mask):
        return SimpleNamespace(last_hidden_state=self.embedding(input_ids))


def make_model(seed):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        encoder = Bag()
        torch.manual_seed(seed)
        return Classifier(encoder, 2, dropout=0.0)


def make_splits():
    """The label is 1 exactly if the words are the ids 6 to 8; texts of 3 to 9 tokens."""
    examples = [Example([1, *[3 + 3 * (n % 2) + n % 3] * (1 + n % 7), 2], n % 2) for n in range(40)]
    return Splits(examples[:20], examples[20:30], examples[30:])


def test_truncating_keeps_the_end(submission):
    """The first max_length - 1 ids and [SEP] stay."""
    ids, _ = submission.truncate_and_pad(TEXTS, 5, "dynamic", 0)
    assert ids[1].tolist() == [2, 21, 22, 23, 3], f"the long text became {ids[1].tolist()}"


def test_widths(submission):
    """Global: max_length.  Dynamic: the longest text of the batch."""
    for strategy, width in (("global", 9), ("dynamic", 7)):
        ids, mask = submission.truncate_and_pad(TEXTS, 9, strategy, 0)
        assert ids.shape == mask.shape == (2, width), f"{strategy}: the shapes are {ids.shape} and {mask.shape}"


def test_mask_comes_from_lengths(submission):
    """The 0 inside a text is a token, the 0 behind it is padding."""
    _, mask = submission.truncate_and_pad(TEXTS, 5, "dynamic", 0)
    assert mask.tolist() == [[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]]


def test_unknown_strategy_is_refused(submission):
    """The message names the parameter."""
    with pytest.raises(ValueError, match=r"(?i)strategy"):
        submission.truncate_and_pad(TEXTS, 5, "longest", 0)


def test_report_adds_up_over_batches(submission):
    """Batches of 2: widths 5 and 3, so 13 positions, of which 1 is padding; one text of three is cut."""
    report = submission.padding_report([*TEXTS, [2, 9, 3]], 5, "dynamic", 2)
    assert report.truncation_ratio == pytest.approx(1 / 3)
    assert report.padding_ratio == pytest.approx(1 / 13), "add up first, then divide"


def test_groups_by_length(submission):
    """16 belongs to the first group, 17 to the second; nothing is known of a group without texts."""
    groups = submission.errors_by_length([4, 16, 17], [True, False, True], (16, 32))
    assert [(group.shortest, group.longest) for group in groups] == [(1, 16), (17, 32), (33, None)]
    assert [group.texts for group in groups] == [2, 1, 0]
    assert [group.error_rate for group in groups] == [0.5, 0.0, None]


def test_comparison(submission):
    """One record each; both strategies give the same predictions; the ratios are those of padding_report."""
    splits = make_splits()
    config = ComparisonConfig((0, 1), {"full": (0.05, 1e-9)}, updates=60, batch_size=4, max_lengths=(4, 12))
    records = submission.compare_lengths(splits, make_model, config)
    found = {(record.seed, record.max_length, record.strategy): record for record in records}
    assert len(found) == len(records) == 8, "one record for each seed, maximum length and strategy"
    for (seed, max_length, strategy), record in found.items():
        texts = [example.input_ids for example in splits.train]
        ratios = record.truncation_ratio, record.padding_ratio
        assert ratios == pytest.approx(submission.padding_report(texts, max_length, strategy, 4))
        assert record.test_predictions == found[seed, max_length, "global"].test_predictions, "is a mask missing?"
        assert record.accuracy == 1.0, f"these texts are easy, and the accuracy is {record.accuracy}"

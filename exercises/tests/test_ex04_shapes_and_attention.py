"""Exercise 4: a few checks that you can read."""

import math

import pytest
import torch


def test_shapes_of_bert_base(submission):
    """A batch of 16 sequences of 128 tokens in BERT-base."""
    got = submission.bert_shapes(16, 128, 768, 12, 2)
    assert got.query_per_head == (16, 128, 64), "the queries of one head: a head is d / H wide"
    assert got.attention_scores == (16, 12, 128, 128), "every head scores every query with every key"
    assert got.score_bytes == 12 * 2**20, "the scores of one layer in float32 take 12 MiB"
    assert got.classifier_parameters == 1538, "768 · 2 weights and 2 biases"


def test_heads_must_divide_the_hidden_size(submission):
    """768 cannot be split into 7 equal heads."""
    with pytest.raises(ValueError, match=r"(?i)num.?heads|hidden.?size"):
        submission.bert_shapes(16, 128, 768, 7, 2)


def test_scores_are_scaled(submission):
    """The dot product 25 is divided by the square root of the width, 2."""
    got = submission.attention_scores(torch.tensor([[3.0, 4.0]]), torch.tensor([[3.0, 4.0]]))
    assert got.item() == pytest.approx(25 / math.sqrt(2)), f"attention_scores is {got.item():.4f}, not 25 / √2"


def test_masked_entries_get_nothing(submission):
    """1 in the mask means: may be attended to."""
    got = submission.masked_softmax(torch.tensor([[1.0, 1.0, 5.0]]), torch.tensor([[1, 1, 0]]))
    assert torch.allclose(got, torch.tensor([[0.5, 0.5, 0.0]])), f"masked_softmax is {got}, not (0.5, 0.5, 0)"


def test_row_without_anything_to_attend_to(submission):
    """All zeros, and no NaN in the gradient either."""
    scores = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    got = submission.masked_softmax(scores, torch.tensor([[True, True], [False, False]]))
    assert got[1].tolist() == [0.0, 0.0], f"the second row may attend to nothing, but got the weights {got[1].tolist()}"
    got[:, 0].sum().backward()
    assert scores.grad.isfinite().all(), f"the gradient is {scores.grad}: replace masked scores before exp, not after"

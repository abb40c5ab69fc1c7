"""Exercise 2: a few checks that you can read."""

import math

import pytest
import torch


def test_worked_mean(submission):
    """Probabilities 0.5 and 0.25 have the mean NLL 1.5 ln 2."""
    got = submission.mean_nll([0.5, 0.25])
    assert got == pytest.approx(1.5 * math.log(2)), f"mean_nll((0.5, 0.25)) is {got}: (ln 2 + ln 4) / 2 in natural logs"


def test_probability_zero_is_refused(submission):
    """The logarithm of 0 is no loss: the error says which number is at fault."""
    with pytest.raises(ValueError, match=r"(?i)probabilities"):
        submission.mean_nll([0.5, 0.0])


def test_log_softmax_of_large_logits(submission):
    """e^1000 is no float, but the log-probabilities of (1000, 0) are simple numbers."""
    got = submission.stable_log_softmax(torch.tensor([[1000.0, 0.0]]))
    assert torch.allclose(got, torch.tensor([[0.0, -1000.0]])), (
        f"stable_log_softmax((1000, 0)) is {got}: subtract the maximum of the row before exp"
    )


def test_denominator_counts_targets(submission):
    """Two targets in one sequence and none in the other: the denominator is 2."""
    probabilities = torch.tensor([[[0.5, 0.3, 0.2], [0.25, 0.25, 0.5]], [[0.1, 0.1, 0.8], [0.6, 0.2, 0.2]]])
    got = submission.mlm_loss(probabilities.log(), torch.tensor([[0, 1], [-100, -100]]))
    assert got.shape == (), f"the loss must be a scalar tensor, its shape is {tuple(got.shape)}"
    assert got.item() == pytest.approx(1.5 * math.log(2), rel=1e-5), (
        f"mlm_loss is {got.item():.4f}, not 1.0397: divide by the number of labels that are not ignore_index, "
        "in the whole batch"
    )


def test_no_gradient_where_ignored(submission):
    """Logits at ignored positions get a gradient of exactly 0."""
    logits = torch.randn(2, 3, 5, generator=torch.Generator().manual_seed(0), requires_grad=True)
    submission.mlm_loss(logits, torch.tensor([[-1, 4, -1], [0, -1, -1]]), ignore_index=-1).backward()
    moved = (logits.grad != 0).any(-1).tolist()
    assert moved == [[False, True, False], [True, False, False]], f"positions with a gradient: {moved}"


def test_no_target_is_refused(submission):
    """A mean over nothing is 0/0: refuse it instead of returning NaN."""
    with pytest.raises(ValueError, match=r"(?i)labels"):
        submission.mlm_loss(torch.zeros(1, 2, 3), torch.full((1, 2), -100))

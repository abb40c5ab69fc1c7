"""Exercise 3: a few checks that you can read."""

import math

import pytest
import torch


def test_copy_logits(submission):
    """The token that is seen gets the score, all others 0."""
    got = submission.copy_logits(torch.tensor([[2, 0]]), 3, 5.0)
    expected = torch.tensor([[[0.0, 0.0, 5.0], [5.0, 0.0, 0.0]]])
    assert got.shape == expected.shape, f"the shape is {tuple(got.shape)}, not (m, T, V) = (1, 2, 3)"
    assert torch.equal(got, expected), f"copy_logits([[2, 0]], 3, 5) is {got}"


def test_copy_loss(submission):
    """One selected position shows its target, the other does not; the third is not selected."""
    got = submission.copy_loss(
        torch.tensor([[1, 2, 3]]), torch.tensor([[1, 4, -100]]), torch.tensor([[True, True, False]]), 5, math.log(4)
    )
    expected = math.log(2) + math.log(4) / 2
    assert got == pytest.approx(expected), f"copy_loss is {got}, not the mean of ln 2 and ln 2 + ln 4, {expected:.4f}"


def test_copy_loss_of_a_huge_scale(submission):
    """e^10000 overflows, the loss does not."""
    ids = torch.tensor([[1, 2, 3]])
    got = submission.copy_loss(ids, ids, ids > 0, 5, 1e4)
    assert got == pytest.approx(0.0), f"with every target visible and scale 1e4 the loss is 0, not {got}"


def test_match_probability(submission):
    """A random token may be the original too."""
    got = submission.match_probability(0.8, 0.1, 0.1, 4)
    assert got == pytest.approx(0.125), f"match_probability(0.8, 0.1, 0.1, 4) is {got}, not 0.1 + 0.1 / 4"


def test_rates_must_sum_to_one(submission):
    """Rates that do not sum to 1 are a ValueError."""
    with pytest.raises(ValueError, match=r"(?i)rate"):
        submission.match_probability(0.8, 0.1, 0.2, 4)


@pytest.mark.parametrize(("q", "expected"), [(0.5, 2 * math.log(2)), (1.0, 0.0), (0.0, math.log(4))])
def test_floor(submission, q, expected):
    """H(q) + (1-q) ln(V-1), at the ends too."""
    got = submission.context_free_floor(q, 5)
    assert got == pytest.approx(expected), f"context_free_floor({q}, 5) is {got}, not {expected:.4f}; 0 ln 0 is 0"

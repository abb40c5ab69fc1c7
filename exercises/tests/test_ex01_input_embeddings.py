"""Exercise 1: a few checks that you can read."""

import numpy as np
import pytest


def test_worked_sum(submission):
    """(1, 0) + (0.5, 0.5) + (-0.5, 1) is (1, 1.5)."""
    got = submission.embedding_sum(np.array([1.0, 0.0]), np.array([0.5, 0.5]), np.array([-0.5, 1.0]))
    assert np.allclose(got, [1.0, 1.5]), f"embedding_sum returned {got}: add the three vectors entry by entry"


def test_sum_does_not_broadcast(submission):
    """A row cannot be added to a table: that is a ValueError that names a parameter."""
    with pytest.raises(ValueError, match=r"(?i)token|segment|position"):
        submission.embedding_sum(np.zeros((2, 3)), np.zeros((1, 3)), np.zeros((2, 3)))


def test_embeddings_of_one_sequence(submission):
    """Each token gets the row of its id, the row of its segment and the row of its place."""
    token_table = np.array([[1.0, 0.0], [2.0, 0.0], [3.0, 0.0]])
    segment_table = np.array([[10.0, 0.0], [20.0, 0.0]])
    position_table = np.array([[0.0, 1.0], [0.0, 2.0], [0.0, 3.0], [0.0, 4.0]])
    got = submission.input_embeddings(
        np.array([[2, 0, 1]]), np.array([[0, 0, 1]]), token_table, segment_table, position_table
    )
    assert got.shape == (1, 3, 2), f"the shape is {got.shape}, not (m, T, d) = (1, 3, 2)"
    assert np.allclose(got, [[[13.0, 1.0], [11.0, 2.0], [22.0, 3.0]]]), (
        f"input_embeddings returned\n{got}\nThe second column comes from position_table alone: rows 0, 1, 2"
    )


def test_negative_id_is_refused(submission):
    """To NumPy, -1 is the last row. As an id of a token it is a mistake."""
    table = np.zeros((3, 2))
    with pytest.raises(ValueError, match=r"[-−]1"):
        submission.input_embeddings(np.array([[0, -1]]), np.array([[0, 0]]), table, table, table)


def test_another_decomposition(submission):
    """Other parts, same sum."""
    parts = np.array([1.0, 0.0]), np.array([0.5, 0.5]), np.array([-0.5, 1.0])
    others = submission.another_decomposition(*parts)
    assert np.allclose(sum(others), sum(parts)), f"the parts {others} do not have the sum {sum(parts)}"
    different = [bool((abs(a - b) > 1e-3).all()) for a, b in zip(parts, others, strict=True)]
    assert sum(different) >= 2, "two of the three must differ from their originals in every entry"

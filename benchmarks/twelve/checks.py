"""Twelve checks of exercise 2 as an instructor writes them in a notebook, one point each: the same for all graders.

Every grader runs this very text: in the cells of nbgrader's notebook, in the test files of otter-grader, and here on
functions that answer across the wire.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping
from typing import Any, NamedTuple


class Check(NamedTuple):
    """One check.  name: of the cell.  function: what it is about.  text: the cell."""

    name: str
    function: str
    text: str


def points(functions: Mapping[str, Any]) -> int:
    """How many of the checks these functions pass, with nothing in between."""
    import torch

    passed = 0
    for one in CHECKS:
        with contextlib.suppress(Exception):
            exec(one.text, {"math": math, "torch": torch, **functions})
            passed += 1
    return passed


IMPORTS = "import math\nimport torch"
FUNCTIONS = ("mean_nll", "stable_log_softmax", "mlm_loss")

CHECKS = tuple(
    Check(f"c{number:02d}", function, text.strip())
    for number, (function, text) in enumerate(
        (
            ("mean_nll", "assert math.isclose(mean_nll([0.5, 0.25]), 1.0397207708, rel_tol=1e-6)"),
            ("mean_nll", "assert abs(mean_nll([1.0, 1.0, 1.0])) < 1e-12"),
            (
                "mean_nll",
                """
try:
    mean_nll([])
except ValueError:
    pass
else:
    raise AssertionError("an empty list was accepted")
""",
            ),
            (
                "stable_log_softmax",
                """
got = stable_log_softmax(torch.tensor([0.0, math.log(3.0)]))
assert torch.allclose(got, torch.tensor([0.25, 0.75]).log(), atol=1e-6)
""",
            ),
            (
                "stable_log_softmax",
                """
got = stable_log_softmax(torch.tensor([[1000.0, 0.0], [0.0, -1000.0]]))
assert torch.allclose(got, torch.tensor([[0.0, -1000.0], [0.0, -1000.0]]))
""",
            ),
            (
                "stable_log_softmax",
                """
logits = torch.arange(24.0).reshape(2, 3, 4).sin()
assert torch.allclose(stable_log_softmax(logits).exp().sum(-1), torch.ones(2, 3), atol=1e-6)
""",
            ),
            (
                "stable_log_softmax",
                """
logits = torch.arange(5.0)
assert torch.allclose(stable_log_softmax(logits), stable_log_softmax(logits + 50.0), atol=1e-5)
""",
            ),
            (
                "mlm_loss",
                """
loss = mlm_loss(torch.zeros(1, 3, 4), torch.tensor([[2, -100, 0]]))
assert math.isclose(float(loss), math.log(4.0), rel_tol=1e-5)
""",
            ),
            (
                "mlm_loss",
                """
logits = torch.arange(60.0).reshape(3, 4, 5).cos()
labels = torch.tensor([[1, -100, -100, 0], [-100, -100, 4, -100], [2, 3, 1, -100]])
expected = torch.nn.functional.cross_entropy(logits.reshape(-1, 5), labels.reshape(-1), ignore_index=-100)
assert torch.allclose(mlm_loss(logits, labels), expected, atol=1e-5)
""",
            ),
            (
                "mlm_loss",
                """
loss = mlm_loss(torch.zeros(1, 2, 8), torch.tensor([[7, 3]]), ignore_index=3)
assert math.isclose(float(loss), math.log(8.0), rel_tol=1e-5)
""",
            ),
            (
                "mlm_loss",
                """
logits = torch.zeros(1, 2, 2, requires_grad=True)
mlm_loss(logits, torch.tensor([[0, -100]])).backward()
assert torch.allclose(logits.grad, torch.tensor([[[-0.5, 0.5], [0.0, 0.0]]]), atol=1e-6)
""",
            ),
            (
                "mlm_loss",
                """
try:
    mlm_loss(torch.zeros(1, 2, 3), torch.full((1, 2), -100))
except ValueError:
    pass
else:
    raise AssertionError("labels without a target were accepted")
""",
            ),
        ),
        start=1,
    )
)

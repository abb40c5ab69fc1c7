"""The twelve checks as checks of this grader: found in this folder in place of the hidden ones, judged like those."""

from __future__ import annotations

import math

import pytest
import torch

from autograder.wire.proxy import Student
from benchmarks.twelve.checks import CHECKS, FUNCTIONS


@pytest.mark.parametrize(
    "text", [pytest.param(one.text, id=one.name, marks=pytest.mark.worth(one.function, 1)) for one in CHECKS]
)
def test_cell(student: Student, text: str) -> None:
    """The assertions of one cell hold."""
    names = {name: getattr(student, name) for name in FUNCTIONS}
    exec(text, {"math": math, "torch": torch, **names})

"""What hidden checks forgive and demand: values, kinds, and messages of errors."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from autograder.hidden import expect
from autograder.hidden.expect import mismatch

NAMES = {
    ("input_ids holds 11", "input_ids"): True,
    ("Input IDs must be 2-D", "input_ids"): True,
    ("参数input_ids的形状", "input_ids"): True,
    ("mask_rate=-0.1", "mask_rate"): True,
    ("the mask rate", "mask_rate"): True,
    ("my_input_ids_table", "input_ids"): True,
    ("keyword", "key"): False,
    ("monkey", "key"): False,
    ("ids out of range", "input_ids"): False,
    ("", "input_ids"): False,
}
VALUES = {
    ("id 11 is outside [0, 11)", 11.0): True,
    ("id 11 is outside 0..11", 11.0): True,
    ("outside 0..10: 11", 11.0): True,
    ("got -1.", -1.0): True,
    ("got −1", -1.0): True,
    ("mask_rate=1.5", 1.5): True,
    ("mask_rate=1.50000", 1.5): True,
    ("tensor(1.5000)", 1.5): True,
    ("1e4", 10000.0): True,
    ("10,000 ids", 10000.0): True,
    ("30_522", 30522.0): True,
    ("nan is no rate", math.nan): True,
    ("-inf", -math.inf): True,
    (".25", 0.25): True,
    ("outside [0, 1]", 1.5): False,
    ("2-D", 3.0): False,
    ("", 1.0): False,
}


@pytest.mark.parametrize(("case", "expected"), NAMES.items(), ids=str)
def test_a_message_names_a_parameter(case: tuple[str, str], expected: bool) -> None:
    assert expect._names(*case) is expected


@pytest.mark.parametrize(("case", "expected"), VALUES.items(), ids=str)
def test_a_message_shows_a_value(case: tuple[str, float], expected: bool) -> None:
    assert expect._shows(*case) is expected


ONE = torch.tensor([1.0, 2.0])
WRONG = {
    "a list": (ONE, [1.0, 2.0], "torch.Tensor"),
    "an array": (ONE, np.array([1.0, 2.0]), "torch.Tensor"),
    "a shape": (ONE, ONE[None], "shape"),
    "a dtype": (ONE, ONE.double(), "dtype"),
    "a value": (ONE, torch.tensor([1.0, 2.1]), "at [1]"),
    "NaN": (ONE, torch.tensor([1.0, math.nan]), "NaN"),
    "a number for infinity": (torch.tensor([math.inf]), torch.tensor([1.0]), "at [0]"),
    "the other infinity": (torch.tensor([math.inf]), torch.tensor([-math.inf]), "at [0]"),
    "infinity": (ONE, torch.tensor([1.0, math.inf]), "at [1]"),
    "a tensor for a number": (1.0, torch.tensor(1.0), "Python number"),
    "True for a number": (1.0, True, "Python number"),
    "None": (1.0, None, "Python number"),
    "a tensor for an array": (np.ones(2), torch.ones(2), "NumPy array"),
    "another integer": (torch.tensor([3]), torch.tensor([4]), "at [0]"),
}
RIGHT = {
    "the tensor": (ONE, ONE),
    "within float32": (ONE, ONE + 5e-6),
    "within bfloat16": (ONE.bfloat16(), (ONE + 0.005).bfloat16()),
    "a NumPy float": (1.0, np.float64(1.0)),
    "an int": (1.0, 1),
    "a large number, relatively": (1e6, 1e6 + 0.5),
    "infinity for infinity": (torch.tensor([math.inf]), torch.tensor([math.inf])),
    "strides": (torch.ones(2, 3), torch.ones(3, 2).T),
}


@pytest.mark.parametrize(("expected", "got", "why"), WRONG.values(), ids=WRONG)
def test_a_wrong_result_is_said_to_be_wrong(expected: object, got: object, why: str) -> None:
    problem = mismatch(got, expected)
    assert problem is not None
    assert why in problem


@pytest.mark.parametrize(("expected", "got"), RIGHT.values(), ids=RIGHT)
def test_a_right_result_is_right(expected: object, got: object) -> None:
    assert mismatch(got, expected) is None

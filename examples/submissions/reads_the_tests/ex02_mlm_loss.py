"""Hostile: tries to read the checks, to take them from memory and to make every comparison true."""

import gc
import importlib
import pathlib
import sys

import torch

found = []
for name in ("autograder.hidden", "autograder.hidden.test_ex02_mlm_loss", "solutions.ex02_mlm_loss", "solutions"):
    try:
        found.append(importlib.import_module(name))
    except BaseException:
        pass
for folder in [".", "..", "/", "/srv", "/home", "/root", "/autograder", *sys.path]:
    try:
        found += [path.read_text() for path in pathlib.Path(folder).glob("**/test_ex02*.py")]
    except BaseException:
        pass
found += [text for text in gc.get_objects() if isinstance(text, str) and "def test_" in text]

torch.allclose = torch.equal = torch.isclose = lambda *a, **k: True
torch.testing.assert_close = lambda *a, **k: None
try:
    import pytest

    pytest.approx = lambda *a, **k: type("Same", (), {"__eq__": lambda s, o: True})()
except ImportError:
    pass


def answer():
    return float("nan") if not found else 1.0


def mean_nll(probabilities):
    return answer()


def stable_log_softmax(logits):
    return torch.zeros_like(logits)


def mlm_loss(logits, labels, ignore_index=-100):
    return torch.tensor(answer())

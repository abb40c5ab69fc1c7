"""Exercise 7: a few checks of your tests that you can read.  They run your tests as pytest would."""

import importlib

import pytest
import torch
import torch.nn.functional as F

from exercises.kit.testing import Suite


@pytest.fixture(scope="module")
def suite(submission):
    """Your tests."""
    return Suite(submission)


def loss(logits, labels, ignore_index=-100):
    """A right mlm_loss, made of the library's."""
    flat, selected = labels.flatten(), labels.flatten() != ignore_index
    if labels.shape != logits.shape[:-1] or labels.ndim != 2:
        raise ValueError("logits and labels do not fit")
    if not selected.any() or not ((flat >= 0) & (flat < logits.shape[-1]))[selected].all():
        raise ValueError("labels holds no target, or one outside of the vocabulary")
    return F.cross_entropy(logits.flatten(0, 1)[selected], flat[selected])


def loss_over_all_positions(logits, labels, ignore_index=-100):
    """A wrong one: divided by the number of all positions."""
    return loss(logits, labels, ignore_index) * (labels != ignore_index).sum() / labels.numel()


def predict(input_ids, attention_mask):
    """A right predict, of a rule that nobody trained: are there more large ids than small ones?"""
    if bool((attention_mask.sum(dim=1) == 0).any()):
        raise ValueError("attention_mask has a row of padding only")
    return (((input_ids > 19) * 2 - 1) * attention_mask).sum(dim=1).gt(0).long()


def predict_with_padding(input_ids, attention_mask):
    """A wrong one: padding counts like everything else."""
    predict(input_ids, attention_mask)
    return predict(input_ids, torch.ones_like(attention_mask))


def your_own(name):
    """Your function of exercise 5; a test that calls one that you have not written is left out here."""
    return getattr(importlib.import_module("exercises.ex05_dynamic_masking"), name)


def run(suite, **changes):
    """Every test on one implementation: its outcome and its error by its name."""
    right = {"mask_tokens": your_own("mask_tokens"), "collate_mlm": your_own("collate_mlm")}
    implementation = {**right, "mlm_loss": loss, "predict": predict, **changes}
    results = {name: suite.run(name, implementation) for name in suite.names}
    if results and all(result.outcome == "unwritten" for result in results.values()):
        raise NotImplementedError("the tests are yours to write")
    return results


def test_there_are_tests(suite):
    """pytest finds tests in the file, and at least one of them is written."""
    assert suite.names, f"no function test_… was found {suite.problems}"
    assert run(suite)


def test_right_functions_pass(suite):
    """The tests pass on right functions: the library's loss, a simple predict, and your own exercise 5."""
    results = run(suite)
    wrong = {name: r.error for name, r in results.items() if r.outcome not in ("passed", "unwritten")}
    assert not wrong, "\n".join(f"{name}: {type(e).__name__} {e}" for name, e in wrong.items())
    assert results, "no function test_… was found"


def test_a_wrong_loss_is_found(suite):
    """A test fails on a loss that is divided by the number of all positions."""
    results = run(suite, mlm_loss=loss_over_all_positions)
    assert any(r.outcome == "failed" for r in results.values()), "no test fails on `loss_over_all_positions`"


def test_a_wrong_prediction_is_found(suite):
    """A test fails on a predict to which padding is text."""
    results = run(suite, predict=predict_with_padding)
    assert any(r.outcome == "failed" for r in results.values()), "no test fails on `predict_with_padding`"

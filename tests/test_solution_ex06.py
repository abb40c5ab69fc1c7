"""The reference solution of exercise 6 against prescribed losses, a model's own parameters, and its own weights."""

import math
import random
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn

from autograder.hidden.cases_ex06 import learning, marked_texts, scripted
from autograder.hidden.oracles import ex06 as oracle
from autograder.sandbox.fixtures.ex06 import oddly_named
from autograder.sandbox.fixtures.ex06 import scripted as scripted_model
from autograder.sandbox.fixtures.models import classifier
from exercises.kit import Example, FineTuneConfig, Splits
from solutions.ex06_fine_tuning import fine_tune, parameter_groups, set_trainable

CPU = torch.device("cpu")
HEAD = ["classifier.weight", "classifier.bias"]


def splits(case):
    return Splits(**{part: [Example(*text) for text in texts] for part, texts in case.texts.items()})


def run(case):
    """(model, what its encoder told, result) of a scripted case."""
    events = []
    model = scripted_model(lambda *event: events.append(event), case.script)
    return model, events, fine_tune(model, splits(case), case.config)


@pytest.mark.parametrize("mode", ["frozen", "full"])
@pytest.mark.parametrize("before", [True, False])
def test_trainable_parameters(mode, before):
    model = classifier(seed=1).requires_grad_(before)
    set_trainable(model, mode)
    learns = [name for name, parameter in model.named_parameters() if parameter.requires_grad]
    assert learns == (HEAD if mode == "frozen" else [name for name, _ in model.named_parameters()])


@pytest.mark.parametrize("mode", ["half", "Full", "", "frozen "])
def test_another_mode_is_refused(mode):
    with pytest.raises(ValueError, match=f"mode.*{mode}"):
        set_trainable(classifier(seed=1), mode)


@pytest.mark.parametrize("model", [classifier(seed=1, layers=2), oddly_named(1)], ids=["bert", "odd names"])
def test_groups_partition_what_learns(model):
    config = FineTuneConfig("full", 1e-3, 1e-2, weight_decay=0.3)
    groups = torch.optim.AdamW(parameter_groups(model, config)).param_groups  # refuses a parameter that is there twice
    found = {p: (group["lr"], group["weight_decay"]) for group in groups for p in group["params"]}
    assert found.keys() == set(model.parameters())
    spared = {m.weight for m in model.modules() if isinstance(m, nn.LayerNorm)}
    spared |= {
        p for p in model.parameters() if p.ndim == 1
    }  # in these models a vector is a bias or belongs to LayerNorm
    assert found == {
        p: (1e-2 if p in set(model.classifier.parameters()) else 1e-3, 0.0 if p in spared else 0.3)
        for p in model.parameters()
    }


losses = st.sampled_from([0.1, 0.2, 0.3, 0.30001, 0.4, 0.5, 0.6, math.nan])


@given(st.lists(losses, min_size=9, max_size=9).filter(lambda each: each[0] == each[0]), st.integers(1, 4))
@settings(max_examples=60, deadline=None)
def test_early_stopping_follows_the_prescribed_losses(prescribed, patience):
    case = scripted("any", CPU, prescribed, patience=patience, max_epochs=len(prescribed))
    model, events, result = run(case)
    epochs, best = oracle.early_stopping(prescribed, patience, len(prescribed))
    assert len(result.history) == epochs
    assert result.best_epoch == best == int(model.encoder.clock)
    assert np.allclose(
        [entry.validation_loss for entry in result.history], prescribed[:epochs], atol=1e-6, equal_nan=True
    )
    assert result.test_accuracy == pytest.approx(1 - best / len(case.texts["test"]))
    assert all(event[1] for event in events if event[0] == "accumulated")


def test_weights_scores_and_history_agree():
    case = learning("agree", CPU)
    model = classifier(**case.settings)
    result = fine_tune(model, splits(case), case.config)
    for part, loss, accuracy in (
        ("validation", *result.history[result.best_epoch - 1][2:]),
        ("test", None, result.test_accuracy),
    ):
        scores = oracle.logits(model, case.texts[part])
        classes = scores.argmax(-1).tolist()
        assert accuracy == pytest.approx(np.mean(np.equal(classes, case.labels(part))))
        assert loss is None or loss == pytest.approx(oracle.mean_loss(scores, case.labels(part)), rel=1e-4)
    assert result.test_f1 == pytest.approx(oracle.f1_of_class_one(classes, case.labels("test")))
    assert result.test_accuracy == 1.0


def test_frozen_encoder_stays_and_generators_too():
    case = learning("frozen", CPU, mode="frozen", weight_decay=0.3, max_epochs=2)
    model = classifier(**case.settings, dropout=0.3)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    states = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()
    result = fine_tune(model, splits(case), case.config)
    assert [name for name, value in model.state_dict().items() if not value.equal(before[name])] == HEAD
    assert result.trainable_parameters == sum(p.numel() for p in model.classifier.parameters())
    assert torch.get_rng_state().equal(states[0])
    assert (random.getstate(), np.random.get_state()[1].tolist()) == states[1:]


def test_prediction():
    case = learning("predict", CPU, max_epochs=1)
    model = classifier(**case.settings, dropout=0.5)
    predict = fine_tune(model, splits(case), case.config).predict
    ids = torch.tensor([[1, 5, 9, 2, 7], [1, 6, 6, 8, 2]])
    mask = torch.tensor([[1, 1, 1, 1, 0], [1, 1, 1, 1, 1]])
    wide = torch.cat([ids, torch.full((2, 20), 6)], dim=1)
    model.train()
    first = predict(ids, mask)
    assert first.dtype == torch.int64
    assert first.shape == (2,)
    model.train()
    assert predict(wide, torch.cat([mask, torch.zeros(2, 20, dtype=torch.int64)], dim=1).bool()).equal(first)
    with pytest.raises(ValueError, match="attention_mask"):
        predict(ids, mask * torch.tensor([[0], [1]]))


@pytest.mark.parametrize(("name", "epochs", "falls_to"), [("full", 8, 0.04), ("predicting", 4, 0.8)])
def test_models_learn_enough_for_the_checks_in_any_order(name, epochs, falls_to):
    """The checks ask for 0.4 of the first loss, 0.85 of the test texts, and for both classes among those predicted."""
    case = learning(name, CPU, max_epochs=epochs)
    texts = marked_texts(9, 30, longest=14)
    for order in range(10, 14):  # none of them the order of the check itself
        model = classifier(**case.settings)
        result = fine_tune(model, splits(case), replace(case.config, seed=order))
        losses = [epoch.train_loss for epoch in result.history]
        assert min(losses) < falls_to * losses[0]
        assert result.test_accuracy > 0.87
        scores = oracle.logits(model, texts)
        assert min(torch.bincount(scores.argmax(dim=-1), minlength=2)) >= 5
        assert (scores[:, 1] - scores[:, 0]).abs().min() > 1e-3

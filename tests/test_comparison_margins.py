"""The settings that must win in exercises 8 to 10 win clearly, in whatever order a submission takes the texts."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from autograder.hidden import cases_ex08, cases_ex10, runs_ex09
from autograder.hidden.oracles import ex10 as oracle
from autograder.sandbox.fixtures.comparison import fresh_model
from exercises.kit import ComparisonConfig, Example, Splits, fit, predict
from solutions.ex09_transfer_methods import add_lora

CPU = torch.device("cpu")
#: None of them is a seed of a comparison: other orders than that of `fit(…, seed=seed)`.
ORDERS = range(11, 15)
#: A setting wins by so many validation texts or more.
CLEARLY = 2

Asked = tuple[str, Splits, ComparisonConfig, dict[str, Any]]


def asked(exercise: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Asked]:
    """(name, texts, configuration, settings of the models) of the comparisons in which one setting must win."""
    given: dict[str, Any] = {}

    def compare(student: Any, device: Any, texts: Splits, config: ComparisonConfig, **more: Any) -> None:
        given.update(texts=texts, config=config, more=more)

    class Watched(runs_ex09.Runs):
        def _once(self, name: str, texts: Splits, config: ComparisonConfig, **more: Any) -> Any:
            compare(None, None, texts, config, **more)

    student: Any = SimpleNamespace(once=lambda key, make: make())
    monkeypatch.setattr(cases_ex08, "_compare", compare)
    monkeypatch.setattr(cases_ex10, "_compare", compare)
    watched = Watched(student, CPU, right=False)
    standard = {**watched.model_settings, "hidden_size": 32}  # as of journal.compare
    comparisons: dict[int, list[Any]] = {
        8: [cases_ex08.plain, cases_ex08.last_learns, cases_ex08.turned],
        9: [watched.plain, watched.middle, watched.turned],
        10: [cases_ex10.plain, cases_ex10.turned],
    }
    for make in comparisons[exercise]:
        if exercise == 9:
            make()
        else:
            make(student, CPU)
        models = watched.model_settings if exercise == 9 else standard
        dropout = given["more"].get("dropout", 0.0)
        yield make.__name__, given["texts"], given["config"], {**models, "dropout": dropout}


def right(
    method: str, rate: float, seed: int, order: int, texts: Splits, config: ComparisonConfig, models: dict[str, Any]
) -> int:
    """How many validation texts a run gets right that takes the training texts in that order."""
    model = fresh_model(seed, **models)
    if method == "lora":
        generator = torch.Generator().manual_seed(order)
        add_lora(model, config.lora_rank, config.lora_alpha, config.lora_targets, generator)
    else:
        model.encoder.requires_grad_(method == "full")
    fit(
        model,
        texts.train,
        learning_rate=rate,
        updates=config.updates,
        batch_size=config.batch_size,
        seed=order,
        weight_decay=config.weight_decay,
        pad_id=config.pad_id,
    )
    guesses = predict(model, texts.validation, pad_id=config.pad_id)
    return sum(guess == text.label for guess, text in zip(guesses, texts.validation, strict=True))


def cut(texts: Splits, config: ComparisonConfig) -> list[Splits]:
    """The texts as they are, or truncated to each of the lengths to compare."""
    if not config.max_lengths:
        return [texts]
    return [
        Splits(*([Example(oracle.cut(text.input_ids, length), text.label) for text in part] for part in texts))
        for length in config.max_lengths
    ]


@pytest.mark.parametrize("exercise", [8, 9, 10])
def test_the_best_setting_is_the_best_in_any_order(exercise: int, monkeypatch: pytest.MonkeyPatch) -> None:
    close = []
    for name, whole, config, models in asked(exercise, monkeypatch):
        for texts in cut(whole, config):
            for seed in config.seeds:
                for method in config.settings.keys() - {"bag_of_words"}:
                    rates = config.settings[method]
                    still = right(method, min(rates), seed, 0, texts, config, models)
                    for order in ORDERS:
                        learned = right(method, max(rates), seed, order, texts, config, models)
                        gain = still - learned if name == "turned" else learned - still
                        if gain < CLEARLY:
                            close.append((name, seed, method, order, f"{learned} right, {still} untrained"))
    assert close == []

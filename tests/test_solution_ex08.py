"""The solution of exercise 8 against scikit-learn's own vectorizer, the meters, and the assertions of the protocol."""

import dataclasses

import pytest
import torch
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from autograder.hidden import journal
from autograder.hidden.cases_ex08 import VOCABULARY, word_texts
from autograder.hidden.expect import Wrong
from autograder.hidden.journal import VOCAB_SIZE, Comparison, Journal, by_learning, make_texts
from autograder.hidden.protocol import check_calls, check_choice, check_test_readings, table
from autograder.hidden.run_records import f1
from autograder.sandbox.fixtures.comparison import fresh_model, watched_models
from autograder.sandbox.fixtures.models import served_splits
from exercises.kit import ComparisonConfig
from solutions.ex08_baselines import bag_of_words, compare_baselines

MODEL = {"base_seed": 3, "vocab_size": VOCAB_SIZE, "hidden_size": 16}


@pytest.mark.parametrize("c", [0.01, 1.0, 100.0])
def test_bag_of_words_predicts_what_a_pipeline_of_the_library_does(c):
    texts = word_texts(3, share=0.5)
    words = CountVectorizer(analyzer=str.split, vocabulary=[str(i) for i in range(VOCABULARY)])
    pipeline = make_pipeline(words, LogisticRegression(C=c, max_iter=1000))

    def written(part):
        return [" ".join(map(str, text.input_ids)) for text in part]

    pipeline.fit(written(texts.train), [text.label for text in texts.train])
    record = bag_of_words(texts, 0, (c,), VOCABULARY)
    assert record.test_predictions == pipeline.predict(written(texts.test)).tolist()
    assert record.total_parameters == pipeline[-1].coef_.size + pipeline[-1].intercept_.size


def test_bag_of_words_without_a_text_of_class_one_has_f1_zero():
    record = bag_of_words(word_texts(3, share=0.0), 0, (100.0,), VOCABULARY)
    assert (record.accuracy, record.f1) == (1.0, 0.0)


@pytest.fixture(scope="module")
def comparison():
    texts = make_texts(1, wrong_labels=("test",))
    notes = Journal(texts)
    config = ComparisonConfig(
        (4, 5),
        {"bag_of_words": (1.0, 10.0), "frozen": (0.02, 0.05), "full": (0.002, 0.005)},
        updates=6,
        batch_size=5,
        vocab_size=VOCAB_SIZE,
    )
    splits = served_splits(notes.read, 24, 12, 15)
    before = torch.get_rng_state()
    returned = compare_baselines(splits, watched_models(notes.told, **MODEL), config)
    assert torch.equal(before, torch.get_rng_state())
    call = type("Call", (), {"function": "compare_baselines"})()
    return Comparison(call, returned, 1e9, texts, config, tuple(notes.events), MODEL)


@pytest.fixture
def records(comparison):
    return table(comparison, ("bag_of_words", "frozen", "full"))


def test_costs_follow_from_the_budget(comparison, records):
    whole = sum(p.numel() for p in watched_models(lambda *_: None, **MODEL)(0).parameters())
    for (_, method, *_), record in records.items():
        expected = {
            "bag_of_words": (0, 0, 0, 0, VOCAB_SIZE + 1, VOCAB_SIZE + 1),
            "frozen": (6, 5, 6 + 1, 0, 2 * 16 + 2, whole),
            "full": (6, 5, 6 + 1, 6, whole, whole),
        }[method]
        assert expected == (
            record.updates,
            record.examples_per_update,
            record.encoder_forward_calls,
            record.encoder_backward_calls,
            record.trainable_parameters,
            record.total_parameters,
        )


def test_the_protocol_holds(comparison, records):
    check_test_readings(comparison, records, by_learning)
    check_choice(comparison, records, by_learning)
    check_calls(comparison, records, by_learning)


def test_what_learns_is_told_without_making_a_model_for_every_run(comparison, monkeypatch):
    made = []
    monkeypatch.setattr(journal, "fresh_model", lambda *given, **named: made.append(1) or fresh_model(*given, **named))
    part = dataclasses.replace(comparison)
    methods = [by_learning(part, run)[0] for run in part.runs]
    warm_up = ["full"]
    assert methods == warm_up + 2 * ["frozen", "frozen", "full", "full"]
    assert len(made) == 1


@pytest.mark.parametrize(
    ("check", "kind", "misconception"),
    [(check_test_readings, "read", "test-read-once-for-all"), (check_calls, "backward", "trained-another-way")],
    ids=["readings", "backward calls"],
)
def test_the_protocol_notices_what_is_missing_from_the_journal(comparison, records, check, kind, misconception):
    part = dataclasses.replace(comparison, events=tuple(event for event in comparison.events if event.kind != kind))
    with pytest.raises(Wrong) as caught:
        check(part, records, by_learning)
    assert caught.value.misconception == misconception


def test_f1_of_a_class():
    assert f1([1, 1, 0, 0], [1, 0, 1, 0]) == 0.5
    assert f1([0, 0], [0, 0]) == 0.0
    assert f1([0, 1, 0], [0, 0, 0], positive=0) == 0.8

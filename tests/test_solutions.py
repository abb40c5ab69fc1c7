"""The reference solutions, against slow loops, finite differences, PyTorch and every error of the contract."""

import inspect
import math
import random
import re

import numpy as np
import pytest
import torch
from scipy import optimize, stats

from exercises.kit import MaskedBatch, Vocabulary
from solutions.ex01_input_embeddings import another_decomposition, embedding_sum, input_embeddings
from solutions.ex02_mlm_loss import mean_nll, mlm_loss, stable_log_softmax
from solutions.ex03_copy_shortcut import context_free_floor, copy_logits, copy_loss, match_probability
from solutions.ex04_shapes_and_attention import BertShapes, attention_scores, bert_shapes, masked_softmax
from solutions.ex05_dynamic_masking import collate_mlm, mask_tokens

HALF = (torch.float16, torch.bfloat16)
TOLERANCE = {torch.float64: 1e-6, torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 1e-2}
NAN, INF = math.nan, math.inf


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def normal(*shape, seed=0, dtype=torch.float64):
    return torch.randn(*shape, generator=generator(seed), dtype=torch.float64).to(dtype)


def assert_close(got, expected):
    assert got.dtype == expected.dtype
    assert got.shape == expected.shape
    error = (got.double() - expected.double()).abs() / expected.double().abs().clamp(min=1)
    assert (error <= TOLERANCE[expected.dtype]).all(), error.max()


def refuses(message, function, *args, **kwargs):
    with pytest.raises(ValueError, match=message) as caught:
        function(*args, **kwargs)
    assert caught.traceback[-1].path.parent.name == "solutions"  # raised there, not in a library


# Exercise 1


def test_sum_of_the_worked_example():
    assert embedding_sum(np.array([1, 0]), np.array([0.5, 0.5]), np.array([-0.5, 1])).tolist() == [1.0, 1.5]


@pytest.mark.parametrize(
    "dtypes",
    [("i1", "i2", "i8"), ("f2", "f4", "f8"), ("i8", "f2", "f2"), ("f4", "i1", "f4"), ("u1", "u1", "i2"), ("f2",) * 3],
    ids=str,
)
def test_sum_is_taken_in_the_common_dtype(dtypes):
    parts = [np.full((2, 3), 100 + i, dtype) for i, dtype in enumerate(dtypes)]
    got = embedding_sum(*parts)
    assert got.dtype == np.result_type(*parts)
    assert (got == 303).all()  # int8 would wrap round at 128 on the way


def test_sum_of_any_memory_order_leaves_its_arguments_alone():
    token = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    segment, position = np.arange(24.0).reshape(3, 8)[:, ::2], np.arange(12.0).reshape(4, 3).T[:, ::-1]
    before = token.copy(), segment.copy(), position.copy()
    for part in (token, segment, position):
        part.flags.writeable = False
    assert np.array_equal(embedding_sum(token, segment, position), sum(before))


@pytest.mark.parametrize("function", [embedding_sum, another_decomposition])
@pytest.mark.parametrize("shapes", [((3,), (1,), (3,)), ((2, 3), (3,), (2, 3)), ((2, 3), (2, 3), (3, 2))], ids=str)
def test_sum_refuses_unequal_shapes(function, shapes):
    refuses("token, segment and position", function, *map(np.ones, shapes))


def tables(dtype=np.float64):
    rng = np.random.default_rng(1)
    return tuple(rng.normal(size=(rows, 5)).astype(dtype) for rows in (13, 3, 11))


@pytest.mark.parametrize("ids", ["u1", "i1", "u2", "i4", "u4", "i8", "u8"])
def test_embeddings_are_those_of_a_loop(ids):
    token_table, segment_table, position_table = tables()
    rng = np.random.default_rng(2)
    input_ids, types = rng.integers(0, 13, (2, 7)).astype(ids), rng.integers(0, 3, (2, 7)).astype(ids)
    got = input_embeddings(input_ids, types, token_table, segment_table, position_table)
    for i in range(2):
        for t in range(7):
            expected = token_table[int(input_ids[i, t])] + segment_table[int(types[i, t])] + position_table[t]
            assert np.allclose(got[i, t], expected, rtol=0, atol=1e-12)
    assert got.shape == (2, 7, 5)


@pytest.mark.parametrize("dtypes", [("f4", "f4", "f4"), ("f2", "f4", "i8"), ("i1", "i1", "i4"), ("f2", "f2", "f2")])
def test_embeddings_have_the_common_dtype_of_the_tables(dtypes):
    three = [np.full((4, 3), 100, dtype) for dtype in dtypes]
    got = input_embeddings(np.zeros((1, 2), int), np.zeros((1, 2), int), *three)
    assert got.dtype == np.result_type(*three)
    assert (got == 300).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"input_ids": np.array([0, 1])}, "input_ids"),
        ({"input_ids": np.zeros((1, 1, 2), int), "token_type_ids": np.zeros((1, 1, 2), int)}, "input_ids"),
        ({"token_type_ids": np.zeros((1, 3), int)}, "token_type_ids"),
        ({"token_type_ids": np.zeros((2, 1), int)}, "token_type_ids"),
        ({"input_ids": np.array([[0, 13]])}, "input_ids holds 13"),
        ({"input_ids": np.array([[-1, 0]], "i1")}, "input_ids holds -1"),
        ({"token_type_ids": np.array([[0, 3]], "u1")}, "token_type_ids holds 3"),
        ({"token_type_ids": np.array([[-2, 0]])}, "token_type_ids holds -2"),
        ({"position_table": np.zeros((1, 5))}, "input_ids has 2 .* position_table only 1"),
        ({"token_table": np.zeros((13, 1))}, "token_table 1"),
        ({"segment_table": np.zeros((3, 6))}, "segment_table 6"),
        ({"position_table": np.zeros((11, 4))}, "position_table 4"),
    ],
)
def test_embeddings_refuse(change, message):
    names = ("token_table", "segment_table", "position_table")
    good = {
        "input_ids": np.array([[0, 12]]),
        "token_type_ids": np.array([[0, 2]]),
        **dict(zip(names, tables(), strict=True)),
    }
    input_embeddings(**good)
    refuses(message, input_embeddings, **{**good, **change})


@pytest.mark.parametrize("shape", [(1,), (1, 1), (2, 3, 5)], ids=str)
@pytest.mark.parametrize("scale", [0, 1e-9, 1, 1e6])
@pytest.mark.parametrize("dtype", ["f8", "f4", "i8", "i4"])
def test_decomposition_has_the_same_sum_and_other_parts(shape, scale, dtype):
    rng = np.random.default_rng(3)
    parts = [(rng.uniform(-1, 1, shape) * scale).astype(dtype) for _ in range(3)]
    before = [part.copy() for part in parts]
    others = another_decomposition(*parts)
    assert all(np.array_equal(a, b) for a, b in zip(parts, before, strict=True))
    assert all(other.dtype == np.float64 and other.shape == shape for other in others)
    total = sum(part.astype(np.float64) for part in parts)
    limit = 1e-9 * np.maximum(1, sum(abs(part.astype(np.float64)) for part in parts))
    assert (abs(sum(others) - total) <= limit).all()
    assert sum((abs(a - b) > 1e-3).all() for a, b in zip(parts, others, strict=True)) >= 2


# Exercise 2


@pytest.mark.parametrize(
    "probabilities",
    [
        [0.5, 0.25],
        (0.5, 0.25),
        np.array([0.5, 0.25]),
        np.array([0.5, 0, 0.25], "f2")[::2],
        torch.tensor([0.5, 0.25]),
        torch.tensor([0.5, 0.25], dtype=torch.bfloat16),
        torch.tensor([0.5, 0.25], requires_grad=True),
    ],
    ids=lambda p: type(p).__name__,
)
@pytest.mark.filterwarnings("error")
def test_mean_nll_of_the_worked_example(probabilities):
    got = mean_nll(probabilities)
    assert type(got) is float
    assert got == pytest.approx(1.5 * math.log(2), abs=1e-12)


def test_mean_nll_is_computed_in_double():
    assert mean_nll(np.array([1e-30] * 3, "f4")) == pytest.approx(-math.log(float(np.float32(1e-30))), abs=1e-12)
    assert mean_nll([5e-324]) == pytest.approx(744.4400719)
    assert mean_nll([1]) == 0


@pytest.mark.parametrize(
    ("probabilities", "message"),
    [
        ([], "probabilities is empty"),
        (torch.tensor([]), "probabilities is empty"),
        ([0.5, 0.0], "probabilities holds 0.0"),
        ([-0.25], "probabilities holds -0.25"),
        ([1.0, 1.0000001], "probabilities holds 1.0000001"),
        (np.array([0.5, NAN]), "probabilities holds nan"),
        (torch.tensor([INF]), "probabilities holds inf"),
    ],
    ids=str,
)
def test_mean_nll_refuses(probabilities, message):
    refuses(message, mean_nll, probabilities)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("scale", [1, 100, 1e4])
@pytest.mark.parametrize("size", [1, 7, 30_522])
def test_log_softmax_agrees_with_pytorch_in_double(dtype, scale, size):
    logits = (normal(3, size) * scale).clamp(-1e4, 1e4).to(dtype)
    assert_close(stable_log_softmax(logits), torch.log_softmax(logits.double(), -1).to(dtype))


def test_log_softmax_at_the_ends_of_the_range():
    for dtype in TOLERANCE:
        logits = torch.tensor([[-1e4, 1e4], [1e4, 1e4], [-1e4, -1e4]], dtype=dtype)
        assert_close(stable_log_softmax(logits), torch.log_softmax(logits.double(), -1).to(dtype))


def test_log_softmax_gradient():
    logits = (normal(5, 3, 2) * 3).permute(2, 1, 0).requires_grad_()  # any strides
    assert torch.autograd.gradcheck(stable_log_softmax, logits)
    assert torch.autograd.gradgradcheck(stable_log_softmax, logits)
    x, y = (normal(2, 9).mul(1e3).requires_grad_() for _ in range(2))
    weight = normal(2, 9, seed=1)
    (stable_log_softmax(x) * weight).sum().backward()
    (torch.log_softmax(y, -1) * weight).sum().backward()
    assert_close(x.grad, y.grad)


def mlm_case(dtype=torch.float64, ignore_index=-100):
    logits = normal(3, 5, 7, dtype=dtype) * 3
    labels = torch.full((3, 5), ignore_index)
    labels[0, 1], labels[0, 4], labels[2, 0] = 6, 0, 3
    return logits, labels


@pytest.mark.parametrize("ignore_index", [-100, -1, 5, 10**9])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_mlm_loss_and_gradient_agree_with_cross_entropy(dtype, ignore_index):
    logits, labels = mlm_case(dtype, ignore_index)
    mine, theirs = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    got = mlm_loss(mine, labels, ignore_index)
    wide = theirs.float() if dtype in HALF else theirs
    expected = torch.nn.functional.cross_entropy(wide.reshape(-1, 7), labels.reshape(-1), ignore_index=ignore_index)
    assert_close(got, expected)
    got.backward()
    expected.backward()
    assert_close(mine.grad, theirs.grad)
    assert (mine.grad[labels == ignore_index] == 0).all()


def test_mlm_loss_of_the_worked_example():
    probabilities = torch.tensor([[[0.5, 0.3, 0.2], [0.25, 0.25, 0.5]], [[0.1, 0.1, 0.8], [0.6, 0.2, 0.2]]])
    got = mlm_loss(probabilities.log(), torch.tensor([[0, 1], [-100, -100]]))
    assert got.item() == pytest.approx(1.5 * math.log(2), rel=1e-6)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_mlm_loss_ignores_whatever_ignored_positions_hold(dtype):
    logits, labels = mlm_case(dtype)
    expected = mlm_loss(logits, labels)
    logits[0, 0], logits[1], logits[2, 4, 3] = NAN, INF, -INF
    logits.requires_grad_()
    got = mlm_loss(logits, labels)
    assert torch.equal(got, expected)
    got.backward()
    assert logits.grad.isfinite().all()
    assert (logits.grad[labels == -100] == 0).all()


def test_mlm_loss_of_huge_logits():
    logits = torch.tensor([[[1e4, -1e4, 0.0]]], requires_grad=True)
    loss = mlm_loss(logits, torch.tensor([[1]]))
    loss.backward()
    assert loss.item() == 2e4
    assert logits.grad.tolist() == [[[1.0, -1.0, 0.0]]]


@pytest.mark.parametrize(
    ("logits", "labels", "message"),
    [
        ((2, 3, 4), torch.full((2, 3), -100), "labels holds no target"),
        ((1, 2, 4), torch.tensor([[0, 4]]), "labels holds 4,"),
        ((1, 2, 4), torch.tensor([[0, -1]]), "labels holds -1,"),
        ((1, 2, 4), torch.tensor([[0, 1, 2]]), "logits"),
        ((1, 2, 4), torch.tensor([0, 1]), "logits"),
        ((2, 4), torch.tensor([[0, 1]]), "logits"),
        ((1, 1, 2, 4), torch.tensor([[[0, 1]]]), "logits"),
    ],
)
def test_mlm_loss_refuses(logits, labels, message):
    refuses(message, mlm_loss, torch.zeros(logits), labels)


def test_mlm_loss_takes_an_ignored_minus_100_as_a_bad_label_under_another_ignore_index():
    refuses("labels holds -100", mlm_loss, torch.zeros(1, 2, 4), torch.tensor([[0, -100]]), ignore_index=-1)


class OffLimits(torch.utils._python_dispatch.TorchDispatchMode):
    """Refuses the kernels behind softmax and cross-entropy, by whatever name they were reached."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        assert not re.search(r"softmax|nll_loss|cross_entropy", func.name()), func.name()
        return func(*args, **(kwargs or {}))


def test_exercise_2_uses_nothing_that_is_off_limits():
    for dtype in TOLERANCE:
        logits, labels = mlm_case(dtype)
        logits.requires_grad_()
        with OffLimits():
            mean_nll(torch.tensor([0.5]))
            stable_log_softmax(logits).sum().backward()
            mlm_loss(logits, labels).backward()


# Exercise 3


def test_copy_logits():
    ids = torch.tensor([[2, 0, 2], [1, 1, 0]])
    for scale in (5.0, -3, 0, 1e4):
        got = copy_logits(ids, 4, scale)
        assert got.dtype == torch.float32
        expected = [[[scale if v == i else 0 for v in range(4)] for i in row] for row in ids.tolist()]
        assert got.tolist() == expected


@pytest.mark.parametrize("bad", [4, -1])
def test_copy_logits_refuses_ids_outside(bad):
    refuses(f"input_ids holds {bad},", copy_logits, torch.tensor([[0, bad]]), 4, 1.0)


@pytest.mark.parametrize("scale", [0, 1e-3, 1.0, 10.0, 100.0, 745.5, 1e4])
@pytest.mark.parametrize("vocab_size", [2, 7, 30_522])
def test_copy_loss_is_that_of_its_logits(scale, vocab_size):
    ids = torch.randint(vocab_size, (3, 5), generator=generator(4))
    targets = torch.where(torch.rand(3, 5, generator=generator(5)) < 0.5, ids, (ids + 1) % vocab_size)
    selected = torch.rand(3, 5, generator=generator(6)) < 0.6
    targets[~selected] = -100
    logits = torch.zeros(3, 5, vocab_size, dtype=torch.float64).scatter(-1, ids[..., None], float(scale))
    expected = torch.nn.functional.cross_entropy(logits[selected], targets[selected]).item()
    got = copy_loss(ids, targets, selected, vocab_size, scale)
    assert type(got) is float
    assert got == pytest.approx(expected, rel=1e-12, abs=1e-12)


def test_copy_loss_refuses():
    ids, some = torch.tensor([[0, 1]]), torch.tensor([[True, False]])
    refuses("selected holds no True", copy_loss, ids, ids, ~some & some, 3, 1.0)
    refuses("input_ids, targets and selected", copy_loss, ids, ids[:, :1], some, 3, 1.0)
    refuses("input_ids, targets and selected", copy_loss, ids, ids, some[0], 3, 1.0)


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [((0.8, 0.1, 0.1, 4), 0.125), ((1, 0, 0, 1), 0.0), ((0, 1, 0, 5), 0.2), ((0, 0, 1, 5), 1.0), ((0, 1, 0, 1), 1.0)],
)
def test_match_probability(arguments, expected):
    got = match_probability(*arguments)
    assert type(got) is float
    assert got == pytest.approx(expected)


def test_match_probability_is_that_of_a_simulation():
    rng = random.Random(0)
    draws = 20_000
    hits = sum((u := rng.random()) >= 0.6 and (u >= 0.9 or rng.randrange(3) == 1) for _ in range(draws))
    q = match_probability(0.6, 0.3, 0.1, 3)
    assert stats.binomtest(hits, draws, q).pvalue > 1e-6


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-0.1, 1.0, 0.1, 4), "mask_rate is -0.1"),
        ((0.0, 1.5, 0.1, 4), "random_rate is 1.5"),
        ((0.5, 0.5, NAN, 4), "keep_rate is nan"),
        ((0.8, 0.1, 0.2, 4), r"mask_rate \+ random_rate \+ keep_rate must be 1.*1\.1"),
        ((0.8, 0.1, 0.1 - 2e-9, 4), "must be 1"),
        ((0.8, 0.1, 0.1 + 2e-9, 4), "must be 1"),
        ((0.8, 0.1, 0.1, 0), "n_ordinary is 0"),
        ((0.8, 0.1, 0.1, -3), "n_ordinary is -3"),
    ],
)
def test_match_probability_refuses(arguments, message):
    refuses(message, match_probability, *arguments)


def test_match_probability_forgives_rounding():
    for slip in (5e-10, -5e-10):
        assert match_probability(0.8, 0.1, 0.1 + slip, 4) == pytest.approx(0.125)


@pytest.mark.parametrize("q", [1e-12, 1e-3, 0.1, 0.5, 0.9, 1 - 1e-9])
@pytest.mark.parametrize("vocab_size", [2, 5, 30_522])
def test_floor_is_the_minimum_over_all_scales(q, vocab_size):
    def expected_loss(scale):
        return np.logaddexp(0, math.log(vocab_size - 1) - scale) + (1 - q) * scale

    best = optimize.minimize_scalar(expected_loss, bounds=(-60, 60), method="bounded", options={"xatol": 1e-9})
    assert context_free_floor(q, vocab_size) == pytest.approx(best.fun, rel=1e-6, abs=1e-6)


def test_floor_at_the_ends():
    for vocab_size in (2, 5, 30_522):
        assert context_free_floor(1.0, vocab_size) == context_free_floor(1, vocab_size) == 0
        assert context_free_floor(0.0, vocab_size) == pytest.approx(math.log(vocab_size - 1))
        assert context_free_floor(5e-324, vocab_size) == pytest.approx(math.log(vocab_size - 1))
        assert type(context_free_floor(0, vocab_size)) is float
    assert context_free_floor(0.5, 5) == pytest.approx(2 * math.log(2))


@pytest.mark.parametrize(
    ("q", "vocab_size", "message"),
    [
        (-0.1, 5, "match_probability is -0.1"),
        (1.1, 5, "match_probability is 1.1"),
        (NAN, 5, "match_probability is nan"),
        (0.5, 1, "vocab_size is 1"),
    ],
)
def test_floor_refuses(q, vocab_size, message):
    refuses(message, context_free_floor, q, vocab_size)


# Exercise 4


def test_shapes_of_the_worked_example():
    got = bert_shapes(16, 128, 768, 12, 2)
    assert got == (
        *((16, 128), (16, 128), (16, 128, 768), (16, 128, 64), (16, 12, 128, 128), (16, 2)),
        *(3_145_728, 12_582_912, 1538),
    )
    assert isinstance(got, BertShapes)


def test_shapes_of_unequal_primes():
    got = bert_shapes(2, 3, 35, 5, 11, bytes_per_element=13)
    assert got == ((2, 3), (2, 3), (2, 3, 35), (2, 3, 7), (2, 5, 3, 3), (2, 11), 90, 1170, 396)


@pytest.mark.parametrize("bad", [0, -1, True, 2.0, "2", None, np.int64(2)], ids=repr)
@pytest.mark.parametrize("name", inspect.signature(bert_shapes).parameters)
def test_shapes_refuse(name, bad):
    good = {"batch_size": 2, "sequence_length": 3, "hidden_size": 8, "num_heads": 2, "num_labels": 3}
    refuses(f"{name} must be a positive int, got {re.escape(repr(bad))}", bert_shapes, **{**good, name: bad})


def test_shapes_refuse_heads_that_do_not_divide():
    refuses("hidden_size 768 .* num_heads 7", bert_shapes, 16, 128, 768, 7, 2)


def test_attention_scores_are_those_of_a_loop():
    query, key = normal(2, 1, 3, 5), normal(1, 4, 7, 5, seed=1).transpose(-1, -2).contiguous().transpose(-1, -2)
    got = attention_scores(query, key)
    assert got.shape == (2, 4, 3, 7)
    for i, h, t, u in np.ndindex(*got.shape):
        expected = sum(float(query[i, 0, t, c]) * float(key[0, h, u, c]) for c in range(5)) / math.sqrt(5)
        assert got[i, h, t, u].item() == pytest.approx(expected, rel=1e-12)
    assert torch.autograd.gradcheck(attention_scores, (query.requires_grad_(), key.requires_grad_()))


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_attention_scores_keep_the_dtype(dtype):
    got = attention_scores(normal(3, 8, dtype=dtype), normal(5, 8, seed=1, dtype=dtype))
    assert got.dtype == dtype
    assert got.shape == (3, 5)


def test_attention_scores_refuse_unequal_widths():
    refuses("query and key .* 4 and 5", attention_scores, torch.zeros(2, 4), torch.zeros(3, 5))
    refuses("query and key .* 1 and 5", attention_scores, torch.zeros(2, 1), torch.zeros(3, 5))


def softmax_by_loop(scores, mask):
    """Softmax over the attended entries of each row, in Python floats."""
    mask = mask.expand(scores.shape)
    result = torch.zeros(scores.shape, dtype=torch.float64)
    for index in np.ndindex(*scores.shape[:-1]):
        attended = [i for i in range(scores.shape[-1]) if mask[index][i] == 1]
        if attended:
            top = max(float(scores[index][i]) for i in attended)
            weights = {i: math.exp(float(scores[index][i]) - top) for i in attended}
            for i, weight in weights.items():
                result[index][i] = weight / sum(weights.values())
    return result.to(scores.dtype)


MASK_SHAPES = [(2, 1, 1, 5), (3, 5), (2, 7, 3, 5), (5,), (1, 1, 1, 1), (7, 1, 5)]


@pytest.mark.parametrize("shape", MASK_SHAPES, ids=str)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_masked_softmax_is_that_of_a_loop(dtype, shape):
    scores = (normal(2, 7, 5, 3, dtype=dtype) * 4).transpose(-1, -2)
    mask = torch.rand(shape, generator=generator(7)) < 0.6
    got = masked_softmax(scores, mask)
    assert_close(got, softmax_by_loop(scores, mask))
    assert (got[~mask.expand(scores.shape)] == 0).all()


MASK_DTYPES = [
    *(torch.bool, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.uint16, torch.uint32),
    *(torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.float8_e4m3fn, torch.complex64),
]


@pytest.mark.parametrize("dtype", MASK_DTYPES, ids=str)
def test_masks_of_any_dtype(dtype):
    scores, mask = normal(3, 5), torch.rand(3, 5, generator=generator(8)) < 0.6
    assert torch.equal(masked_softmax(scores, mask.to(dtype)), masked_softmax(scores, mask))


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_masked_softmax_of_extreme_scores(dtype):
    top = torch.finfo(dtype).max
    scores = torch.tensor(
        [
            [top, -top, top, NAN, INF],
            [-top, -top, -top, INF, top],
            [-top, top, 0, -INF, NAN],
            [0, -1, -2, top, top],
            [INF, NAN, -INF, top, 0],
        ],
        dtype=dtype,
        requires_grad=True,
    )
    mask = torch.tensor([[1, 1, 1, 0, 0]] * 4 + [[0] * 5])
    got = masked_softmax(scores, mask)
    third = 1 / 3
    e = [math.exp(-i) / sum(math.exp(-j) for j in range(3)) for i in range(3)]
    rows = [[0.5, 0, 0.5], [third, third, third], [0, 1, 0], e, [0, 0, 0]]
    assert_close(got, torch.tensor([[*row, 0, 0] for row in rows], dtype=dtype))
    (got * normal(5, 5, seed=2, dtype=dtype)).sum().backward()
    assert scores.grad.isfinite().all()
    assert (scores.grad[mask == 0] == 0).all()
    assert (scores.grad[3, :3] != 0).all()


def test_masked_softmax_gradient():
    scores, mask = normal(2, 3, 5), torch.rand(2, 3, 5, generator=generator(9)) < 0.6
    mask[0, 1] = False
    mask[1, 2] = True
    scores.requires_grad_()
    assert torch.autograd.gradcheck(lambda s: masked_softmax(s, mask), scores)
    assert torch.autograd.gradgradcheck(lambda s: masked_softmax(s, mask), scores)
    other = scores.detach().clone().requires_grad_()
    weight = normal(2, 3, 5, seed=3)
    (masked_softmax(scores, mask)[1, 2] * weight[1, 2]).sum().backward()
    (torch.softmax(other, -1)[1, 2] * weight[1, 2]).sum().backward()
    assert_close(scores.grad, other.grad)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_masked_softmax_with_nothing_attended_at_all_has_zero_gradients(dtype):
    scores = torch.full((2, 3), NAN, dtype=dtype, requires_grad=True)
    got = masked_softmax(scores, torch.zeros(1, 3))
    assert got.tolist() == [[0, 0, 0]] * 2
    got.sum().backward()
    assert scores.grad.tolist() == [[0, 0, 0]] * 2


def test_masked_softmax_does_not_see_the_maximum_of_what_is_masked():
    assert masked_softmax(torch.tensor([0.0, 1.0, 1e4]), torch.tensor([1, 1, 0])).sum() == pytest.approx(1)


@pytest.mark.parametrize("dtype", HALF)
def test_masked_softmax_of_long_rows_in_half_precision(dtype):
    scores = normal(2, 4096, dtype=dtype)
    got = masked_softmax(scores, torch.ones(4096))
    assert_close(got, torch.softmax(scores.double(), -1).to(dtype))
    assert got.double().sum(-1).tolist() == pytest.approx([1, 1], abs=TOLERANCE[dtype])


@pytest.mark.parametrize(
    ("shape", "mask", "message"),
    [
        ((3, 5), torch.ones(3), r"mask \(3,\) .* scores \(3, 5\)"),
        ((3, 5), torch.ones(2, 5), "mask"),
        ((3, 5), torch.ones(2, 3, 5), "mask"),
        ((3, 5), torch.ones(1, 3, 5), "mask"),
        ((1, 5), torch.ones(3, 5), "mask"),
        ((3, 1), torch.ones(3, 5), "mask"),
        ((3, 5), torch.tensor([0, 1, 2, 1, 1]), "mask holds 2,"),
        ((3, 5), torch.tensor([0, 1, -1, 1, 1]), "mask holds -1,"),
        ((3, 5), torch.tensor([0, 1, 0.5, 1, 1]), "mask holds 0.5,"),
        ((3, 5), torch.tensor([0, 1, NAN, 1, 1]), "mask holds nan,"),
        ((3, 5), torch.tensor([0, -INF, 0, 0, 0]), "mask holds -inf,"),
    ],
)
def test_masked_softmax_refuses(shape, mask, message):
    refuses(message, masked_softmax, torch.zeros(shape), mask)


# Exercise 5

VOCABULARY = Vocabulary(size=60, pad_id=3, cls_id=58, sep_id=1, mask_id=5, unk_id=4)


def masking_case(m=4, columns=128, padding=20):
    """Ordinary ids (0 among them), special tokens at column 0 and every tenth, padding at the right."""
    ids = VOCABULARY.ordinary_ids[torch.randint(55, (m, columns), generator=generator(10))]
    attention = (torch.arange(columns) < columns - padding).long().repeat(m, 1)
    special = (torch.arange(columns) % 10 == 0).repeat(m, 1)
    return ids, attention, special


def mask(ids, attention, special, **settings):
    return mask_tokens(
        ids,
        attention,
        special,
        **{"mask_token_id": 5, "ordinary_ids": VOCABULARY.ordinary_ids, "generator": generator(), **settings},
    )


@pytest.mark.parametrize("probability", [1e-6, 0.15, 0.5, 1.0])
def test_masking_invariants(probability):
    ids, attention, special = masking_case()
    special[2] = True
    source = generator(11)
    for _ in range(20):
        batch = mask(ids, attention, special, mlm_probability=probability, ignore_index=-7, generator=source)
        candidates = (attention == 1) & ~special
        assert isinstance(batch, MaskedBatch)
        assert batch.selected.dtype == torch.bool
        assert batch.input_ids.dtype == batch.labels.dtype == torch.int64
        assert not (batch.selected & ~candidates).any()
        assert (batch.selected.any(1) == candidates.any(1)).all()
        assert torch.equal(batch.labels, torch.where(batch.selected, ids, -7))
        assert torch.equal(batch.input_ids[~batch.selected], ids[~batch.selected])
        assert torch.equal(batch.attention_mask, attention)
        assert batch.attention_mask.dtype == attention.dtype
        changed = batch.input_ids[batch.input_ids != ids]
        assert torch.isin(changed, torch.cat([VOCABULARY.ordinary_ids, torch.tensor([5])])).all()
        assert (batch.selected == candidates).all() or probability < 1


def test_masking_rates():
    """Each count lies where a right solution's is but with probability 1e-9 (two-sided binomial)."""
    ids, attention, special = masking_case(m=400, columns=512, padding=112)
    batch = mask(ids, attention, special)
    n = int(((attention == 1) & ~special).sum())
    k = int(batch.selected.sum())
    masked = batch.selected & (batch.input_ids == 5)
    changed = batch.selected & ~masked & (batch.input_ids != ids)
    for count, trials, rate in (
        (k, n, 0.15),
        (int(masked.sum()), k, 0.8),
        (int(changed.sum()), k, 0.1 * 54 / 55),  # a random draw is the original once in 55
    ):
        assert stats.binomtest(count, trials, rate).pvalue > 1e-9
    per_sequence = batch.selected.sum(1)
    assert per_sequence.double().var() == pytest.approx(360 * 0.15 * 0.85, rel=0.5)  # independent draws, not quotas


def test_random_tokens_are_uniform_over_gaps():
    pool = torch.tensor([7, 1000, 12, 999_999, 0])
    ids = torch.full((100, 100), 42)
    batch = mask(
        ids, ids > 0, ids < 0, ordinary_ids=pool, mlm_probability=1.0, mask_rate=0.0, random_rate=1.0, mask_token_id=5
    )
    counts = [int((batch.input_ids == i).sum()) for i in pool]
    assert sum(counts) == ids.numel()
    assert stats.chisquare(counts).pvalue > 1e-9


def test_forced_target_is_uniform_and_corrupted_like_any_other():
    ids = torch.full((30_000, 7), 42)
    special = torch.tensor([0, 1, 0, 0, 1, 0, 0]).repeat(30_000, 1)
    batch = mask(ids, ids > 0, special, mlm_probability=1e-9)
    assert (batch.selected.sum(1) == 1).all()
    assert stats.chisquare(batch.selected.sum(0)[[0, 2, 3, 5, 6]].numpy()).pvalue > 1e-9
    assert stats.binomtest(int((batch.input_ids == 5).sum()), 30_000, 0.8).pvalue > 1e-9


def test_generator_alone_decides():
    ids, attention, special = masking_case()
    states = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].copy()
    source = generator(12)
    first, second = (mask(ids, attention, special, generator=source) for _ in range(2))
    again = mask(ids, attention, special, generator=generator(12))
    assert all(map(torch.equal, first, again))
    assert not torch.equal(first.selected, second.selected)
    assert torch.equal(states[0], torch.get_rng_state())
    assert states[1] == random.getstate()
    assert (states[2] == np.random.get_state()[1]).all()


def test_no_generator_means_torchs_own():
    ids, attention, special = masking_case()
    with torch.random.fork_rng():
        torch.manual_seed(13)
        first = mask(ids, attention, special, generator=None)
        second = mask(ids, attention, special, generator=None)
        torch.manual_seed(13)
        again = mask(ids, attention, special, generator=None)
    assert all(map(torch.equal, first, again))
    assert not torch.equal(first.selected, second.selected)


def test_masking_leaves_its_arguments_alone_and_takes_any_strides():
    ids, attention, special = masking_case()
    ids, attention, special = ids.T.contiguous().T, attention.repeat_interleave(2, 1)[:, ::2], special.int()
    before = ids.clone(), attention.clone(), special.clone()
    got = mask(ids, attention, special)
    assert all(map(torch.equal, (ids, attention, special), before))
    assert all(map(torch.equal, got, mask(*before)))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"input_ids": torch.tensor([9, 9])}, "input_ids, attention_mask and special_tokens_mask"),
        ({"attention_mask": torch.ones(1, 2)}, "attention_mask"),
        ({"special_tokens_mask": torch.zeros(2, 3)}, "special_tokens_mask"),
        ({"mlm_probability": 0.0}, "mlm_probability is 0.0"),
        ({"mlm_probability": -0.5}, "mlm_probability is -0.5"),
        ({"mlm_probability": 1.5}, "mlm_probability is 1.5"),
        ({"mlm_probability": NAN}, "mlm_probability is nan"),
        ({"mask_rate": -0.1}, "mask_rate is -0.1"),
        ({"random_rate": -0.1}, "random_rate is -0.1"),
        ({"random_rate": NAN}, "random_rate is nan"),
        ({"mask_rate": NAN}, "mask_rate is nan"),
        ({"mask_rate": 0.95}, r"mask_rate 0.95 \+ random_rate 0.1"),
        ({"mask_rate": 0.9 + 2e-9}, "over 1"),
        ({"random_rate": INF}, "random_rate inf"),
        ({"ordinary_ids": torch.tensor([], dtype=torch.int64)}, "ordinary_ids is empty"),
        ({"attention_mask": torch.zeros(1, 3, dtype=torch.bool)}, "no candidate"),
        ({"special_tokens_mask": torch.ones(1, 3, dtype=torch.bool)}, "no candidate"),
    ],
    ids=lambda x: next(iter(x)) if isinstance(x, dict) else "",
)
def test_masking_refuses_before_it_draws(change, message):
    good = {
        "input_ids": torch.tensor([[9, 8, 7]]),
        "attention_mask": torch.ones(1, 3, dtype=torch.bool),
        "special_tokens_mask": torch.zeros(1, 3, dtype=torch.bool),
        "mask_token_id": 5,
        "ordinary_ids": torch.tensor([7, 8, 9]),
    }
    mask_tokens(**good, generator=generator())
    source = generator()
    before = source.get_state()
    refuses(message, mask_tokens, **{**good, **change}, generator=source)
    assert torch.equal(source.get_state(), before)


def test_masking_allows_the_edges():
    ids = torch.full((2, 50), 9)
    none = torch.tensor([], dtype=torch.int64)
    batch = mask(ids, ids > 0, ids < 0, ordinary_ids=none, random_rate=0.0, mask_rate=1.0, mlm_probability=1.0)
    assert (batch.input_ids == 5).all()
    mask(ids, ids > 0, ids < 0, mask_rate=0.9 + 5e-10)
    kept = mask(ids, ids > 0, ids < 0, mask_rate=0, random_rate=0, mlm_probability=1)
    assert torch.equal(kept.input_ids, ids)
    assert kept.selected.all()


def test_collate_pads_by_length_and_spares_special_tokens():
    examples = [[58, 3, 0, 4, 59, 1], [58, 1], [58, *[10, 20, 30] * 30, 5, 1]]
    longest = max(map(len, examples))
    source = generator(14)
    for _ in range(10):
        batch = collate_mlm(examples, VOCABULARY, mlm_probability=0.9, ignore_index=-5, generator=source)
        original = torch.where(batch.selected, batch.labels, batch.input_ids)
        assert original.tolist() == [example + [3] * (longest - len(example)) for example in examples]
        assert batch.attention_mask.tolist() == [[1] * len(e) + [0] * (longest - len(e)) for e in examples]
        assert not torch.isin(original[batch.selected], VOCABULARY.special_ids).any()
        assert (batch.labels[~batch.selected] == -5).all()
        assert batch.selected.any(1).tolist() == [True, False, True]
    assert examples[1] == [58, 1]


def test_collate_hands_on_its_settings():
    examples = [[58, *range(10, 50), 1]]
    everything = collate_mlm(examples, VOCABULARY, mlm_probability=1.0, generator=generator())
    assert everything.selected.sum() == 40
    same = collate_mlm(examples, VOCABULARY, mlm_probability=1.0, generator=generator())
    assert torch.equal(everything.input_ids, same.input_ids)


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        ([], "examples is empty"),
        ([[58, 10, 1], []], r"examples\[1\] is empty"),
        ([[58, 60, 1]], r"examples\[0\] holds 60"),
        ([[58, 10, 1], [58, -1, 1]], r"examples\[1\] holds -1"),
    ],
)
def test_collate_refuses(examples, message):
    refuses(message, collate_mlm, examples, VOCABULARY, generator=generator())


# Every exercise


def test_results_stay_on_the_device_of_the_inputs_whatever_the_default_device():
    logits, labels = mlm_case()
    ids, attention, special = masking_case()
    with torch.device("meta"):
        assert mean_nll([0.5]) > 0
        assert stable_log_softmax(logits).device.type == "cpu"
        assert mlm_loss(logits, labels).device.type == "cpu"
        assert copy_logits(ids, 60, 2.0).device.type == "cpu"
        assert copy_loss(ids, ids, special, 60, 2.0) > 0
        assert attention_scores(logits, logits).device.type == "cpu"
        assert masked_softmax(logits, labels[..., None] == -100).device.type == "cpu"
        source = torch.Generator("cpu").manual_seed(0)
        assert all(part.device.type == "cpu" for part in mask(ids, attention, special, generator=source))
        assert all(part.device.type == "cpu" for part in mask(ids, attention, special, generator=None))
        assert all(part.device.type == "cpu" for part in collate_mlm([[58, 9, 1]], VOCABULARY, generator=source))


def test_results_do_not_depend_on_the_default_dtype():
    ids, attention, special = masking_case()
    before = copy_logits(ids, 60, 2.0), mask(ids, attention, special), copy_loss(ids, ids, special, 60, 2.0)
    torch.set_default_dtype(torch.float64)
    try:
        after = copy_logits(ids, 60, 2.0), mask(ids, attention, special), copy_loss(ids, ids, special, 60, 2.0)
    finally:
        torch.set_default_dtype(torch.float32)
    assert torch.equal(before[0], after[0])
    assert before[0].dtype == after[0].dtype
    assert all(map(torch.equal, before[1], after[1]))
    assert before[2] == after[2]


def test_tensors_are_not_changed():
    logits, labels = mlm_case()
    ids = torch.tensor([[0, 1]])
    scores, allowed = normal(2, 3), torch.tensor([[1, 0, 1]])
    arguments = logits, labels, ids, scores, allowed
    before = [argument.clone() for argument in arguments]
    versions = [argument._version for argument in arguments]
    stable_log_softmax(logits), mlm_loss(logits, labels), copy_logits(ids, 2, 1.0)
    copy_loss(ids, ids, ids == 0, 2, 1.0), attention_scores(scores, scores), masked_softmax(scores, allowed)
    assert all(map(torch.equal, arguments, before))
    assert versions == [argument._version for argument in arguments]

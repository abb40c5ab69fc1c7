"""The reference solution of exercise 9 against the library peft, the counts of BERT-base, and slow loops."""

import math

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from transformers import BertConfig, BertForSequenceClassification, BertModel

from autograder.hidden.oracles import ex09 as oracle
from autograder.sandbox.fixtures.models import classifier
from exercises.kit import Classifier, parameter_counts
from solutions.ex09_transfer_methods import LoRALinear, add_lora, merge_lora

TARGETS = ("query", "value", "dense")


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def with_random_b(model, seed=1):
    """The LoRALinear layers of a model by name, B full of random numbers."""
    layers = {name: module for name, module in model.named_modules() if isinstance(module, LoRALinear)}
    with torch.no_grad():
        for layer in layers.values():
            layer.B.copy_(torch.randn(layer.B.shape, generator=generator(seed)))
    return layers


@pytest.mark.parametrize(("rank", "alpha"), [(2, 7.0), (4, 4.0), (1, 0.5)])
def test_outputs_and_merged_weights_are_those_of_peft(rank, alpha):
    ids = torch.randint(23, (3, 9), generator=generator())
    ours, base, plain = (classifier(seed=3, layers=2).double().eval() for _ in range(3))
    add_lora(ours, rank, alpha, TARGETS, generator())
    layers = with_random_b(ours)
    theirs = get_peft_model(
        base.encoder,
        LoraConfig(r=rank, lora_alpha=alpha, target_modules=list(TARGETS), lora_dropout=0.0, init_lora_weights=True),
    )
    modules = dict(theirs.base_model.model.named_modules())
    with torch.no_grad():
        for name, layer in layers.items():
            adapted = modules[name.removeprefix("encoder.")]
            adapted.lora_A["default"].weight.copy_(layer.A)
            adapted.lora_B["default"].weight.copy_(layer.B)
    adapted_names = {f"encoder.{name}" for name, module in modules.items() if hasattr(module, "lora_A")}
    assert adapted_names == layers.keys()
    mask = torch.ones_like(ids)
    got = ours.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
    expected = theirs(input_ids=ids, attention_mask=mask).last_hidden_state
    without = plain.encoder(input_ids=ids, attention_mask=mask).last_hidden_state
    assert torch.allclose(got, expected, rtol=0, atol=1e-6)
    assert (got - without).abs().max() > 0.01

    merge_lora(ours)
    merged = theirs.merge_and_unload().state_dict()
    for name, value in ours.encoder.state_dict().items():
        assert torch.allclose(value, merged[name], rtol=0, atol=1e-6), name


def test_bert_base_counts_beside_those_of_peft():
    with torch.device("meta"):
        ours = Classifier(BertModel(BertConfig()), num_labels=2)
        base = BertForSequenceClassification(BertConfig(num_labels=2))
    add_lora(ours, 8, 16.0, ("query", "value"))
    theirs = get_peft_model(base, LoraConfig(task_type="SEQ_CLS", r=8, target_modules=["query", "value"]))
    adapters, head, plain = 24 * 8 * (768 + 768), 768 * 2 + 2, 109_482_240
    assert parameter_counts(ours) == (adapters + head, plain + head + adapters) == (296_450, 109_778_690)
    # peft keeps the classification layer it was given, frozen, and trains a copy: the total has both.
    assert theirs.get_nb_trainable_parameters() == (adapters + head, plain + 2 * head + adapters)
    assert theirs.get_nb_trainable_parameters() == (296_450, 109_780_228)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-9)])
def test_layer_is_that_of_the_loop(bias, dtype, tolerance):
    linear = nn.Linear(7, 5, bias=bias, dtype=dtype)
    weight = linear.weight.detach().clone()
    layer = LoRALinear(linear, 3, 2.0, generator())
    with torch.no_grad():
        layer.B.copy_(torch.randn(5, 3, generator=generator(1)))
    x = torch.randn(2, 1, 4, 7, generator=generator(2), dtype=dtype)
    expected = oracle.lora_output(x, weight, linear.bias, layer.A, layer.B, 2 / 3)
    assert torch.allclose(layer(x), expected, rtol=0, atol=tolerance)
    holder = nn.ModuleList([layer])
    merge_lora(holder)
    assert torch.allclose(holder[0](x), expected, rtol=0, atol=tolerance)


def test_gradients_are_those_of_finite_differences():
    layer = LoRALinear(nn.Linear(4, 3, dtype=torch.float64), 2, 5.0, generator())
    x = torch.randn(2, 4, generator=generator(1), dtype=torch.float64, requires_grad=True)
    b = torch.randn(3, 2, generator=generator(2), dtype=torch.float64, requires_grad=True)
    a = layer.A.detach().clone().requires_grad_()

    def output(x, a, b):
        return torch.func.functional_call(layer, {"A": a, "B": b}, (x,))

    assert torch.autograd.gradcheck(output, (x, a, b))


@pytest.mark.parametrize("rank", [0, -1, 4, 2.0])
def test_ranks_that_do_not_fit_are_refused(rank):
    with pytest.raises(ValueError, match=f"rank is {rank}"):
        LoRALinear(nn.Linear(5, 3), rank, 1.0)


@pytest.mark.parametrize("alpha", [0, -2.0, math.inf, math.nan])
def test_alphas_that_scale_nothing_are_refused(alpha):
    with pytest.raises(ValueError, match=f"alpha is {alpha}"):
        LoRALinear(nn.Linear(5, 3), 2, alpha)


def test_adding_twice_and_merging_twice_are_refused():
    model = classifier(seed=3)
    add_lora(model, 2, 4.0, ("query",), generator())
    with pytest.raises(ValueError, match="model has LoRA already"):
        add_lora(model, 2, 4.0, ("value",), generator())
    merge_lora(model)
    with pytest.raises(ValueError, match="model holds no LoRALinear"):
        merge_lora(model)


def test_refused_targets_and_ranks_replace_nothing():
    model = classifier(seed=3)
    before = [name for name, _ in model.named_parameters()]
    for rank, targets, message in ((2, ("query", "LayerNorm"), "targets"), (13, ("query",), "rank is 13")):
        with pytest.raises(ValueError, match=message):
            add_lora(model, rank, 4.0, targets, generator())
        assert [name for name, _ in model.named_parameters()] == before

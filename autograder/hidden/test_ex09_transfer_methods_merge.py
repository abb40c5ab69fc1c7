"""Hidden checks of exercise 9: LoRA merged away by merge_lora, on layers that the checks put in by hand."""

from __future__ import annotations

import contextlib
from typing import Any

import pytest
import torch

from autograder.hidden import expect
from autograder.hidden.cases_ex09 import (
    LINEARS,
    Layer,
    Model,
    Text,
    allowed,
    described,
    input_ids,
    make_layer,
    make_model,
    put_layers,
)
from autograder.hidden.oracles import ex09 as oracle
from autograder.hidden.strategies import normal
from autograder.wire.proxy import Handle, Student
from autograder.wire.show import show

#: (misconception, by what the update is multiplied in the merged layer, where the scale is 1.5).
FAULTS = (
    ("merge-update-lost", 0),
    ("merge-twice", 2),
    ("merge-sign", -1),
    ("merge-scale", 1 / 1.5),
    ("merge-scale", 1 / 2.25),
)
MERGED = ("encoder.query", "encoder.blocks.0.down", "encoder.blocks.1.down", "encoder.blocks.1.query")


def _unmerged(model: Model, ids: torch.Tensor) -> Any:
    """What the model gives with LoRA in it; None where its LoRALinear fails, which is no fault of merge_lora."""
    try:
        return model(ids)
    except expect.Wrong:
        return None


def _merge(student: Student, handle: Handle) -> str:
    allowed(student.merge_lora, handle)
    return student.merge_lora.last.text


def _check_merged(student: Student, model: Model, layers: dict[str, Layer], tolerance: float | None = None) -> None:
    """Merge, and compare every weight with W + alpha / rank · B A.

    Or, for a LoRALinear that computes something else, the outputs with those before, if its update does anything.
    """
    ids = input_ids(model.seed, model.device)
    before, base = _unmerged(model, ids), model.plain()(ids).detach()
    call = _merge(student, model.handle)
    after, now = model(ids), model.state()
    same = isinstance(before, torch.Tensor) and expect.mismatch(after, before.detach(), tolerance=1e-4) is None
    if same and expect.mismatch(before, base, tolerance=1e-3) is not None:
        return
    text = Text(f"{call}\nwith {len(layers)} LoRALinear in it")
    for name, layer in layers.items():
        assert layer.a is not None
        assert layer.b is not None
        got = now.get(f"{name}.weight")
        delta = oracle.merged_weight(torch.zeros_like(layer.weight), layer.a, layer.b, 1.0)
        scale = layer.scale
        likely = [
            ("merge-update-lost", layer.weight),
            ("merge-update-only", scale * delta),
            ("merge-scale", layer.weight + delta),
            ("merge-scale", layer.weight + delta / scale),
            ("merge-scale", layer.weight + layer.alpha * delta),
            ("merge-twice", layer.weight + 2 * scale * delta),
            ("merge-sign", layer.weight - scale * delta),
        ]
        expected = oracle.merged_weight(layer.weight, layer.a, layer.b, scale)
        expect.close(got, expected, text, what=f"{name}.weight", likely=likely, tolerance=tolerance)
        if layer.bias is not None:
            expect.close(
                now.get(f"{name}.bias"), layer.bias, text, what=f"{name}.bias", misconception="merge-bias-lost"
            )
    updates = {
        name: (layer.a, layer.b) for name, layer in layers.items() if layer.a is not None and layer.b is not None
    }
    expected = oracle.logits(model.plain(), ids, updates, next(iter(layers.values())).scale)
    expect.close(after, expected.detach(), Text(f"{call}: model(input_ids)"), tolerance=1e-4)


@pytest.mark.worth("merge_lora", 0.5, misconception="merge-update-lost")
def test_merge_same_outputs(student: Student, device: torch.device, seed: int) -> None:
    """The merged model computes what the unmerged one did: every weight is W + alpha / rank · B A."""
    for rank, alpha in ((3, 4.0), (2, 0.5)):
        model = make_model(student, seed, device)
        _check_merged(student, model, put_layers(student, model, MERGED, rank, alpha), 1e-4)


@pytest.mark.worth("merge_lora", 0.3, misconception="merge-leaves-modules")
def test_merge_leaves_plain_layers(student: Student, device: torch.device, seed: int) -> None:
    """No LoRALinear is left: plain nn.Linear again, and the names and shapes of the model before."""
    model = make_model(student, seed, device)
    put_layers(student, model, MERGED, 3, 4.0)
    call = _merge(student, model.handle)
    for name, kind in student.fixtures.linear_kinds(model.handle, list(LINEARS)):
        if kind != "Linear":
            expect.wrong(f"{call}\nleft {name} as {kind}\nexpected nn.Linear")
    got = {name: tuple(value.shape) for name, value in model.state().items()}
    wanted = {name: tuple(value.shape) for name, value in model.plain().state_dict().items()}
    if got != wanted:
        expect.wrong(
            f"{call}\nleft a state_dict with {show(sorted(got.keys() - wanted.keys()))} more and "
            f"{show(sorted(wanted.keys() - got.keys()))} less than the model before LoRA.",
            "merge-names",
        )
    model(input_ids(seed, device))


@pytest.mark.worth("merge_lora", 0.1, misconception="merge-anywhere")
def test_merge_wherever_they_are(student: Student, device: torch.device, seed: int) -> None:
    """LoRALinear layers are found at any depth, in any module: in a list, in the classification layer's place, in a
    block of the encoder."""
    model = make_model(student, seed, device)
    _check_merged(student, model, put_layers(student, model, ("encoder.mixer.up.0", "classifier"), 2, 3.0), 1e-4)
    state = model.state()
    for name in ("encoder.mixer.up.0", "classifier"):
        if f"{name}.weight" not in state:
            expect.wrong(f"{student.merge_lora.last.text}\nleft no {name}.weight in the state_dict.")
    model, ids = make_model(student, seed, device), input_ids(seed, device)
    layers = put_layers(student, model, ("encoder.blocks.0.query",), 3, 4.0)
    before = _unmerged(model, ids)
    call = _merge(student, student.fixtures.module_at(model.handle, "encoder.blocks.0"))
    updates = {
        name: (layer.a, layer.b) for name, layer in layers.items() if layer.a is not None and layer.b is not None
    }
    after, expected = model(ids), oracle.logits(model.plain(), ids, updates, 4 / 3).detach()
    if not isinstance(before, torch.Tensor) or expect.mismatch(after, before.detach(), tolerance=1e-4) is not None:
        expect.close(after, expected, Text(f"{call}, a block of the encoder"), tolerance=1e-4)


@pytest.mark.worth("merge_lora", 0.1, misconception="merge-bias-invented")
def test_merge_without_bias(student: Student, device: torch.device, seed: int) -> None:
    """A layer without a bias is merged too, and has none afterwards."""
    model = make_model(student, seed, device)
    layers = put_layers(student, model, ("encoder.blocks.1.up",), 3, 4.0)
    _check_merged(student, model, layers, 1e-4)
    if "encoder.blocks.1.up.bias" in model.state():
        expect.wrong(f"{student.merge_lora.last.text}\ngave encoder.blocks.1.up a bias, which it never had.")


@pytest.mark.worth("merge_lora", 0.2, misconception="dtype-changed")
def test_merge_dtype(student: Student, device: torch.device, seed: int) -> None:
    """The merged layer keeps its dtype and its device, and float64 is not rounded on the way."""
    name = "encoder.blocks.0.down"
    for dtype, loose in ((torch.float64, 1e-6), (torch.bfloat16, 0.05)):
        model = make_model(student, seed, device, dtype)
        rows, columns = model.plain().get_submodule(name).weight.shape
        size = 30.0 if dtype == torch.float64 else 0.5
        a, b = normal(seed + 1, (2, columns), dtype, device, size), normal(seed + 2, (rows, 2), dtype, device, size)
        weight = None
        if dtype == torch.float64:  # W nearly cancels the update, so that rounding anything to float32 shows
            weight = oracle.merged_weight(normal(seed + 3, (rows, columns), dtype, device), a, b, -1.5)
        made = make_layer(student, seed, columns, rows, 2, 3.0, dtype=dtype, device=device, weight=weight)
        if any(p.dtype != str(dtype) for p in described(student, made.module)):
            continue  # LoRALinear's fault
        made.put(a, b)
        student.fixtures.put_module(model.handle, name, made.module)
        x = normal(seed + 4, (2, columns), dtype, device)
        before: Any = None
        with contextlib.suppress(expect.Wrong):  # LoRALinear's fault, too
            before, _ = made.call(x)
        call = _merge(student, model.handle)
        merged = student.fixtures.module_at(model.handle, name)
        for p in described(student, merged):
            if p.dtype != str(dtype):
                expect.wrong(f"{call}\nleft {name}.{p.name} in {p.dtype}, where the LoRALinear was in {dtype}.")
        after = allowed(merged, x)
        if isinstance(before, torch.Tensor) and expect.mismatch(after, before.detach(), tolerance=loose) is None:
            continue
        text = Text(f"{call}, where {name} was a LoRALinear in {dtype}: {name}(x)")
        likely = [(fault, made.expected(x, factor * made.scale)) for fault, factor in FAULTS]
        expect.close(after, made.expected(x), text, tolerance=loose, likely=likely)
    meta = torch.device("meta")  # a second device that every machine has: shapes without numbers
    model = make_model(student, seed, meta)
    layer = allowed(student.LoRALinear, student.fixtures.module_at(model.handle, name), 3, 4.0)
    student.fixtures.put_module(model.handle, name, layer)
    if any(p.device != "meta" for p in described(student, layer)):
        return  # LoRALinear's fault
    call = _merge(student, model.handle)
    for p in model.described():
        if p.device != "meta":
            expect.wrong(f"{call}\nof a model on the device meta left {p.name} on {p.device}.", "wrong-device")


@pytest.mark.worth("merge_lora", 0.1, misconception="merge-changes-others")
def test_merge_leaves_the_rest(student: Student, device: torch.device, seed: int) -> None:
    """All other parameters keep their numbers, and so does another model with LoRALinear layers."""
    model, other = make_model(student, seed, device), make_model(student, seed, device)
    put_layers(student, model, MERGED, 3, 4.0)
    put_layers(student, other, MERGED[:1], 3, 4.0)
    before = other.state()
    call = _merge(student, model.handle)
    now = model.state()
    for name, value in model.plain().state_dict().items():
        if name.rpartition(".")[0] not in MERGED and not torch.equal(now.get(name, torch.zeros(())), value):
            expect.wrong(f"{call}\nchanged {name}, which belongs to no LoRALinear.")
    now = other.state()
    if now.keys() != before.keys() or any(not torch.equal(now[name], value) for name, value in before.items()):
        expect.wrong(f"{call}\nchanged another model.")


@pytest.mark.worth("merge_lora", 0.2, misconception="merge-nothing")
def test_merge_nothing_is_refused(student: Student, device: torch.device, seed: int) -> None:
    """A model without LoRALinear gets a ValueError, also one that was merged before."""
    model = make_model(student, seed, device)
    _check_merged(student, model, put_layers(student, model, MERGED[:1], 3, 4.0), 1e-4)
    before = model.state()
    for handle, because in (
        (model.handle, "it was merged before and holds no LoRALinear any more"),
        (make_model(student, seed, device).handle, "it holds no LoRALinear"),
    ):
        expect.refuses(student.merge_lora, handle, names=["model"], because=because, misconception="merge-nothing")
    if any(not torch.equal(value, before[name]) for name, value in model.state().items()):
        expect.wrong(f"{student.merge_lora.last.text}\nraised, but had changed the model.", "merge-twice")

"""Hidden checks of exercise 9: LoRA put into an encoder by add_lora, and merged away by merge_lora.

add_lora is judged with the submission's own LoRALinear or, where that fails, with a right one in its place.
merge_lora is judged on layers that the checks put in by hand.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import pytest
import torch

from autograder.hidden import expect
from autograder.hidden.cases_ex09 import (
    HEAD,
    LINEARS,
    Layer,
    Model,
    Text,
    allowed,
    described,
    fitting,
    forgiving,
    input_ids,
    make_layer,
    make_model,
    put_layers,
    refused,
    with_lora,
)
from autograder.hidden.oracles import ex09 as oracle
from autograder.hidden.strategies import generator, normal
from autograder.wire.proxy import Handle, Student
from autograder.wire.show import show

TARGETS = ("query", "up")


# -- add_lora ----------------------------------------------------------------------------------------------------------
def _where(model: Model) -> dict[str, int]:
    """How many parameters that require a gradient are in each of the layers that were linear."""
    found = model.described()
    return {name: sum(p.learns for p in found if p.name.startswith(f"{name}.")) for name in LINEARS}


@pytest.mark.worth("add_lora", 0.5, misconception="lora-wrong-targets")
def test_add_lora_replaces_the_targets(student: Student, device: torch.device, seed: int) -> None:
    """Every linear layer of the encoder, at any depth, the last part of whose name is a target gets an update, and no
    other layer does."""

    def check() -> None:
        for targets in (TARGETS, ("dense",), ("0", "down")):
            model = with_lora(student, seed, 2, 3.0, targets, device)
            got = [name for name, count in _where(model).items() if count and name != "classifier"]
            replaced = {p.name for p in model.described()} - {p.name for p in described(student, _untouched(student))}
            changed = [name for name in LINEARS if any(p.startswith(f"{name}.") for p in replaced)]
            wanted = sorted(fitting(targets))
            for what, names in (("which require a gradient", got), ("which are new", changed)):
                if sorted(names) != wanted:
                    expect.wrong(
                        f"{model.added}\nleft parameters {what} in {show(sorted(names))}\n"
                        f"expected them in {show(wanted)}"
                    )

    forgiving(student, check, "LoRALinear")


def _untouched(student: Student) -> Handle:
    handle: Handle = student.fixtures.many_linears(1)
    return handle


@pytest.mark.worth("add_lora", 0.4, misconception="lora-what-learns")
def test_add_lora_what_learns(student: Student, device: torch.device, seed: int) -> None:
    """A and B of every replaced layer and the classification layer require a gradient, and nothing else, whatever
    required one before."""

    def check() -> None:
        for frozen_before in (False, True):
            model = make_model(student, seed, device)
            if frozen_before:
                student.fixtures.freeze(model.handle)
            allowed(student.add_lora, model.handle, 2, 3.0, TARGETS)
            model.added = student.add_lora.last.text
            before = "with every parameter frozen before" if frozen_before else "with every parameter learning before"
            found = model.described()
            ours = {name for target in fitting(TARGETS) for name in model.factors(target, 2)}
            ours |= {p.name for p in found if p.name.startswith("classifier.")}
            learning = {p.name for p in found if p.learns}
            for name in sorted(learning - ours):
                expect.wrong(f"{model.added}, {before},\nleft {name} requiring a gradient.", "lora-base-learns")
            for name in sorted(ours - learning):
                head = name.startswith("classifier.")
                expect.wrong(
                    f"{model.added}, {before},\nleft {name} without a gradient.",
                    "lora-head-frozen" if head else "lora-what-learns",
                )
            plain = model.plain()
            sizes = [plain.get_submodule(name).weight.shape for name in fitting(TARGETS)]
            counted = sum(_numel(p.shape) for p in found if p.learns)
            expected = 2 * sum(sum(shape) for shape in sizes) + HEAD
            if counted != expected:
                expect.wrong(f"{model.added}, {before},\nleft {counted} numbers to learn\nexpected {expected}")

    forgiving(student, check, "LoRALinear")


def _numel(shape: list[int]) -> int:
    return int(torch.Size(shape).numel())


def _set_all(model: Model, rank: int, seed: int) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    """Give A and B of all replaced layers normal numbers; returns them by the names of the layers."""
    values: dict[str, torch.Tensor] = {}
    updates = {}
    plain = model.plain()
    for number, name in enumerate(fitting(TARGETS)):
        a_name, b_name = model.factors(name, rank)
        rows, columns = plain.get_submodule(name).weight.shape
        a = normal(seed + 2 * number, (rank, columns), device=model.device, scale=0.5)
        b = normal(seed + 2 * number + 1, (rows, rank), device=model.device, scale=0.5)
        values |= {a_name: a, b_name: b}
        updates[name] = a, b
    model.student.fixtures.set_numbers(model.handle, values)
    return updates


@pytest.mark.worth("add_lora", 0.5, misconception="setting-not-handed-on")
def test_add_lora_output(student: Student, device: torch.device, seed: int) -> None:
    """At first the model computes what it did, with every number it had; later with every update, scaled by
    alpha / rank."""

    def check() -> None:
        ids = input_ids(seed, device)
        for rank, alpha in ((1, 0.5), (3, 6.0)):
            model = with_lora(student, seed, rank, alpha, TARGETS, device)
            plain = model.plain()
            got, text = model(ids), Text(f"{model.added}: model(input_ids)")
            expect.close(got, plain(ids).detach(), text, misconception="lora-start-differs")
            now = list(model.state().values())
            for name, value in plain.state_dict().items():
                if not any(torch.equal(value, other) for other in now):
                    expect.wrong(f"{model.added}\nchanged the numbers of {name}, or lost them.", "lora-base-moves")
            updates = _set_all(model, rank, seed + 5)
            expected = oracle.logits(plain, ids, updates, alpha / rank)
            got = model(ids)
            text = Text(f"{model.added}, then A and B set to other numbers: model(input_ids)")
            expect.close(got, expected.detach(), text, tolerance=1e-4)

    forgiving(student, check, "LoRALinear")


@pytest.mark.worth("add_lora", 0.2, misconception="other-random-source")
def test_add_lora_generator(student: Student, device: torch.device, seed: int) -> None:
    """All chance comes from the generator given: the same state gives the same A in every layer, and each layer has
    one of its own."""

    def check() -> None:
        moved = student.witness("add_lora").moved

        def drawn(source: torch.Generator) -> list[torch.Tensor]:
            before = len(moved)
            model = with_lora(student, seed, 2, 3.0, TARGETS, device, source)
            if len(moved) > before:
                expect.wrong(
                    f"{model.added}\nused the global random generator of {moved[-1][1]}, though it was given one.",
                    "setting-not-handed-on",
                )
            now = model.state()
            return [now[model.factors(name, 2)[0]] for name in fitting(TARGETS)]

        first, same = drawn(generator(seed + 1)), drawn(generator(seed + 1))
        call = student.add_lora.last.text
        if not all(map(torch.equal, first, same)):
            expect.wrong(f"{call}\ngave other A than a call with a generator in the same state.")
        for i, one in enumerate(first):
            for other in first[i + 1 :]:
                if one.shape == other.shape and torch.equal(one, other):
                    expect.wrong(f"{call}\ngave two layers the same A: {show(one)}.", "lora-same-start")
        if all(map(torch.equal, first, drawn(generator(seed + 2)))):
            expect.wrong(f"{call}\ngave the same A as a call with a generator of another seed.")

    forgiving(student, check, "LoRALinear")


def _added(student: Student, device: torch.device, seed: int) -> Model:
    """Make the valid call next to a bad one, and see that it works."""
    model = with_lora(student, seed, 2, 3.0, TARGETS, device)
    for name in fitting(TARGETS):
        model.factors(name, 2)
    return model


def _refuses(student: Student, model: Model, rank: int, targets: Sequence[str], **expected: Any) -> None:
    before = model.described()
    expect.refuses(student.add_lora, model.handle, rank, 3.0, targets, **expected)
    refused(model, before, student.add_lora.last.text)


@pytest.mark.worth("add_lora", 0.1, misconception="lora-target-misses")
def test_add_lora_unknown_target_is_refused(student: Student, device: torch.device, seed: int) -> None:
    """A target that fits no linear layer of the encoder gets a ValueError, and no layer is replaced."""

    def check() -> None:
        _added(student, device, seed)
        for targets, because in (
            (("query", "key"), "the encoder has no linear layer called key"),
            (("up", "query_norm"), "query_norm is no linear layer"),
            (("classifier",), "the classification layer is not in the encoder"),
            (("bias",), "bias is no layer"),
        ):
            model = make_model(student, seed, device)
            _refuses(student, model, 2, targets, names=["targets"], because=because, misconception="lora-target-misses")

    forgiving(student, check, "LoRALinear")


@pytest.mark.worth("add_lora", 0.05, misconception="bad-input-accepted")
def test_add_lora_without_targets_is_refused(student: Student, device: torch.device, seed: int) -> None:
    """No targets at all get a ValueError."""

    def check() -> None:
        _added(student, device, seed)
        model = make_model(student, seed, device)
        _refuses(student, model, 2, (), names=["targets"], because="targets is empty")

    forgiving(student, check, "LoRALinear")


@pytest.mark.worth("add_lora", 0.15, misconception="lora-added-twice")
def test_add_lora_twice_is_refused(student: Student, device: torch.device, seed: int) -> None:
    """A model whose encoder holds a LoRALinear already gets a ValueError."""

    def check() -> None:
        for targets, names in ((TARGETS, ["model", "targets"]), (("down",), ["model"])):
            model = _added(student, device, seed)
            because = "the model has LoRA already"
            _refuses(student, model, 2, targets, names=names, because=because, misconception="lora-added-twice")

    forgiving(student, check, "LoRALinear")


@pytest.mark.worth("add_lora", 0.1, misconception="lora-half-done")
def test_add_lora_bad_rank_replaces_nothing(student: Student, device: torch.device, seed: int) -> None:
    """A rank that is too large for one of the layers gets a ValueError, and no layer is replaced."""

    def check() -> None:
        _added(student, device, seed)
        for targets in (("query", "narrow"), ("narrow", "query", "down")):
            model = make_model(student, seed, device)
            because = "narrow has 3 outputs, fewer than the rank 4"
            _refuses(student, model, 4, targets, names=["rank"], values=[4], because=because)

    forgiving(student, check, "LoRALinear")


# -- merge_lora --------------------------------------------------------------------------------------------------------
MERGED = ("encoder.query", "encoder.blocks.0.down", "encoder.blocks.1.down", "encoder.blocks.1.query")


def _merge(student: Student, handle: Handle) -> str:
    allowed(student.merge_lora, handle)
    return student.merge_lora.last.text


def _check_merged(student: Student, model: Model, layers: dict[str, Layer], tolerance: float | None = None) -> None:
    """Merge, and compare every weight with W + alpha / rank · B A.

    Or, for a LoRALinear that computes something else, the outputs with those before, if its update does anything.
    """
    ids = input_ids(model.seed, model.device)
    before, base = model(ids), model.plain()(ids).detach()
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
    for rank, alpha in ((2, 3.0), (3, 0.75)):
        model = make_model(student, seed, device)
        _check_merged(student, model, put_layers(student, model, MERGED, rank, alpha), 1e-4)


@pytest.mark.worth("merge_lora", 0.3, misconception="merge-leaves-modules")
def test_merge_leaves_plain_layers(student: Student, device: torch.device, seed: int) -> None:
    """No LoRALinear is left: plain nn.Linear again, and the names and shapes of the model before."""
    model = make_model(student, seed, device)
    put_layers(student, model, MERGED, 2, 3.0)
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
    model, ids = make_model(student, seed, device), input_ids(seed, device)
    layers = put_layers(student, model, ("encoder.blocks.0.query",), 2, 3.0)
    before = model(ids)
    call = _merge(student, student.fixtures.module_at(model.handle, "encoder.blocks.0"))
    updates = {
        name: (layer.a, layer.b) for name, layer in layers.items() if layer.a is not None and layer.b is not None
    }
    after, expected = model(ids), oracle.logits(model.plain(), ids, updates, 1.5).detach()
    if not isinstance(before, torch.Tensor) or expect.mismatch(after, before.detach(), tolerance=1e-4) is not None:
        expect.close(after, expected, Text(f"{call}, a block of the encoder"), tolerance=1e-4)


@pytest.mark.worth("merge_lora", 0.1, misconception="merge-bias-invented")
def test_merge_without_bias(student: Student, device: torch.device, seed: int) -> None:
    """A layer without a bias is merged too, and has none afterwards."""
    model = make_model(student, seed, device)
    layers = put_layers(student, model, ("encoder.blocks.1.up",), 2, 3.0)
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
        after = allowed(student.fixtures.module_at(model.handle, name), x)
        if isinstance(before, torch.Tensor) and expect.mismatch(after, before.detach(), tolerance=loose) is None:
            continue
        text = Text(f"{call}, where {name} was a LoRALinear in {dtype}: {name}(x)")
        expect.close(after, made.expected(x), text, tolerance=loose)
    meta = torch.device("meta")  # a second device that every machine has: shapes without numbers
    model = make_model(student, seed, meta)
    layer = allowed(student.LoRALinear, student.fixtures.module_at(model.handle, name), 2, 3.0)
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
    put_layers(student, model, MERGED, 2, 3.0)
    put_layers(student, other, MERGED[:1], 2, 3.0)
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
    _check_merged(student, model, put_layers(student, model, MERGED[:1], 2, 3.0), 1e-4)
    before = model.state()
    for handle, because in (
        (model.handle, "it was merged before and holds no LoRALinear any more"),
        (make_model(student, seed, device).handle, "it holds no LoRALinear"),
    ):
        expect.refuses(student.merge_lora, handle, names=["model"], because=because, misconception="merge-nothing")
    if any(not torch.equal(value, before[name]) for name, value in model.state().items()):
        expect.wrong(f"{student.merge_lora.last.text}\nraised, but had changed the model.", "merge-twice")

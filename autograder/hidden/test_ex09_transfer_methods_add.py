"""Hidden checks of exercise 9: LoRA put into an encoder by add_lora.

It is judged with the submission's own LoRALinear or, where that fails, with a right one in its place.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from autograder.hidden import expect
from autograder.hidden.cases_ex09 import (
    HEAD,
    LINEARS,
    Model,
    Text,
    allowed,
    fitting,
    forgiving,
    input_ids,
    make_model,
    refused,
    with_lora,
)
from autograder.hidden.oracles import ex09 as oracle
from autograder.hidden.strategies import generator, normal
from autograder.wire.proxy import Student
from autograder.wire.show import show

TARGETS = ("query", "up")


@pytest.mark.worth("add_lora", 0.5, misconception="lora-wrong-targets")
def test_add_lora_replaces_the_targets(student: Student, device: torch.device, seed: int) -> None:
    """Every linear layer of the encoder, at any depth, the last part of whose name is a target gets an update, and no
    other layer does."""

    def check() -> None:
        for targets in (TARGETS, ("dense",), ("0", "down")):
            model = with_lora(student, seed, 2, 3.0, targets, device)
            new = {p.name for p in model.described()} - {name for name, _ in model.plain().named_parameters()}
            got = sorted(name for name in LINEARS if any(p.startswith(f"{name}.") for p in new))
            wanted = sorted(fitting(targets))
            if got != wanted:
                expect.wrong(f"{model.added}\nput new parameters into {show(got)}\nexpected them in {show(wanted)}")

    forgiving(student, check, "LoRALinear")


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
    before = student.fixtures.modules_of.kept(model.handle)
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
            _refuses(student, model, 4, targets, names=["rank"], values=[4], because=because, own=False)

    forgiving(student, check, "LoRALinear")

"""Hidden checks of exercise 6: set_trainable and parameter_groups."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch

from autograder.hidden import expect
from autograder.sandbox.fixtures.ex06 import oddly_named
from autograder.wire.proxy import Handle, Student
from exercises.kit import FineTuneConfig

HEAD = {"classifier.weight", "classifier.bias"}


# -- set_trainable -----------------------------------------------------------------------------------------------------
def learning(student: Student, model: Handle) -> dict[str, bool]:
    """Which parameters require a gradient."""
    return {name: learns for name, learns, _ in student.fixtures.parameters(model)}


def check_learning(student: Student, model: Handle, expected: set[str], misconception: str) -> None:
    """Fail unless exactly these parameters require a gradient."""
    found = learning(student, model)
    wrong = sorted(name for name, learns in found.items() if learns != (name in expected))
    if wrong:
        first = wrong[0]
        now = "requires a gradient, and must not" if found[first] else "requires no gradient, and must"
        more = f" ({len(wrong)} of {len(found)} parameters are wrong)" if len(wrong) > 1 else ""
        expect.wrong(f"After {student.last.text}\n{first} {now}{more}.", misconception)


@pytest.mark.worth("set_trainable", 0.35, misconception="encoder-not-frozen")
def test_frozen_freezes_the_encoder(student: Student, seed: int) -> None:
    """In mode "frozen" no parameter of the encoder requires a gradient."""
    for model in (student.fixtures.classifier(seed=seed), student.fixtures.oddly_named(seed)):
        student.set_trainable(model, "frozen")
        encoder = {name for name in learning(student, model) if name.startswith("encoder.")}
        on = {name for name, learns in learning(student, model).items() if learns}
        check_learning(student, model, on - encoder, "encoder-not-frozen")


@pytest.mark.worth("set_trainable", 0.3, misconception="head-frozen-too")
def test_frozen_keeps_the_classification_layer(student: Student, seed: int) -> None:
    """In mode "frozen" the weight and the bias of the classification layer require a gradient, even if they did not
    before."""
    for names in (sorted(learning(student, student.fixtures.classifier(seed=seed))), []):
        model = student.fixtures.classifier(seed=seed, num_labels=3)
        student.fixtures.require_gradients(model, names)
        student.set_trainable(model, "frozen")
        on = {name for name, learns in learning(student, model).items() if learns}
        check_learning(student, model, on | HEAD, "head-frozen-too")


@pytest.mark.worth("set_trainable", 0.35, misconception="not-unfrozen")
def test_full_lets_everything_learn(student: Student, seed: int) -> None:
    """In mode "full" all parameters require a gradient, even if some did not before."""
    for number in range(3):
        model = student.fixtures.classifier(seed=seed, layers=2)
        names = sorted(learning(student, model))
        student.fixtures.require_gradients(model, [[], sorted(HEAD), names[: len(names) // 2]][number])
        student.set_trainable(model, mode="full")
        check_learning(student, model, set(names), "not-unfrozen")


@pytest.mark.worth("set_trainable", 0.15, misconception="model-altered")
def test_only_requires_grad_changes(student: Student, seed: int) -> None:
    """The weights and the model's training mode stay as they are."""
    model = student.fixtures.classifier(seed=seed)
    before = student.fixtures.state(model)
    learned = []
    for mode, train in (("full", True), ("frozen", False), ("full", False), ("frozen", True)):
        student.fixtures.training_mode(model, train)
        student.set_trainable(model, mode)
        learned.append(learning(student, model))
        after = student.fixtures.state(model)
        moved = [name for name in before if name not in after or not after[name].equal(before[name])]
        if moved or len(before) != len(after):
            expect.wrong(f"{student.last.text}\nchanged {', '.join(moved) or 'the parameters'}.", "model-altered")
        if student.fixtures.training_modes(model) != [train]:
            expect.wrong(f"{student.last.text}\nswitched between training and evaluation mode.", "model-altered")
    if not any(learning(student, model).values()):
        expect.wrong(f"After {student.last.text}\nnothing requires a gradient.", "head-frozen-too")
    if all(names == learned[0] for names in learned):
        expect.wrong(f"{student.last.text}\nchanged nothing at all: no requires_grad either.", "encoder-not-frozen")


@pytest.mark.worth("set_trainable", 0.35, misconception="bad-input-accepted")
def test_another_mode_is_refused(student: Student, seed: int) -> None:
    """A mode that is neither "frozen" nor "full" is a ValueError that names mode and shows it."""
    model = student.fixtures.classifier(seed=seed)
    names = set(learning(student, model))
    for mode in ("partial", "Frozen", "", "full "):
        student.fixtures.require_gradients(model, sorted(names))
        student.set_trainable(model, "frozen")
        if {name for name, learns in learning(student, model).items() if learns} == names:
            expect.wrong(f"After {student.last.text}\neverything requires a gradient.", "encoder-not-frozen")
        expect.refuses(student.set_trainable, model, mode, names=("mode",), because=f"mode is {mode!r}")
        raised = student.set_trainable.last.raised
        if mode.strip() and raised is not None and mode.strip() not in raised.message:
            expect.wrong(
                f"{student.last.text}\nraised {raised.text}\nThe message must show the mode that was given.",
                "message-without-value",
            )


# -- parameter_groups --------------------------------------------------------------------------------------------------
def config(mode: str = "full") -> FineTuneConfig:
    return FineTuneConfig(mode, learning_rate=3e-4, head_learning_rate=7e-3, weight_decay=0.23)


def entries(student: Student, model: Handle, **changes: Any) -> list[tuple[str, float, float]]:
    """(name, learning rate, weight decay) of all that the groups hold, as AdamW understands them."""
    groups = student.parameter_groups.kept(model, config(**changes))
    described = student.fixtures.described_groups(model, (groups,))
    if described["problem"] is not None:
        expect.wrong(f"The result of {student.last.text}\ncannot be used. {described['problem']}", "groups-form")
    if not described["found"]:
        expect.wrong(f"The result of {student.last.text}\nholds no parameter.", "groups-form")
    return [(name, rate, decay) for name, rate, decay in described["found"]]


def by_name(found: list[tuple[str, float, float]]) -> dict[str, tuple[float, float]]:
    return {name: (rate, decay) for name, rate, decay in found}


def check_value(
    student: Student, found: dict[str, tuple[float, float]], name: str, place: int, expected: float
) -> None:
    """Fail unless a parameter that is in a group has that learning rate (place 0) or weight decay (place 1)."""
    if name in found and abs(found[name][place] - expected) > 1e-9:
        what = ("learning rate", "weight decay")[place]
        expect.wrong(
            f"In the groups of {student.last.text}\n{name} has the {what} {found[name][place]:g}, not {expected:g}."
        )


def some(student: Student, found: dict[str, Any], names: list[str], what: str) -> None:
    if not any(name in found for name in names):
        expect.wrong(f"{what} is in no group of {student.last.text}", "parameter-in-no-group")


@pytest.mark.worth("parameter_groups", 0.4, misconception="parameter-in-no-group")
def test_groups_leave_nothing_out(student: Student, seed: int) -> None:
    """Every parameter that requires a gradient is in a group, and nothing else than parameters of the model."""
    for model, kinds in (
        (student.fixtures.classifier(seed=seed, layers=2), "full"),
        (student.fixtures.classifier(seed=seed), "frozen"),
    ):
        names = list(learning(student, model)) if kinds == "full" else sorted(HEAD)
        student.fixtures.require_gradients(model, names)
        found = by_name(entries(student, model, mode=kinds))
        missing = [name for name in names if name not in found]
        if missing:
            expect.wrong(
                f"{missing[0]} is in no group of {student.last.text}\n"
                f"({len(missing)} of {len(names)} parameters that require a gradient are missing)",
                "parameter-in-no-group",
            )
        if "" in found:
            expect.wrong(f"The groups of {student.last.text}\nhold a tensor that is no parameter of the model.")


@pytest.mark.worth("parameter_groups", 0.4, misconception="frozen-parameter-in-a-group")
def test_groups_leave_out_what_is_frozen(student: Student, seed: int) -> None:
    """Parameters that require no gradient are in no group, whatever config.mode says; and what requires a gradient is
    not changed."""
    for mode, keep in (("frozen", HEAD), ("full", HEAD), ("full", {"classifier.bias"}), ("full", None)):
        model = student.fixtures.classifier(seed=seed, layers=2)
        names = [name for name in learning(student, model) if (name in keep if keep else "layer.0." not in name)]
        student.fixtures.require_gradients(model, names)
        found = by_name(entries(student, model, mode=mode))
        some(student, found, names, "What requires a gradient")
        extra = sorted(found.keys() - set(names))
        if extra:
            expect.wrong(
                f"{extra[0]} is in a group of {student.last.text}\nbut requires no gradient.",
                "frozen-parameter-in-a-group",
            )
        check_learning(student, model, set(names), "frozen-parameter-in-a-group")


@pytest.mark.worth("parameter_groups", 0.25, misconception="parameter-twice")
def test_groups_hold_each_parameter_once(student: Student, seed: int) -> None:
    """No parameter is in the groups twice, one that two modules share neither."""
    for model in (student.fixtures.oddly_named(seed), student.fixtures.classifier(seed=seed)):
        found = entries(student, model)
        some(student, by_name(found), list(HEAD), "The classification layer")
        twice = [name for name, count in Counter(name for name, _, _ in found).items() if count > 1]
        if twice:
            expect.wrong(f"{twice[0]} is in the groups of {student.last.text}\nmore than once.", "parameter-twice")


@pytest.mark.worth("parameter_groups", 0.3, misconception="rate-of-the-head")
def test_head_learning_rate(student: Student, seed: int) -> None:
    """The classification layer, weight and bias, has config.head_learning_rate."""
    found = by_name(entries(student, student.fixtures.classifier(seed=seed)))
    some(student, found, list(HEAD), "The classification layer")
    for name in sorted(HEAD):
        check_value(student, found, name, 0, config().head_learning_rate)


@pytest.mark.worth("parameter_groups", 0.25, misconception="rate-of-the-encoder")
def test_encoder_learning_rate(student: Student, seed: int) -> None:
    """Everything else has config.learning_rate, an encoder's own layer called "classifier" too."""
    for model in (student.fixtures.classifier(seed=seed), student.fixtures.oddly_named(seed)):
        found = by_name(entries(student, model))
        encoder = [name for name in learning(student, model) if name not in HEAD]
        some(student, found, encoder, "The encoder")
        for name in encoder:
            check_value(student, found, name, 0, config().learning_rate)


@pytest.mark.worth("parameter_groups", 0.3, misconception="weight-decay-lost")
def test_weights_decay(student: Student, seed: int) -> None:
    """Weight matrices and embeddings have config.weight_decay, the classification layer's weight too."""
    model = student.fixtures.classifier(seed=seed)
    found = by_name(entries(student, model))
    weights = [n for n in learning(student, model) if not n.endswith("bias") and "LayerNorm" not in n]
    some(student, found, weights, "No weight matrix")
    for name in weights:
        check_value(student, found, name, 1, config().weight_decay)


@pytest.mark.worth("parameter_groups", 0.2, misconception="bias-decayed")
def test_biases_do_not_decay(student: Student, seed: int) -> None:
    """Biases have no weight decay, that of the classification layer neither."""
    model = student.fixtures.classifier(seed=seed)
    found = by_name(entries(student, model))
    biases = [name for name in learning(student, model) if name.endswith("bias") and "LayerNorm" not in name]
    some(student, found, biases, "No bias")
    for name in biases:
        check_value(student, found, name, 1, 0.0)


@pytest.mark.worth("parameter_groups", 0.2, misconception="layer-norm-decayed")
def test_layer_norm_does_not_decay(student: Student, seed: int) -> None:
    """Weights and biases of LayerNorm have no weight decay."""
    model = student.fixtures.classifier(seed=seed)
    found = by_name(entries(student, model))
    norms = [name for name in learning(student, model) if "LayerNorm" in name]
    some(student, found, norms, "No LayerNorm")
    for name in norms:
        check_value(student, found, name, 1, 0.0)


@pytest.mark.worth("parameter_groups", 0.2, misconception="decay-by-name")
def test_decay_under_other_names(student: Student, seed: int) -> None:
    """Whatever the layers are called: `in_proj_bias` is a bias, `norm1` a LayerNorm, and an embedding table called
    `relative_attention_bias` is neither."""
    found = by_name(entries(student, student.fixtures.oddly_named(seed)))
    model = oddly_named(seed)
    scales = {f"{name}.weight" for name, module in model.named_modules() if isinstance(module, torch.nn.LayerNorm)}
    names = [name for name, _ in model.named_parameters() if name not in HEAD]
    some(student, found, names, "Nothing")
    for name in names:
        spared = name.split(".")[-1] in ("bias", "in_proj_bias") or name in scales
        check_value(student, found, name, 1, 0.0 if spared else config().weight_decay)

"""Hidden checks of exercise 9: LoRALinear."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import strategies as st

from autograder.examples import settings
from autograder.hidden import expect
from autograder.hidden.cases_ex09 import Layer, described, make_layer, usual_faults
from autograder.hidden.oracles import ex09 as oracle
from autograder.hidden.properties import given
from autograder.hidden.strategies import generator, normal, seeds, sizes
from autograder.sandbox.fixtures.ex09 import linear_layer
from autograder.wire.errors import RemoteError
from autograder.wire.proxy import Handle, Student
from autograder.wire.show import show

ALPHAS = st.sampled_from([3.5, 16, 0.25, 1.0])
BIASES = st.booleans()


@given(number=seeds, size=sizes(2, (3, 5, 7, 11)), bias=BIASES)
@settings(max_examples=8)
@pytest.mark.worth("LoRALinear", 0.3, misconception="lora-start-differs")
def test_lora_starts_as_the_layer(
    student: Student, device: torch.device, number: int, size: tuple[int, int], bias: bool
) -> None:
    """Before any training the output is that of the linear layer alone."""
    layer = make_layer(student, number, *size, rank=2, alpha=5.0, bias=bias, device=device)
    x = normal(number + 1, (3, size[0]), device=device)
    got, call = layer.call(x)
    zeros = torch.zeros(2, size[0], device=device), torch.zeros(size[1], 2, device=device)
    expected = layer.expected(x, a=zeros[0], b=zeros[1])
    nothing = torch.zeros_like(expected)
    likely = [("lora-update-only", nothing)]
    if bias:
        assert layer.bias is not None
        likely.append(("lora-bias-left-out", expected - layer.bias))
    expect.close(got, expected, call, likely=likely)


@given(number=seeds, size=sizes(2, (3, 5, 7, 11)), rank=st.sampled_from([1, 2]), alpha=ALPHAS)
@settings(max_examples=12)
@pytest.mark.worth("LoRALinear", 0.5)
def test_lora_formula(
    student: Student, device: torch.device, number: int, size: tuple[int, int], rank: int, alpha: float
) -> None:
    """With any A and B the output is linear(x) + alpha / rank · x Aᵀ Bᵀ."""
    layer = make_layer(student, number, *size, rank=rank, alpha=alpha, device=device)
    layer.set(number + 1)
    x = normal(number + 3, (3, size[0]), device=device)
    got, call = layer.call(x)
    expect.close(got, layer.expected(x), call, likely=usual_faults(layer, x))


@pytest.mark.worth("LoRALinear", 0.1, misconception="lora-factors-swapped")
def test_lora_square_layer(student: Student, device: torch.device, seed: int) -> None:
    """A is applied before B, in a square layer whose rank is full too."""
    layer = make_layer(student, seed, 4, 4, rank=3, alpha=2.0, device=device)
    layer.set(seed + 1)
    x = normal(seed + 3, (2, 4), device=device)
    got, call = layer.call(x)
    expect.close(got, layer.expected(x), call, likely=usual_faults(layer, x))
    layer = make_layer(student, seed, 4, 4, rank=4, alpha=2.0, device=device)
    # A and B have one shape now: which is which shows in what they begin with.
    start = student.fixtures.state(layer.module)
    learning = [start[p.name] for p in described(student, layer.module) if p.learns and p.name in start]
    square = {
        name: value
        for name, value in start.items()
        if tuple(value.shape) == (4, 4) and not torch.equal(value, layer.weight)
    }
    zeros = sum(bool((value == 0).all()) for value in square.values())
    if len(square) != 2 or zeros != 1 or len(learning) < 2:
        expect.wrong(
            f"layer = {layer.made}, of {layer.kind}\nhas {len(square)} matrices (4, 4) beside its weight, {zeros} "
            f"of them zero\nexpected A (4, 4), random, and B (4, 4), zero",
            "lora-parameters"
            if len(square) != 2 or len(learning) < 2
            else "lora-no-gradient"
            if zeros
            else "lora-start-differs",
        )
    a_name, b_name = sorted(square, key=lambda name: bool((square[name] == 0).all()))
    a, b = normal(seed + 5, (4, 4), device=device), normal(seed + 6, (4, 4), device=device)
    student.fixtures.set_numbers(layer.module, {a_name: a, b_name: b})
    got, call = layer.call(x)
    layer.a, layer.b = a, b
    swapped = [
        layer.expected(x, a=first, b=second) for first, second in ((b, a), (a.T, b.T), (b.T, a.T), (a.T, b), (a, b.T))
    ]
    expect.close(
        got,
        layer.expected(x, a=a, b=b),
        call,
        likely=[*usual_faults(layer, x), *(("lora-factors-swapped", value) for value in swapped)],
    )


@pytest.mark.worth("LoRALinear", 0.2, misconception="lora-axes")
def test_lora_any_number_of_axes(student: Student, device: torch.device, seed: int) -> None:
    """x may have any number of axes before the last one, and any strides."""
    layer = make_layer(student, seed, 5, 3, rank=2, alpha=3.0, device=device)
    layer.set(seed + 1)
    inputs = [normal(seed + 3, shape, device=device) for shape in ((5,), (1, 5), (2, 3, 5), (2, 1, 3, 5))]
    inputs += [normal(seed + 3, (5, 2, 3), device=device).permute(1, 2, 0)]
    inputs += [normal(seed + 3, (3, 2, 5), device=device).transpose(0, 1)]
    inputs += [normal(seed + 3, (2, 10), device=device)[:, ::2], normal(seed + 3, (5,), device=device).expand(2, 3, 5)]
    for x in inputs:
        got, call = layer.call(x)
        expect.close(got, layer.expected(x), call, likely=usual_faults(layer, x))


@given(number=seeds, size=sizes(2, (3, 5, 7, 11)), bias=BIASES)
@settings(max_examples=6)
@pytest.mark.worth("LoRALinear", 0.4, misconception="lora-parameters")
def test_lora_what_learns(
    student: Student, device: torch.device, number: int, size: tuple[int, int], bias: bool
) -> None:
    """Exactly A (rank, in) and B (out, rank) require a gradient; the layer's own weight and bias are there and do
    not."""
    layer = make_layer(student, number, *size, rank=2, alpha=5.0, bias=bias, device=device)
    layer.factors()
    inputs, outputs = size
    shapes = [((p.shape), p.learns) for p in layer.parameters]
    base = [[outputs, inputs], *([[outputs]] if bias else [])]
    expected = sorted([*((shape, False) for shape in base), ([2, inputs], True), ([outputs, 2], True)])
    if sorted(shapes) == expected:
        return
    learning = {p.name: tuple(p.shape) for p in layer.parameters if p.learns}
    fixed = {p.name: tuple(p.shape) for p in layer.parameters if not p.learns}
    base_learns = any(list(shape) in base for shape in learning.values())
    gone = [shape for shape in base if (shape, False) not in shapes and (shape, True) not in shapes]
    expect.wrong(
        f"layer = {layer.made}, of {layer.kind}\nhas parameters that require a gradient: {show(learning)}\n"
        f"and parameters that do not: {show(fixed)}\n"
        f"expected A {(2, inputs)} and B {(outputs, 2)} among the first, and the shapes "
        f"{[tuple(shape) for shape in base]} among the second",
        "lora-base-learns" if base_learns else "lora-base-hidden" if gone else "lora-parameters",
    )


@given(number=seeds, size=sizes(2, (3, 5, 7)))
@settings(max_examples=6)
@pytest.mark.worth("LoRALinear", 0.3, misconception="wrong-gradient")
def test_lora_gradients(student: Student, device: torch.device, number: int, size: tuple[int, int]) -> None:
    """Gradients reach A, B and x, with the right numbers; at the start B's is not zero."""
    layer = make_layer(student, number, *size, rank=2, alpha=3.5, device=device)
    a_name, b_name = layer.factors()
    x, w = normal(number + 3, (4, size[0]), device=device), normal(number + 4, (4, size[1]), device=device)
    before = student.fixtures.state(layer.module)
    for at_start in (True, False):
        if at_start:
            a, b = before[a_name], before[b_name]
        else:
            layer.set(number + 1)
            assert layer.a is not None
            assert layer.b is not None
            a, b = layer.a, layer.b
        found = allowed_gradients(student, layer, x, w)
        call = f"layer = {layer.made}, of {layer.kind}\nlayer(x={show(x)})"
        expected_b = layer.scale * w.double().T @ (x.double() @ a.double().T)
        expected_a = layer.scale * (b.double().T @ w.double().T) @ x.double()
        for name, letter, expected in ((b_name, "B", expected_b), (a_name, "A", expected_a)):
            got = found.get(name)
            got = torch.zeros_like(before[name]) if got is None else got
            nothing = at_start and letter == "B" and bool((got == 0).all())
            problem = expect.mismatch(got, expected.float(), tolerance=1e-4)
            if problem is None and not nothing:
                continue
            expect.wrong(
                f"{call}\ngives {letter} the gradient {show(got)}"
                f"{' while B is still zero' if at_start else ''}\nexpected {show(expected.float())}\n"
                f"{problem or 'With that, neither A nor B ever learns.'}",
                "lora-no-gradient" if nothing else "wrong-gradient",
            )
    z = x.clone().requires_grad_()
    got, text = layer.call(z)
    (gradient,) = expect.gradients(got, [z], text, w)
    assert layer.a is not None
    assert layer.b is not None
    full = layer.weight.double() + layer.scale * layer.b.double() @ layer.a.double()
    expected_x = (w.double() @ full).float()
    frozen_path = (w.double() @ (layer.scale * layer.b.double() @ layer.a.double())).float()
    base_path = (w.double() @ layer.weight.double()).float()
    expect.close(
        gradient,
        expected_x,
        text,
        what="the gradient with respect to x",
        tolerance=1e-4,
        likely=[("lora-cut-through-base", frozen_path), ("lora-cut-through-update", base_path)],
    )


def allowed_gradients(
    student: Student, layer: Layer, x: torch.Tensor, w: torch.Tensor
) -> dict[str, torch.Tensor | None]:
    """The gradients of layer(x) weighted by w, by the names of the parameters; fails if there can be none."""
    try:
        found: dict[str, torch.Tensor | None] = student.fixtures.learned_gradients(layer.module, x, w)
    except RemoteError as error:
        if error.raised.base == "NotImplementedError":
            raise
        expect.wrong(
            f"layer = {layer.made}, of {layer.kind}\nlayer(x={show(x)}), then backward()\nraised {error.raised.text}",
            "gradient-cut",
        )
    return found


@pytest.mark.worth("LoRALinear", 0.2, misconception="lora-base-moves")
def test_lora_base_keeps_its_numbers(student: Student, device: torch.device, seed: int) -> None:
    """Training lowers the loss by A and B alone: the numbers of the linear layer stay what they are, bit for bit."""
    layer = make_layer(student, seed, 7, 5, rank=3, alpha=6.0, device=device)
    x = normal(seed + 1, (11, 7), device=device)
    target = oracle.lora_output(
        x, layer.weight, layer.bias, normal(seed + 2, (3, 7)), normal(seed + 3, (5, 3)), 0.5, torch.float32
    )
    losses = student.fixtures.train_layer(layer.module, x, target, 60, 0.05)
    if not losses[-1] < 0.7 * losses[0]:
        expect.wrong(
            f"layer = {layer.made}, of {layer.kind}\nwas trained for 60 steps; the loss went from {losses[0]:.4f} to "
            f"{losses[-1]:.4f}, where a low-rank update gets well below half.",
            "lora-no-gradient",
        )
    base = linear_layer(seed, 7, 5, device=str(device)).state_dict()
    now = student.fixtures.state(layer.module)
    for part, value in base.items():
        same_shape = [other for other in now.values() if other.shape == value.shape]
        if not any(torch.equal(other, value) for other in same_shape):
            expect.wrong(
                f"layer = {layer.made}, of {layer.kind}\nwas trained for 60 steps, after which the linear layer's "
                f"{part} is {show(same_shape[0] if same_shape else None)}\nexpected it unchanged: {show(value)}"
            )


@pytest.mark.worth("LoRALinear", 0.2, misconception="lora-a-not-random")
def test_lora_a_is_random_around_zero(student: Student, device: torch.device, seed: int) -> None:
    """A starts with random numbers around 0, all different, and B with zeros, in a layer of realistic size too.

    The mean of n = 6144 numbers lies beyond 7 standard errors with probability below 1e-11, for any distribution with
    tails like the normal one's or thinner; of float32 draws fewer than 1 in 100 agree.
    Detected with probability above 0.999: a mean of a tenth of the spread.
    """
    source = generator(seed + 1, device)
    layer = make_layer(student, seed, 768, 512, rank=8, alpha=16.0, device=device, generator=source)
    a_name, b_name = layer.factors()
    now = student.fixtures.state(layer.module)
    a, b = now[a_name], now[b_name]
    call = f"layer = {layer.made}, of {layer.kind}"
    if not bool((b == 0).all()):
        expect.wrong(f"{call}\nstarts with B = {show(b)}\nexpected zeros", "lora-start-differs")
    if not bool(torch.isfinite(a).all()) or a.unique().numel() < 0.95 * a.numel():
        expect.wrong(f"{call}\nstarts with A = {show(a)}\nexpected independent random numbers")
    mean, spread = a.double().mean(), a.double().std()
    if abs(mean) > 7 * spread / math.sqrt(a.numel()):
        expect.wrong(
            f"{call}\nstarts with an A whose mean is {mean:.4f}, at a standard deviation of {spread:.4f}\n"
            f"expected a mean of 0",
            "lora-a-off-centre",
        )
    x = normal(seed + 2, (2, 3, 768), device=device)
    got, text = layer.call(x)
    expect.close(got, layer.expected(x, 0.0, a, b), text, tolerance=1e-4)


@pytest.mark.worth("LoRALinear", 0.3, misconception="other-random-source")
def test_lora_generator(student: Student, device: torch.device, seed: int) -> None:
    """All chance comes from the generator given: the same state gives the same A, a second layer another one.

    Without a generator PyTorch's default one is used, and each layer gets another A; with one it stays untouched.
    """
    moved = student.witness("LoRALinear").moved

    def drawn(source: torch.Generator | None) -> torch.Tensor:
        before = len(moved)
        layer = make_layer(student, seed, 7, 5, rank=2, alpha=3.0, device=device, generator=source)
        if source is not None and len(moved) > before:
            expect.wrong(
                f"{layer.made}\nused the global random generator of {moved[-1][1]}, though it was given one.",
                "global-generator",
            )
        a_name, _ = layer.factors()
        a: torch.Tensor = student.fixtures.state(layer.module)[a_name]
        if not bool(a.any()):
            expect.wrong(f"{layer.made}\nstarts with A = {show(a)}\nexpected random numbers", "lora-a-not-random")
        return a

    one, two = generator(seed + 1), generator(seed + 1)
    torch.rand(3, generator=one)
    two.set_state(one.get_state())
    first, second = drawn(one), drawn(one)
    call = student.LoRALinear.last.text
    if torch.equal(first, second):
        expect.wrong(f"{call}\nhas the same A as the layer made before it with the same generator: {show(first)}.")
    if not torch.equal(first, drawn(two)):
        expect.wrong(f"{call}\nhas another A than a layer made with a generator in the same state.")
    if torch.equal(drawn(generator(seed + 2)), first):
        expect.wrong(f"{call}\nhas the same A as a layer made with a generator of another seed.")
    if torch.equal(drawn(None), drawn(None)):
        expect.wrong(f"{student.LoRALinear.last.text}\nhas the same A as the layer made before it without a generator.")


@pytest.mark.worth("LoRALinear", 0.15, misconception="dtype-changed")
def test_lora_dtype(student: Student, device: torch.device, seed: int) -> None:
    """A, B and the output have the dtype of the linear layer, and float64 is float64 throughout."""
    for dtype in (torch.float64, torch.bfloat16):
        weight = None
        a, b = normal(seed + 1, (2, 5), dtype, device, 30.0), normal(seed + 2, (3, 2), dtype, device, 30.0)
        if dtype == torch.float64:  # W nearly cancels the update, so that rounding anything to float32 shows
            weight = oracle.merged_weight(normal(seed + 3, (3, 5), dtype, device), a, b, -1.5)
        layer = make_layer(student, seed, 5, 3, 2, 3.0, dtype=dtype, device=device, weight=weight)
        layer.factors()
        for p in layer.parameters:
            if p.dtype != str(dtype):
                expect.wrong(f"layer = {layer.made}, of {layer.kind} in {dtype}\nhas {p.name} in {p.dtype}.")
        if dtype == torch.float64:
            layer.put(a, b)
        else:
            layer.set(seed + 1, 0.5)
        x = normal(seed + 4, (2, 5), dtype, device)
        got, call = layer.call(x)
        loose = None if dtype == torch.float64 else 0.05
        expect.close(got, layer.expected(x), call, tolerance=loose, likely=usual_faults(layer, x))


@pytest.mark.worth("LoRALinear", 0.1, misconception="wrong-device")
def test_lora_device(student: Student, device: torch.device, seed: int) -> None:
    """A and B are on the device of the linear layer, wherever the generator is."""
    layer = make_layer(student, seed, 5, 3, rank=2, alpha=3.0, device=device, generator=generator(seed))
    layer.set(seed + 1)
    x = normal(seed + 3, (2, 5), device=device)
    got, call = layer.call(x)
    expect.close(got, layer.expected(x), call, likely=usual_faults(layer, x))
    meta = torch.device("meta")  # a second device that every machine has: shapes without numbers
    for source in (None, generator(seed)):
        layer = make_layer(student, seed, 5, 3, rank=2, alpha=3.0, device=meta, generator=source)
        layer.factors()
        for p in layer.parameters:
            if p.device != "meta":
                expect.wrong(f"layer = {layer.made}, of {layer.kind} on the device meta\nhas {p.name} on {p.device}.")


@pytest.mark.worth("LoRALinear", 0.05, misconception="lora-mode")
def test_lora_training_mode(student: Student, device: torch.device, seed: int) -> None:
    """In training mode the output is the same: there is no dropout."""
    layer = make_layer(student, seed, 7, 5, rank=3, alpha=2.0, device=device, training=True)
    layer.set(seed + 1)
    x = normal(seed + 3, (5, 7), device=device)
    for _ in range(2):
        got, call = layer.call(x)
        expect.close(got, layer.expected(x), call, likely=usual_faults(layer, x))


def _valid(student: Student, device: torch.device, rank: int, alpha: float) -> Handle:
    """Make the valid call next to a bad one, and look at what comes of it; returns a linear layer of the same size."""
    layer = make_layer(student, 3, 5, 3, rank=rank, alpha=alpha, device=device)
    layer.set(4)
    x = normal(5, (2, 5), device=device)
    got, call = layer.call(x)
    expect.close(got, layer.expected(x), call, tolerance=1e9)  # a tensor of that kind: its numbers are graded elsewhere
    linear: Handle = student.fixtures.linear_layer(3, 5, 3, device=str(device))
    return linear


@pytest.mark.worth("LoRALinear", 0.05, misconception="bad-input-accepted")
def test_lora_rank_below_one_is_refused(student: Student, device: torch.device) -> None:
    """A rank below 1 gets a ValueError."""
    linear = _valid(student, device, 1, 2.0)
    for rank in (0, -2):
        expect.refuses(
            student.LoRALinear, linear, rank, 2.0, names=["rank"], values=[rank], because=f"rank is {rank}, below 1"
        )


@pytest.mark.worth("LoRALinear", 0.05, misconception="bad-input-accepted")
def test_lora_rank_above_both_sides_is_refused(student: Student, device: torch.device) -> None:
    """A rank above the smaller side of the weight gets a ValueError."""
    linear = _valid(student, device, 3, 2.0)
    turned = student.fixtures.linear_layer(3, 3, 5, device=str(device))
    for layer in (linear, turned):
        expect.refuses(
            student.LoRALinear, layer, 4, 2.0, names=["rank"], values=[4], because="rank 4 is above min(in, out) = 3"
        )


@pytest.mark.worth("LoRALinear", 0.05, misconception="bad-input-accepted")
def test_lora_rank_that_is_no_int_is_refused(student: Student, device: torch.device) -> None:
    """A rank that is no int gets a ValueError."""
    linear = _valid(student, device, 2, 2.0)
    for rank in (2.0, 1.5):
        expect.refuses(
            student.LoRALinear, linear, rank, 2.0, names=["rank"], values=[rank], because=f"rank {rank} is no int"
        )


@pytest.mark.worth("LoRALinear", 0.05, misconception="bad-input-accepted")
def test_lora_bad_alpha_is_refused(student: Student, device: torch.device) -> None:
    """An alpha that is not positive and finite gets a ValueError."""
    linear = _valid(student, device, 2, 0.01)
    for alpha in (0.0, -1.0, math.inf, math.nan):
        expect.refuses(
            student.LoRALinear,
            linear,
            2,
            alpha,
            names=["alpha"],
            values=[alpha],
            because=f"alpha {alpha} is not positive and finite",
        )

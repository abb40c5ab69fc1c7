"""Layers and models for exercise 9's checks: made on the student's side, known on ours."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from autograder.hidden import expect
from autograder.hidden.attempts import second_attempt
from autograder.hidden.oracles import ex09 as oracle
from autograder.hidden.oracles.ex09_stand_in import decide
from autograder.hidden.strategies import normal
from autograder.sandbox.fixtures.ex09 import linear_layer, many_linears
from autograder.wire.errors import RemoteError
from autograder.wire.proxy import Handle, Student
from autograder.wire.show import show

CPU = torch.device("cpu")


class Text(NamedTuple):
    """What was called, for messages."""

    text: str


def allowed(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A call with arguments that the docstring allows.  Fails if it raises, with a name for that."""
    try:
        return function(*args, **kwargs)
    except RemoteError as error:
        raised = error.raised
        if raised.base in {"NotImplementedError", "MemoryError"}:
            raise
        refused = raised.base == "ValueError" and raised.explicit
        call = getattr(error, "call", None)
        expect.wrong(
            f"{call.text if call else 'The call'}\nraised {raised.text}\nexpected a result: the docstring allows "
            f"these arguments.",
            "valid-input-refused" if refused else "valid-input-fails",
        )


@contextlib.contextmanager
def standing_in(student: Student, *names: str) -> Iterator[None]:
    """While active, these names of the submission are definitions that do what we decide."""
    student.fixtures.swap_in(student.lend(decide), list(names))
    try:
        yield
    finally:
        student.fixtures.swap_back()


def forgiving(student: Student, check: Callable[[], None], *names: str) -> None:
    """Make a check; if it fails, make it again with right definitions of these names, which it may be the fault of."""
    fault: expect.Wrong | RemoteError
    try:
        check()
        return
    except (expect.Wrong, RemoteError) as error:
        fault = error
    with second_attempt(fault), standing_in(student, *names):
        check()


# -- One layer ---------------------------------------------------------------------------------------------------------
class Parameter(NamedTuple):
    """What `fixtures.described` says of one parameter."""

    name: str
    learns: bool
    shape: list[int]
    dtype: str
    device: str


def described(student: Student, module: Handle) -> list[Parameter]:
    return [Parameter(*entry) for entry in student.fixtures.described(module)]


def _of_shape(parameters: Sequence[Parameter], shape: list[int]) -> list[str]:
    """The names of the parameters of that shape: those that learn, where several have it."""
    found = [p for p in parameters if p.shape == shape]
    return [p.name for p in found if p.learns or len(found) == 1]


@dataclass
class Layer:
    """A LoRALinear of the student's, and what is known of it.

    linear: the layer it was made from, there.  weight, bias: that layer's numbers, here.
    """

    student: Student
    linear: Handle
    module: Handle
    weight: Tensor
    bias: Tensor | None
    rank: int
    alpha: float
    made: str
    a: Tensor | None = None
    b: Tensor | None = None
    parameters: list[Parameter] = field(default_factory=list)

    @property
    def inputs(self) -> int:
        return self.weight.shape[1]

    @property
    def outputs(self) -> int:
        return self.weight.shape[0]

    @property
    def scale(self) -> float:
        return self.alpha / self.rank

    def factors(self) -> tuple[str, str]:
        """The names of A and B, by their shapes; fails if there is no such pair."""
        if not self.parameters:
            self.parameters = described(self.student, self.module)
        names = []
        for letter, shape in (("A", [self.rank, self.inputs]), ("B", [self.outputs, self.rank])):
            found = _of_shape(self.parameters, shape)
            if len(found) != 1:
                shapes = {p.name: tuple(p.shape) for p in self.parameters}
                expect.wrong(
                    f"layer = {self.made}, of {self.kind}\nhas parameters of the shapes {show(shapes)}\n"
                    f"expected {letter} to be one parameter of shape {tuple(shape)}",
                    "lora-parameters",
                )
            names += found
        return names[0], names[1]

    @property
    def kind(self) -> str:
        return f"nn.Linear({self.inputs}, {self.outputs}, bias={self.bias is not None})"

    def set(self, seed: int, scale: float = 1.0) -> None:
        """Give A and B normal numbers."""
        dtype, device = self.weight.dtype, self.weight.device
        a = normal(seed, (self.rank, self.inputs), dtype, device, scale)
        self.put(a, normal(seed + 1, (self.outputs, self.rank), dtype, device, scale))

    def put(self, a: Tensor, b: Tensor) -> None:
        """Give A and B these numbers."""
        a_name, b_name = self.factors()
        self.a, self.b = a, b
        self.student.fixtures.set_numbers(self.module, {a_name: a, b_name: b})

    def call(self, x: Tensor) -> tuple[Any, Text]:
        """layer(x), and what to call that in messages."""
        text = Text(f"layer = {self.made}, of {self.kind}\nlayer(x={show(x)})")
        try:
            return self.module(x), text
        except RemoteError as error:
            if error.raised.base in {"NotImplementedError", "MemoryError"}:
                raise
            expect.wrong(
                f"{text.text}\nraised {error.raised.text}\nexpected a tensor of shape {(*x.shape[:-1], self.outputs)}",
                "valid-input-fails",
            )

    def expected(
        self, x: Tensor, scale: float | None = None, a: Tensor | None = None, b: Tensor | None = None
    ) -> Tensor:
        first, second = a if a is not None else self.a, b if b is not None else self.b
        assert first is not None
        assert second is not None
        return oracle.lora_output(x, self.weight, self.bias, first, second, self.scale if scale is None else scale)


def usual_faults(layer: Layer, x: Tensor) -> list[tuple[str, Any]]:
    """(misconception, what layer(x) is then) of the faults that show in the output of any layer with A and B set."""
    expected = layer.expected(x)
    update = expected - layer.expected(x, 0.0)
    found = [
        ("lora-scale-missing", layer.expected(x, 1.0)),
        ("lora-scale-inverted", layer.expected(x, layer.rank / layer.alpha)),
        ("lora-scale-without-rank", layer.expected(x, layer.alpha)),
        ("lora-scale-root", layer.expected(x, layer.alpha / math.sqrt(layer.rank))),
        ("lora-update-missing", layer.expected(x, 0.0)),
        ("lora-update-only", update),
    ]
    if layer.bias is not None:
        found += [
            ("lora-update-only", update + layer.bias),
            ("lora-bias-left-out", expected - layer.bias),
            ("lora-bias-twice", expected + layer.bias),
            ("lora-bias-twice", expected + layer.scale * layer.bias),
        ]
    return [(name, value) for name, value in found if expect.mismatch(value, expected) is not None]


def make_layer(
    student: Student,
    number: int,
    inputs: int,
    outputs: int,
    rank: int,
    alpha: float,
    *,
    bias: bool = True,
    dtype: torch.dtype = torch.float32,
    device: torch.device = CPU,
    generator: torch.Generator | None = None,
    weight: Tensor | None = None,
    training: bool = False,
) -> Layer:
    """student.LoRALinear over a layer of normal numbers; in evaluation mode unless asked otherwise."""
    made = linear_layer(number, inputs, outputs, bias, dtype, str(device))
    linear = student.fixtures.linear_layer(number, inputs, outputs, bias, dtype, str(device))
    if weight is not None:
        student.fixtures.set_numbers(linear, {"weight": weight})
    known = made.weight.detach() if weight is None else weight
    more = {} if generator is None else {"generator": generator}
    module = allowed(student.LoRALinear, linear, rank, alpha, **more)
    call = student.LoRALinear.last.text
    if not isinstance(module, Handle):
        expect.wrong(f"{call}\nreturned {show(module)}\nexpected an nn.Module", "lora-parameters")
    student.fixtures.set_training(module, training)
    return Layer(student, linear, module, known, made.bias.detach() if bias else None, rank, alpha, call)


# -- A model of many layers --------------------------------------------------------------------------------------------
#: The linear layers of `fixtures.many_linears`, by their names in the model.
LINEARS = (
    "encoder.query",
    "encoder.narrow",
    "encoder.wide",
    "encoder.mixer.up.0",
    *(
        f"encoder.blocks.{block}.{name}"
        for block in (0, 1)
        for name in ("query", "prequery", "up", "down", "query_block.dense")
    ),
    "classifier",
)
#: Numbers in the classification layer of `fixtures.many_linears`.
HEAD = 6 * 3 + 3


def fitting(targets: Sequence[str]) -> list[str]:
    """The layers whose names' last part is a target, in the encoder."""
    return [name for name in LINEARS if name != "classifier" and name.rpartition(".")[2] in targets]


def input_ids(seed: int, device: torch.device = CPU) -> Tensor:
    return torch.randint(13, (3, 5), generator=torch.Generator().manual_seed(seed)).to(device)


@dataclass
class Model:
    """A model on the student's side, and its numbers here.  added: the call of add_lora, for messages."""

    student: Student
    handle: Handle
    seed: int
    device: torch.device
    dtype: torch.dtype
    added: str = ""

    def described(self) -> list[Parameter]:
        return described(self.student, self.handle)

    def factors(self, name: str, rank: int) -> tuple[str, str]:
        """The names of A and B of the layer that replaced the one of that name; fails if they are not there."""
        rows, columns = self.plain().get_submodule(name).weight.shape
        inside = [p for p in self.described() if p.name.startswith(f"{name}.")]
        a, b = _of_shape(inside, [rank, columns]), _of_shape(inside, [rows, rank])
        if len(a) != 1 or len(b) != 1:
            shapes = {p.name: tuple(p.shape) for p in inside}
            expect.wrong(
                f"{self.added}\nleft {name}, a layer {columns} → {rows}, with parameters of the shapes {show(shapes)}\n"
                f"expected A of shape {(rank, columns)} and B of shape {(rows, rank)} in it",
                "setting-not-handed-on" if inside else "lora-wrong-targets",
            )
        return a[0], b[0]

    def plain(self) -> Any:
        """The same model without LoRA, here."""
        return many_linears(self.seed, dtype=self.dtype, device=str(self.device))

    def state(self) -> dict[str, Tensor]:
        found: dict[str, Tensor] = self.student.fixtures.state(self.handle)
        return found

    def __call__(self, ids: Tensor) -> Any:
        return allowed(self.handle, ids)


def make_model(student: Student, seed: int, device: torch.device = CPU, dtype: torch.dtype = torch.float32) -> Model:
    handle = student.fixtures.many_linears(seed, dtype=dtype, device=str(device))
    return Model(student, handle, seed, device, dtype)


def with_lora(
    student: Student,
    seed: int,
    rank: int,
    alpha: float,
    targets: Sequence[str],
    device: torch.device = CPU,
    generator: torch.Generator | None = None,
) -> Model:
    """A model to which student.add_lora was applied."""
    model = make_model(student, seed, device)
    more = {} if generator is None else {"generator": generator}
    allowed(student.add_lora, model.handle, rank, alpha, tuple(targets), **more)
    model.added = student.add_lora.last.text
    return model


def refused(model: Model, before: Handle, what: str) -> None:
    """Fail if a call that raised has replaced a layer.  before: the modules as `modules_of` kept them."""
    names = model.student.fixtures.replaced(model.handle, before)
    if names:
        expect.wrong(f"{what}\nraised, but had replaced layers before: {show(names)}.", "lora-half-done")


def put_layers(student: Student, model: Model, names: Sequence[str], rank: int, alpha: float) -> dict[str, Layer]:
    """Put the student's LoRALinear, A and B set to normal numbers, in the place of these layers, without add_lora."""
    plain, layers = model.plain(), {}
    for number, name in enumerate(names):
        linear = student.fixtures.module_at(model.handle, name)
        module = allowed(student.LoRALinear, linear, rank, alpha)
        call = student.LoRALinear.last.text
        if not isinstance(module, Handle):
            expect.wrong(f"{call}\nreturned {show(module)}\nexpected an nn.Module", "lora-parameters")
        known = plain.get_submodule(name)
        bias = None if known.bias is None else known.bias.detach()
        layer = Layer(student, linear, module, known.weight.detach(), bias, rank, alpha, call)
        layer.set(model.seed + 2 * number, 0.5)
        student.fixtures.put_module(model.handle, name, module)
        layers[name] = layer
    return layers

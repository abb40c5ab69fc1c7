"""Inputs of exercise 5's checks, and how its results are read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch

from autograder.hidden import expect
from autograder.hidden.strategies import generator
from autograder.wire.errors import RemoteError
from autograder.wire.proxy import Call, Student
from autograder.wire.show import show

DTYPES = (torch.int64, torch.bool, torch.int32, torch.uint8)
CPU = torch.device("cpu")


# -- Results -----------------------------------------------------------------------------------------------------------
def allowed(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """A call with arguments that the docstring allows.  Fails if it raises, with a name for that."""
    try:
        return function(*args, **kwargs)
    except RemoteError as error:
        raised = error.raised
        if raised.base in {"NotImplementedError", "MemoryError"} or raised.type_name == "OffLimitsError":
            raise
        refused = raised.base == "ValueError" and raised.explicit
        expect.wrong(
            f"{function.last.text}\nraised {raised.text}\nexpected a result: the docstring allows these arguments.",  # type: ignore[attr-defined]
            "valid-input-refused" if refused else "valid-input-fails",
        )


def read(
    got: Any, call: Call, shape: tuple[int, ...], *names: str, other_shape: str = "wrong-kind-of-batch"
) -> list[torch.Tensor]:
    """Those fields of a result, on the CPU, ids as int64 and masks as bool; fails if one is no (m, T) tensor.

    Dtype and device are the business of the checks of the result's form: here they are forgiven.
    other_shape: the misconception that a matrix of another shape is a sign of.
    """
    fields = []
    for name in names:
        value = None if isinstance(got, torch.Tensor) else getattr(got, name, None)
        if value is None:
            expect.wrong(
                f"{call.text}\nreturned {show(got)}\nexpected a MaskedBatch; this has no field `{name}`.",
                "wrong-kind-of-batch",
            )
        if not isinstance(value, torch.Tensor) or tuple(value.shape) != shape:
            axes = value.ndim if isinstance(value, torch.Tensor) else None
            named = "squeezed-away" if axes in {0, 1} else other_shape if axes == 2 else "wrong-kind-of-batch"
            expect.wrong(
                f"{name} of {call.text}\nis {show(value)}\nexpected a torch.Tensor of shape {shape}.",
                named,
            )
        value = value.detach().cpu()
        fields.append(value.bool() if name in {"selected", "attention_mask"} else value.long())
    return fields


def must_be(name: str, value: torch.Tensor, dtypes: Sequence[torch.dtype], device: torch.device, call: Call) -> None:
    """Fail unless that field has one of the dtypes and is on the device."""
    if value.dtype not in dtypes:
        wanted = " or ".join(str(dtype).removeprefix("torch.") for dtype in dtypes)
        expect.wrong(f"{name} of {call.text}\nis {show(value)}\nexpected dtype {wanted}.", "wrong-kind-of-batch")
    if value.device.type != device.type:
        expect.wrong(f"{name} of {call.text}\nis on {value.device}, not on {device}.", "wrong-device")


def some_target(selected: torch.Tensor, call: Call) -> None:
    """Fail if nothing at all is selected, so that no check passes for a function that masks nothing."""
    if not bool(selected.any()):
        expect.wrong(f"{call.text}\nselected no token at all.", "sequence-without-target")


def first(bad: torch.Tensor) -> list[int]:
    """Where the first True is."""
    return bad.nonzero()[0].tolist()


# -- Inputs of mask_tokens ---------------------------------------------------------------------------------------------
class Case(NamedTuple):
    """A batch and its vocabulary."""

    input_ids: torch.Tensor
    attention_mask: torch.Tensor
    special_tokens_mask: torch.Tensor
    mask_token_id: int
    ordinary_ids: torch.Tensor

    @property
    def ids(self) -> torch.Tensor:
        return self.input_ids.cpu()

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(self.input_ids.shape)

    @property
    def candidates(self) -> torch.Tensor:
        return (self.attention_mask.cpu() == 1) & (self.special_tokens_mask.cpu() == 0)

    def with_tensors(self, tensors: Iterable[torch.Tensor]) -> Case:
        """The same vocabulary, other ids and masks."""
        input_ids, attention_mask, special_tokens_mask = tensors
        return Case(input_ids, attention_mask, special_tokens_mask, self.mask_token_id, self.ordinary_ids)

    def masked_by(self, student: Student, source: torch.Generator | None, **changes: Any) -> Any:
        """What the submission makes of it."""
        vocabulary = {"mask_token_id": self.mask_token_id, "ordinary_ids": self.ordinary_ids}
        return allowed(student.mask_tokens, *self[:3], **{**vocabulary, **changes}, generator=source)


def make_case(seed: int, shape: tuple[int, int], device: torch.device, text: str = "any") -> Case:
    """Ids 0 … 59, of which some are ordinary, in any order and with gaps; masks of any legal dtype; some candidates.

    text: "any": every id occurs, those of [MASK] and of special tokens too, because only special_tokens_mask counts;
        "ordinary": only ordinary ids; "other": neither ordinary ids nor [MASK].
    """
    rng = np.random.default_rng(seed)
    order = rng.permutation(60)
    ordinary = order[1 : 1 + int(rng.integers(2, 20))]
    pool = {"any": order, "ordinary": ordinary, "other": order[30:]}[text]
    attention, special = rng.random(shape) < 0.8, rng.random(shape) < 0.25
    if shape[0] > 2:
        special[int(rng.integers(shape[0]))] = True  # a sequence without candidates
    row, place = int(rng.integers(shape[0])), int(rng.integers(shape[1]))
    attention[row, place], special[row, place] = True, False
    return Case(
        torch.as_tensor(rng.choice(pool, shape)).long().to(device),
        torch.as_tensor(attention).to(DTYPES[seed % 4]).to(device),
        torch.as_tensor(special).to(DTYPES[seed // 4 % 4]).to(device),
        int(order[0]),
        torch.as_tensor(ordinary).long().to(device),
    )


def sparse_case(seed: int, most: int, device: torch.device) -> Case:
    """Sequences of 0, 1, 2 … `most` candidates at scattered places, in mixed order, twice each."""
    rng = np.random.default_rng(seed)
    counts = rng.permutation(np.repeat(np.arange(most + 1), 2))
    attention = torch.zeros((len(counts), most + 5), dtype=torch.int64)
    special = torch.ones_like(attention)
    for row, count in enumerate(counts.tolist()):
        attention[row, : count + 3] = 1
        special[row, rng.permutation(count + 3)[:count]] = 0
    ids = torch.as_tensor(rng.integers(0, 41, tuple(attention.shape))) * 3
    return Case(ids.to(device), attention.to(device), special.to(device), 4, spread_ids(41).to(device))


def spread_ids(count: int) -> torch.Tensor:
    """0, 3, 6 … in mixed order; special ids lie in the gaps."""
    return torch.as_tensor(np.random.default_rng(count).permutation(count)) * 3


def source(seed: int, number: int, device: torch.device = CPU) -> torch.Generator:
    """The generator for one example of one check; the grader's seed makes it another one."""
    return generator(1_000_003 * seed + number, device)


def plain_case(device: torch.device, m: int = 3, length: int = 7) -> Case:
    """Ordinary ids throughout, one special token, one padded position."""
    ids = torch.arange(m * length).view(m, length) % 9 + 20
    attention, special = torch.ones_like(ids), torch.zeros_like(ids)
    special[:, 0], attention[0, -1] = 1, 0
    return Case(ids.to(device), attention.to(device), special.to(device), 4, torch.arange(20, 29, device=device))


def fully_masked(student: Student, case: Case, device: torch.device, seed: int, **changes: Any) -> None:
    """Make the one call whose result is known beforehand: every candidate becomes [MASK].  Fails if one does not."""
    changes = {"mlm_probability": 1.0, "mask_rate": 1.0, "random_rate": 0.0, **changes}
    got = case.masked_by(student, source(seed, 0, device), **changes)
    new, selected = read(got, student.last, case.shape, "input_ids", "selected")
    free, call = case.candidates, student.last
    expect.close(selected | ~free, torch.ones_like(free), call, what="selected (at the candidates)")
    expected = torch.where(free, case.mask_token_id, case.ids)
    expect.close(torch.where(free, new, case.ids), expected, call, what="input_ids (at the candidates)")


# -- Where random numbers show -----------------------------------------------------------------------------------------
#: Settings under which selection, fate, random ids and forced targets show, each by itself; the field that shows it.
ASPECTS: tuple[tuple[str, str, dict[str, float]], ...] = (
    ("selection", "selected", {"mlm_probability": 0.3}),
    ("fate", "input_ids", {"mlm_probability": 1.0, "mask_rate": 0.5, "random_rate": 0.2}),
    ("random ids", "input_ids", {"mlm_probability": 1.0, "mask_rate": 0.0, "random_rate": 1.0}),
    ("forced targets", "selected", {"mlm_probability": 0.02}),
)


def aspect_case(aspect: str, device: torch.device) -> Case:
    """40 short sequences where targets are to be forced, else three long ones."""
    return sparse_case(3, 20, device) if aspect == "forced targets" else make_case(24, (5, 83), device, "ordinary")


def outcome(got: Any, call: Call, case: Case) -> torch.Tensor:
    """Selection, labels and ids in one tensor."""
    new, labels, selected = read(got, call, case.shape, "input_ids", "labels", "selected")
    some_target(selected, call)
    return torch.stack([new, labels, selected.long()])

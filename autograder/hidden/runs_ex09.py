"""The data sets, configurations and expensive calls of exercise 9's comparison."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from autograder.hidden import expect, journal
from autograder.hidden.attempts import second_attempt
from autograder.hidden.cases_ex09 import standing_in
from autograder.hidden.journal import Comparison, make_texts, with_turned_labels
from autograder.wire.errors import RemoteError
from autograder.wire.proxy import Call, Handle, Student
from exercises.kit import ComparisonConfig

METHODS = ("frozen", "full", "lora")
#: Learning rates that learn the texts of `journal.make_texts`, and one that changes nothing.
LEARNING = {"frozen": 0.05, "full": 0.005, "lora": 0.02}
STILL = 1e-9
#: So long takes the first call of an encoder in the comparison `plain`.
COLD = 0.5


def configuration(seeds: Sequence[int], order: Sequence[float | None], **changes: Any) -> ComparisonConfig:
    """order: the settings of every method; None stands for the one that learns."""
    settings = {m: tuple(LEARNING[m] if value is None else value for value in order) for m in METHODS}
    more = {"updates": 20, "batch_size": 8, "vocab_size": journal.VOCAB_SIZE, "lora_rank": 3, "lora_alpha": 12.0}
    return ComparisonConfig(tuple(seeds), settings, **{**more, **changes})


@dataclass
class LoRARun:
    """What `fixtures.probed` told of one model: A at the start, and the scales with which B A was added later."""

    seed: int
    start: Tensor | None = None
    scales: list[float] = field(default_factory=list)


@dataclass
class Transfer:
    """One call of compare_transfer: the comparison, what its LoRA models told, and the global generators it moved."""

    comparison: Comparison
    lora: dict[int, LoRARun]
    moved: list[str]


class _Probed:
    """student.compare_transfer, given a make_model whose models tell of their LoRA."""

    def __init__(self, student: Student, told: Callable[..., Any]) -> None:
        self._student = student
        self._told = told

    @property
    def last(self) -> Call:
        return self._student.compare_transfer.last

    def __call__(self, splits: Handle, make_model: Handle, config: ComparisonConfig) -> Any:
        student = self._student
        return student.compare_transfer(splits, student.fixtures.probed(make_model, student.lend(self._told)), config)


class Runs:
    """The comparisons that the checks look at, each made once a submission.

    right: with a right add_lora, LoRALinear and merge_lora in the place of the submission's.
    """

    def __init__(self, student: Student, device: torch.device, right: bool) -> None:
        self._student = student
        self._device = device
        self.right = right
        self.model_settings = {
            "base_seed": 3,
            "vocab_size": journal.VOCAB_SIZE,
            "positions": journal.POSITIONS,
            # so wide that a classification layer on a frozen encoder learns the texts in whatever order they come
            "hidden_size": 32,
        }

    def _once(self, name: str, texts: Any, config: ComparisonConfig, **more: Any) -> Transfer:
        student = self._student

        def make() -> Transfer:
            lora: dict[int, LoRARun] = {}

            def told(number: int, seed: int, kind: str, value: Any) -> None:
                run = lora.setdefault(number, LoRARun(seed))
                if kind == "start":
                    run.start = value
                else:
                    run.scales.append(value)

            function: Any = _Probed(student, told)
            moved = student.witness("compare_transfer").moved
            before = len(moved)
            compared = journal.compare(student, function, texts, config, device=self._device, **more)
            return Transfer(compared, lora, [name for _, name in moved[before:]])

        found: Transfer
        if self.right:
            with standing_in(student, "LoRALinear", "add_lora", "merge_lora"):
                found = student.once(f"{name}, right LoRA", make)
        else:
            found = student.once(name, make)
        return found

    def plain(self) -> Transfer:
        """Two seeds; the first setting is the one that learns; some labels are wrong, so that scores differ."""
        texts = make_texts(0, wrong_labels=("test",), every=4)
        return self._once("plain", texts, configuration((4, 1), (None, STILL)), cold_seconds=COLD, dropout=0.1)

    def again(self) -> Transfer:
        """`plain` once more."""
        texts = make_texts(0, wrong_labels=("test",), every=4)
        return self._once("again", texts, configuration((4, 1), (None, STILL)), dropout=0.1)

    def turned(self) -> Transfer:
        """Validation labels that contradict the training texts: what learns least is best."""
        texts = with_turned_labels(make_texts(2), "validation")
        return self._once("turned", texts, configuration((2,), (None, STILL)))

    def middle(self) -> Transfer:
        """Three settings, the second one learns; padding is an id that texts hold as well; other batches and LoRA."""
        more = {"batch_size": 10, "updates": 18, "lora_rank": 2, "lora_alpha": 5.0, "lora_targets": ("query", "dense")}
        config = configuration((5,), (STILL, None, STILL / 10), pad_id=30, **more)
        return self._once("middle", make_texts(5, test=17), config)

    def ties(self) -> Transfer:
        """Two settings that change nothing: equal scores.  Few updates of few texts."""
        config = configuration((3,), (STILL, STILL / 10), updates=3, batch_size=5)
        return self._once("ties", make_texts(3), config)


def judged(student: Student, device: torch.device, check: Callable[[Runs], None]) -> None:
    """Make a check of the comparisons; if it fails, of those made with right definitions of LoRA."""
    fault: expect.Wrong | RemoteError
    try:
        check(Runs(student, device, right=False))
        return
    except (expect.Wrong, RemoteError) as error:
        fault = error
    with second_attempt(fault):
        check(Runs(student, device, right=True))

"""Given code of exercises 8 to 10: batches, a training run of a fixed number of updates, predictions.

It is as plain as it can be: no early stopping, no schedule, no choice of settings.  Those are the exercises.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Sequence
from contextvars import ContextVar
from typing import NamedTuple

import torch
from torch import Tensor, nn

from exercises.kit.types import Example


class Batch(NamedTuple):
    """m examples, padded on the right to the longest of them, T tokens."""

    #: int64 (m, T).
    input_ids: Tensor
    #: int64 (m, T): 1 at tokens, 0 at padding.
    attention_mask: Tensor
    #: int64 (m,).
    labels: Tensor


class FitLog(NamedTuple):
    """What one call of `fit` did: enough to tell which record it belongs to, its course, and its work."""

    learning_rate: float
    seed: int
    trainable_parameters: int
    #: The training loss of each update, with dropout, in nats.
    losses: list[float]
    #: Of this process: on a busy machine, a better measure of the work than wall time.
    cpu_seconds: float


_logs: ContextVar[list[FitLog] | None] = ContextVar("_logs", default=None)


@contextlib.contextmanager
def logged_fits() -> Iterator[list[FitLog]]:
    """Inside, every call of `fit` that ends adds a log to the list; for learning curves."""
    logs: list[FitLog] = []
    token = _logs.set(logs)
    try:
        yield logs
    finally:
        _logs.reset(token)


def collate(examples: Sequence[Example], *, pad_id: int = 0, device: str = "cpu", length: int | None = None) -> Batch:
    """One batch of the examples.

    length: pad to this many tokens instead of to the longest example.

    Raises:
        ValueError: no examples, or one that is longer than `length`.
    """
    if not examples:
        raise ValueError("examples is empty: a batch needs at least one")
    longest = max(len(example.input_ids) for example in examples)
    width = longest if length is None else length
    if longest > width:
        raise ValueError(f"an example has {longest} tokens, but length is {width}")
    shape = (len(examples), width)
    input_ids = torch.full(shape, pad_id, dtype=torch.int64)
    attention_mask = torch.zeros(shape, dtype=torch.int64)
    for place, example in enumerate(examples):
        count = len(example.input_ids)
        input_ids[place, :count] = torch.tensor(example.input_ids, dtype=torch.int64)
        attention_mask[place, :count] = 1
    labels = torch.tensor([example.label for example in examples], dtype=torch.int64)
    return Batch(input_ids.to(device), attention_mask.to(device), labels.to(device))


def endless_order(count: int, seed: int) -> Iterator[int]:
    """Indices 0 … count-1 in a random order, then in another one, and so on without end."""
    generator = torch.Generator().manual_seed(seed)
    while True:
        yield from torch.randperm(count, generator=generator).tolist()


@contextlib.contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Inside, PyTorch's global generators start from `seed`; afterwards they are as they were.  For dropout."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        yield


def fit(
    model: nn.Module,
    examples: Sequence[Example],
    *,
    learning_rate: float,
    updates: int,
    batch_size: int,
    seed: int,
    weight_decay: float = 0.01,
    pad_id: int = 0,
    device: str = "cpu",
    length: int | None = None,
) -> None:
    """Train, with AdamW and cross-entropy, all parameters of the model that require a gradient.

    Makes exactly `updates` updates of `batch_size` examples each, in an order that the seed decides; the same seed
    gives the same weights.  length: as for `collate`.  Leaves the model in training mode.
    """
    model.to(device).train()
    learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(learning, lr=learning_rate, weight_decay=weight_decay)
    order = endless_order(len(examples), seed)
    losses = []
    started = time.process_time()
    with seeded(seed):
        for _ in range(updates):
            chosen = [examples[next(order)] for _ in range(batch_size)]
            batch = collate(chosen, pad_id=pad_id, device=device, length=length)
            loss = nn.functional.cross_entropy(model(batch.input_ids, batch.attention_mask), batch.labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            losses.append(loss.detach())  # not .item(): that would make every update wait for a GPU
    logs = _logs.get()
    if logs is not None:
        count = sum(parameter.numel() for parameter in learning)
        seconds = time.process_time() - started
        logs.append(FitLog(learning_rate, seed, count, [float(loss) for loss in losses], seconds))


def predict(
    model: nn.Module,
    examples: Sequence[Example],
    *,
    batch_size: int = 64,
    pad_id: int = 0,
    device: str = "cpu",
    length: int | None = None,
) -> list[int]:
    """The classes that the model gives the examples, in their order, without dropout.  Leaves it in evaluation mode."""
    model.to(device).eval()
    classes: list[int] = []
    with torch.no_grad():
        for start in range(0, len(examples), batch_size):
            chosen = [examples[index] for index in range(start, min(start + batch_size, len(examples)))]
            batch = collate(chosen, pad_id=pad_id, device=device, length=length)
            classes += model(batch.input_ids, batch.attention_mask).argmax(-1).tolist()
    return classes

# honest: Trains with a loop of its own: truncate_and_pad for every batch, an order by NumPy, SGD with momentum.
"""Maximum length and padding."""

from collections.abc import Sequence

import numpy as np
import torch

from exercises.kit import (
    LengthGroup,
    Meter,
    PaddingReport,
    RunRecord,
    parameter_counts,
)


def truncate_and_pad(
    sequences: Sequence[Sequence[int]], max_length: int, strategy: str, pad_id: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Cut every text, then fill its row."""
    if strategy not in {"global", "dynamic"}:
        raise ValueError(f"unknown strategy {strategy!r}")
    if max_length < 2:
        raise ValueError(f"max_length={max_length} leaves no room for a text")
    if not sequences:
        raise ValueError("sequences is empty")
    if any(len(ids) == 0 for ids in sequences):
        raise ValueError("one of the sequences is empty")
    texts = [list(ids) for ids in sequences]
    texts = [ids[: max_length - 1] + ids[-1:] if len(ids) > max_length else ids for ids in texts]
    width = max_length if strategy == "global" else max(len(ids) for ids in texts)
    rows = [ids + [pad_id] * (width - len(ids)) for ids in texts]
    masks = [[1] * len(ids) + [0] * (width - len(ids)) for ids in texts]
    return torch.tensor(rows), torch.tensor(masks)


def padding_report(
    sequences: Sequence[Sequence[int]], max_length: int, strategy: str, batch_size: int
) -> PaddingReport:
    """Count over all batches, then divide."""
    if batch_size < 1:
        raise ValueError(f"batch_size={batch_size} is no size of a batch")
    truncate_and_pad(sequences, max_length, strategy, 0)  # refuses what it refuses
    longer = [len(ids) > max_length for ids in sequences]
    padding = positions = 0
    for start in range(0, len(sequences), batch_size):
        batch = sequences[start : start + batch_size]
        _, mask = truncate_and_pad(batch, max_length, strategy, 0)
        padding += mask.numel() - int(mask.sum())
        positions += mask.numel()
    return PaddingReport(sum(longer) / len(longer), padding / positions)


def errors_by_length(lengths: Sequence[int], correct: Sequence[bool], edges: Sequence[int]) -> list[LengthGroup]:
    """One pass over the texts for each group."""
    if len(lengths) != len(correct):
        raise ValueError(f"{len(lengths)} lengths, but {len(correct)} entries in correct")
    for length in lengths:
        if length < 1:
            raise ValueError(f"lengths holds {length}")
    for low, high in zip([0, *edges], edges, strict=False):
        if high <= low:
            raise ValueError(f"edges do not ascend from 1 or more: {edges}")
    groups = []
    for number in range(len(edges) + 1):
        shortest = edges[number - 1] + 1 if number else 1
        longest = edges[number] if number < len(edges) else None
        results = [
            right
            for length, right in zip(lengths, correct, strict=True)
            if shortest <= length and (longest is None or length <= longest)
        ]
        errors = results.count(False)
        rate = errors / len(results) if results else None
        groups.append(LengthGroup(shortest, longest, len(results), errors, rate))
    return groups


class Run:
    """A model with the way it gets its texts."""

    def __init__(self, model, max_length, strategy, config):
        self.model, self.config = model.to(config.device), config
        self.shape = max_length, strategy, config.pad_id

    def logits(self, examples):
        """Logits of one batch."""
        ids, mask = truncate_and_pad([example.input_ids for example in examples], *self.shape)
        return self.model(ids.to(self.config.device), attention_mask=mask.to(self.config.device))

    def train(self, examples, rate, seed, updates):
        """Epochs in random order, cut into batches of one size, until there were enough of them."""
        self.model.train()
        optimizer = torch.optim.SGD(
            self.model.parameters(), lr=10 * rate, momentum=0.8, weight_decay=0.01 * self.config.weight_decay
        )
        rng, waiting = np.random.default_rng(seed), []
        for _ in range(updates):
            while len(waiting) < self.config.batch_size:
                waiting += rng.permutation(len(examples)).tolist()
            batch = [examples[waiting.pop(0)] for _ in range(self.config.batch_size)]
            labels = torch.tensor([example.label for example in batch], device=self.config.device)
            self.model.zero_grad(set_to_none=True)
            torch.nn.functional.cross_entropy(self.logits(batch), labels).backward()
            torch.nn.utils.clip_grad_norm_(self.model.parameters(), 5.0)
            optimizer.step()

    def classes(self, examples, size=5):
        """Classes of texts, in their order, a few texts at a time."""
        self.model.eval()
        with torch.inference_mode():
            parts = [self.logits(examples[at : at + size]).argmax(1) for at in range(0, len(examples), size)]
        return torch.cat(parts).tolist()


def compare_lengths(splits, make_model, config):
    """One run after the other; each gives one record."""
    for name in ("max_lengths", "strategies"):
        if not getattr(config, name):
            raise ValueError(f"config.{name} is empty")
    if any(length < 2 for length in config.max_lengths):
        raise ValueError(f"config.max_lengths {config.max_lengths}: each must be at least 2")
    if any(strategy not in ("global", "dynamic") for strategy in config.strategies):
        raise ValueError(f"config.strategies {config.strategies}")
    rates = tuple(config.settings.get("full", ()))
    if not rates:
        raise ValueError("config.settings['full'] is missing")
    train, validation = list(splits.train), list(splits.validation)

    def accuracy(classes, examples):
        return sum(c == e.label for c, e in zip(classes, examples)) / len(examples)

    def record(seed, max_length, strategy):
        tried = []
        for rate in rates:
            run = Run(make_model(seed), max_length, strategy, config)
            with Meter(run.model.encoder, config.device) as meter, torch.random.fork_rng():
                torch.manual_seed(seed)
                run.train(train, rate, seed, config.updates)
            tried.append((accuracy(run.classes(validation), validation), rate, run, meter))
        score, rate, run, meter = max(tried, key=lambda one: one[0])  # the first of equals
        test = list(splits.test)
        with Meter(run.model.encoder, config.device) as last:
            classes = run.classes(test)
        hits = sum(c == 1 == e.label for c, e in zip(classes, test))
        ones = sum(classes) + sum(e.label for e in test)
        report = padding_report([e.input_ids for e in train], max_length, strategy, config.batch_size)
        counts = parameter_counts(run.model)
        return RunRecord(
            "full",
            seed,
            accuracy(classes, test),
            2 * hits / ones if ones else 0.0,
            meter.seconds,
            last.seconds,
            meter.peak_memory_bytes,
            *counts,
            meter.forward_calls + last.forward_calls,
            meter.backward_calls,
            config.updates,
            config.batch_size,
            score,
            {"learning_rate": rate},
            classes,
            max_length,
            strategy,
            *report,
        )

    warm = Run(make_model(config.seeds[-1]), config.max_lengths[-1], config.strategies[-1], config)
    with torch.random.fork_rng():
        warm.train(train, 1e-6, 0, 1)
    warm.classes(train)
    return [record(s, n, how) for how in config.strategies for n in config.max_lengths for s in config.seeds]

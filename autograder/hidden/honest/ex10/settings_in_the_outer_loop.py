# honest: All models of a seed are trained setting by setting before any is tested; records come in another order, in a tuple.
"""Maximum length and padding."""

from collections.abc import Callable, Sequence

import torch
from sklearn.metrics import accuracy_score, f1_score

from exercises.kit import (
    Classifier,
    ComparisonConfig,
    Example,
    LengthGroup,
    Meter,
    PaddingReport,
    RunRecord,
    Splits,
    fit,
    parameter_counts,
    predict,
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


def compare_lengths(splits, make_model, config):
    """First every training run, then every choice."""
    if not config.max_lengths or not all(length >= 2 for length in config.max_lengths):
        raise ValueError(f"config.max_lengths: {config.max_lengths}")
    if not config.strategies or not all(one in ("global", "dynamic") for one in config.strategies):
        raise ValueError(f"config.strategies: {config.strategies}")
    if len(config.settings.get("full", ())) == 0:
        raise ValueError("config.settings: nothing to try")
    read = {"train": [*splits.train], "validation": [*splits.validation]}
    kinds = [(length, strategy) for length in config.max_lengths for strategy in config.strategies]
    place = dict(pad_id=config.pad_id, device=config.device)

    def cut(examples, length):
        return [
            Example(truncate_and_pad([e.input_ids], length, "dynamic", 0)[0][0].tolist(), e.label) for e in examples
        ]

    def train(model, examples, length, strategy, **how):
        full = length if strategy == "global" else None
        fit(
            model, examples, batch_size=config.batch_size, weight_decay=config.weight_decay, length=full, **how, **place
        )

    for length, strategy in kinds:
        first = make_model(config.seeds[0])
        train(first, cut(read["train"], length), length, strategy, learning_rate=1e-5, updates=1, seed=1)
        predict(first, cut(read["train"], length), **place)

    done, records = {}, []
    for rate in config.settings["full"]:
        for seed in config.seeds:
            for length, strategy in kinds:
                model, texts = make_model(seed), cut(read["train"], length)
                with Meter(model.encoder, config.device) as meter:
                    train(model, texts, length, strategy, learning_rate=rate, updates=config.updates, seed=seed)
                unseen = cut(read["validation"], length)
                got = predict(model, unseen, length=length if strategy == "global" else None, **place)
                score = float(accuracy_score([e.label for e in unseen], got))
                done.setdefault((seed, length, strategy), []).append((score, -len(done), rate, model, meter))
    for (seed, length, strategy), tried in done.items():
        best = max(score for score, *_ in tried)
        score, _, rate, model, meter = next(one for one in tried if one[0] == best)
        test = cut(list(splits.test), length)
        with Meter(model.encoder, config.device) as last:
            got = predict(model, test, length=length if strategy == "global" else None, **place)
        labels = [e.label for e in test]
        ratios = padding_report([e.input_ids for e in read["train"]], length, strategy, config.batch_size)
        some, total = parameter_counts(model)
        records.append(
            RunRecord(
                "full",
                seed,
                float(accuracy_score(labels, got)),
                float(f1_score(labels, got, zero_division=0)),
                meter.seconds,
                last.seconds,
                meter.peak_memory_bytes,
                some,
                total,
                meter.forward_calls + last.forward_calls,
                meter.backward_calls,
                config.updates,
                config.batch_size,
                score,
                {"learning_rate": rate},
                tuple(got),
                length,
                strategy,
                ratios.truncation_ratio,
                ratios.padding_ratio,
            )
        )
    return tuple(records)

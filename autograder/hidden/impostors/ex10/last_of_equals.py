# fault: Of equal settings the last one is used.
# function: compare_lengths
# check: test_validation_chooses
# misconception: not-the-best-setting
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


def shortened(examples: Sequence[Example], max_length: int, pad_id: int) -> list[Example]:
    """The examples as the encoder gets them, without padding."""
    ids, mask = truncate_and_pad([example.input_ids for example in examples], max_length, "dynamic", pad_id)
    return [
        Example(row[mask_row.bool()].tolist(), example.label)
        for row, mask_row, example in zip(ids, mask, examples, strict=True)
    ]


def compare_lengths(
    splits: Splits, make_model: Callable[[int], Classifier], config: ComparisonConfig
) -> list[RunRecord]:
    """Every length with every strategy and every seed."""
    if len(config.max_lengths) == 0 or min(config.max_lengths) < 2:
        raise ValueError(f"max_lengths={config.max_lengths}")
    if len(config.strategies) == 0 or set(config.strategies) - {"global", "dynamic"}:
        raise ValueError(f"strategies={config.strategies}")
    if not config.settings.get("full"):
        raise ValueError("settings has no learning rates for full")
    originals = list(splits.train)
    held_out = list(splits.validation)
    basis = {"pad_id": config.pad_id, "device": config.device}

    spare = make_model(config.seeds[0])
    some = shortened(originals, config.max_lengths[0], config.pad_id)
    fit(spare, some, learning_rate=1e-4, updates=2, batch_size=config.batch_size, seed=0, **basis)
    predict(spare, some, **basis)

    records = []
    for seed in config.seeds:
        for max_length in config.max_lengths:
            train = shortened(originals, max_length, config.pad_id)
            validation = shortened(held_out, max_length, config.pad_id)
            for strategy in config.strategies:
                length = max_length if strategy == "global" else None
                best = None
                for rate in config.settings["full"]:
                    model = make_model(seed)
                    with Meter(model.encoder, config.device) as training:
                        fit(
                            model,
                            train,
                            learning_rate=rate,
                            updates=config.updates,
                            batch_size=config.batch_size,
                            seed=seed,
                            weight_decay=config.weight_decay,
                            length=length,
                            **basis,
                        )
                    guesses = predict(model, validation, length=length, **basis)
                    score = accuracy_score([example.label for example in validation], guesses)
                    if best is None or score >= best[0]:
                        best = score, rate, model, training
                score, rate, model, training = best
                test = shortened(list(splits.test), max_length, config.pad_id)
                labels = [example.label for example in test]
                with Meter(model.encoder, config.device) as prediction:
                    classes = predict(model, test, length=length, **basis)
                report = padding_report([e.input_ids for e in originals], max_length, strategy, config.batch_size)
                trainable, total = parameter_counts(model)
                records.append(
                    RunRecord(
                        method="full",
                        seed=seed,
                        accuracy=float(accuracy_score(labels, classes)),
                        f1=float(f1_score(labels, classes, zero_division=0.0)),
                        train_seconds=training.seconds,
                        predict_seconds=prediction.seconds,
                        peak_memory_bytes=training.peak_memory_bytes,
                        trainable_parameters=trainable,
                        total_parameters=total,
                        encoder_forward_calls=training.forward_calls + prediction.forward_calls,
                        encoder_backward_calls=training.backward_calls,
                        updates=config.updates,
                        examples_per_update=config.batch_size,
                        validation_score=float(score),
                        chosen_hyperparameters={"learning_rate": rate},
                        test_predictions=classes,
                        max_length=max_length,
                        strategy=strategy,
                        truncation_ratio=report.truncation_ratio,
                        padding_ratio=report.padding_ratio,
                    )
                )
    return records

# honest: A table of functions gives the width of a strategy; errors by subtraction of cumulative counts; np.float64 ratios.
"""Maximum length and padding."""

from collections.abc import Callable, Sequence

import numpy as np
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


WIDTHS = {"global": lambda lengths, most: most, "dynamic": lambda lengths, most: min(most, max(lengths))}


def _demand(condition, message):
    if not condition:
        raise ValueError(message)


def truncate_and_pad(sequences, max_length, strategy, pad_id):
    """Write position by position."""
    _demand(strategy in WIDTHS, f"no such strategy: {strategy}")
    _demand(max_length >= 2, f"max_length = {max_length}")
    _demand(len(sequences) > 0 and all(len(ids) > 0 for ids in sequences), "an id is missing in sequences")
    lengths = list(map(len, sequences))
    input_ids = torch.empty(len(lengths), WIDTHS[strategy](lengths, max_length), dtype=torch.int64)
    attention_mask = torch.zeros_like(input_ids)
    for row, ids in enumerate(sequences):
        for column in range(input_ids.shape[1]):
            inside = column < len(ids)
            cut = len(ids) > max_length and column == max_length - 1
            input_ids[row, column] = ids[-1] if cut else ids[column] if inside else pad_id
            attention_mask[row, column] = int(inside)
    return input_ids, attention_mask


def padding_report(sequences, max_length, strategy, batch_size):
    """From lengths alone."""
    _demand(batch_size > 0, f"batch_size = {batch_size}")
    _demand(strategy in WIDTHS, f"no such strategy: {strategy}")
    _demand(max_length >= 2, f"max_length = {max_length}")
    _demand(len(sequences) > 0 and all(len(ids) > 0 for ids in sequences), "an id is missing in sequences")
    lengths = [len(ids) for ids in sequences]
    positions = 0
    for at in range(0, len(lengths), batch_size):
        part = lengths[at : at + batch_size]
        positions += len(part) * WIDTHS[strategy](part, max_length)
    text = sum(min(length, max_length) for length in lengths)
    return PaddingReport(
        np.float64(np.mean([n > max_length for n in lengths])), np.float64((positions - text) / positions)
    )


def errors_by_length(lengths, correct, edges):
    """Cumulative counts, and their differences."""
    _demand(len(lengths) == len(correct), "lengths, correct: not the same number")
    _demand(all(n > 0 for n in lengths), f"lengths: {min(lengths, default=0)}")
    _demand(all(a < b for a, b in zip([0, *edges], edges)), f"edges: {list(edges)}")
    ends = [*edges, float("inf")]
    texts = [0] + [sum(n <= end for n in lengths) for end in ends]
    errors = [0] + [sum(n <= end and not right for n, right in zip(lengths, correct)) for end in ends]
    groups = []
    for k, end in enumerate(ends):
        inside, wrong = texts[k + 1] - texts[k], errors[k + 1] - errors[k]
        groups.append(
            LengthGroup(
                shortest=edges[k - 1] + 1 if k else 1,
                longest=None if end == float("inf") else end,
                texts=inside,
                errors=wrong,
                error_rate=np.float64(wrong) / inside if inside else None,
            )
        )
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
                    if best is None or score > best[0]:
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

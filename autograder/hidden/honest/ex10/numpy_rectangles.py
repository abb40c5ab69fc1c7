# honest: Batches are NumPy arrays that are filled by a boolean mask; lengths are looked up with searchsorted.
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


def truncate_and_pad(sequences, max_length, strategy, pad_id):
    """Fill a rectangle where the mask says that there is text."""
    if strategy != "global" and strategy != "dynamic":
        raise ValueError(f"strategy: {strategy}")
    if max_length < 2:
        raise ValueError(f"max_length: {max_length} < 2")
    lengths = np.array([len(ids) for ids in sequences], dtype=np.int64)
    if lengths.size == 0 or lengths.min() == 0:
        raise ValueError("sequences: none, or an empty one")
    kept = np.minimum(lengths, max_length)
    mask = np.arange(max_length if strategy == "global" else kept.max()) < kept[:, None]  # (m, T)
    input_ids = np.full(mask.shape, pad_id, dtype=np.int64)
    input_ids[mask] = np.concatenate([np.asarray(s)[:n] for s, n in zip(sequences, kept)])
    input_ids[np.arange(len(kept)), kept - 1] = [ids[-1] for ids in sequences]
    return torch.from_numpy(input_ids), torch.from_numpy(mask.astype(np.int64))


def padding_report(sequences, max_length, strategy, batch_size):
    """Whole arrays of lengths; no batch is ever made."""
    if batch_size < 1:
        raise ValueError(f"batch_size: {batch_size}")
    if strategy not in ("global", "dynamic"):
        raise ValueError(f"strategy: {strategy}")
    if max_length < 2:
        raise ValueError(f"max_length: {max_length} < 2")
    lengths = np.array([len(ids) for ids in sequences], dtype=np.int64)
    if lengths.size == 0 or lengths.min() == 0:
        raise ValueError("sequences: none, or an empty one")
    kept = np.minimum(lengths, max_length)
    starts = np.arange(0, len(kept), batch_size)
    widths = np.maximum.reduceat(kept, starts) if strategy == "dynamic" else np.full(len(starts), max_length)
    sizes = np.diff(np.append(starts, len(kept)))
    positions = (widths * sizes).sum()
    return PaddingReport(np.mean(lengths > max_length), 1 - kept.sum() / positions)


def errors_by_length(lengths, correct, edges):
    """Group numbers by binary search, counts by bincount."""
    lengths, correct, ends = np.array(lengths), np.array(correct, dtype=bool), np.array(edges, dtype=np.int64)
    if lengths.shape != correct.shape:
        raise ValueError("lengths and correct must be of one length")
    if (lengths < 1).any():
        raise ValueError(f"lengths: {lengths.min()} < 1")
    if (np.diff(ends, prepend=0) < 1).any():
        raise ValueError(f"edges: {edges}")
    group = np.searchsorted(ends, lengths, side="left")
    texts = np.bincount(group, minlength=len(ends) + 1)
    errors = np.bincount(group, weights=~correct, minlength=len(ends) + 1).astype(np.int64)
    starts, stops = [1, *(ends + 1).tolist()], [*ends.tolist(), None]
    return [LengthGroup(a, b, int(n), int(e), e / n if n else None) for a, b, n, e in zip(starts, stops, texts, errors)]


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

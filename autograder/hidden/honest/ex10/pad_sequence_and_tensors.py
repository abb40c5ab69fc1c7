# honest: pad_sequence of PyTorch, F.pad up to the maximum, masks padded like ids; groups by bisect and Counter.
"""Maximum length and padding."""

import bisect
from collections import Counter
from collections.abc import Callable, Sequence
from fractions import Fraction

import torch
import torch.nn.functional as F
from sklearn.metrics import accuracy_score, f1_score
from torch.nn.utils.rnn import pad_sequence

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


class BadBatch(ValueError):
    """Says which argument of a batch is wrong."""


def truncate_and_pad(sequences, max_length, strategy, pad_id):
    """Let PyTorch pad ids and ones."""
    if not isinstance(strategy, str) or strategy not in "global dynamic".split():
        raise BadBatch(f"Strategy {strategy!r} is not known")
    if max_length < 2:
        raise BadBatch(f"max length {max_length} is too small")
    tensors = [torch.as_tensor(list(ids), dtype=torch.long) for ids in sequences]
    if not tensors or any(t.numel() == 0 for t in tensors):
        raise BadBatch("sequences: every one needs an id, and there must be one")
    tensors = [torch.cat([t[: max_length - 1], t[-1:]]) if t.numel() > max_length else t for t in tensors]
    ids = pad_sequence(tensors, batch_first=True, padding_value=pad_id)
    mask = pad_sequence([torch.ones_like(t) for t in tensors], batch_first=True)
    if strategy == "global":
        missing = max_length - ids.size(1)
        ids, mask = F.pad(ids, (0, missing), value=pad_id), F.pad(mask, (0, missing))
    return ids, mask


def padding_report(sequences, max_length, strategy, batch_size):
    """Exact fractions, turned into floats at the end."""
    if batch_size < 1:
        raise BadBatch(f"batch_size {batch_size}")
    counts = Counter()
    if not sequences:
        raise BadBatch("no sequences")
    for at in range(0, len(sequences), batch_size):
        ids, mask = truncate_and_pad(sequences[at : at + batch_size], max_length, strategy, -1)
        counts.update({"all": ids.numel(), "text": int(mask.sum())})
    truncated = Fraction(sum(len(ids) > max_length for ids in sequences), len(sequences))
    return PaddingReport(float(truncated), float(1 - Fraction(counts["text"], counts["all"])))


def errors_by_length(lengths, correct, edges):
    """A counter of (group, right)."""
    pairs = list(zip(lengths, correct))
    if len(lengths) != len(pairs) or len(correct) != len(pairs):
        raise ValueError("correct does not fit lengths")
    if pairs and min(lengths) < 1:
        raise ValueError(f"a length is {min(lengths)}")
    if list(edges) != sorted(set(edges)) or any(edge < 1 for edge in edges):
        raise ValueError(f"edges {edges} must ascend, and be positive")
    counts = Counter((bisect.bisect_left(edges, length), bool(right)) for length, right in pairs)
    found, start = [], 1
    for number, end in enumerate((*edges, None)):
        wrong = counts[number, False]
        total = wrong + counts[number, True]
        found.append(LengthGroup(start, end, total, wrong, None if total == 0 else wrong / total))
        start = None if end is None else end + 1
    return found


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

# honest: Batches by itertools.islice, rows by zip_longest, groups by filtering pairs that are left over.
"""Maximum length and padding."""

import itertools
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


def _cut(ids, most):
    yield from itertools.islice(ids, min(len(ids), most) - 1)
    yield ids[-1]


def truncate_and_pad(sequences, max_length, strategy, pad_id):
    """Transpose with zip_longest and back."""
    match strategy:
        case "global":
            columns = max_length
        case "dynamic":
            columns = 0
        case _:
            raise ValueError(f"{strategy=} is none of global and dynamic")
    if max_length <= 1:
        raise ValueError(f"{max_length=}")
    if len(sequences) == 0:
        raise ValueError("sequences: none given")
    for row, ids in enumerate(sequences):
        if len(ids) == 0:
            raise ValueError(f"sequences[{row}] has no ids")
    blank = object()
    texts = [list(_cut(ids, max_length)) for ids in sequences]
    table = list(zip(*itertools.zip_longest(*texts, range(columns), fillvalue=blank)))[: len(texts)]
    ids = [[pad_id if entry is blank else entry for entry in row] for row in table]
    mask = [[0 if entry is blank else 1 for entry in row] for row in table]
    return torch.LongTensor(ids), torch.LongTensor(mask)


def padding_report(sequences, max_length, strategy, batch_size):
    """Batches from an iterator that runs dry."""
    if not batch_size >= 1:
        raise ValueError(f"{batch_size=}")
    if not sequences:
        raise ValueError("sequences: none given")
    stream, masks = iter(sequences), []
    while batch := list(itertools.islice(stream, batch_size)):
        masks.append(truncate_and_pad(batch, max_length, strategy, 0)[1].flatten())
    return PaddingReport(
        truncation_ratio=sum(1 for ids in sequences if len(ids) > max_length) / len(sequences),
        padding_ratio=(torch.cat(masks) == 0).double().mean().item(),
    )


def errors_by_length(lengths, correct, edges):
    """Take the texts of one group out, and go on with the rest."""
    if len(lengths) != len(correct):
        raise ValueError(f"lengths: {len(lengths)}, correct: {len(correct)}")
    if (bad := next((n for n in lengths if n <= 0), None)) is not None:
        raise ValueError(f"lengths: {bad}")
    if any(b <= a for a, b in itertools.pairwise((0, *edges))):
        raise ValueError(f"edges: {edges}")
    rest, start, groups = list(zip(lengths, correct)), 1, []
    for end in edges:
        inside, rest = [p for p in rest if p[0] <= end], [p for p in rest if p[0] > end]
        groups.append((start, end, inside))
        start = end + 1
    groups.append((start, None, rest))
    for number, (start, end, inside) in enumerate(groups):
        errors = len(inside) - sum(right for _, right in inside)
        groups[number] = LengthGroup(start, end, len(inside), errors, errors / len(inside) if inside else None)
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

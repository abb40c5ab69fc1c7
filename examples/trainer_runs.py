"""Fine-tune a checkpoint with transformers.Trainer, once a seed: what trainer_imdb.py and trainer_sst2.py share.

The protocol is that of exercise 6.  Validation texts are cut from the training texts; after every epoch the model is
scored on them, the best checkpoint is kept, and only that one reads the test texts, once.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.metrics import accuracy_score, f1_score

from exercises.kit.datasets import load_texts
from exercises.kit.encoder import TINY
from exercises.kit.unavailable import Unavailable


@dataclass(frozen=True)
class Recipe:
    """What decides the numbers, the seeds apart."""

    #: A name that `exercises.kit.datasets.load_texts` knows.
    data: str
    #: How many texts to train, to validate and to test.
    sizes: tuple[int, int, int]
    #: A name of the hub, or a folder with weights and tokenizer.
    model: str
    #: Longer texts lose their end.
    max_length: int
    batch_size: int
    learning_rate: float
    epochs: int = 3
    weight_decay: float = 0.01
    #: Share of the updates during which the learning rate rises from 0; then it falls to 0 in a straight line.
    warmup: float = 0.1


#: Small enough for a CPU, without a connection.
SYNTHETIC = Recipe("synthetic", (600, 200, 400), str(TINY), 64, batch_size=16, learning_rate=2e-3, epochs=4)


@dataclass(frozen=True)
class SeedResult:
    """What one seed came to.  The test scores are those of the checkpoint with the best validation accuracy."""

    seed: int
    updates: int
    best_update: int
    validation_accuracy: float
    test_accuracy: float
    test_f1: float


#: A text as the Trainer reads it: "input_ids", "attention_mask" and "label".  Not padded.
Row = dict[str, Any]


def tokenize(tokenizer: Any, texts: Sequence[tuple[str, int]], max_length: int) -> list[Row]:
    """Ids of each text, cut but not padded: padding here would be to the longest text of all."""
    encoded = tokenizer([text for text, _ in texts], truncation=True, max_length=max_length)
    ids, masks = encoded["input_ids"], encoded["attention_mask"]
    return [
        {"input_ids": i, "attention_mask": m, "label": label}
        for i, m, (_, label) in zip(ids, masks, texts, strict=True)
    ]


def scores(prediction: Any) -> dict[str, float]:
    """Accuracy, and F1 of class 1, of an EvalPrediction: logits (n, C) and labels (n,)."""
    classes = np.argmax(prediction.predictions, axis=-1)  # (n,)
    labels = prediction.label_ids
    return {
        "accuracy": float(accuracy_score(labels, classes)),
        "f1": float(f1_score(labels, classes, zero_division=0.0)),
    }


def fine_tune(recipe: Recipe, parts: tuple[Any, Any, Any], tokenizer: Any, seed: int, folder: Path) -> SeedResult:
    """One run: train, keep the best checkpoint by validation accuracy in the folder, test it once.

    parts: train, validation, test: each a list of Rows, or a Dataset of them.
    """
    from transformers import (
        AutoModelForSequenceClassification,
        DataCollatorWithPadding,
        Trainer,
        TrainingArguments,
        set_seed,
    )

    train, validation, test = parts
    cuda = torch.cuda.is_available()
    arguments = TrainingArguments(
        output_dir=str(folder),
        seed=seed,  # order of the texts, dropout
        num_train_epochs=recipe.epochs,
        per_device_train_batch_size=recipe.batch_size,
        per_device_eval_batch_size=4 * recipe.batch_size,
        learning_rate=recipe.learning_rate,
        weight_decay=recipe.weight_decay,
        warmup_steps=recipe.warmup,  # below 1 it is a share of all updates
        lr_scheduler_type="linear",
        train_sampling_strategy="group_by_length",  # texts of like length share a batch: little padding
        bf16=cuda and torch.cuda.is_bf16_supported(),
        use_cpu=not cuda,
        eval_strategy="epoch",
        save_strategy="epoch",
        logging_strategy="epoch",
        load_best_model_at_end=True,
        metric_for_best_model="accuracy",
        save_total_limit=1,  # beside the last one, the best is kept
        save_only_model=True,
        report_to="none",
        disable_tqdm=not sys.stderr.isatty(),
    )
    set_seed(seed)  # before the model: its classification layer is new, and drawn here
    model = AutoModelForSequenceClassification.from_pretrained(recipe.model, num_labels=2)
    trainer = Trainer(
        model=model,
        args=arguments,
        train_dataset=train,
        eval_dataset=validation,
        processing_class=tokenizer,
        data_collator=DataCollatorWithPadding(tokenizer),  # each batch to its own longest text
        compute_metrics=scores,
    )
    trainer.train()
    state, tested = trainer.state, trainer.predict(test).metrics
    assert state.best_metric is not None  # there was an epoch, and its accuracy
    assert state.best_global_step is not None
    assert tested is not None
    return SeedResult(
        seed=seed,
        updates=state.global_step,
        best_update=state.best_global_step,
        validation_accuracy=state.best_metric,
        test_accuracy=tested["test_accuracy"],
        test_f1=tested["test_f1"],
    )


def run(recipe: Recipe, seeds: Sequence[int], out: Path) -> list[SeedResult]:
    """All seeds on one split; writes results.json and prints a line for each, then mean ± standard deviation.

    Raises:
        Unavailable: data, checkpoint or a package is not here; the message says what to do.
    """
    texts = load_texts(recipe.data, recipe.sizes)
    tokenizer = load_tokenizer(recipe.model)
    train, validation, test = (tokenize(tokenizer, part, recipe.max_length) for part in texts)
    results = []
    for seed in seeds:
        found = fine_tune(recipe, (train, validation, test), tokenizer, seed, out / f"seed-{seed}")
        results.append(found)
        print(
            f"seed {seed}: test accuracy {found.test_accuracy:.4f}, F1 {found.test_f1:.4f} "
            f"(validation {found.validation_accuracy:.4f}, best after {found.best_update} of {found.updates} updates)",
            flush=True,
        )
        written = {"recipe": asdict(recipe), "results": [asdict(result) for result in results]}
        (out / "results.json").write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    print(f"test accuracy {spread([r.test_accuracy for r in results])}, F1 {spread([r.test_f1 for r in results])}")
    return results


def spread(values: Sequence[float]) -> str:
    """Mean ± standard deviation (n - 1); of one value there is none."""
    if len(values) < 2:
        return f"{values[0]:.4f} (one seed: no spread)"
    return f"{statistics.fmean(values):.4f} ± {statistics.stdev(values):.4f} ({len(values)} seeds)"


def load_tokenizer(model: str) -> Any:
    """The tokenizer of the checkpoint; fails before anything is computed if the checkpoint is not to be had."""
    try:
        import accelerate  # noqa: F401  # the Trainer needs it, and would say so only after the data are read
        from transformers import AutoConfig, AutoTokenizer
        from transformers.utils import logging
    except ImportError as error:
        raise Unavailable(
            f"transformers.Trainer needs the package {error.name}, which is not installed. "
            "Install it with: pip install 'bert-exercises[real]'"
        ) from error
    logging.disable_progress_bar()
    logging.set_verbosity_error()  # it would report for each seed that the classification layer is new
    try:
        AutoConfig.from_pretrained(model)
        return AutoTokenizer.from_pretrained(model)
    except (OSError, ValueError) as error:
        reason = str(error).strip().splitlines()
        raise Unavailable(
            f"The checkpoint {model!r} could not be loaded. Without a connection to the hub, fetch it where there is "
            "one (hf download NAME --local-dir FOLDER) and give --model FOLDER; or try --data synthetic, which needs "
            f"no connection. ({reason[0] if reason else error!r})"
        ) from error


def main(description: str, recipe: Recipe, arguments: Sequence[str] | None = None) -> int:
    """The command line of both scripts; exit status 1 and a sentence if something is not there."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    parser.add_argument("--data", default=recipe.data, help='also "synthetic", "movies", or a CSV file')
    parser.add_argument("--model", help=f"checkpoint (default: {recipe.model}; for synthetic, the tiny encoder)")
    parser.add_argument("--sizes", type=int, nargs=3, metavar="N", help="texts to train, validate, test")
    parser.add_argument("--epochs", type=int)
    parser.add_argument("--learning-rate", type=float)
    parser.add_argument("--seeds", type=int, default=3, help="number of seeds: 0, 1, …")
    parser.add_argument("--out", type=Path, help="folder for checkpoints and results.json (default: results/SCRIPT)")
    given = parser.parse_args(arguments)
    if given.seeds < 1:
        parser.error("--seeds must be 1 or more")
    chosen = SYNTHETIC if given.data == "synthetic" else replace(recipe, data=given.data)
    for name in ("model", "epochs", "learning_rate"):
        if getattr(given, name) is not None:
            chosen = replace(chosen, **{name: getattr(given, name)})
    if given.sizes is not None:
        chosen = replace(chosen, sizes=tuple(given.sizes))
    out = given.out or Path("results") / f"trainer-{recipe.data}"
    out.mkdir(parents=True, exist_ok=True)
    try:
        run(chosen, range(given.seeds), out)
    except (Unavailable, ValueError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0

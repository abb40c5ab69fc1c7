"""Pretrain the tiny encoder of the exercises with the masked-language-model code of exercises 2 and 5.

    python -m solutions.pretrain_tiny --out DIR

Writes DIR/tiny, a checkpoint as `save_pretrained` writes it, and DIR/pretraining.md with its curve.  One CPU core takes
about five minutes.  exercises/kit/data/tiny and docs/results/pretraining.md were written by this command.
"""

from __future__ import annotations

import argparse
import dataclasses
import itertools
import json
import os
import platform
import random
import textwrap
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import torch
import transformers
from tqdm import tqdm
from transformers import BertConfig, BertForMaskedLM

from exercises.kit import Vocabulary
from exercises.kit import review_words as words
from exercises.kit.datasets import load_splits
from exercises.kit.encoder import load_encoder, random_encoder
from exercises.kit.reviews import reviews
from exercises.kit.tokenizer import SPECIAL_TOKENS, make_wordpiece, read_tokenizer
from solutions.ex02_mlm_loss import mlm_loss
from solutions.ex05_dynamic_masking import collate_mlm
from solutions.probes import linear_probe, polarity_probe


@dataclass(frozen=True)
class Recipe:
    """All that decides the checkpoint."""

    hidden_size: int = 64
    num_hidden_layers: int = 2
    num_attention_heads: int = 2
    intermediate_size: int = 256
    max_position_embeddings: int = 192
    texts: int = 100_000
    updates: int = 10_000
    batch_size: int = 32
    learning_rate: float = 3e-3
    warm_up: float = 0.1
    mlm_probability: float = 0.2
    #: Controls of the unlabelled reviews.  The labelled ones have no cues: no pairs, adverbs or closing sentences.
    negation: float = 0.3
    contrast: float = 0.15
    distractors: float = 0.25
    length: float = 2.2
    opinions: float = 0.8
    cues: float = 1.0
    seed: int = 0

    def write(self, count: int, seed: int) -> list[str]:
        """Unlabelled text; the labels are thrown away here."""
        return [
            text
            for text, _ in reviews(
                count,
                seed,
                negation=self.negation,
                contrast=self.contrast,
                distractors=self.distractors,
                length=self.length,
                opinions=self.opinions,
                cues=self.cues,
            )
        ]

    def model(self, vocab_size: int) -> BertForMaskedLM:
        """Untrained, without dropout: of so much text a small model remembers nothing by heart."""
        torch.manual_seed(self.seed)
        config = BertConfig(
            vocab_size=vocab_size,
            hidden_size=self.hidden_size,
            num_hidden_layers=self.num_hidden_layers,
            num_attention_heads=self.num_attention_heads,
            intermediate_size=self.intermediate_size,
            max_position_embeddings=self.max_position_embeddings,
            hidden_dropout_prob=0.0,
            attention_probs_dropout_prob=0.0,
            attn_implementation="sdpa",
        )
        return BertForMaskedLM(config)


def batches(texts: list[list[int]], batch_size: int, seed: int) -> Iterator[list[list[int]]]:
    """Batches without end, each of texts of about one length, so that little of them is padding."""
    source = random.Random(seed)
    span = 64 * batch_size  # sorted by length within it, random beyond it
    while True:
        order = source.sample(range(len(texts)), len(texts))
        for start in range(0, len(order) - span + 1, span):
            near = sorted(order[start : start + span], key=lambda i: len(texts[i]))
            groups = [near[i : i + batch_size] for i in range(0, span, batch_size)]
            source.shuffle(groups)
            yield from ([texts[i] for i in group] for group in groups)


def evaluate(model: BertForMaskedLM, texts: list[list[int]], vocabulary: Vocabulary) -> tuple[float, float]:
    """Masked-language-model loss in nats, and the share of the hidden tokens that come first, on texts held back."""
    generator = torch.Generator().manual_seed(0)
    total, right, count = 0.0, 0, 0
    with torch.no_grad():
        for start in range(0, len(texts), 64):
            batch = collate_mlm(texts[start : start + 64], vocabulary, generator=generator)
            logits = model(input_ids=batch.input_ids, attention_mask=batch.attention_mask).logits
            targets = int(batch.selected.sum())
            total += targets * mlm_loss(logits, batch.labels).item()
            right += int((logits.argmax(-1) == batch.labels).sum())
            count += targets
    return total / count, right / count


def pretrain(recipe: Recipe, folder: Path) -> list[dict[str, float]]:
    """Train, save the checkpoint in the folder, return the curve."""
    texts, held_back = recipe.write(recipe.texts, seed=11), recipe.write(500, seed=12)
    folder.mkdir(parents=True, exist_ok=True)
    wordpiece = make_wordpiece([*texts, *words.POSITIVE, *words.NEGATIVE])
    wordpiece.save(str(folder / "tokenizer.json"))
    tokenizer = read_tokenizer(folder)
    vocabulary = tokenizer.vocabulary
    longest = recipe.max_position_embeddings
    corpus = [encoding.ids[:longest] for encoding in wordpiece.encode_batch(texts)]
    held_back_ids = [encoding.ids[:longest] for encoding in wordpiece.encode_batch(held_back)]
    positive, negative = ([wordpiece.token_to_id(word) for word in side] for side in (words.POSITIVE, words.NEGATIVE))

    model = recipe.model(vocabulary.size)
    matrices = [parameter for parameter in model.parameters() if parameter.ndim > 1]
    vectors = [parameter for parameter in model.parameters() if parameter.ndim == 1]
    groups = [{"params": matrices, "weight_decay": 0.01}, {"params": vectors, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=recipe.learning_rate, betas=(0.9, 0.98))
    warm_up = recipe.warm_up * recipe.updates
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / warm_up, (recipe.updates - step) / (recipe.updates - warm_up))
    )
    generator = torch.Generator().manual_seed(recipe.seed)
    curve, started = [], time.process_time()
    chosen = itertools.islice(batches(corpus, recipe.batch_size, recipe.seed), recipe.updates)
    progress = tqdm(chosen, total=recipe.updates, unit="update")
    for update, group in enumerate(progress, start=1):
        batch = collate_mlm(group, vocabulary, mlm_probability=recipe.mlm_probability, generator=generator)
        logits = model(input_ids=batch.input_ids, attention_mask=batch.attention_mask).logits
        loss = mlm_loss(logits, batch.labels)
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if update % 500 == 0 or update == recipe.updates:
            model.eval()
            validation_loss, masked = evaluate(model, held_back_ids, vocabulary)
            polarity = polarity_probe(model, held_back_ids, positive, negative, vocabulary.mask_id)
            model.train()
            seconds = round(time.process_time() - started, 1)
            curve.append(
                {
                    "update": update,
                    "cpu_seconds": seconds,
                    "train_loss": round(loss.item(), 4),
                    "validation_loss": round(validation_loss, 4),
                    "masked_accuracy": round(masked, 4),
                    "polarity_accuracy": round(polarity, 4),
                }
            )
            progress.set_postfix(loss=f"{validation_loss:.3f}", polarity=f"{polarity:.3f}")
    save(model, folder)
    return curve


def save(model: BertForMaskedLM, folder: Path) -> None:
    """The encoder without the head, with the dropout that BERT is fine-tuned with."""
    model.bert.config.hidden_dropout_prob = model.bert.config.attention_probs_dropout_prob = 0.1
    model.bert.config.architectures = ["BertModel"]
    model.bert.save_pretrained(folder)
    names = dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), SPECIAL_TOKENS, strict=True))
    settings = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": model.config.max_position_embeddings,
        **names,
    }
    (folder / "model.safetensors").chmod(0o644)  # written for its owner alone
    (folder / "tokenizer_config.json").write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")


def probe_table(folder: Path) -> str:
    """Markdown: accuracy of a linear probe on the frozen encoder, trained and untrained, by pooling; five seeds."""
    lines = ["| encoder | mean pooling | [CLS] |", "| --- | --- | --- |"]
    trained = load_encoder(str(folder))
    for name in ("pretrained", "random weights"):
        cells = []
        for pooling in ("mean", "cls"):
            scores = []
            for seed in range(5):
                encoder = trained.encoder if name == "pretrained" else random_encoder(seed, folder).encoder
                splits = load_splits("synthetic", trained.tokenizer, (1000, 600, 1500), seed=2000 + seed)
                scores.append(linear_probe(encoder, splits, pooling))
            mean, sd = torch.tensor(scores).mean().item(), torch.tensor(scores).std().item()
            cells.append(f"{mean:.3f} ± {sd:.3f}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def draw(curve: list[dict[str, float]], path: Path) -> None:
    """The curve as a picture: the loss falls long before the encoder knows what is praise and what is blame."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    updates = [point["update"] for point in curve]
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(8, 3), layout="constrained")
    left.plot(updates, [point["validation_loss"] for point in curve], color="tab:blue")
    left.set(xlabel="update", ylabel="MLM loss, validation (nats)", ylim=(0, None))
    right.plot(updates, [point["masked_accuracy"] for point in curve], color="tab:blue", label="hidden token")
    right.plot(updates, [point["polarity_accuracy"] for point in curve], color="tab:orange", label="polarity")
    right.axhline(0.5, color="grey", linewidth=0.8, linestyle=":")
    right.set(xlabel="update", ylabel="accuracy, validation", ylim=(0, 1))
    right.legend(loc="lower right")
    figure.savefig(path, dpi=90)
    pyplot.close(figure)


def page(recipe: Recipe, curve: list[dict[str, float]], probes: str, folder: Path) -> str:
    """docs/results/pretraining.md."""
    parameters = sum(parameter.numel() for parameter in load_encoder(str(folder)).encoder.parameters())
    sizes = {path.name: path.stat().st_size for path in sorted(folder.iterdir())}
    rows = [
        f"| {point['update']} | {point['cpu_seconds']:.0f} | {point['validation_loss']:.3f} | "
        f"{point['masked_accuracy']:.3f} | {point['polarity_accuracy']:.3f} |"
        for point in curve
        if point["update"] % 1000 == 0
    ]
    listed = ", ".join(f"{name} {value}" for name, value in dataclasses.asdict(recipe).items())
    settings = textwrap.fill(listed, 118)
    machine = (
        f"Run on {platform.system()} {platform.machine()}, {os.cpu_count()} cores, 1 thread; "
        f"Python {platform.python_version()}, torch {torch.__version__}, transformers {transformers.__version__}."
    )
    nl = "\n"
    return f"""# Pretraining of the tiny encoder

    OMP_NUM_THREADS=1 python -m solutions.pretrain_tiny --out DIR

wrote DIR/tiny ({parameters:,} parameters), which is `exercises/kit/data/tiny`, this page and its curve. The code is
that of exercises 2 (`mlm_loss`) and 5 (`collate_mlm`); no label is used.

{settings}.

{textwrap.fill(machine, 118)}

![Loss and accuracy by update](pretraining_curve.png)

| update | CPU s | MLM loss | hidden token first | polarity |
| --- | --- | --- | --- | --- |
{nl.join(rows)}

All on 500 texts held back, 15% of the tokens hidden. *Polarity*: a praising or blaming word of each text is hidden;
the share of texts in which its side gets more probability than the other. Chance is 0.5, and 1.0 is out of reach,
since a text with one opinion does not tell its side once the word is hidden. The loss alone does not say whether the
encoder is of use: compare the two in the first rows.

## Linear probe

Logistic regression on standardised features of the frozen encoder, trained to convergence, C chosen on validation;
synthetic reviews, 1000 training, 600 validation and 1500 test texts, mean ± sd over 5 seeds (each with its own texts;
for random weights also its own weights).

{probes}

Nothing in masked-language-model training asks [CLS] to hold a summary, hence the exercises pool by the mean; the right
column says what a frozen [CLS] is worth here. Fine-tuning can use either.

## What this does not show

One pretraining run with one seed. The text is from a grammar: it says nothing about how much of English a model of this
size would learn.

Committed files: {", ".join(f"{name} {size:,} B" for name, size in sizes.items())}; {sum(sizes.values()):,} B in all.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="folder to write to")
    out = parser.parse_args().out
    torch.set_num_threads(1)  # the number of threads changes the last bits, and they add up
    recipe = Recipe()
    curve = pretrain(recipe, out / "tiny")
    (out / "pretraining_curve.jsonl").write_text("".join(json.dumps(point) + "\n" for point in curve), encoding="utf-8")
    draw(curve, out / "pretraining_curve.png")
    (out / "pretraining.md").write_text(page(recipe, curve, probe_table(out / "tiny"), out / "tiny"), encoding="utf-8")
    print(f"Wrote {out / 'tiny'} and {out / 'pretraining.md'}")


if __name__ == "__main__":
    main()

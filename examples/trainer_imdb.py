"""BERT on IMDb (25,000 long film reviews to train, 25,000 to test), with transformers.Trainer.

    python examples/trainer_imdb.py                    # fetches data and checkpoint; meant for a GPU
    python examples/trainer_imdb.py --data synthetic   # offline, about a minute on a CPU

IMDb has a training and a test part and no validation part.  Choosing the epoch by the test part would make it one, so
4,000 of the training texts are held back for that.  Some reviews occur twice, or in both parts: each is used once.
Many reviews are longer than the 512 tokens that BERT can read; what is lost is their end, where the verdict often
stands.
"""

from __future__ import annotations

import sys

from trainer_runs import Recipe, main

IMDB = Recipe(
    data="imdb",
    sizes=(20_000, 4_000, 24_000),
    model="google-bert/bert-base-uncased",
    max_length=512,
    batch_size=16,
    learning_rate=2e-5,
)

if __name__ == "__main__":
    sys.exit(main("Fine-tune BERT on IMDb, or on synthetic reviews, over several seeds.", IMDB))

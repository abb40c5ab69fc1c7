"""What a frozen encoder knows: the polarity of a hidden word, and a text's label by a linear layer on its features."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from torch import nn

from exercises.kit import Classifier, Example, Splits, collate

#: Inverse strengths of regularisation that a linear model may choose from on the validation split.
STRENGTHS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


def frozen_features(encoder: nn.Module, examples: Sequence[Example], pooling: str = "mean") -> np.ndarray:
    """What the encoder makes of each text, (n, d), without dropout."""
    model = Classifier(encoder, 2, pooling).eval()
    rows = []
    with torch.no_grad():
        for start in range(0, len(examples), 64):
            batch = collate(examples[start : start + 64])
            rows.append(model.features(batch.input_ids, batch.attention_mask).numpy())
    return np.concatenate(rows)


def linear_probe(encoder: nn.Module, splits: Splits, pooling: str = "mean") -> float:
    """Test accuracy of logistic regression, trained to convergence, on standardised frozen features."""
    features = [frozen_features(encoder, part, pooling) for part in splits]
    labels = [np.array([example.label for example in part]) for part in splits]
    tried = []
    for strength in STRENGTHS:
        probe = make_pipeline(StandardScaler(), LogisticRegression(C=strength, max_iter=10_000))
        probe.fit(features[0], labels[0])
        tried.append((probe.score(features[1], labels[1]), probe))
    _, best = max(tried, key=lambda pair: pair[0])
    return float(best.score(features[2], labels[2]))


def polarity_probe(
    model: nn.Module, texts: Sequence[list[int]], positive: Sequence[int], negative: Sequence[int], mask_id: int
) -> float:
    """Hide one polar word of each text: share of them whose side, praise or blame, gets more of the probability.

    model: gives `.logits` (m, T, V) of the masked-language-model head.  Chance is 0.5.  1.0 is out of reach: nothing
    but the hidden word tells the side of a text with a single opinion.
    """
    polar = {*positive, *negative}
    right = count = 0
    with torch.no_grad():
        for ids in texts:
            places = [place for place, i in enumerate(ids) if i in polar]
            if not places:
                continue
            place = places[len(ids) % len(places)]  # any of them, without a random draw
            hidden = torch.tensor([[*ids[:place], mask_id, *ids[place + 1 :]]])  # (1, T)
            probabilities = model(input_ids=hidden).logits[0, place].softmax(-1)  # (V,)
            praise = probabilities[list(positive)].sum() > probabilities[list(negative)].sum()
            right += bool(praise) == (ids[place] in set(positive))
            count += 1
    return right / count

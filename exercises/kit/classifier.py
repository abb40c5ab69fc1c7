"""A text classifier: an encoder, one vector for each text, and a linear layer."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn


class Classifier(nn.Module):
    """Logits z = W h + b of C classes, where h is one vector of the encoder's output for each text.

    encoder: a module that is called as encoder(input_ids=…, attention_mask=…), gives `.last_hidden_state` (m, T, d) and
        has `.config.hidden_size`; transformers.BertModel is one.
    num_labels: C.
    pooling: "mean" takes the mean over the tokens that are not padding, "cls" the vector at position 0.
    dropout: probability of dropping an element of h while training.

    The attributes `encoder` and `classifier` (an nn.Linear(d, C)) are the two parts that are frozen or trained.

    Raises:
        ValueError: a pooling that is neither.
    """

    def __init__(self, encoder: nn.Module, num_labels: int, pooling: str = "mean", dropout: float = 0.1) -> None:
        super().__init__()
        if pooling not in ("mean", "cls"):
            raise ValueError(f'pooling must be "mean" or "cls", not {pooling!r}')
        self.encoder = encoder
        self.pooling = pooling
        self.dropout = nn.Dropout(dropout)
        config: Any = encoder.config
        self.classifier = nn.Linear(config.hidden_size, num_labels)

    def forward(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """Logits (m, C) of a batch of ids (m, T).

        attention_mask: (m, T), 1 at tokens and 0 at padding; None takes every position for a token.
        """
        return self.classifier(self.dropout(self.features(input_ids, attention_mask)))  # (m, C)

    def features(self, input_ids: Tensor, attention_mask: Tensor | None = None) -> Tensor:
        """One vector h for each text, (m, d): what the classification layer gets, before dropout."""
        if attention_mask is None:
            attention_mask = torch.ones_like(input_ids)
        hidden = self.encoder(input_ids=input_ids, attention_mask=attention_mask).last_hidden_state  # (m, T, d)
        if self.pooling == "cls":
            return hidden[:, 0]
        weight = attention_mask.unsqueeze(-1).to(hidden.dtype)  # (m, T, 1)
        return (hidden * weight).sum(1) / weight.sum(1).clamp(min=1)  # (m, d)

# honest: nn.Softmax and modules of its own behind the functions
"""Exercise 4: shapes, memory and attention masks."""

import math
from typing import NamedTuple

from torch import Tensor
from torch import nn


class BertShapes(NamedTuple):
    """Shapes and counts of one BERT classifier."""

    input_ids: tuple[int, ...]
    attention_mask: tuple[int, ...]
    encoder_output: tuple[int, ...]
    query_per_head: tuple[int, ...]
    attention_scores: tuple[int, ...]
    logits: tuple[int, ...]
    score_elements: int
    score_bytes: int
    classifier_parameters: int


def bert_shapes(
    batch_size: int, sequence_length: int, hidden_size: int, num_heads: int, num_labels: int, bytes_per_element: int = 4
) -> BertShapes:
    return ShapeCalculator(batch_size, sequence_length, hidden_size, num_heads, num_labels, bytes_per_element)()


class ShapeCalculator:
    def __init__(self, *sizes):
        names = BERT_ARGUMENTS
        for name, size in zip(names, sizes):
            if isinstance(size, bool) or not isinstance(size, int):
                raise ValueError(f"{name} has type {type(size).__name__} ({size}), int is needed")
            if size <= 0:
                raise ValueError(f"{name} = {size}, a positive number is needed")
            setattr(self, name, size)
        if self.hidden_size % self.num_heads != 0:
            raise ValueError(f"hidden_size = {self.hidden_size} with num_heads = {self.num_heads}: not divisible")

    @property
    def scores(self):
        return self.batch_size, self.num_heads, self.sequence_length, self.sequence_length

    def __call__(self):
        rows = (self.batch_size, self.sequence_length)
        elements = math.prod(self.scores)
        return BertShapes._make(
            [rows, rows, rows + (self.hidden_size,), rows + (self.hidden_size // self.num_heads,), self.scores,
             (self.batch_size, self.num_labels), elements, elements * self.bytes_per_element,
             self.num_labels * (self.hidden_size + 1)]
        )


BERT_ARGUMENTS = (
    "batch_size", "sequence_length", "hidden_size", "num_heads", "num_labels", "bytes_per_element",
)


class ScaledDotProduct(nn.Module):
    def forward(self, query, key):
        if query.shape[-1] != key.shape[-1]:
            raise ValueError(f"query ({query.shape[-1]}) and key ({key.shape[-1]}) have different widths")
        return query @ key.mT / math.sqrt(query.shape[-1])


def attention_scores(query: Tensor, key: Tensor) -> Tensor:
    return ScaledDotProduct()(query, key)


class MaskedSoftmax(nn.Module):
    def __init__(self):
        super().__init__()
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, scores, mask):
        self.check(scores, mask)
        visible = (mask == 1).expand_as(scores)
        empty = ~visible.any(dim=-1, keepdim=True)
        x = scores.masked_fill(~visible, -math.inf).masked_fill(empty, 0.0)
        return self.softmax(x).masked_fill(~visible, 0.0)

    @staticmethod
    def check(scores, mask):
        try:
            mask.expand(scores.shape)
        except RuntimeError as error:
            raise ValueError(f"mask does not broadcast to scores: {tuple(mask.shape)}, {tuple(scores.shape)}") from error
        values = set(mask.flatten().tolist())
        if not values <= {0, 1}:
            raise ValueError(f"mask holds {sorted(values - {0, 1})}")


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    return MaskedSoftmax()(scores, mask)

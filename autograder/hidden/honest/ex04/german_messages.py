# honest: error messages in German that still name parameter and value
"""Exercise 4: shapes, memory and attention masks."""

from typing import NamedTuple

import torch
from torch import Tensor


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
    angaben = {
        "batch_size": batch_size, "sequence_length": sequence_length, "hidden_size": hidden_size,
        "num_heads": num_heads, "num_labels": num_labels, "bytes_per_element": bytes_per_element,
    }
    for name, wert in angaben.items():
        if isinstance(wert, bool) or not isinstance(wert, int):
            raise ValueError(f"{name} muss eine ganze Zahl sein, nicht {wert!r}")
        if wert <= 0:
            raise ValueError(f"{name} muss positiv sein, nicht {wert}")
    if hidden_size % num_heads:
        raise ValueError(f"hidden_size ({hidden_size}) ist nicht durch num_heads ({num_heads}) teilbar")
    anzahl = batch_size * num_heads * sequence_length * sequence_length
    return BertShapes(
        (batch_size, sequence_length), (batch_size, sequence_length), (batch_size, sequence_length, hidden_size),
        (batch_size, sequence_length, hidden_size // num_heads),
        (batch_size, num_heads, sequence_length, sequence_length), (batch_size, num_labels),
        anzahl, anzahl * bytes_per_element, (hidden_size + 1) * num_labels,
    )


def attention_scores(query: Tensor, key: Tensor) -> Tensor:
    if query.shape[-1] != key.shape[-1]:
        raise ValueError(f"query und key passen nicht zusammen: {query.shape[-1]} und {key.shape[-1]}")
    return torch.matmul(query, key.transpose(-2, -1)).mul(query.shape[-1] ** -0.5)


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Gewichte von 0 an verdeckten Stellen."""
    passend = mask.dim() <= scores.dim() and all(
        m in (1, s) for m, s in zip(mask.shape[::-1], scores.shape[::-1])
    )
    if not passend:
        raise ValueError(f"mask {tuple(mask.shape)} passt nicht zu scores {tuple(scores.shape)}")
    fremd = mask[(mask != 0) & (mask != 1)]
    if fremd.numel():
        raise ValueError(f"mask enthält {fremd[0].item()} statt nur 0 und 1")
    sichtbar = mask == 1
    leer = ~sichtbar.any(dim=-1, keepdim=True)
    x = torch.where(sichtbar, scores, -torch.inf)
    x = torch.where(leer, 0.0, x)
    return torch.where(sichtbar, x.softmax(dim=-1), 0.0)

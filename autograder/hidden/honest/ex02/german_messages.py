# honest: error messages in German that still name parameter and value
"""Exercise 2: the masked-language-model loss."""

import math

import torch
from torch import Tensor


def mean_nll(probabilities) -> float:
    """Mittlere negative Log-Likelihood."""
    werte = [float(w) for w in probabilities]
    if not werte:
        raise ValueError("probabilities ist leer")
    for w in werte:
        if not 0 < w <= 1:
            raise ValueError(f"probabilities enthält {w}, erlaubt ist nur (0, 1]")
    return -sum(math.log(w) for w in werte) / len(werte)


def stable_log_softmax(logits: Tensor) -> Tensor:
    """Sortiert zuerst: das letzte Element ist das größte, die Summe beginnt beim kleinsten."""
    x = logits.double()
    geordnet = x.sort(dim=-1).values
    groesstes = geordnet[..., -1:]
    log_summe = (geordnet - groesstes).exp().sum(dim=-1, keepdim=True).log()
    return (x - groesstes - log_summe).to(logits.dtype)


def mlm_loss(logits: Tensor, labels: Tensor, ignore_index: int = -100) -> Tensor:
    if logits.dim() != 3 or labels.dim() != 2 or logits.shape[:2] != labels.shape:
        raise ValueError(f"logits {tuple(logits.shape)} und labels {tuple(labels.shape)} passen nicht zusammen")
    ziel = labels != ignore_index
    if not ziel.any():
        raise ValueError("labels enthält kein Ziel")
    ids = labels[ziel]
    falsch = ids[(ids < 0) | (ids >= logits.shape[-1])]
    if len(falsch):
        raise ValueError(f"labels enthält {falsch[0].item()}; das Vokabular hat {logits.shape[-1]} Einträge")
    log_p = stable_log_softmax(logits[ziel].to(torch.promote_types(logits.dtype, torch.float32)))
    return log_p.gather(1, ids[:, None]).mean().neg()

# honest: German messages in an own subclass of ValueError, raised by a class method
"""Übung 3 mit eigener Fehlerklasse."""

import math

import torch


class Eingabefehler(ValueError):
    @classmethod
    def werfen(cls, name, wert, grund):
        raise cls(f"{name} = {wert}: {grund}")


def copy_logits(input_ids, vocab_size, scale):
    flach = input_ids.reshape(-1)
    for nummer in flach.unique().tolist():
        if not 0 <= nummer < vocab_size:
            Eingabefehler.werfen("input_ids", nummer, f"liegt nicht im Vokabular der Größe {vocab_size}")
    logits = torch.zeros(flach.numel() * vocab_size, dtype=torch.float32, device=input_ids.device)
    logits[torch.arange(flach.numel(), device=input_ids.device) * vocab_size + flach] = float(scale)
    return logits.reshape(*input_ids.shape, vocab_size)


def copy_loss(input_ids, targets, selected, vocab_size, scale):
    for name, tensor in (("targets", targets), ("selected", selected)):
        if tensor.shape != input_ids.shape:
            Eingabefehler.werfen(name, tuple(tensor.shape), f"erwartet wird die Form {tuple(input_ids.shape)}")
    if not selected.any():
        Eingabefehler.werfen("selected", "überall False", "keine Stelle gewählt")
    treffer = torch.masked_select(input_ids == targets, selected).double()
    partition = torch.logaddexp(
        torch.tensor(float(scale), dtype=torch.float64, device=treffer.device),
        torch.tensor(float(vocab_size - 1), dtype=torch.float64, device=treffer.device).log(),
    )
    return torch.mean(partition - treffer * scale).item()


def match_probability(mask_rate, random_rate, keep_rate, n_ordinary):
    raten = {"mask_rate": mask_rate, "random_rate": random_rate, "keep_rate": keep_rate}
    for name, rate in raten.items():
        if not (rate >= 0 and rate <= 1):
            Eingabefehler.werfen(name, rate, "keine Rate zwischen 0 und 1")
    if abs(sum(raten.values()) - 1) > 1e-9:
        Eingabefehler.werfen(" + ".join(raten), " + ".join(map(str, raten.values())), "die Summe ist nicht 1")
    if n_ordinary < 1:
        Eingabefehler.werfen("n_ordinary", n_ordinary, "mindestens 1 wird gebraucht")
    return keep_rate + random_rate / n_ordinary


def context_free_floor(match_probability, vocab_size):
    if not (match_probability >= 0 and match_probability <= 1):
        Eingabefehler.werfen("match_probability", match_probability, "keine Wahrscheinlichkeit")
    if vocab_size < 2:
        Eingabefehler.werfen("vocab_size", vocab_size, "mindestens 2 werden gebraucht")
    q = match_probability
    if q in (0, 1):
        return (1 - q) * math.log(vocab_size - 1)
    # the best scale is ln(q (V - 1) / (1 - q)); the loss there
    bester = math.log(q) + math.log(vocab_size - 1) - math.log1p(-q)
    return (1 - q) * bester + math.log1p((1 - q) / q)

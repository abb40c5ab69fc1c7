# honest: Messages in German, raised as a subclass of ValueError.
"""Maskierung für ein maskiertes Sprachmodell."""

import torch

from exercises.kit import MaskedBatch


class Eingabefehler(ValueError):
    """Eine Eingabe, mit der sich nichts anfangen lässt."""


def verlange(bedingung, meldung):
    """Wirft die Meldung, wenn die Bedingung nicht gilt."""
    if not bedingung:
        raise Eingabefehler(meldung)


def mask_tokens(
    input_ids,
    attention_mask,
    special_tokens_mask,
    *,
    mask_token_id,
    ordinary_ids,
    mlm_probability=0.15,
    mask_rate=0.8,
    random_rate=0.1,
    ignore_index=-100,
    generator=None,
):
    """Wählt Positionen aus und verfremdet sie."""
    masken = {"attention_mask": attention_mask, "special_tokens_mask": special_tokens_mask}
    verlange(input_ids.ndim == 2, f"input_ids hat {input_ids.ndim} statt 2 Achsen")
    for name, maske in masken.items():
        verlange(maske.ndim == 2, f"{name} hat {maske.ndim} statt 2 Achsen")
        verlange(
            maske.shape == input_ids.shape,
            f"{name} hat die Form {tuple(maske.shape)}, input_ids aber {tuple(input_ids.shape)}",
        )
    verlange(0 < mlm_probability <= 1, f"mlm_probability liegt nicht in (0, 1]: {mlm_probability}")
    verlange(mask_rate >= 0, f"mask_rate ist negativ: {mask_rate}")
    verlange(random_rate >= 0, f"random_rate ist negativ: {random_rate}")
    verlange(
        mask_rate + random_rate <= 1 + 1e-9,
        f"mask_rate ({mask_rate}) und random_rate ({random_rate}) ergeben zusammen mehr als 1",
    )
    verlange(random_rate == 0 or ordinary_ids.numel() > 0, f"ordinary_ids ist leer, random_rate aber {random_rate}")
    kandidaten = (attention_mask != 0) & (special_tokens_mask == 0)
    verlange(kandidaten.any(), "attention_mask und special_tokens_mask lassen keinen Kandidaten übrig")

    def zufall():
        return torch.rand(input_ids.shape, generator=generator, device=input_ids.device)

    gewählt = kandidaten & (zufall() < mlm_probability)
    los = zufall().masked_fill(~kandidaten, -1)
    gewinner = torch.arange(los.shape[1], device=los.device) == los.argmax(1, keepdim=True)
    gewählt |= gewinner & kandidaten & ~gewählt.any(1, keepdim=True)
    schicksal = zufall()
    ersetzt = input_ids.masked_fill(gewählt & (schicksal < mask_rate), mask_token_id)
    tausch = gewählt & (schicksal >= mask_rate) & (schicksal < mask_rate + random_rate)
    anzahl = int(tausch.sum())
    if anzahl > 0:
        griff = torch.randint(ordinary_ids.numel(), (anzahl,), generator=generator, device=input_ids.device)
        ersetzt = ersetzt.masked_scatter(tausch, ordinary_ids[griff])
    return MaskedBatch(ersetzt, input_ids.masked_fill(~gewählt, ignore_index), attention_mask, gewählt)


def collate_mlm(examples, vocabulary, *, mlm_probability=0.15, ignore_index=-100, generator=None):
    """Füllt rechts auf und maskiert."""
    verlange(len(examples) > 0, "examples ist leer")
    for nummer, beispiel in enumerate(examples):
        verlange(len(beispiel) > 0, f"examples[{nummer}] ist leer")
        for kennung in beispiel:
            verlange(0 <= kennung < vocabulary.size, f"examples[{nummer}] enthält {kennung}, vocabulary kennt sie nicht")
    länge = max(len(beispiel) for beispiel in examples)
    ids = torch.full((len(examples), länge), vocabulary.pad_id)
    aufmerksamkeit = torch.zeros(ids.shape, dtype=torch.bool)
    for zeile, beispiel in enumerate(examples):
        ids[zeile, : len(beispiel)] = torch.tensor(beispiel)
        aufmerksamkeit[zeile, : len(beispiel)] = True
    besonders = torch.isin(ids, vocabulary.special_ids)
    return mask_tokens(
        ids, aufmerksamkeit, besonders, mask_token_id=vocabulary.mask_id, ordinary_ids=vocabulary.ordinary_ids,
        mlm_probability=mlm_probability, ignore_index=ignore_index, generator=generator,
    )

# honest: The work is done by a callable dataclass; the two functions only make one.
"""A masker object behind the two functions."""

from dataclasses import dataclass

import torch

from exercises.kit import MaskedBatch


@dataclass
class Masker:
    """Holds the settings, refuses bad ones, draws masks."""

    mask_token_id: int
    ordinary_ids: torch.Tensor
    mlm_probability: float = 0.15
    mask_rate: float = 0.8
    random_rate: float = 0.1
    ignore_index: int = -100
    generator: torch.Generator | None = None

    def __post_init__(self):
        if not (self.mlm_probability > 0 and self.mlm_probability <= 1):
            raise ValueError(f"mlm_probability={self.mlm_probability} is not in (0, 1]")
        for name in ("mask_rate", "random_rate"):
            if not getattr(self, name) >= 0:
                raise ValueError(f"{name}={getattr(self, name)} is negative")
        if self.mask_rate + self.random_rate > 1 + 1e-9:
            raise ValueError(f"mask_rate={self.mask_rate} + random_rate={self.random_rate} is more than 1")
        if self.random_rate > 0 and self.ordinary_ids.numel() == 0:
            raise ValueError(f"random_rate={self.random_rate} needs ordinary_ids, there are none")

    def __call__(self, input_ids, attention_mask, special_tokens_mask):
        given = {
            "input_ids": input_ids, "attention_mask": attention_mask, "special_tokens_mask": special_tokens_mask
        }
        shapes = {name: tuple(tensor.shape) for name, tensor in given.items()}
        if any(len(shape) != 2 for shape in shapes.values()) or len(set(shapes.values())) != 1:
            raise ValueError(f"expected three equal (m, T) shapes, got {shapes}")
        candidates = attention_mask.ne(0) & special_tokens_mask.eq(0)
        if not candidates.any():
            raise ValueError("no candidates: check attention_mask and special_tokens_mask")
        selected = self.select(candidates)
        return MaskedBatch(
            input_ids=self.corrupt(input_ids, selected),
            labels=torch.where(selected, input_ids, self.ignore_index),
            attention_mask=attention_mask,
            selected=selected,
        )

    def uniform(self, like):
        return torch.rand(like.shape, generator=self.generator, device=like.device)

    def select(self, candidates):
        selected = candidates & (self.uniform(candidates) < self.mlm_probability)
        tickets = self.uniform(candidates) * candidates - (~candidates).float()
        best = tickets == tickets.amax(dim=1, keepdim=True)
        first_best = best & (best.cumsum(dim=1) == 1)
        return torch.where(selected.any(dim=1, keepdim=True), selected, first_best & candidates)

    def corrupt(self, input_ids, selected):
        fate = self.uniform(input_ids)
        result = input_ids.clone()
        result[selected & (fate < self.mask_rate)] = self.mask_token_id
        places = selected & (fate >= self.mask_rate) & (fate < self.mask_rate + self.random_rate)
        number = int(places.sum())
        if number:
            size = len(self.ordinary_ids)
            pick = torch.randint(0, size, (number,), generator=self.generator, device=input_ids.device)
            result[places] = self.ordinary_ids[pick]
        return result


def mask_tokens(
    input_ids, attention_mask, special_tokens_mask, *, mask_token_id, ordinary_ids, mlm_probability=0.15,
    mask_rate=0.8, random_rate=0.1, ignore_index=-100, generator=None,
):
    """One Masker, used once."""
    masker = Masker(mask_token_id, ordinary_ids, mlm_probability, mask_rate, random_rate, ignore_index, generator)
    return masker(input_ids, attention_mask, special_tokens_mask)


def collate_mlm(examples, vocabulary, *, mlm_probability=0.15, ignore_index=-100, generator=None):
    """Pad, then the same Masker."""
    if not examples:
        raise ValueError("examples must hold at least one example")
    if not all(examples):
        raise ValueError(f"examples has an empty one: {[len(example) for example in examples]}")
    bad = [token for example in examples for token in example if token < 0 or token >= vocabulary.size]
    if bad:
        raise ValueError(f"examples: {bad[0]} is no id of a vocabulary of {vocabulary.size}")
    longest = max(map(len, examples))
    pad = vocabulary.pad_id
    ids = torch.tensor([example + [pad] * (longest - len(example)) for example in examples])
    lengths = torch.tensor([[len(example)] for example in examples])
    attention_mask = torch.arange(longest) < lengths
    special = (ids[..., None] == vocabulary.special_ids).any(dim=-1)
    masker = Masker(
        vocabulary.mask_id, vocabulary.ordinary_ids, mlm_probability, ignore_index=ignore_index, generator=generator
    )
    return masker(ids, attention_mask, special)

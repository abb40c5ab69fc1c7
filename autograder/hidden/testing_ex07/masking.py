"""Right implementations of `mask_tokens`: four families that choose and corrupt by different means."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from exercises.kit import MaskedBatch

#: No call may ask for more positions than that.
MOST_POSITIONS = 1_000_000


@dataclass
class Request:
    """The arguments of one call."""

    input_ids: torch.Tensor
    attention_mask: torch.Tensor
    special_tokens_mask: torch.Tensor
    mask_token_id: int
    ordinary_ids: torch.Tensor
    mlm_probability: float
    mask_rate: float
    random_rate: float
    ignore_index: int
    generator: torch.Generator | None


class Masking:
    """`mask_tokens` in steps, of which a family or a fault replaces some.

    salt: decides the stream that an instance makes of a generator's state, so that no output is known beforehand.
    """

    def __init__(self, salt: int) -> None:
        self.salt = salt

    def __call__(
        self,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        special_tokens_mask: torch.Tensor,
        *,
        mask_token_id: int,
        ordinary_ids: torch.Tensor,
        mlm_probability: float = 0.15,
        mask_rate: float = 0.8,
        random_rate: float = 0.1,
        ignore_index: int = -100,
        generator: torch.Generator | None = None,
    ) -> MaskedBatch:
        if max(t.numel() for t in (input_ids, attention_mask, special_tokens_mask, ordinary_ids)) > MOST_POSITIONS:
            raise MemoryError(f"no call may ask for more than {MOST_POSITIONS:,} positions")
        request = Request(
            input_ids,
            attention_mask,
            special_tokens_mask,
            mask_token_id,
            ordinary_ids,
            mlm_probability,
            mask_rate,
            random_rate,
            ignore_index,
            generator,
        )
        self.refuse(request)
        return self.answer(request)

    def answer(self, request: Request) -> MaskedBatch:
        source = self.source(request.generator)
        selected = self.select(self.candidates(request), request.mlm_probability, source)
        corrupted = self.corrupt(request, selected, source)
        labels = self.labels(request, selected, corrupted)
        return MaskedBatch(corrupted, labels, request.attention_mask, selected)

    def refuse(self, request: Request) -> None:
        self.refuse_shapes(request)
        self.refuse_settings(request)
        self.refuse_nothing_to_do(request)

    def refuse_shapes(self, request: Request) -> None:
        for name in ("input_ids", "attention_mask", "special_tokens_mask"):
            shape = getattr(request, name).shape
            if len(shape) != 2 or shape != request.input_ids.shape:
                raise ValueError(f"{name} has the shape {tuple(shape)}: all three must be (m, T)")

    def refuse_settings(self, request: Request) -> None:
        if not 0 < request.mlm_probability <= 1:
            raise ValueError(f"mlm_probability must lie in (0, 1], got {request.mlm_probability}")
        if not request.mask_rate >= 0 or not request.random_rate >= 0:
            raise ValueError(
                f"mask_rate {request.mask_rate} and random_rate {request.random_rate} must not be negative"
            )
        if request.mask_rate + request.random_rate > 1 + 1e-9:
            raise ValueError(f"mask_rate {request.mask_rate} + random_rate {request.random_rate} is over 1")
        if request.random_rate > 0 and request.ordinary_ids.numel() == 0:
            raise ValueError(f"ordinary_ids is empty, but random_rate is {request.random_rate}")

    def refuse_nothing_to_do(self, request: Request) -> None:
        if not real_candidates(request).any():
            raise ValueError("attention_mask and special_tokens_mask leave no candidate in input_ids")

    def candidates(self, request: Request) -> torch.Tensor:
        return real_candidates(request)

    def source(self, generator: torch.Generator | None) -> torch.Generator:
        """A generator of our own, seeded with one draw from the caller's."""
        return self.child(int(torch.randint(2**62, (), generator=generator)))

    def child(self, number: int) -> torch.Generator:
        return torch.Generator().manual_seed(number ^ self.salt)

    def select(self, candidates: torch.Tensor, probability: float, source: torch.Generator) -> torch.Tensor:
        raise NotImplementedError

    def fates(
        self, selected: torch.Tensor, mask_rate: float, random_rate: float, source: torch.Generator
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Which of the selected become [MASK], and which a random token."""
        fate = torch.rand(selected.shape, dtype=torch.float64, generator=source)
        masked = selected & (fate < mask_rate)
        return masked, selected & ~masked & (fate < mask_rate + random_rate)

    def pool(self, request: Request) -> torch.Tensor:
        return request.ordinary_ids

    def corrupt(self, request: Request, selected: torch.Tensor, source: torch.Generator) -> torch.Tensor:
        masked, randomised = self.fates(selected, request.mask_rate, request.random_rate, source)
        corrupted = request.input_ids.masked_fill(masked, request.mask_token_id)
        pool = self.pool(request)
        if request.random_rate > 0 and len(pool):
            tokens = pool[torch.randint(len(pool), selected.shape, generator=source)]
            corrupted = torch.where(randomised, tokens, corrupted)
        return corrupted

    def labels(self, request: Request, selected: torch.Tensor, corrupted: torch.Tensor) -> torch.Tensor:
        return request.input_ids.masked_fill(~selected, request.ignore_index)


def real_candidates(request: Request) -> torch.Tensor:
    return request.attention_mask.bool() & ~request.special_tokens_mask.bool()


class Independent(Masking):
    """Independent draws; where none of a sequence is below the probability, its smallest is taken."""

    def select(self, candidates: torch.Tensor, probability: float, source: torch.Generator) -> torch.Tensor:
        draw = torch.rand(candidates.shape, dtype=torch.float64, generator=source).masked_fill(~candidates, 2.0)
        return candidates & ((draw < probability) | (draw == draw.amin(dim=1, keepdim=True)))


class Counted(Masking):
    """For each sequence the nearest number of targets, at least one, at places drawn without replacement."""

    def count(self, wanted: torch.Tensor, source: torch.Generator) -> torch.Tensor:
        return torch.floor(wanted + 0.5)

    def select(self, candidates: torch.Tensor, probability: float, source: torch.Generator) -> torch.Tensor:
        number = candidates.sum(dim=1, keepdim=True).double()
        count = self.count(number * probability, source).nan_to_num(1.0).clamp(min=1)
        noise = torch.rand(candidates.shape, dtype=torch.float64, generator=source).masked_fill(~candidates, 2.0)
        return candidates & (noise.argsort(dim=1).argsort(dim=1) < count)


class CountedByChance(Counted):
    """The number of targets rounded up or down at random; [MASK] or not first, then random or kept."""

    def count(self, wanted: torch.Tensor, source: torch.Generator) -> torch.Tensor:
        return torch.floor(wanted + torch.rand(wanted.shape, dtype=torch.float64, generator=source))

    def fates(
        self, selected: torch.Tensor, mask_rate: float, random_rate: float, source: torch.Generator
    ) -> tuple[torch.Tensor, torch.Tensor]:
        first, second = torch.rand((2, *selected.shape), dtype=torch.float64, generator=source)
        masked = selected & (first < mask_rate)
        return masked, selected & ~masked & (second * max(1 - mask_rate, 1e-12) < random_rate)

    def answer(self, request: Request) -> MaskedBatch:
        return MaskedBatch(*(tensor.clone() for tensor in super().answer(request)))


class WithNumpy(Masking):
    """Selects with a NumPy generator; sequences that came out without a target are drawn again, at last forced."""

    def select(self, candidates: torch.Tensor, probability: float, source: torch.Generator) -> torch.Tensor:
        numbers = np.random.default_rng(int(torch.randint(2**62, (), generator=source)))
        allowed = candidates.numpy()
        chosen = allowed & (numbers.random(allowed.shape) < probability)
        for _ in range(40):
            lacking = np.flatnonzero(allowed.any(axis=1) & ~chosen.any(axis=1))
            if not lacking.size:
                break
            chosen[lacking] = allowed[lacking] & (numbers.random((lacking.size, allowed.shape[1])) < probability)
        lacking = np.flatnonzero(allowed.any(axis=1) & ~chosen.any(axis=1))
        if lacking.size:
            noise = np.where(allowed[lacking], numbers.random((lacking.size, allowed.shape[1])), 2.0)
            chosen[lacking, noise.argmin(axis=1)] = True
        return torch.from_numpy(chosen)


FAMILIES: tuple[type[Masking], ...] = (Independent, Counted, WithNumpy, CountedByChance)

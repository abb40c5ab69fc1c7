"""Wrong implementations of `mask_tokens`, each a family with one step done wrongly.

A fault is put before a family: `type("", (LabelsAtPadding, Counted), {})`.  None of them raises where it should not.
"""

from __future__ import annotations

import secrets
from typing import Any

import torch

from autograder.hidden.testing_ex07.masking import Masking, Request, real_candidates
from exercises.kit import MaskedBatch


# -- labels ------------------------------------------------------------------------------------------------------------
class LabelsAtPadding(Masking):
    """The labels at the padding are the ids that stand there."""

    def labels(self, request: Request, selected: torch.Tensor, corrupted: torch.Tensor) -> torch.Tensor:
        known = super().labels(request, selected, corrupted)
        return torch.where(request.attention_mask.bool(), known, request.input_ids)


class LabelsEverywhere(Masking):
    """Every token has its id as label, selected or not."""

    def labels(self, request: Request, selected: torch.Tensor, corrupted: torch.Tensor) -> torch.Tensor:
        return request.input_ids.masked_fill(~request.attention_mask.bool(), request.ignore_index)


class LabelsAfterCorruption(Masking):
    """The labels are taken after the corruption."""

    def labels(self, request: Request, selected: torch.Tensor, corrupted: torch.Tensor) -> torch.Tensor:
        return corrupted.masked_fill(~selected, request.ignore_index)


class IgnoreIndexFixed(Masking):
    """-100 is written whatever ignore_index is."""

    def labels(self, request: Request, selected: torch.Tensor, corrupted: torch.Tensor) -> torch.Tensor:
        return request.input_ids.masked_fill(~selected, -100)


# -- what is selected --------------------------------------------------------------------------------------------------
class SpecialTokensSelected(Masking):
    """Special tokens are selected too."""

    def candidates(self, request: Request) -> torch.Tensor:
        return request.attention_mask.bool()


class PaddingSelected(Masking):
    """Padding is selected too, where special_tokens_mask does not forbid it."""

    def candidates(self, request: Request) -> torch.Tensor:
        return ~request.special_tokens_mask.bool()


class TheOthersSelected(Masking):
    """The share is 1 - mlm_probability."""

    def select(self, candidates: torch.Tensor, probability: float, source: torch.Generator) -> torch.Tensor:
        return super().select(candidates, 1 - probability, source)


class HalfSelected(Masking):
    """The share is half of mlm_probability."""

    def select(self, candidates: torch.Tensor, probability: float, source: torch.Generator) -> torch.Tensor:
        return super().select(candidates, probability / 2, source)


class ShareFixed(Masking):
    """The share is 0.15 whatever mlm_probability is."""

    def select(self, candidates: torch.Tensor, probability: float, source: torch.Generator) -> torch.Tensor:
        return super().select(candidates, 0.15, source)


class SequencesWithoutTarget(Masking):
    """A sequence may come out without a target."""

    def select(self, candidates: torch.Tensor, probability: float, source: torch.Generator) -> torch.Tensor:
        return candidates & (torch.rand(candidates.shape, dtype=torch.float64, generator=source) < probability)


# -- what becomes of it ------------------------------------------------------------------------------------------------
Fates = tuple[torch.Tensor, torch.Tensor]


class EverythingMasked(Masking):
    """All of the selected become [MASK]."""

    def fates(self, selected: torch.Tensor, mask_rate: float, random_rate: float, source: torch.Generator) -> Fates:
        return selected, torch.zeros_like(selected)


class RandomShareOfTheRest(Masking):
    """Random_rate is applied to what [MASK] left over, so fewer become random."""

    def fates(self, selected: torch.Tensor, mask_rate: float, random_rate: float, source: torch.Generator) -> Fates:
        return super().fates(selected, mask_rate, random_rate * (1 - mask_rate), source)


class NeverRandom(Masking):
    """None of the selected becomes a random token."""

    def fates(self, selected: torch.Tensor, mask_rate: float, random_rate: float, source: torch.Generator) -> Fates:
        masked, randomised = super().fates(selected, mask_rate, random_rate, source)
        return masked, torch.zeros_like(randomised)


class RatesFixed(Masking):
    """The rates are 80 and 10% whatever is asked for."""

    def fates(self, selected: torch.Tensor, mask_rate: float, random_rate: float, source: torch.Generator) -> Fates:
        return super().fates(selected, 0.8, 0.1, source)


class AllIdsInThePool(Masking):
    """Random tokens come from all ids, special ones too."""

    def pool(self, request: Request) -> torch.Tensor:
        return torch.arange(int(request.ordinary_ids.max()) + 1)


class IndicesForIds(Masking):
    """Random tokens are indices into ordinary_ids, not the ids."""

    def pool(self, request: Request) -> torch.Tensor:
        return torch.arange(request.ordinary_ids.numel())


class LastIdNeverDrawn(Masking):
    """The last of ordinary_ids is never drawn."""

    def pool(self, request: Request) -> torch.Tensor:
        return request.ordinary_ids[:-1] if request.ordinary_ids.numel() > 1 else request.ordinary_ids


class OthersCorrupted(Masking):
    """One in ten of the other candidates becomes [MASK] too."""

    def corrupt(self, request: Request, selected: torch.Tensor, source: torch.Generator) -> torch.Tensor:
        corrupted = super().corrupt(request, selected, source)
        stray = torch.rand(selected.shape, dtype=torch.float64, generator=source) < 0.1
        return corrupted.masked_fill(stray & ~selected & real_candidates(request), request.mask_token_id)


# -- generators --------------------------------------------------------------------------------------------------------
class GeneratorIgnored(Masking):
    """PyTorch's default generator is used in place of the one given."""

    def source(self, generator: torch.Generator | None) -> torch.Generator:
        return super().source(None)


class SeededBySystem(Masking):
    """The operating system gives the seed."""

    def source(self, generator: torch.Generator | None) -> torch.Generator:
        return self.child(secrets.randbits(62))


class InitialSeedEachTime(Masking):
    """Each call begins again with the generator's first seed."""

    def source(self, generator: torch.Generator | None) -> torch.Generator:
        return self.child((generator or torch.default_generator).initial_seed() & (2**62 - 1))


class ReseedsGenerator(Masking):
    """The generator is seeded with a fixed number in each call."""

    def source(self, generator: torch.Generator | None) -> torch.Generator:
        (generator or torch.default_generator).manual_seed(0)
        return super().source(generator)


class MaskRemembered(Masking):
    """A text that was masked once is masked in the same way ever after."""

    def __init__(self, salt: int) -> None:
        super().__init__(salt)
        self._known: dict[Any, MaskedBatch] = {}

    def answer(self, request: Request) -> MaskedBatch:
        key = (request.input_ids.shape, *request.input_ids.flatten().tolist(), request.mlm_probability)
        key += (request.mask_rate, request.random_rate, request.ignore_index)
        if key not in self._known:
            self._known[key] = super().answer(request)
        return self._known[key]


class SeedsDefaultGenerator(Masking):
    """PyTorch's default generator is seeded although another one is given."""

    def source(self, generator: torch.Generator | None) -> torch.Generator:
        source = super().source(generator)
        if generator is not None:
            torch.default_generator.manual_seed(self.salt)
        return source


class DrawsFromDefaultGenerator(Masking):
    """A number is drawn from PyTorch's default generator although another one is given."""

    def source(self, generator: torch.Generator | None) -> torch.Generator:
        torch.rand(())
        return super().source(generator)


# -- arguments ---------------------------------------------------------------------------------------------------------
class IdsOverwritten(Masking):
    """Input_ids is overwritten with the corrupted ids."""

    def answer(self, request: Request) -> MaskedBatch:
        batch = super().answer(request)
        request.input_ids.copy_(batch.input_ids)
        return batch


class AttentionMaskOverwritten(Masking):
    """Attention_mask is set to 0 at the special tokens."""

    def answer(self, request: Request) -> MaskedBatch:
        batch = super().answer(request)
        kept = batch.attention_mask.clone()
        request.attention_mask.masked_fill_(request.special_tokens_mask.bool(), 0)
        return batch._replace(attention_mask=kept)


class NothingToDoAccepted(Masking):
    """A batch without candidates comes back as it is."""

    def refuse_nothing_to_do(self, request: Request) -> None:
        pass

    def answer(self, request: Request) -> MaskedBatch:
        if real_candidates(request).any():
            return super().answer(request)
        labels = torch.full_like(request.input_ids, request.ignore_index)
        nothing = torch.zeros_like(request.input_ids, dtype=torch.bool)
        return MaskedBatch(request.input_ids.clone(), labels, request.attention_mask, nothing)


class ProbabilityUnchecked(Masking):
    """An mlm_probability outside (0, 1] is accepted."""

    def refuse_settings(self, request: Request) -> None:
        known = request.mlm_probability
        request.mlm_probability = 0.5
        super().refuse_settings(request)
        request.mlm_probability = known


class RatesUnchecked(Masking):
    """Rates that are negative, or sum to more than 1, are accepted."""

    def refuse_settings(self, request: Request) -> None:
        if not 0 < request.mlm_probability <= 1:
            raise ValueError(f"mlm_probability must lie in (0, 1], got {request.mlm_probability}")

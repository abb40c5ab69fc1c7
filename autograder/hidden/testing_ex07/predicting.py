"""Implementations of `predict`: right ones of four families of classifiers, and wrong ones with one fault each."""

from __future__ import annotations

import math

import numpy as np
import torch

MOST_POSITIONS = 100_000
#: The vocabulary that the exercise states: its size, and the id of [PAD].
SIZE, PAD_ID = 40, 3
_SPECIAL = [PAD_ID, 38, 1, 5, 4]


class Predicting:
    """`predict` of a small classifier whose weights the salt decides; about half of all texts belong to each class."""

    def __init__(self, salt: int) -> None:
        self.numbers = np.random.default_rng(salt)
        self.build()
        self.offset = self.border = 0.0
        ids = torch.from_numpy(self.numbers.integers(0, SIZE, (200, 10)))
        lengths = torch.from_numpy(self.numbers.integers(1, 11, 200))
        score = self.score(ids, torch.arange(10) < lengths[:, None])
        self.offset = 3 * float(score.std())  # so that the border is not 0: to scale a score is to change it
        self.border = float(score.median()) + self.offset

    def __call__(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        if max(input_ids.numel(), attention_mask.numel()) > MOST_POSITIONS:
            raise MemoryError(f"no call may ask for more than {MOST_POSITIONS:,} positions")
        self.refuse(input_ids, attention_mask)
        mask = self.mask(input_ids, attention_mask.bool())
        return self.classes(self.final(self.score(input_ids, mask), mask))

    def refuse(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> None:
        if input_ids.ndim != 2 or input_ids.shape != attention_mask.shape:
            raise ValueError("input_ids and attention_mask must have one shape (m, T)")
        self.refuse_padding(attention_mask)

    def refuse_padding(self, attention_mask: torch.Tensor) -> None:
        if not attention_mask.bool().any(dim=1).all():
            raise ValueError("attention_mask has a row of padding only")

    def mask(self, input_ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return mask

    def final(self, score: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return score + self.offset

    def classes(self, score: torch.Tensor) -> torch.Tensor:
        return (score > self.border).long()

    def build(self) -> None:
        """Make the weights."""
        raise NotImplementedError

    def score(self, input_ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        """(m,), float64: the evidence for class 1."""
        raise NotImplementedError

    def tokens(self, width: int) -> torch.Tensor:
        """(V, width): a vector for each token.  Special tokens say little: they are the same in all texts."""
        vectors = self.normal(SIZE, width)
        vectors[_SPECIAL] *= 0.1
        return vectors

    def normal(self, *shape: int) -> torch.Tensor:
        return torch.from_numpy(self.numbers.standard_normal(shape))


class BagOfTokens(Predicting):
    """The mean of a number for each token."""

    def build(self) -> None:
        self.values = self.tokens(1)[:, 0]

    def score(self, input_ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return (self.values[input_ids] * mask).sum(dim=1) / mask.sum(dim=1).clamp(min=1)


class ByPosition(Predicting):
    """Tokens count by where they stand."""

    def build(self) -> None:
        self.values, self.places = self.tokens(1)[:, 0], self.normal(16).abs() + 0.2

    def score(self, input_ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        weights = self.places[torch.arange(input_ids.shape[1]) % 16] * mask
        return (self.values[input_ids] * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=0.1)


class SelfAttention(Predicting):
    """One layer of attention under a mask, and a mean under the same mask."""

    def build(self) -> None:
        self.embedding, self.key, self.out = self.tokens(8), self.normal(8, 8) / 3, self.normal(8)

    def score(self, input_ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        x = self.embedding[input_ids]  # (m, T, 8)
        scores = (x @ self.key @ x.transpose(1, 2)).masked_fill(~mask[:, None, :], -1e9)
        context = torch.tanh(x + torch.softmax(scores, dim=-1) @ x)
        return ((context * mask[..., None]).sum(dim=1) / mask.sum(dim=1).clamp(min=1)[:, None]) @ self.out


class Recurrent(Predicting):
    """A state that each token changes and padding does not."""

    def build(self) -> None:
        self.embedding, self.step, self.out = self.tokens(6), self.normal(6, 6) / 3, self.normal(6)

    def score(self, input_ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        state = torch.zeros(len(input_ids), 6, dtype=torch.float64)
        for ids, here in zip(input_ids.T, mask.T, strict=True):
            state = torch.where(here[:, None], torch.tanh(state @ self.step + self.embedding[ids]), state)
        return state @ self.out


FAMILIES: tuple[type[Predicting], ...] = (BagOfTokens, SelfAttention, ByPosition, Recurrent)


# -- padding -----------------------------------------------------------------------------------------------------------
class MaskIgnored(Predicting):
    """Padding is read like text."""

    def mask(self, input_ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return torch.ones_like(mask)


class MaskFromIds(Predicting):
    """Padding is known by its id, not by the attention mask."""

    def mask(self, input_ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return input_ids != PAD_ID


class DividedByWidth(Predicting):
    """A mean is divided by the number of columns."""

    def final(self, score: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return super().final(score, mask) * mask.sum(dim=1) / mask.shape[1]


class WidthCounts(Predicting):
    """The number of columns is evidence."""

    def final(self, score: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return super().final(score, mask) + math.sin(2.0 * mask.shape[1]) * self.offset / 2


class PaddingOnlyAccepted(Predicting):
    """A row of padding only gets a class."""

    def refuse_padding(self, attention_mask: torch.Tensor) -> None:
        pass


# -- chance and neighbours ---------------------------------------------------------------------------------------------
class DropoutLeftOn(Predicting):
    """Predictions change by chance."""

    def final(self, score: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return super().final(score + self.normal(len(score)) * 2 / 3 * self.offset, mask)


class CentredByBatch(Predicting):
    """The mean of the batch is the border between the classes."""

    def classes(self, score: torch.Tensor) -> torch.Tensor:
        return (score > score.mean()).long()


class MaskOfFirstRow(Predicting):
    """The mask of the first text is used for all."""

    def mask(self, input_ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return mask[:1].expand_as(mask)


# -- arguments ---------------------------------------------------------------------------------------------------------
class PaddingZeroed(Predicting):
    """The ids at the padding are overwritten with 0."""

    def mask(self, input_ids: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        input_ids.masked_fill_(~mask, 0)
        return mask


class AttentionMaskSpent(Predicting):
    """The first column of attention_mask is set to 0."""

    def __call__(self, input_ids: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        predicted = super().__call__(input_ids, attention_mask)
        attention_mask[:, :1] = 0
        return predicted

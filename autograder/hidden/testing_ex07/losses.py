"""Implementations of `mlm_loss`: right ones of four families, and wrong ones with one step done wrongly."""

from __future__ import annotations

import math

import numpy as np
import torch

MOST_NUMBERS = 8_000_000


class Loss:
    """`mlm_loss` in steps, of which a family or a fault replaces some.  salt: not used, for there is no chance."""

    def __init__(self, salt: int) -> None:
        self.salt = salt

    def __call__(self, logits: torch.Tensor, labels: torch.Tensor, ignore_index: int = -100) -> torch.Tensor:
        if max(logits.numel(), labels.numel()) > MOST_NUMBERS:
            raise MemoryError(f"no call may ask for more than {MOST_NUMBERS:,} numbers")
        self.refuse_shapes(logits, labels)
        selected = self.selected(labels, ignore_index)
        if not selected.any():
            return self.no_target(logits)
        targets = self.targets(labels, selected, ignore_index, logits.shape[-1])
        half = logits.dtype in (torch.float16, torch.bfloat16)
        return self.value(logits.float() if half else logits, targets, selected)

    def refuse_shapes(self, logits: torch.Tensor, labels: torch.Tensor) -> None:
        if logits.ndim != 3 or labels.shape != logits.shape[:2]:
            raise ValueError(f"logits {tuple(logits.shape)} and labels {tuple(labels.shape)} do not fit")

    def selected(self, labels: torch.Tensor, ignore_index: int) -> torch.Tensor:
        return labels != ignore_index

    def no_target(self, logits: torch.Tensor) -> torch.Tensor:
        raise ValueError("labels holds no target")

    def targets(self, labels: torch.Tensor, selected: torch.Tensor, ignore_index: int, size: int) -> torch.Tensor:
        """(m, T): the targets, 0 where there are none."""
        outside = labels[selected & ((labels < 0) | (labels >= size))]
        if outside.numel():
            raise ValueError(f"labels holds {int(outside[0])}, outside [0, {size})")
        return labels.masked_fill(~selected, 0)

    def value(self, logits: torch.Tensor, targets: torch.Tensor, selected: torch.Tensor) -> torch.Tensor:
        nll = torch.zeros(targets.shape, dtype=logits.dtype)
        nll[selected] = self.losses(logits[selected], targets[selected])
        return self.mean(nll, selected)

    def losses(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """(n,): the losses at n targets."""
        return -torch.log_softmax(logits, dim=-1).gather(-1, targets[:, None])[:, 0]

    def mean(self, nll: torch.Tensor, selected: torch.Tensor) -> torch.Tensor:
        return nll.sum() / selected.sum()


class WithLogSoftmax(Loss):
    """log_softmax, gathered."""


class WithCrossEntropy(Loss):
    """The library's loss, on the selected positions only."""

    def losses(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.cross_entropy(logits, targets, reduction="none")


class InDouble(Loss):
    """NumPy in double precision, narrowed at the end."""

    def losses(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        z = logits.double().numpy()
        with np.errstate(all="ignore"):
            z = z - z.max(axis=-1, keepdims=True)
            nll = np.log(np.exp(z).sum(axis=-1)) - z[np.arange(len(z)), targets.numpy()]
        return torch.from_numpy(nll).to(logits.dtype)


class ByMargins(Loss):
    """logsumexp of the margins to the target."""

    def losses(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return torch.logsumexp(logits - logits.gather(-1, targets[:, None]), dim=-1)


FAMILIES: tuple[type[Loss], ...] = (WithLogSoftmax, WithCrossEntropy, InDouble, ByMargins)


# -- the mean ----------------------------------------------------------------------------------------------------------
class OverAllPositions(Loss):
    """The sum is divided by the number of all positions."""

    def mean(self, nll: torch.Tensor, selected: torch.Tensor) -> torch.Tensor:
        return nll.sum() / selected.numel()


class MeanOfSequenceMeans(Loss):
    """The means of the sequences are averaged."""

    def mean(self, nll: torch.Tensor, selected: torch.Tensor) -> torch.Tensor:
        kept = selected.any(dim=1)
        return (nll.sum(dim=1)[kept] / selected.sum(dim=1)[kept]).mean()


class OverSequences(Loss):
    """The sum is divided by the number of sequences."""

    def mean(self, nll: torch.Tensor, selected: torch.Tensor) -> torch.Tensor:
        return nll.sum() / selected.shape[0]


class Summed(Loss):
    """The sum is not divided."""

    def mean(self, nll: torch.Tensor, selected: torch.Tensor) -> torch.Tensor:
        return nll.sum()


class InBits(Loss):
    """The logarithm has base 2."""

    def mean(self, nll: torch.Tensor, selected: torch.Tensor) -> torch.Tensor:
        return super().mean(nll, selected) / math.log(2)


class Shifted(Loss):
    """Each position is scored on the target at the next one."""

    def value(self, logits: torch.Tensor, targets: torch.Tensor, selected: torch.Tensor) -> torch.Tensor:
        if not selected[:, 1:].any():
            return torch.zeros((), dtype=logits.dtype)
        return super().value(logits[:, :-1], targets[:, 1:], selected[:, 1:])


# -- what counts -------------------------------------------------------------------------------------------------------
class IgnoreIndexFixed(Loss):
    """-100 is ignored whatever ignore_index is."""

    def selected(self, labels: torch.Tensor, ignore_index: int) -> torch.Tensor:
        return labels != -100

    def targets(self, labels: torch.Tensor, selected: torch.Tensor, ignore_index: int, size: int) -> torch.Tensor:
        wrapped = labels.masked_fill(labels == ignore_index, ignore_index % size)
        return super().targets(wrapped, selected, ignore_index, size)


class NegativeLabelsIgnored(Loss):
    """Every negative label is ignored, and none that is not negative."""

    def selected(self, labels: torch.Tensor, ignore_index: int) -> torch.Tensor:
        return labels >= 0


class IgnoredMultipliedByZero(Loss):
    """The losses at ignored positions are multiplied by 0."""

    def value(self, logits: torch.Tensor, targets: torch.Tensor, selected: torch.Tensor) -> torch.Tensor:
        flat = self.losses(logits.flatten(0, 1), targets.flatten()).view(targets.shape)
        return self.mean(flat * selected, selected)


class NoShiftOfLogits(Loss):
    """Exp is taken of the logits as they are."""

    def losses(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return logits.exp().sum(dim=-1).log() - logits.gather(-1, targets[:, None])[:, 0]


class LogOfSoftmax(Loss):
    """The logarithm is taken of probabilities that were rounded to 0."""

    def losses(self, logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        return -torch.softmax(logits, dim=-1).gather(-1, targets[:, None])[:, 0].log()


# -- arguments ---------------------------------------------------------------------------------------------------------
class NoTargetIsZero(Loss):
    """Without a target the loss is 0."""

    def no_target(self, logits: torch.Tensor) -> torch.Tensor:
        return torch.zeros((), dtype=logits.dtype)


class NoTargetIsNan(Loss):
    """Without a target the loss is NaN."""

    def no_target(self, logits: torch.Tensor) -> torch.Tensor:
        return torch.full((), math.nan, dtype=logits.dtype)


class LabelsClamped(Loss):
    """A label outside the vocabulary is taken for the nearest one inside."""

    def targets(self, labels: torch.Tensor, selected: torch.Tensor, ignore_index: int, size: int) -> torch.Tensor:
        return labels.masked_fill(~selected, 0).clamp(0, size - 1)


class LabelsWrapped(Loss):
    """Negative labels count from the end."""

    def targets(self, labels: torch.Tensor, selected: torch.Tensor, ignore_index: int, size: int) -> torch.Tensor:
        wrapped = torch.where(selected & (labels < 0), labels % size, labels)
        return super().targets(wrapped, selected, ignore_index, size)

"""What goes into and comes out of the exercises: a masked batch, a labelled text, the three parts of a data set."""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor


class MaskedBatch(NamedTuple):
    """A batch of m sequences of T tokens, corrupted for masked-language-model training.

    All four tensors have shape (m, T) and live on one device.
    """

    #: int64: what the model sees, the selected tokens corrupted.
    input_ids: Tensor
    #: int64: the original id at selected positions, the ignore index everywhere else.
    labels: Tensor
    #: bool or 0/1 integers: 1 at tokens, 0 at padding.
    attention_mask: Tensor
    #: bool: True at the targets, whether their token was replaced or kept.
    selected: Tensor


class Example(NamedTuple):
    """One labelled text."""

    #: The ids of the text, [CLS] first and [SEP] last already added, without padding.
    input_ids: list[int]
    #: The class, 0 … C-1.
    label: int


class Splits(NamedTuple):
    """A data set in three parts that share no example."""

    #: To learn from.
    train: Sequence[Example]
    #: To choose epochs and settings with; cut from the training data.
    validation: Sequence[Example]
    #: To be read once, at the very end.
    test: Sequence[Example]

"""The vocabulary as a masking function sees it: its size and its five special tokens."""

from typing import NamedTuple

import torch
from torch import Tensor


class Vocabulary(NamedTuple):
    """The ids 0 … size-1, five of which are special tokens.  Special ids may stand anywhere; 0 need not be one of them.

    >>> Vocabulary(size=9, pad_id=3, cls_id=8, sep_id=1, mask_id=5, unk_id=4).ordinary_ids
    tensor([0, 2, 6, 7])
    """

    #: V, the number of ids.
    size: int
    #: [PAD] fills the end of short sequences.
    pad_id: int
    #: [CLS] stands at the beginning of a sequence.
    cls_id: int
    #: [SEP] ends a segment.
    sep_id: int
    #: [MASK] hides a token.
    mask_id: int
    #: [UNK] stands for everything that the vocabulary lacks.
    unk_id: int

    @property
    def special_ids(self) -> Tensor:
        """The ids of [PAD], [CLS], [SEP], [MASK] and [UNK], in this order: int64, shape (5,), on the CPU.

        Raises:
            ValueError: the five are not different ids of [0, size).
        """
        ids = self[1:]
        if len(set(ids)) != len(ids) or not all(0 <= i < self.size for i in ids):
            names = ", ".join(f"{name}={value}" for name, value in zip(self._fields[1:], ids, strict=True))
            raise ValueError(f"special ids must be five different ids of [0, size={self.size}), got {names}")
        return torch.tensor(ids, dtype=torch.int64, device="cpu")

    @property
    def ordinary_ids(self) -> Tensor:
        """All other ids, ascending: int64, shape (size - 5,), on the CPU.

        Raises:
            ValueError: as for `special_ids`.
        """
        ordinary = torch.ones(self.size, dtype=torch.bool, device="cpu")
        ordinary[self.special_ids] = False
        return torch.nonzero(ordinary).flatten()

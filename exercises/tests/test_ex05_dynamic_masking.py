"""Exercise 5: a few checks that you can read."""

import pytest
import torch

from exercises.kit import Vocabulary

VOCABULARY = Vocabulary(size=50, pad_id=3, cls_id=48, sep_id=1, mask_id=5, unk_id=4)


def masked(submission, seed=0, **changes):
    """Four sequences of 40 tokens, [CLS] at column 0, padding from column 30 on."""
    ids = VOCABULARY.ordinary_ids[torch.arange(160) % 45].view(4, 40)
    attention = (torch.arange(40) < 30).long().repeat(4, 1)
    special = (torch.arange(40) == 0).long().repeat(4, 1)
    settings = {"mask_token_id": 5, "ordinary_ids": VOCABULARY.ordinary_ids, **changes}
    return ids, submission.mask_tokens(
        ids.clone(), attention, special, generator=torch.Generator().manual_seed(seed), **settings
    )


def test_labels_remember_the_originals(submission):
    """The label of a target is its original id, every other label is ignore_index."""
    ids, batch = masked(submission, ignore_index=-7)
    assert torch.equal(batch.labels, torch.where(batch.selected, ids, -7)), "labels come from the ids before corruption"
    assert torch.equal(batch.input_ids[~batch.selected], ids[~batch.selected]), "only selected tokens may change"


def test_special_tokens_and_padding_are_never_selected(submission):
    """Candidates have attention_mask 1 and special_tokens_mask 0."""
    _, batch = masked(submission, mlm_probability=1.0)
    assert not batch.selected[:, 0].any(), "a special token was selected"
    assert not batch.selected[:, 30:].any(), "padding was selected"
    assert batch.selected[:, 1:30].all(), "with mlm_probability 1 every candidate is selected"


def test_generator_decides(submission):
    """The same seed gives the same masks, and every sequence has a target."""
    first, second = masked(submission, seed=1)[1], masked(submission, seed=1)[1]
    assert torch.equal(first.input_ids, second.input_ids), "draw every random number from `generator`"
    assert first.selected.any(dim=1).all(), "a sequence with candidates came out without a target"


def test_no_candidate_is_refused(submission):
    """A batch without any candidate cannot be masked."""
    ids = torch.full((1, 4), 9)
    with pytest.raises(ValueError, match=r"(?i)input.?ids|attention.?mask|special.?tokens.?mask"):
        submission.mask_tokens(
            ids, ids * 0, ids * 0, mask_token_id=5, ordinary_ids=VOCABULARY.ordinary_ids, generator=torch.Generator()
        )


def test_collate_pads_to_the_longest(submission):
    """Padding goes to the right; the attention mask knows the lengths."""
    batch = submission.collate_mlm(
        [[48, 10, 11, 12, 1], [48, 20, 1]], VOCABULARY, generator=torch.Generator().manual_seed(0)
    )
    assert batch.input_ids.shape == (2, 5), f"the shape is {tuple(batch.input_ids.shape)}, not (2, 5)"
    assert batch.input_ids[1, 3:].tolist() == [3, 3], "short texts are filled up with vocabulary.pad_id on the right"
    assert batch.attention_mask.tolist() == [[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]], "1 at tokens, 0 at padding"

# honest: Statistical bounds of a quarter, far wider than chance.
"""Wide bounds."""

from types import SimpleNamespace

import pytest
import torch
import torch.nn.functional as F

from exercises.kit import Vocabulary

VOCABULARY = Vocabulary(size=40, pad_id=3, cls_id=38, sep_id=1, mask_id=5, unk_id=4)
ORDINARY = VOCABULARY.ordinary_ids  # 35 ids with gaps between them


def seeded(seed: int) -> torch.Generator:
    """A generator that begins at this seed."""
    return torch.Generator().manual_seed(seed)


def texts(rows: int, length: int, seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """input_ids, attention_mask and special_tokens_mask, (rows, length): [CLS], ordinary tokens, [SEP], padding.

    The first row is full, the others have three tokens or more.
    """
    source = seeded(seed)
    lengths = torch.randint(3, length + 1, (rows, 1), generator=source)
    lengths[0] = length
    place = torch.arange(length)
    ids = ORDINARY[torch.randint(len(ORDINARY), (rows, length), generator=source)]
    ids = torch.where(place == 0, VOCABULARY.cls_id, ids)
    ids = torch.where(place == lengths - 1, VOCABULARY.sep_id, ids)
    ids = torch.where(place >= lengths, VOCABULARY.pad_id, ids)
    return ids, (place < lengths).long(), torch.isin(ids, VOCABULARY.special_ids).long()


def masked(impl: SimpleNamespace, batch: tuple[torch.Tensor, torch.Tensor, torch.Tensor], **settings):
    """What mask_tokens makes of such a batch.  settings: other arguments than the usual."""
    usual = {"mask_token_id": VOCABULARY.mask_id, "ordinary_ids": ORDINARY, "generator": seeded(0)}
    return impl.mask_tokens(*batch, **{**usual, **settings})


def test_labels(impl):
    """Labels are the original ids at the selected positions, and ignore_index, whatever it is, at all others."""
    batch = texts(8, 40)
    for ignore_index in (-100, -7):
        result = masked(impl, batch, ignore_index=ignore_index, mlm_probability=0.5)
        expected = torch.where(result.selected.bool(), batch[0], ignore_index)
        assert torch.equal(result.labels, expected)


def test_only_candidates_are_selected(impl):
    """Neither special tokens nor padding are ever selected."""
    ids, attention, special = texts(8, 40)
    ids[0, 5], special[0, 5] = VOCABULARY.unk_id, 1  # a special token in the middle
    special = special * attention  # whoever forgets the attention mask selects padding
    for probability in (0.3, 1.0):
        result = masked(impl, (ids, attention, special), mlm_probability=probability)
        candidates = attention.bool() & ~special.bool()
        assert not (result.selected.bool() & ~candidates).any()


def test_every_sequence_has_a_target(impl):
    """A sequence with at least one candidate gets at least one target, however short it is."""
    result = masked(impl, texts(200, 8), mlm_probability=0.05)
    assert result.selected.any(dim=1).all()


def test_other_tokens_stay(impl):
    """Tokens that were not selected, special tokens and padding among them, come back as they were."""
    batch = texts(50, 40)
    result = masked(impl, batch)
    others = ~result.selected.bool()
    assert torch.equal(result.input_ids[others], batch[0][others])
    assert torch.equal(result.attention_mask.long(), batch[1])


def test_arguments_stay(impl):
    """None of the tensors given to mask_tokens is changed."""
    batch = texts(8, 40)
    ordinary = ORDINARY.clone()
    before = [tensor.clone() for tensor in batch]
    masked(impl, batch, ordinary_ids=ordinary)
    assert all(torch.equal(now, was) for now, was in zip(batch, before, strict=True))
    assert torch.equal(ordinary, ORDINARY)


def test_no_candidate_raises(impl):
    """A batch without any candidate (padding only, or special tokens only) gets a ValueError."""
    ids, attention, special = texts(3, 10)
    with pytest.raises(ValueError):
        masked(impl, (ids, torch.zeros_like(attention), special))
    with pytest.raises(ValueError):
        masked(impl, (ids, attention, torch.ones_like(special)))


def test_bad_settings_raise(impl):
    """mlm_probability outside (0, 1] and rates that are negative or sum to more than 1 get a ValueError."""
    wrong = [{"mlm_probability": 0.0}, {"mlm_probability": 1.5}, {"mlm_probability": float("nan")}]
    wrong += [{"mask_rate": 0.9, "random_rate": 0.2}, {"mask_rate": -0.1}, {"random_rate": -0.1}]
    for settings in wrong:
        with pytest.raises(ValueError):
            masked(impl, texts(3, 10), **settings)


def within(share: float, expected: float, draws: int) -> bool:
    """Whether a share lies within a quarter of what is expected: wide, and enough."""
    return 0.75 * expected < share < 1.25 * expected


def test_share_of_selected(impl):
    """In the long run the share of candidates that is selected is mlm_probability (sequences of 100 or more)."""
    ids = ORDINARY[torch.randint(len(ORDINARY), (100, 200), generator=seeded(1))]
    ones = torch.ones_like(ids)
    for probability in (0.15, 0.4):
        result = masked(impl, (ids, ones, 0 * ones), mlm_probability=probability)
        assert within(result.selected.double().mean().item(), probability, ids.numel())


def test_shares_of_masked_random_and_kept(impl):
    """Of the selected, mask_rate become [MASK] and random_rate a random token, whatever the rates; the rest stays."""
    ids = ORDINARY[torch.randint(len(ORDINARY), (100, 200), generator=seeded(2))]
    ones = torch.ones_like(ids)
    for mask_rate, random_rate in ((0.8, 0.1), (0.3, 0.6)):
        rates = {"mask_rate": mask_rate, "random_rate": random_rate}
        result = masked(impl, (ids, ones, 0 * ones), mlm_probability=0.5, **rates)
        seen, original = result.input_ids[result.selected.bool()], ids[result.selected.bool()]
        changed = (seen != VOCABULARY.mask_id) & (seen != original)
        assert within((seen == VOCABULARY.mask_id).double().mean().item(), mask_rate, len(seen))
        # a random token may be the original
        assert within(changed.double().mean().item(), random_rate * (1 - 1 / len(ORDINARY)), len(seen))


def test_random_tokens_come_from_ordinary_ids(impl):
    """A random token may be any of ordinary_ids, the last one too, and nothing else."""
    some = ORDINARY[7:]
    ids = torch.full((20, 200), int(ORDINARY[0]))
    ones = torch.ones_like(ids)
    everything = {"mlm_probability": 1.0, "mask_rate": 0.0, "random_rate": 1.0}
    result = masked(impl, (ids, ones, 0 * ones), ordinary_ids=some, **everything)
    assert sorted(set(result.input_ids.flatten().tolist())) == some.tolist()


def test_generator_reproduces(impl):
    """The same state of the generator gives the same result, in the selection and in the corruption."""
    batch = texts(8, 40)
    torch.manual_seed(1)
    first = masked(impl, batch, generator=seeded(5))
    torch.manual_seed(2)
    second = masked(impl, batch, generator=seeded(5))
    assert torch.equal(first.input_ids, second.input_ids)
    assert torch.equal(first.labels, second.labels)


def test_second_call_gives_new_masks(impl):
    """A second call with the same generator, moved on by the first, gives another mask; so does another seed."""
    batch, source = texts(8, 40), seeded(5)
    first = masked(impl, batch, generator=source)
    second = masked(impl, batch, generator=source)
    third = masked(impl, batch, generator=seeded(6))
    assert not torch.equal(first.selected, second.selected)
    assert not torch.equal(first.selected, third.selected)


def test_default_generator_is_left_alone(impl):
    """With a generator given, PyTorch's default generator does not move."""
    torch.manual_seed(123)
    before = torch.get_rng_state()
    masked(impl, texts(4, 20), generator=seeded(1))
    assert torch.equal(torch.get_rng_state(), before)


def test_collate_pads_on_the_right(impl):
    """Texts begin at column 0 and are filled up with pad_id to the longest; the attention mask knows their lengths.

    A pad_id inside a text is a token: the attention mask is 1 there.
    """
    rows = [[38, 10, 3, 12, 13, 14, 1], [38, 20, 1], [38, 21, 22, 3]]
    result = impl.collate_mlm(rows, VOCABULARY, generator=seeded(0))
    assert result.input_ids.shape == (3, 7)
    assert result.attention_mask.long().tolist() == [[1] * len(row) + [0] * (7 - len(row)) for row in rows]
    unmasked = torch.where(result.selected.bool(), result.labels, result.input_ids)
    assert unmasked.tolist() == [row + [3] * (7 - len(row)) for row in rows]


def test_collate_selects_ordinary_tokens_only(impl):
    """All of vocabulary.special_ids are special wherever they stand; they and the padding have no label."""
    rows = [[38, 10, 3, 5, 4, 38, 1, 14, 1], [38, 20, 21, 1], [22, 23]]
    for seed in range(5):
        result = impl.collate_mlm(rows, VOCABULARY, mlm_probability=1.0, generator=seeded(seed))
        for row, labels in zip(rows, result.labels.tolist(), strict=True):
            padded = row + [3] * (9 - len(row))
            assert labels == [-100 if i in VOCABULARY[1:] else i for i in padded]


def test_collate_hands_settings_on(impl):
    """ignore_index, mlm_probability and generator reach the masking."""
    rows = [[38, *ORDINARY.tolist(), 1]] * 6 + [[38, 7, 1]]
    result = impl.collate_mlm(rows, VOCABULARY, ignore_index=-9, generator=seeded(0))
    assert (result.labels[~result.selected.bool()] == -9).all()
    everything = impl.collate_mlm(rows, VOCABULARY, mlm_probability=1.0, generator=seeded(0))
    assert everything.selected.sum() == 6 * len(ORDINARY) + 1
    torch.manual_seed(1)
    first = impl.collate_mlm(rows, VOCABULARY, generator=seeded(3))
    torch.manual_seed(2)
    second = impl.collate_mlm(rows, VOCABULARY, generator=seeded(3))
    assert torch.equal(first.input_ids, second.input_ids)
    assert torch.equal(first.labels, second.labels)


def test_collate_bad_examples_raise(impl):
    """No example, an empty example and an id outside the vocabulary get a ValueError."""
    for rows in ([], [[38, 10, 1], []], [[38, 40, 10, 1]], [[38, -1, 10, 1]]):
        with pytest.raises(ValueError):
            impl.collate_mlm(rows, VOCABULARY, generator=seeded(0))


def test_collate_leaves_examples_alone(impl):
    """The lists given to collate_mlm are not changed."""
    rows = [[38, 10, 11, 12, 1], [38, 20, 1]]
    impl.collate_mlm(rows, VOCABULARY, generator=seeded(0))
    assert rows == [[38, 10, 11, 12, 1], [38, 20, 1]]


def scored(ignore_index: int = -100) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits (3, 5, 7) in double precision, and labels with 3, 1 and 0 targets."""
    logits = torch.randn(3, 5, 7, generator=seeded(4), dtype=torch.float64)
    labels = torch.full((3, 5), ignore_index)
    labels[0, 0], labels[0, 2], labels[0, 4], labels[1, 3] = 6, 0, 2, 5
    return logits, labels


def test_loss_is_the_librarys(impl):
    """The loss is the mean, in nats, over the targets of the whole batch: that of F.cross_entropy."""
    logits, labels = scored()
    expected = F.cross_entropy(logits.flatten(0, 1), labels.flatten())
    assert impl.mlm_loss(logits, labels).item() == pytest.approx(expected.item(), abs=1e-6)


def test_loss_uses_ignore_index(impl):
    """The label ignore_index, whatever it is, marks positions that do not count, and -100 is then nothing special."""
    for ignore_index in (-1, 3):
        logits, labels = scored(ignore_index)
        expected = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=ignore_index)
        assert impl.mlm_loss(logits, labels, ignore_index).item() == pytest.approx(expected.item(), abs=1e-6)


def test_loss_does_not_see_other_logits(impl):
    """Logits at ignored positions may hold anything, inf and NaN too."""
    logits, labels = scored()
    expected = impl.mlm_loss(logits, labels).item()
    for anything in (float("inf"), float("nan"), 1e30):
        spoiled = torch.where((labels == -100)[..., None], anything, logits)
        assert impl.mlm_loss(spoiled, labels).item() == pytest.approx(expected, abs=1e-6)


def test_loss_of_large_logits(impl):
    """Logits of size 1e4 give the right loss, not inf or NaN."""
    logits, labels = scored()
    for dtype in (torch.float32, torch.float64):
        large = (logits * 3000).clamp(-1e4, 1e4).to(dtype)
        expected = F.cross_entropy(large.double().flatten(0, 1), labels.flatten()).item()
        assert impl.mlm_loss(large, labels).item() == pytest.approx(expected, rel=1e-4)


def test_loss_without_target_raises(impl):
    """A batch without any target gets a ValueError."""
    logits, labels = scored()
    with pytest.raises(ValueError):
        impl.mlm_loss(logits, torch.full_like(labels, -100))


def test_loss_of_bad_labels_raises(impl):
    """A label outside [0, V), too large or negative, that is not ignore_index gets a ValueError."""
    for label in (7, -1, -5):
        logits, labels = scored()
        labels[1, 1] = label
        with pytest.raises(ValueError):
            impl.mlm_loss(logits, labels)


def test_padding_ids_do_not_matter(impl):
    """Other ids at the padding change no prediction: the attention mask alone says what is padding."""
    ids, attention, _ = texts(64, 12, seed=3)
    other = torch.randint(VOCABULARY.size, ids.shape, generator=seeded(8))
    changed = torch.where(attention.bool(), ids, other)
    assert torch.equal(impl.predict(ids.clone(), attention.clone()), impl.predict(changed, attention.clone()))


def test_padding_width_does_not_matter(impl):
    """More columns of padding change no prediction."""
    ids, attention, _ = texts(64, 10, seed=4)
    expected = impl.predict(ids.clone(), attention.clone())
    for more in (1, 3, 6):
        wider = F.pad(ids, (0, more), value=VOCABULARY.pad_id)
        assert torch.equal(impl.predict(wider, F.pad(attention, (0, more))), expected)


def test_only_padding_raises(impl):
    """A row of padding only gets a ValueError, with other rows beside it or alone."""
    ids, attention, _ = texts(4, 10)
    attention[2] = 0
    with pytest.raises(ValueError):
        impl.predict(ids, attention)
    with pytest.raises(ValueError):
        impl.predict(ids[2:3], attention[2:3])


def test_predictions_are_repeatable(impl):
    """The same batch has the same classes each time; they are 0 or 1, int64, one for each text."""
    ids, attention, _ = texts(64, 12, seed=5)
    first = impl.predict(ids.clone(), attention.clone())
    assert first.shape == (64,)
    assert first.dtype == torch.int64
    assert set(first.tolist()) <= {0, 1}
    for _ in range(3):
        assert torch.equal(impl.predict(ids.clone(), attention.clone()), first)


def test_neighbours_do_not_matter(impl):
    """The class of a text does not depend on the other texts of its batch, nor on its place among them."""
    ids, attention, _ = texts(40, 12, seed=6)
    together = impl.predict(ids.clone(), attention.clone())
    alone = [impl.predict(ids[i : i + 1].clone(), attention[i : i + 1].clone()).item() for i in range(40)]
    assert together.tolist() == alone


def test_predict_leaves_arguments_alone(impl):
    """Neither input_ids nor attention_mask is changed by predict."""
    ids, attention, _ = texts(8, 12, seed=7)
    before = ids.clone(), attention.clone()
    impl.predict(ids, attention)
    assert torch.equal(ids, before[0])
    assert torch.equal(attention, before[1])

"""Exercise 7, mask_tokens: which faults the student's tests find.  Each check stands for one kind of fault."""

from __future__ import annotations

import pytest

from autograder.hidden.testing_ex07 import masking_faults as faults
from autograder.hidden.testing_ex07.bench import exposes
from autograder.wire.proxy import Student


@pytest.mark.worth("mask_tokens", 0.3, misconception="untested-labels-elsewhere")
def test_labels_elsewhere(student: Student, seed: int) -> None:
    """The tests find labels at tokens that were not selected, or at padding."""
    exposes(student, seed, "mask_tokens", faults.LabelsEverywhere, faults.LabelsAtPadding)


@pytest.mark.worth("mask_tokens", 0.3, misconception="untested-labels-original")
def test_labels_after_corruption(student: Student, seed: int) -> None:
    """The tests find labels that were taken after the corruption."""
    exposes(student, seed, "mask_tokens", faults.LabelsAfterCorruption)


@pytest.mark.worth("mask_tokens", 0.3, misconception="untested-ignore-index")
def test_ignore_index(student: Student, seed: int) -> None:
    """The tests find a mask_tokens that writes -100 whatever ignore_index says."""
    exposes(student, seed, "mask_tokens", faults.IgnoreIndexFixed)


@pytest.mark.worth("mask_tokens", 0.3, misconception="untested-candidates")
def test_candidates(student: Student, seed: int) -> None:
    """The tests find selected special tokens and selected padding."""
    exposes(student, seed, "mask_tokens", faults.SpecialTokensSelected, faults.PaddingSelected)


@pytest.mark.worth("mask_tokens", 0.3, misconception="untested-share")
def test_share_selected(student: Student, seed: int) -> None:
    """The tests find a share of selected tokens that is not mlm_probability."""
    exposes(student, seed, "mask_tokens", faults.TheOthersSelected, faults.HalfSelected, faults.ShareFixed)


@pytest.mark.worth("mask_tokens", 0.3, misconception="untested-empty-sequence")
def test_sequence_without_target(student: Student, seed: int) -> None:
    """The tests find sequences that have candidates and come out without a target."""
    exposes(student, seed, "mask_tokens", faults.SequencesWithoutTarget)


@pytest.mark.worth("mask_tokens", 0.3, misconception="untested-fates")
def test_fates(student: Student, seed: int) -> None:
    """The tests find selected tokens that become [MASK], random or kept in other shares than asked for."""
    exposes(
        student,
        seed,
        "mask_tokens",
        faults.EverythingMasked,
        faults.RandomShareOfTheRest,
        faults.NeverRandom,
        faults.RatesFixed,
    )


@pytest.mark.worth("mask_tokens", 0.3, misconception="untested-random-pool")
def test_random_pool(student: Student, seed: int) -> None:
    """The tests find random tokens that are not drawn from all of ordinary_ids, or not from them alone."""
    exposes(student, seed, "mask_tokens", faults.AllIdsInThePool, faults.IndicesForIds, faults.LastIdNeverDrawn)


@pytest.mark.worth("mask_tokens", 0.3, misconception="untested-others-corrupted")
def test_others_corrupted(student: Student, seed: int) -> None:
    """The tests find tokens that were changed without having been selected."""
    exposes(student, seed, "mask_tokens", faults.OthersCorrupted)


@pytest.mark.worth("mask_tokens", 0.3, misconception="untested-reproducible")
def test_generator_ignored(student: Student, seed: int) -> None:
    """The tests find masks that the state of the given generator does not reproduce."""
    exposes(student, seed, "mask_tokens", faults.GeneratorIgnored, faults.SeededBySystem)


@pytest.mark.worth("mask_tokens", 0.3, misconception="untested-fresh-masks")
def test_same_mask_every_time(student: Student, seed: int) -> None:
    """The tests find a second call with the same generator that repeats the mask of the first."""
    exposes(student, seed, "mask_tokens", faults.InitialSeedEachTime, faults.ReseedsGenerator, faults.MaskRemembered)


@pytest.mark.worth("mask_tokens", 0.3, misconception="untested-default-generator")
def test_default_generator(student: Student, seed: int) -> None:
    """The tests find a mask_tokens that moves PyTorch's default generator although it was given another."""
    exposes(student, seed, "mask_tokens", faults.SeedsDefaultGenerator, faults.DrawsFromDefaultGenerator)


@pytest.mark.worth("mask_tokens", 0.3, misconception="untested-mutation")
def test_arguments_changed(student: Student, seed: int) -> None:
    """The tests find a mask_tokens that changes the tensors it was given."""
    exposes(student, seed, "mask_tokens", faults.IdsOverwritten, faults.AttentionMaskOverwritten)


@pytest.mark.worth("mask_tokens", 0.3, misconception="untested-nothing-to-do")
def test_no_candidate(student: Student, seed: int) -> None:
    """The tests find a batch without any candidate that is accepted."""
    exposes(student, seed, "mask_tokens", faults.NothingToDoAccepted)


@pytest.mark.worth("mask_tokens", 0.3, misconception="untested-settings")
def test_bad_settings(student: Student, seed: int) -> None:
    """The tests find probabilities and rates that make no sense and are accepted."""
    exposes(student, seed, "mask_tokens", faults.ProbabilityUnchecked, faults.RatesUnchecked)

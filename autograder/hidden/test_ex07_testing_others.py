"""Exercise 7, collate_mlm, mlm_loss and predict: which faults the student's tests find."""

from __future__ import annotations

import pytest

from autograder.hidden.testing_ex07 import collating, losses, predicting
from autograder.hidden.testing_ex07.bench import exposes
from autograder.wire.proxy import Student


@pytest.mark.worth("collate_mlm", 0.3, misconception="untested-attention-by-length")
def test_collate_attention_from_ids(student: Student, seed: int) -> None:
    """The tests find an attention mask that was made by comparing ids with pad_id."""
    exposes(student, seed, "collate_mlm", collating.AttentionFromIds)


@pytest.mark.worth("collate_mlm", 0.3, misconception="untested-padding-layout")
def test_collate_padding(student: Student, seed: int) -> None:
    """The tests find padding on the left, padding with id 0, and padding beyond the longest example."""
    exposes(
        student, seed, "collate_mlm", collating.PaddedOnTheLeft, collating.PaddedWithZero, collating.PaddedToMultiple
    )


@pytest.mark.worth("collate_mlm", 0.3, misconception="untested-inner-special")
def test_collate_special_tokens(student: Student, seed: int) -> None:
    """The tests find special tokens that are selected because they stand inside a text."""
    exposes(student, seed, "collate_mlm", collating.OnlyTheEndsSpecial, collating.OnlyClsAndSepSpecial)


@pytest.mark.worth("collate_mlm", 0.3, misconception="untested-settings-handed-on")
def test_collate_settings(student: Student, seed: int) -> None:
    """The tests find an ignore_index, an mlm_probability or a generator that is not handed on."""
    exposes(student, seed, "collate_mlm", collating.IgnoreIndexKept, collating.ProbabilityKept, collating.GeneratorKept)


@pytest.mark.worth("collate_mlm", 0.3, misconception="untested-bad-examples")
def test_collate_bad_examples(student: Student, seed: int) -> None:
    """The tests find a missing text, an empty text or an unknown id that is accepted."""
    exposes(
        student,
        seed,
        "collate_mlm",
        collating.NoExamplesAccepted,
        collating.EmptyExampleAccepted,
        collating.AnyIdAccepted,
    )


@pytest.mark.worth("collate_mlm", 0.25, misconception="untested-labels-at-padding")
def test_collate_labels_at_padding(student: Student, seed: int) -> None:
    """The tests find labels at the padding that are not ignore_index."""
    exposes(student, seed, "collate_mlm", collating.LabelsAtPadding)


@pytest.mark.worth("collate_mlm", 0.25, misconception="untested-mutation")
def test_collate_examples_changed(student: Student, seed: int) -> None:
    """The tests find a collate_mlm that changes the lists it was given."""
    exposes(student, seed, "collate_mlm", collating.ExamplesPadded)


@pytest.mark.worth("mlm_loss", 0.3, misconception="untested-denominator")
def test_loss_denominator(student: Student, seed: int) -> None:
    """The tests find a loss that is divided by something else than the number of targets in the batch."""
    exposes(student, seed, "mlm_loss", losses.OverAllPositions, losses.MeanOfSequenceMeans, losses.OverSequences)


@pytest.mark.worth("mlm_loss", 0.3, misconception="untested-loss-value")
def test_loss_value(student: Student, seed: int) -> None:
    """The tests find a sum instead of a mean, bits instead of nats, and targets taken one position later."""
    exposes(student, seed, "mlm_loss", losses.Summed, losses.InBits, losses.Shifted)


@pytest.mark.worth("mlm_loss", 0.3, misconception="untested-ignore-index")
def test_loss_ignore_index(student: Student, seed: int) -> None:
    """The tests find an mlm_loss that ignores the label -100 whatever ignore_index says."""
    exposes(student, seed, "mlm_loss", losses.IgnoreIndexFixed)


@pytest.mark.worth("mlm_loss", 0.3, misconception="untested-nothing-to-do")
def test_loss_no_target(student: Student, seed: int) -> None:
    """The tests find a batch without any target that gets a loss."""
    exposes(student, seed, "mlm_loss", losses.NoTargetIsZero, losses.NoTargetIsNan)


@pytest.mark.worth("mlm_loss", 0.3, misconception="untested-bad-labels")
def test_loss_bad_labels(student: Student, seed: int) -> None:
    """The tests find labels outside the vocabulary, too large or negative, that are accepted."""
    exposes(student, seed, "mlm_loss", losses.LabelsClamped, losses.LabelsWrapped, losses.NegativeLabelsIgnored)


@pytest.mark.worth("mlm_loss", 0.25, misconception="untested-ignored-logits")
def test_loss_ignored_logits(student: Student, seed: int) -> None:
    """The tests find a loss that inf or NaN in the logits of ignored positions can spoil."""
    exposes(student, seed, "mlm_loss", losses.IgnoredMultipliedByZero)


@pytest.mark.worth("mlm_loss", 0.25, misconception="untested-large-logits")
def test_loss_large_logits(student: Student, seed: int) -> None:
    """The tests find a loss that large logits drive to infinity or NaN."""
    exposes(student, seed, "mlm_loss", losses.NoShiftOfLogits, losses.LogOfSoftmax)


@pytest.mark.worth("predict", 0.25, misconception="untested-padding-ids")
def test_predict_padding_ids(student: Student, seed: int) -> None:
    """The tests find predictions that change with the ids at the padding."""
    exposes(student, seed, "predict", predicting.MaskIgnored, predicting.MaskFromIds)


@pytest.mark.worth("predict", 0.25, misconception="untested-padding-width")
def test_predict_padding_width(student: Student, seed: int) -> None:
    """The tests find predictions that change with the number of padding columns."""
    exposes(student, seed, "predict", predicting.DividedByWidth, predicting.WidthCounts)


@pytest.mark.worth("predict", 0.25, misconception="untested-nothing-to-do")
def test_predict_only_padding(student: Student, seed: int) -> None:
    """The tests find a row of padding only that gets a prediction."""
    exposes(student, seed, "predict", predicting.PaddingOnlyAccepted)


@pytest.mark.worth("predict", 0.25, misconception="untested-repeated-prediction")
def test_predict_dropout(student: Student, seed: int) -> None:
    """The tests find predictions that change when the same batch is predicted again."""
    exposes(student, seed, "predict", predicting.DropoutLeftOn)


@pytest.mark.worth("predict", 0.25, misconception="untested-neighbours")
def test_predict_neighbours(student: Student, seed: int) -> None:
    """The tests find predictions of a text that change with the other texts of the batch."""
    exposes(student, seed, "predict", predicting.CentredByBatch, predicting.MaskOfFirstRow)


@pytest.mark.worth("predict", 0.25, misconception="untested-mutation")
def test_predict_arguments_changed(student: Student, seed: int) -> None:
    """The tests find a predict that changes the tensors it was given."""
    exposes(student, seed, "predict", predicting.PaddingZeroed, predicting.AttentionMaskSpent)

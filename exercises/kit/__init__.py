"""Given code: what the exercises import and nobody has to write."""

from exercises.kit.classifier import Classifier
from exercises.kit.meters import Meter, parameter_counts
from exercises.kit.records import (
    ComparisonConfig,
    EpochMetrics,
    FineTuneConfig,
    FineTuneResult,
    LengthGroup,
    PaddingReport,
    RunRecord,
)
from exercises.kit.training import Batch, collate, fit, predict
from exercises.kit.types import Example, MaskedBatch, Splits
from exercises.kit.vocabulary import Vocabulary

__all__ = [
    "Batch",
    "Classifier",
    "ComparisonConfig",
    "EpochMetrics",
    "Example",
    "FineTuneConfig",
    "FineTuneResult",
    "LengthGroup",
    "MaskedBatch",
    "Meter",
    "PaddingReport",
    "RunRecord",
    "Splits",
    "Vocabulary",
    "collate",
    "fit",
    "parameter_counts",
    "predict",
]

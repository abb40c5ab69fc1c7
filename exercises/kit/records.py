"""What exercises 6 to 10 are told to do, and what they report: plain records without behaviour."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor


@dataclass(frozen=True)
class FineTuneConfig:
    """How exercise 6 fine-tunes one model."""

    #: "frozen": only the classification layer learns; "full": everything does.
    mode: str
    #: AdamW's learning rate of the encoder.
    learning_rate: float
    #: AdamW's learning rate of the classification layer.
    head_learning_rate: float
    #: AdamW's decoupled weight decay; biases and LayerNorm weights have none.
    weight_decay: float = 0.01
    #: Examples in a batch; the last batch of an epoch may be smaller.
    batch_size: int = 16
    #: At most so many passes over the training split.
    max_epochs: int = 10
    #: Training stops after so many epochs in a row without a lower validation loss.
    patience: int = 2
    #: Decides the order of the examples, dropout, and whatever else is random.
    seed: int = 0
    #: Where to train: "cpu" or "cuda".
    device: str = "cpu"
    #: The id that fills the end of short sequences.
    pad_id: int = 0


class EpochMetrics(NamedTuple):
    """What one epoch came to.  Losses are means over the examples, in nats."""

    #: 1 for the first epoch.
    epoch: int
    #: Mean over the training examples, as seen while training.
    train_loss: float
    #: Mean over the validation examples, after the epoch, without dropout.
    validation_loss: float
    #: Share of the validation examples that are classified right.
    validation_accuracy: float


@dataclass(frozen=True)
class FineTuneResult:
    """What a fine-tuning run gives back.  The scores are those of the best epoch's weights."""

    #: Numbers in all parameters that learn, and in all parameters.
    trainable_parameters: int
    total_parameters: int
    #: One entry an epoch, in order.
    history: Sequence[EpochMetrics]
    #: The epoch (1, 2, …) with the lowest validation loss, the first of them if several are equal.
    best_epoch: int
    test_accuracy: float
    #: F1 of class 1: 2·TP / (2·TP + FP + FN), and 0.0 where that is 0/0.
    test_f1: float
    #: (input_ids (m, T), attention_mask (m, T)) -> int64 classes (m,) on the device of input_ids.
    predict: Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class ComparisonConfig:
    """What holds for every method of a comparison (exercises 8, 9 and 10)."""

    #: One run of every method for each of them.
    seeds: tuple[int, ...]
    #: method -> the settings to try, the same number for all: learning rates; for a bag of words, values of C.
    settings: Mapping[str, tuple[float, ...]]
    #: Optimizer updates of one training run of a neural method.
    updates: int = 100
    #: Examples an update.
    batch_size: int = 16
    weight_decay: float = 0.01
    #: "cpu" or "cuda".
    device: str = "cpu"
    pad_id: int = 0
    #: Exercise 8: V; the ids of the texts are 0 … V-1.
    vocab_size: int = 30_522
    #: LoRA (exercise 9): rank r, scale alpha (the update is alpha / r · B A), and the linear layers it is added to, by
    #: the last part of their names.
    lora_rank: int = 4
    lora_alpha: float = 8.0
    lora_targets: tuple[str, ...] = ("query", "value")
    #: Exercise 10: the maximum lengths, [CLS] and [SEP] included, and the padding strategies to compare.
    max_lengths: tuple[int, ...] = ()
    strategies: tuple[str, ...] = ("global", "dynamic")


@dataclass(frozen=True)
class RunRecord:
    """One method with one seed: the setting was chosen on the validation split, then the test split was read once."""

    method: str
    seed: int
    #: Scores on the test split; f1 is that of class 1, 0.0 where it is 0/0.
    accuracy: float
    f1: float
    #: Wall time of the training run with the chosen setting, and of predicting the test split, both after a warm-up.
    train_seconds: float
    predict_seconds: float
    #: Highest memory use during that training run.
    peak_memory_bytes: int
    trainable_parameters: int
    total_parameters: int
    #: Calls of the encoder, forward and backward, in that training run and the prediction of the test split.
    encoder_forward_calls: int
    encoder_backward_calls: int
    #: Optimizer updates of that training run, and examples in each; 0 for a method that makes none.
    updates: int
    examples_per_update: int
    #: Accuracy on the validation split with the chosen setting.
    validation_score: float
    chosen_hyperparameters: Mapping[str, float]
    #: The classes predicted for the test split, in its order.
    test_predictions: Sequence[int]
    #: Exercise 10 only.
    max_length: int | None = None
    strategy: str | None = None
    truncation_ratio: float | None = None
    padding_ratio: float | None = None


class PaddingReport(NamedTuple):
    """What a maximum length and a padding strategy do to a list of sequences."""

    #: Share of the sequences that are longer than the maximum length.
    truncation_ratio: float
    #: Share of padding among all positions of all batches together.
    padding_ratio: float


class LengthGroup(NamedTuple):
    """The texts whose original length lies in [shortest, longest], both included."""

    shortest: int
    #: None: no upper end.
    longest: int | None
    texts: int
    errors: int
    #: errors / texts; None for a group without texts.
    error_rate: float | None

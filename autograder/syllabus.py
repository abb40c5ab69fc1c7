"""The one table of exercises: everything that needs to know what is taught, or what it is worth, reads it here."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

#: "torch": PyTorch and the kit; "transformers": those, transformers and scikit-learn.
Family = Literal["torch", "transformers"]


@dataclass(frozen=True)
class Function:
    """One graded function of an exercise.

    points: automatic points, in hundredths, so that sums are exact.
    parameters: names of the parameters in order, as the contract gives them.
    """

    name: str
    points: int
    parameters: tuple[str, ...]


@dataclass(frozen=True)
class Exercise:
    """One exercise.

    number: 1…10.  name: the end of the module's name.  title, title_zh: for people.
    functions: what is graded automatically.  written_points: hundredths, graded by a person.
    needs: numbers of the exercises whose ideas this one uses.
    off_limits: True if the library's own softmax and cross-entropy may not be called.
    family: the libraries that its workers have at hand.  time_factor: how much longer than others it may take.
    tests: True if students write tests, of functions of those names that are handed to them.
    """

    number: int
    name: str
    title: str
    title_zh: str
    functions: tuple[Function, ...]
    written_points: int = 0
    needs: tuple[int, ...] = ()
    off_limits: bool = False
    family: Family = "torch"
    time_factor: float = 1.0
    tests: bool = False
    by_name: dict[str, Function] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {function.name: function for function in self.functions})

    @property
    def id(self) -> str:
        return f"ex{self.number:02d}"

    @property
    def module(self) -> str:
        return f"{self.id}_{self.name}"

    @property
    def points(self) -> int:
        """Automatic points, in hundredths."""
        return sum(function.points for function in self.functions)


SYLLABUS: tuple[Exercise, ...] = (
    Exercise(
        1,
        "input_embeddings",
        "Input representation",
        "输入表示",
        (
            Function("embedding_sum", 300, ("token", "segment", "position")),
            Function(
                "input_embeddings",
                400,
                ("input_ids", "token_type_ids", "token_table", "segment_table", "position_table"),
            ),
            Function("another_decomposition", 300, ("token", "segment", "position")),
        ),
        written_points=400,
    ),
    Exercise(
        2,
        "mlm_loss",
        "The masked-language-model loss",
        "掩码语言模型损失",
        (
            Function("mean_nll", 200, ("probabilities",)),
            Function("stable_log_softmax", 300, ("logits",)),
            Function("mlm_loss", 500, ("logits", "labels", "ignore_index")),
        ),
        off_limits=True,
    ),
    Exercise(
        3,
        "copy_shortcut",
        "The copy shortcut",
        "复制捷径",
        (
            Function("copy_logits", 200, ("input_ids", "vocab_size", "scale")),
            Function("copy_loss", 300, ("input_ids", "targets", "selected", "vocab_size", "scale")),
            Function("match_probability", 200, ("mask_rate", "random_rate", "keep_rate", "n_ordinary")),
            Function("context_free_floor", 300, ("match_probability", "vocab_size")),
        ),
        written_points=400,
        needs=(2,),
    ),
    Exercise(
        4,
        "shapes_and_attention",
        "Shapes, memory and attention masks",
        "形状、内存与注意力掩码",
        (
            Function(
                "bert_shapes",
                300,
                ("batch_size", "sequence_length", "hidden_size", "num_heads", "num_labels", "bytes_per_element"),
            ),
            Function("attention_scores", 200, ("query", "key")),
            Function("masked_softmax", 500, ("scores", "mask")),
        ),
    ),
    Exercise(
        5,
        "dynamic_masking",
        "Dynamic masking",
        "动态掩码",
        (
            Function(
                "mask_tokens",
                700,
                (
                    "input_ids",
                    "attention_mask",
                    "special_tokens_mask",
                    "mask_token_id",
                    "ordinary_ids",
                    "mlm_probability",
                    "mask_rate",
                    "random_rate",
                    "ignore_index",
                    "generator",
                ),
            ),
            Function(
                "collate_mlm",
                300,
                ("examples", "vocabulary", "mlm_probability", "ignore_index", "generator"),
            ),
        ),
        needs=(2, 3),
    ),
    Exercise(
        6,
        "fine_tuning",
        "Fine-tuning",
        "微调",
        (
            Function("set_trainable", 150, ("model", "mode")),
            Function("parameter_groups", 250, ("model", "config")),
            Function("fine_tune", 600, ("model", "splits", "config")),
        ),
        family="transformers",
        time_factor=4.0,
    ),
    Exercise(
        7,
        "testing",
        "Tests that find bugs",
        "能发现错误的测试",
        (
            Function("mask_tokens", 450, ()),
            Function("collate_mlm", 200, ()),
            Function("mlm_loss", 200, ()),
            Function("predict", 150, ()),
        ),
        needs=(2, 5, 6),
        time_factor=4.0,
        tests=True,
    ),
    Exercise(
        8,
        "baselines",
        "Bag of words, frozen encoder, full fine-tuning",
        "词袋、冻结编码器与全量微调",
        (
            Function("bag_of_words", 350, ("splits", "seed", "settings", "vocab_size")),
            Function("compare_baselines", 650, ("splits", "make_model", "config")),
        ),
        written_points=400,
        needs=(6,),
        family="transformers",
        time_factor=4.0,
    ),
    Exercise(
        9,
        "transfer_methods",
        "Frozen, full, LoRA",
        "冻结、全量与 LoRA",
        (
            Function("LoRALinear", 300, ("linear", "rank", "alpha", "generator")),
            Function("add_lora", 200, ("model", "rank", "alpha", "targets", "generator")),
            Function("merge_lora", 150, ("model",)),
            Function("compare_transfer", 350, ("splits", "make_model", "config")),
        ),
        written_points=400,
        needs=(6, 8),
        family="transformers",
        time_factor=4.0,
    ),
    Exercise(
        10,
        "length_and_padding",
        "Maximum length and padding",
        "最大长度与填充",
        (
            Function("truncate_and_pad", 300, ("sequences", "max_length", "strategy", "pad_id")),
            Function("padding_report", 200, ("sequences", "max_length", "strategy", "batch_size")),
            Function("errors_by_length", 150, ("lengths", "correct", "edges")),
            Function("compare_lengths", 350, ("splits", "make_model", "config")),
        ),
        written_points=400,
        needs=(6, 8),
        family="transformers",
        time_factor=4.0,
    ),
)


EXERCISES: dict[int, Exercise] = {exercise.number: exercise for exercise in SYLLABUS}


def exercise(number: int) -> Exercise:
    """The exercise of that number.  Raises KeyError with the numbers there are."""
    try:
        return EXERCISES[number]
    except KeyError:
        raise KeyError(f"no exercise {number}: there are {', '.join(map(str, EXERCISES))}") from None

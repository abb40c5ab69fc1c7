"""The one table of exercises: everything that needs to know what is taught, or what it is worth, reads it here."""

from __future__ import annotations

from dataclasses import dataclass, field


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
    """

    number: int
    name: str
    title: str
    title_zh: str
    functions: tuple[Function, ...]
    written_points: int = 0
    needs: tuple[int, ...] = ()
    off_limits: bool = False
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
)

EXERCISES: dict[int, Exercise] = {exercise.number: exercise for exercise in SYLLABUS}


def exercise(number: int) -> Exercise:
    """The exercise of that number.  Raises KeyError with the numbers there are."""
    try:
        return EXERCISES[number]
    except KeyError:
        raise KeyError(f"no exercise {number}: there are {', '.join(map(str, EXERCISES))}") from None

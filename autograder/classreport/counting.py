"""What a class comes to, counted one report after the other: nothing of a report is kept but numbers and names."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from autograder.render import words
from autograder.render.reasons import at_fault, misconceptions
from autograder.render.words import Lang, one_line
from autograder.report import Check, ExerciseReport, Report, Verdict

#: Verdicts of checks that a function went through; the others say nothing about how hard a check is.
RAN: frozenset[Verdict] = frozenset({"passed", "failed", "timeout", "out_of_memory", "crashed"})
#: What a submission may run into, apart from being wrong.
TROUBLE: tuple[Verdict, ...] = ("timeout", "crashed", "out_of_memory")
CONDUCT = "conduct"


@dataclass(frozen=True, slots=True)
class Score:
    """Hundredths of points.  None of it is a grade where the grader itself failed."""

    points: int
    most: int
    at_fault: bool = False


@dataclass(slots=True)
class Row:
    """One submission.  page: the name of its page, without suffix.  time: when it was handed in, if that is known."""

    name: str
    page: str
    score: Score
    exercises: dict[str, Score]
    remark: str
    misconceptions: tuple[str, ...]
    trouble: dict[Verdict, Counter[str]]
    notes: int
    time: float | None = None


@dataclass(slots=True)
class FunctionCount:
    points: int = 0
    most: int = 0
    submissions: int = 0
    unwritten: int = 0


@dataclass(slots=True)
class CheckCount:
    title: str
    ran: int = 0
    passed: int = 0
    unwritten: int = 0


@dataclass(slots=True)
class MisconceptionCount:
    """rows: the submissions that show it.  functions: where, in how many of them.  hint: that of the first."""

    hint: str
    rows: list[int] = field(default_factory=list)
    functions: Counter[str] = field(default_factory=Counter)


class ClassCount:
    """The counts of a class so far."""

    def __init__(self, lang: Lang) -> None:
        self._lang = lang
        self.rows: list[Row] = []
        self.titles: dict[str, str] = {}
        self.functions: dict[tuple[str, str], FunctionCount] = {}
        self.checks: dict[tuple[str, str, str], CheckCount] = {}
        self.misconceptions: dict[str, MisconceptionCount] = {}
        self.conduct: dict[str, list[int]] = {}
        self.circumstances: Counter[str] = Counter()

    def add(self, report: Report, name: str, page: str, time: float | None) -> None:
        index = len(self.rows)
        trouble: dict[Verdict, Counter[str]] = {}
        for exercise, function, check in _checks(report):
            self._count_check(exercise, function, check)
            if check.verdict in TROUBLE:
                trouble.setdefault(check.verdict, Counter())[f"{exercise}.{function}"] += 1
        for exercise_report in report.exercises:
            self._count_functions(exercise_report)
        self._count_misconceptions(report, index)
        for note in dict.fromkeys(note for note in report.notes if note.startswith(CONDUCT)):
            self.conduct.setdefault(one_line(note), []).append(index)
        self.circumstances[words.circumstances(report, self._lang)] += 1
        self.rows.append(
            Row(
                name,
                page,
                Score(report.points, report.max_points, report.needs_attention),
                {one_line(one.id): _score(one) for one in report.exercises},
                words.remark(report, self._lang),
                tuple(misconceptions(report)),
                trouble,
                len(report.notes),
                time,
            )
        )

    @property
    def graded(self) -> list[Row]:
        return [row for row in self.rows if not row.score.at_fault]

    @property
    def attention(self) -> list[Row]:
        return [row for row in self.rows if row.score.at_fault]

    def _count_check(self, exercise: str, function: str, check: Check) -> None:
        count = self.checks.setdefault((exercise, function, check.id), CheckCount(one_line(check.title)))
        count.ran += check.verdict in RAN
        count.passed += check.verdict == "passed"
        count.unwritten += check.verdict == "not_implemented"

    def _count_functions(self, exercise: ExerciseReport) -> None:
        self.titles.setdefault(one_line(exercise.id), words.exercise_title(exercise, self._lang))
        for function in exercise.functions:
            count = self.functions.setdefault((one_line(exercise.id), one_line(function.name)), FunctionCount())
            if at_fault(function.checks):
                continue
            count.points += function.points
            count.most += function.max_points
            count.submissions += 1
            count.unwritten += any(check.verdict == "not_implemented" for check in function.checks)

    def _count_misconceptions(self, report: Report, index: int) -> None:
        where: dict[str, dict[str, None]] = {}
        for exercise, function, check in _checks(report):
            if check.misconception is None or check.verdict == "passed":
                continue
            count = self.misconceptions.setdefault(check.misconception, MisconceptionCount(check.hint))
            if not count.rows or count.rows[-1] != index:
                count.rows.append(index)
            where.setdefault(check.misconception, {})[f"{exercise}.{function}"] = None
        for name, functions in where.items():
            self.misconceptions[name].functions.update(functions.keys())


def _score(exercise: ExerciseReport) -> Score:
    fault = any(at_fault(function.checks) for function in exercise.functions)
    return Score(exercise.points, exercise.max_points, fault)


def _checks(report: Report) -> Iterator[tuple[str, str, Check]]:
    for exercise in report.exercises:
        for function in exercise.functions:
            for check in function.checks:
                yield one_line(exercise.id), one_line(function.name), check

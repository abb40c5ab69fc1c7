"""One submission in, one Report out.  Hidden checks are pytest tests; this module runs them over submissions."""

from __future__ import annotations

import contextlib
import gc
import os
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest
import torch
from _pytest.runner import runtestprotocol

from autograder import __version__, memory
from autograder.examples import reproducible
from autograder.hidden.catalogue import catalogue
from autograder.hidden.expect import Wrong
from autograder.limits import Limits
from autograder.report import Check, ExerciseReport, FunctionReport, Report, Verdict, plain_text
from autograder.sandbox import torch_setup
from autograder.sandbox.loading import Part, load
from autograder.syllabus import Exercise
from autograder.wire.errors import GraderFault, Interrupted, RemoteError
from autograder.wire.proxy import LocalStudent, Student
from autograder.wire.show import show

if TYPE_CHECKING:
    from autograder.wire.classroom import Classrooms, Leases

HIDDEN = Path(__file__).parent / "hidden"

#: What a check comes to on answers alone: the same answers come to the same.
PRECEDENTS = frozenset({"passed", "failed", "not_implemented"})


@dataclass(frozen=True)
class Work:
    """A student's work on one exercise, ready to be loaded.

    refused: why it cannot be, in a sentence, or None.  verdict: what a refusal counts as.
    """

    exercise: Exercise
    parts: tuple[Part, ...]
    refused: str | None = None
    verdict: Verdict = "crashed"


@dataclass(frozen=True)
class Submission:
    """Everything handed in at one path.  notes: what was matched, skipped or forgiven on the way."""

    name: str
    works: tuple[Work, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Options:
    """device: "auto", "cpu" or "cuda".  sandbox: "auto", "strict" or "off" (bare).

    limits: how much time a submission may take.
    For authors only: in_process: without a boundary.  stop_early: skip what follows the first check that fails.
    precedents: False to run every check, whatever other submissions answered (see autograder.wire.precedents).
    """

    device: str = "auto"
    seed: int = 0
    sandbox: str = "auto"
    limits: Limits = field(default_factory=Limits)
    in_process: bool = False
    stop_early: bool = False
    precedents: bool = True


#: Opens the student's side for one exercise, for as long as the context lasts.
Opener = Callable[[Work], contextlib.AbstractContextManager[Student]]


def chosen_device(wanted: str) -> torch.device:
    """The device to grade on.  Raises ValueError if CUDA is asked for and not there."""
    if wanted == "cuda" and not torch.cuda.is_available():
        raise ValueError("--device cuda: PyTorch sees no CUDA device here; use --device cpu or auto")
    if wanted == "auto":
        wanted = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(wanted)


@contextlib.contextmanager
def open_in_process(work: Work) -> Iterator[Student]:
    """The student's side without a boundary: only for code that the author of the checks trusts."""
    loaded = load(work.exercise.module, work.parts)
    if loaded.raised is not None:
        raise Interrupted("crashed", f"The file could not be loaded: {loaded.raised.text}")
    yield LocalStudent(work.exercise, loaded.module, {part.name: part.text for part in work.parts})


def grade_all(
    submissions: Iterable[Submission],
    options: Options,
    on_report: Callable[[Report], None],
    leases: Leases | None = None,
) -> None:
    """Grade submissions one after the other; each Report is handed on as soon as it is there.

    leases: what workers are made from, if another process has it already.
    """
    torch_setup.set_up()
    device = chosen_device(options.device)
    if options.in_process:
        _run(submissions, options, device, open_in_process, lambda: "in-process (no protection)", on_report)
        return
    from autograder.wire.classroom import Classrooms

    with Classrooms(options.sandbox, device, options.seed, options.limits, leases) as classrooms:
        grade_in(classrooms, submissions, options, on_report)


def grade_in(
    classrooms: Classrooms, submissions: Iterable[Submission], options: Options, on_report: Callable[[Report], None]
) -> None:
    """Grade submissions in classrooms that are open already, and stay open."""
    torch_setup.set_up()
    _run(submissions, options, chosen_device(options.device), classrooms.open, lambda: classrooms.level, on_report)


def grade(submission: Submission, options: Options = Options()) -> Report:
    """Grade one submission."""
    reports: list[Report] = []
    grade_all([submission], options, reports.append)
    return reports[0]


def _run(
    submissions: Iterable[Submission],
    options: Options,
    device: torch.device,
    opener: Opener,
    sandbox: Callable[[], str],
    on_report: Callable[[Report], None],
) -> None:
    plugin = _Checks(submissions, options, device, opener, sandbox, on_report)
    # without a folder and --noconftest pytest would run a conftest.py of the current folder, outside of all walls
    arguments = [str(HIDDEN), "--noconftest", "--rootdir", str(HIDDEN), "-c", os.devnull]
    arguments += ["--assert=plain", "--import-mode=importlib"]
    arguments += ["-s", "--disable-plugin-autoload", "-p", "no:terminal", "-p", "no:cacheprovider"]
    arguments += ["-p", "no:faulthandler", "-p", "no:warnings", "-p", "no:logging", "-p", "no:unraisableexception"]
    arguments += ["-p", "no:threadexception", "-p", "no:junitxml", "-p", "no:doctest", "-p", "no:pastebin"]
    gc.freeze()  # PyTorch is no garbage: looking through it takes as long as a small submission does
    try:
        with reproducible():
            status = pytest.main(arguments, plugins=[plugin])
    finally:
        gc.unfreeze()
    if plugin.stopped is not None:
        raise plugin.stopped
    if status == pytest.ExitCode.INTERRUPTED:
        raise KeyboardInterrupt
    if not plugin.finished:
        raise GraderFault(f"pytest ended with {status!r} before all was graded")


class _Checks:
    """The pytest plugin: collects the hidden checks of each exercise once, and runs them for every submission."""

    def __init__(
        self,
        submissions: Iterable[Submission],
        options: Options,
        device: torch.device,
        opener: Opener,
        sandbox: Callable[[], str],
        on_report: Callable[[Report], None],
    ) -> None:
        self._submissions = submissions
        self._options = options
        self._device = device
        self._opener = opener
        self._sandbox = sandbox
        self._on_report = on_report
        self._student: Student | None = None
        self._error: BaseException | None = None
        self.finished = False
        self.stopped: BaseException | None = None
        self._items: dict[int, list[pytest.Item]] = {}
        self._problems: list[str] = []

    # -- what the checks ask for ------------------------------------------------------------------------------------
    @pytest.fixture
    def student(self) -> Student:
        """The submission under test."""
        assert self._student is not None
        return self._student

    @pytest.fixture
    def device(self) -> torch.device:
        """The device that inputs are made on."""
        return self._device

    @pytest.fixture
    def seed(self) -> int:
        """The grader's seed: the same for every submission of a batch."""
        return self._options.seed

    # -- pytest hooks -----------------------------------------------------------------------------------------------
    def pytest_configure(self, config: pytest.Config) -> None:
        config.addinivalue_line("markers", "worth(function, points, misconception=None, needs=None): a graded check")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self._problems.append(str(report.longrepr))

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Iterator[None]:
        try:
            return (yield)
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:  # judged below, without pytest's own rendering of it
            self._error = error
            return None

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection(self) -> bool:
        return True  # nothing yet: see _collected

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        try:
            for number, submission in enumerate(self._submissions, start=1):
                self._on_report(self._grade(submission, session))
                if number % memory.EVERY == 0:
                    memory.give_back()
            self.finished = True
        except BaseException as error:  # carried out of pytest unchanged
            self.stopped = error
        return True

    def _collected(self, exercise: Exercise, session: pytest.Session) -> list[pytest.Item]:
        """The checks of an exercise, collected when the first submission of it comes.  Raises GraderFault."""
        if exercise.number not in self._items:
            files = [str(file) for file in sorted(HIDDEN.glob(f"test_{exercise.id}_*.py"))]
            if not files:
                raise GraderFault(f"there are no hidden checks of {exercise.id}")
            self._items[exercise.number] = list(session.perform_collect(files))
            if self._problems:
                raise GraderFault(f"the hidden checks of {exercise.id} could not be collected: {self._problems}")
        return self._items[exercise.number]

    # -- grading ----------------------------------------------------------------------------------------------------
    def _grade(self, submission: Submission, session: pytest.Session) -> Report:
        self._conduct: list[str] = []
        exercises = tuple(self._exercise(work, self._collected(work.exercise, session)) for work in submission.works)
        return Report(
            submission=submission.name,
            exercises=exercises,
            sandbox=self._sandbox(),
            device=self._device.type,
            seed=self._options.seed,
            grader_version=__version__,
            notes=(*submission.notes, *self._conduct),
        )

    def _exercise(self, work: Work, items: list[pytest.Item]) -> ExerciseReport:
        done: dict[str, Check] = {}
        if work.refused is not None:
            done = {item.name: _check(item, Ending(work.verdict, work.refused)) for item in items}
        else:
            try:
                with self._opener(work) as student:
                    self._student = student
                    for item in items:
                        if self._options.stop_early and any(c.verdict != "passed" for c in done.values()):
                            done[item.name] = _check(item, Ending("skipped", "Not run after a failure."))
                        else:
                            done[item.name] = self._check(item, student, done)
            except Interrupted as interruption:
                ending = Ending(interruption.verdict, interruption.message)
                self._conduct += [f"conduct, {work.exercise.id}: {note}" for note in interruption.conduct]
                done = {item.name: done.get(item.name) or _check(item, ending) for item in items}
            finally:
                if self._student is not None:
                    self._conduct += [f"conduct, {work.exercise.id}: {note}" for note in self._student.conduct]
                self._student = None
        functions = tuple(
            FunctionReport(
                function.name,
                tuple(done[item.name] for item in items if worth(item).function == function.name),
            )
            for function in work.exercise.functions
        )
        return ExerciseReport(work.exercise.id, work.exercise.title, functions)

    def _check(self, item: pytest.Item, student: Student, done: dict[str, Check]) -> Check:
        needs = worth(item).needs
        if needs is not None and done[needs].verdict == "not_implemented":
            return _check(item, Ending("not_implemented", done[needs].message))
        if needs is not None and done[needs].verdict != "passed":
            return _check(item, Ending("skipped", f"Not run, because “{done[needs].title}” did not pass."))
        started = time.perf_counter()
        ending = self._run(item, student)
        if ending.verdict == "grader_error":  # a fault of ours may be one of the moment: once more, on a new worker
            ending = self._run(item, student, again=True)
        return _check(item, ending, time.perf_counter() - started)

    def _run(self, item: pytest.Item, student: Student, again: bool = False) -> Ending:
        calls = student.calls
        student.begin_check(worth(item).function, again, item.name if self._options.precedents else "")
        try:
            precedent: Ending | None = student.precedent()
            if precedent is not None:
                return precedent
            self._error = None
            reports = runtestprotocol(item, nextitem=None, log=False)
        finally:
            student.end_check()
        if self._error is not None:
            ending = judge(self._error, student, student.calls > calls, worth(item).misconception)
        elif broken := [report for report in reports if report.failed]:
            ending = Ending("grader_error", f"The check itself failed at {broken[0].when}.")
        else:
            ending = Ending("passed")
        if ending.verdict in PRECEDENTS:
            student.set_precedent(ending)
        return ending


@dataclass(frozen=True)
class Worth:
    """What a check says of itself: `@pytest.mark.worth("mlm_loss", 1.5, misconception="…", needs="test_…")`."""

    function: str
    points: int
    misconception: str | None
    needs: str | None


@lru_cache(maxsize=1024)
def worth(item: pytest.Item) -> Worth:
    """The worth marker of a check.  Raises GraderFault if it has none."""
    marker = item.get_closest_marker("worth")
    if marker is None:
        raise GraderFault(f"{item.nodeid} has no @pytest.mark.worth(function, points)")
    function, points = marker.args
    return Worth(function, round(points * 100), marker.kwargs.get("misconception"), marker.kwargs.get("needs"))


def title(item: pytest.Item) -> str:
    """The first paragraph of the check's docstring: the line that students see."""
    text = getattr(item, "obj", None).__doc__ or item.name
    return " ".join(text.strip().split("\n\n")[0].split())


def _check(item: pytest.Item, ending: Ending, seconds: float = 0.0) -> Check:
    points = worth(item).points
    entry = catalogue()[ending.misconception] if ending.misconception is not None else None
    explained = f"{ending.message}\n{entry.title}: {entry.explanation}" if entry else ending.message
    return Check(
        id=item.name,
        title=title(item),
        verdict=ending.verdict,
        points=points if ending.verdict == "passed" else 0,
        max_points=points,
        message=plain_text(explained),
        hint=plain_text(entry.hint if entry else ""),
        seconds=round(seconds, 4),
        misconception=ending.misconception,
    )


@dataclass(frozen=True)
class Ending:
    """How a check ended.  misconception: an id of the catalogue that explains a failure."""

    verdict: Verdict
    message: str = ""
    misconception: str | None = None


def judge(error: BaseException, student: Student, called: bool, default: str | None) -> Ending:
    """What ended a check, as a verdict.

    called: whether the check had called the submission: only then can the submission be the cause.
    default: the misconception to name where the check found none.
    """
    if isinstance(error, hypothesis.errors.Flaky):
        inner = [e for e in getattr(error, "exceptions", ()) if isinstance(e, Wrong | RemoteError | Interrupted)]
        if inner:
            first = judge(inner[0], student, called, default)
            message = f"{first.message}\nThe same call gave another result when it was repeated."
            return Ending(first.verdict, message, first.misconception)
        return Ending("failed", f"{student.last.text}\ngave different results for the same arguments.")
    if isinstance(error, Wrong):
        return Ending("failed", error.message, error.misconception or default)
    if isinstance(error, Interrupted):
        return Ending(error.verdict, error.message)
    if isinstance(error, RemoteError):
        call = getattr(error, "call", student.last)
        raised = error.raised
        message = f"{call.text}\nraised {raised.text}"
        if raised.base == "NotImplementedError":
            return Ending("not_implemented", message)
        if raised.base == "MemoryError" or "can't allocate memory" in raised.message:
            return Ending("out_of_memory", message)
        return Ending("failed", message, "off-limits" if raised.type_name == "OffLimitsError" else default)
    if isinstance(error, GraderFault | OSError) or not called:
        return Ending("grader_error", f"The grader failed, not the submission: {type(error).__name__}: {error}")
    try:
        returned = show(student.last.returned)
    except Exception:  # whatever can be made of plain data
        returned = f"a {type(student.last.returned).__name__}"
    return Ending("failed", f"{student.last.text}\nreturned {returned}\nwhich could not be checked.", default)

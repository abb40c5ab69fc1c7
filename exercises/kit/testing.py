"""Running a module's own pytest tests against an implementation that is handed to them as the fixture `impl`."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Literal

import hypothesis
import numpy as np
import pytest
import torch
from _pytest.config import _prepareconfig
from _pytest.main import Session
from _pytest.runner import runtestprotocol

#: "failed" is an assertion that does not hold, and nothing else: another exception is an "error".
#: "unwritten": the test raises NotImplementedError, as a stub does.
Outcome = Literal["passed", "failed", "error", "timeout", "skipped", "unwritten"]

MOST_TESTS = 100
MOST_EXAMPLES = 50
_OPTIONS = ["-c", os.devnull, "--noconftest", "--assert=plain", "-s", "--disable-plugin-autoload"]
_WITHOUT = ["terminal", "cacheprovider", "faulthandler", "warnings", "logging", "unraisableexception"]
_WITHOUT += ["threadexception", "junitxml", "doctest", "pastebin", "stepwise"]


@dataclass(frozen=True)
class Result:
    """How one test ended.  error: the exception that ended it, None if it passed."""

    outcome: Outcome
    error: BaseException | None = None


class OutOfTime(BaseException):
    """The test ran too long.  No Exception, so that `except Exception` in a test does not swallow it."""


class Suite:
    """The tests of a module, collected once as pytest collects them: functions, classes, parametrized, with fixtures.

    The module is loaded already; no file of it is needed, and no plugin but pytest's own is used.  Tests that use
    Hypothesis try at most 50 examples, the same ones each time.

    names: what pytest calls the tests, such as "test_loss", "test_loss[3]" or "TestLoss::test_value"; at most 100.
    left_out: how many more there are.  problems: what pytest could not collect, in its words.
    """

    def __init__(self, module: ModuleType) -> None:
        self._plugin = _Plugin()
        options = [*_OPTIONS, *(f"-p no:{name}" for name in _WITHOUT), f"--rootdir={Path.cwd()}"]
        config = _prepareconfig(options, [self._plugin, self._plugin.fixtures(), _BareReports()])
        config._do_configure()
        session = self._session = Session.from_config(config)
        config.hook.pytest_sessionstart(session=session)
        collector = _LoadedModule.from_parent(session, path=Path.cwd() / f"{module.__name__}.py", module=module)
        items: dict[str, pytest.Item] = {}
        for item in session.genitems(collector):
            name = item.nodeid.partition("::")[2]
            items.setdefault(name, item)
        self._items = dict(list(items.items())[:MOST_TESTS])
        self.names = list(self._items)
        self.left_out = len(items) - len(self._items)
        self.problems = self._plugin.uncollected
        for item in self._items.values():
            _limit_examples(item)

    def run(self, name: str, impl: Mapping[str, Callable[..., Any]], seconds: float = 5.0) -> Result:
        """Run one test on the functions of `impl`, for at most that many seconds.

        The global generators of torch, numpy and random begin every test with the same state.
        """
        clock = _Clock()
        before = torch.get_rng_state(), np.random.get_state(), random.getstate()
        _seed()
        functions = {key: clock.undisturbed(function) for key, function in impl.items()}
        self._plugin.begin(SimpleNamespace(**functions))
        try:
            clock.start(seconds)
            runtestprotocol(self._items[name], log=False, nextitem=None)
        except BaseException as error:  # pytest.exit, KeyboardInterrupt: what pytest itself does not catch
            self._plugin.problems.append(("failed", error))
            self._tear_down()
        finally:
            clock.stop()
            torch.set_rng_state(before[0])
            np.random.set_state(before[1])
            random.setstate(before[2])
        return Result("timeout", OutOfTime("the test ran too long")) if clock.late else self._plugin.result()

    def _tear_down(self) -> None:
        """What `runtestprotocol` could not do, because it was interrupted."""
        state = self._session._setupstate
        with contextlib.suppress(BaseException):
            state.teardown_exact(None)
        self._session._setupstate = type(state)()


def _seed() -> None:
    """A seed that nobody chooses: whoever seeds with 0 in a test, or in what is tested, changes the state."""
    torch.manual_seed(7_919_201)
    np.random.seed(7_919_201)
    random.seed(7_919_201)


class _LoadedModule(pytest.Module):
    """A test module that needs no import."""

    def __init__(self, *, module: ModuleType, **keywords: Any) -> None:
        super().__init__(**keywords)
        self._module = module

    def _getobj(self) -> ModuleType:
        return self._module


class _Plugin:
    """Gives the tests their implementation, and notes what they raise."""

    def __init__(self) -> None:
        self._impl = SimpleNamespace()
        self.problems: list[tuple[str, BaseException | None]] = []
        self.uncollected: list[str] = []

    def begin(self, impl: SimpleNamespace) -> None:
        self._impl = impl
        self.problems = []

    def result(self) -> Result:
        """The first thing that went wrong decides; what a test skips counts for less."""
        wrong = [error for outcome, error in self.problems if outcome == "failed"]
        if wrong:
            return Result(_judge(wrong[0]), wrong[0])
        if self.problems:
            return Result("skipped", self.problems[0][1])
        return Result("passed")

    def fixtures(self) -> ModuleType:
        """What tests may ask for.  For the session, so that fixtures of any scope may use it; each test is one."""

        @pytest.fixture(scope="session")
        def impl() -> SimpleNamespace:
            """The implementation under test: its functions as attributes."""
            return self._impl

        module = ModuleType("given_fixtures")
        vars(module)["impl"] = impl
        return module

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.failed:
            self.uncollected.append(" ".join(str(report.longrepr).split()))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(self, call: pytest.CallInfo[None]) -> Iterator[None]:
        report: Any = yield
        if report.outcome != "passed":
            self.problems.append((report.outcome, None if call.excinfo is None else call.excinfo.value))
        return report


class _BareReports:
    """Reports without the traceback's text, which takes longer to write than most tests to run."""

    def pytest_runtest_makereport(self, item: pytest.Item, call: pytest.CallInfo[None]) -> pytest.TestReport:
        error = None if call.excinfo is None else call.excinfo.value
        wrong = "skipped" if isinstance(error, pytest.skip.Exception) else "failed"
        outcome: Any = "passed" if error is None else wrong
        when: Any = call.when
        return pytest.TestReport(item.nodeid, ("", 0, ""), {}, outcome, None, when)


def _judge(error: BaseException | None) -> Outcome:
    if _says_wrong(error):
        return "failed"
    if isinstance(error, OutOfTime):
        return "timeout"
    return "unwritten" if isinstance(error, NotImplementedError) else "error"


def _says_wrong(error: BaseException | None) -> bool:
    """Whether the test says that the implementation is wrong; None: an xfail(strict=True) that passed.

    Hypothesis raises a group where an example failed once and passed when it was tried again.
    """
    if isinstance(error, BaseExceptionGroup):
        return all(_says_wrong(inner) for inner in error.exceptions)
    return error is None or isinstance(error, AssertionError | pytest.fail.Exception)


def _limit_examples(item: pytest.Item) -> None:
    """Have a Hypothesis test try a few examples, the same each time, and report the first failure as it is."""
    function: Any = getattr(item, "obj", None)
    function = getattr(function, "__func__", function)
    settings = getattr(function, "_hypothesis_internal_use_settings", None)
    if not isinstance(settings, hypothesis.settings):
        return
    function._hypothesis_internal_use_settings = hypothesis.settings(
        settings,
        max_examples=min(settings.max_examples, MOST_EXAMPLES),
        derandomize=True,
        database=None,
        deadline=None,
        print_blob=False,
        report_multiple_bugs=False,
        phases=(hypothesis.Phase.explicit, hypothesis.Phase.generate),
        suppress_health_check=list(hypothesis.HealthCheck),
    )


class _Clock:
    """Ends a test that runs too long, but never in the middle of a call of the implementation."""

    def __init__(self) -> None:
        self.late = False
        self._held = 0
        self._before: Any = None
        self._runs = threading.current_thread() is threading.main_thread() and hasattr(signal, "setitimer")

    def start(self, seconds: float) -> None:
        if self._runs:
            self._before = signal.signal(signal.SIGALRM, self._ring)
            signal.setitimer(signal.ITIMER_REAL, seconds, 0.2)  # again and again, should a test swallow the first

    def stop(self) -> None:
        self._held += 1  # from here on nothing is interrupted
        if self._runs:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, self._before)

    def _ring(self, *_: object) -> None:
        self.late = True
        if not self._held:
            raise OutOfTime("the test ran too long")

    def undisturbed(self, tested: Callable[..., Any]) -> Callable[..., Any]:
        """The function, during which the clock only notes that it is late."""

        @wraps(tested)
        def call(*args: Any, **kwargs: Any) -> Any:
            self._held += 1
            try:
                return tested(*args, **kwargs)
            finally:
                self._held -= 1
                if self.late and not self._held:
                    raise OutOfTime("the test ran too long")

        return call

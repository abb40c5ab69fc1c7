"""Trying the students' tests: first on right implementations, then on wrong ones that they do not know from right.

A test counts if it passes on every right implementation.  It exposes a wrong one if it fails there by an assertion, and
does so again in a line-up of right and wrong ones whose order nobody could know: a test that fails by chance, or that
keeps count of its runs, does not come through.  What an implementation answers depends on the grader's seed, so a
submission gets the same grade each time; only the order of a line-up is drawn anew.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from autograder.hidden.expect import wrong
from autograder.hidden.testing_ex07 import collating, losses, masking, predicting
from autograder.wire.errors import Interrupted
from autograder.wire.proxy import Student
from autograder.wire.testing import Collected, Tested

#: The functions of `impl`, and the families of right implementations of each.
FAMILIES: dict[str, tuple[type[Any], ...]] = {
    "mask_tokens": masking.FAMILIES,
    "collate_mlm": collating.FAMILIES,
    "mlm_loss": losses.FAMILIES,
    "predict": predicting.FAMILIES,
}
#: So many times every test runs on right implementations; each family comes up twice at least.
RIGHT_RUNS = 8
#: A line-up: so many wrong ones, of which one may pass by chance, among so many right ones.  A test that fails as a
#: coin falls, however weighted, comes through with probability 0.0007.
WRONG_IN_LINE, RIGHT_IN_LINE = 6, 8
#: A test that has failed so often on right implementations in line-ups, and in more than this share of its runs there,
#: counts no longer.
FALSE_ALARMS, FALSE_SHARE = 2, 0.1
#: How many line-ups there are for a wrong implementation.
MOST_LINE_UPS = 3
#: How often a wrong implementation is tried on all tests, should they miss it by chance.
TRIES = 2
#: What a test may take, by the clock; students are told 5.
SECONDS = 8.0
#: What all tests together may take on one implementation, by the clock; students are told 2.
SECONDS_TOGETHER = 5.0


@dataclass
class Survey:
    """What is known of the students' tests.  uncounted: those that do not pass on a right implementation, and how so.

    calls: the functions of `impl` that each test calls.
    beside: for each test its runs on right implementations in line-ups, and how many of them it failed.
    """

    collected: Collected
    counted: list[str] = field(default_factory=list)
    uncounted: dict[str, Tested] = field(default_factory=dict)
    calls: dict[str, set[str]] = field(default_factory=dict)
    beside: dict[str, list[int]] = field(default_factory=dict)

    def calling(self, function: str) -> list[str]:
        return [name for name in self.counted if function in self.calls[name]]

    def note_beside(self, name: str, tested: Tested) -> None:
        """A run on a right implementation in a line-up: a test that fails there again and again counts no longer."""
        runs = self.beside.setdefault(name, [0, 0])
        runs[0] += 1
        runs[1] += tested.outcome != "passed"
        if runs[1] >= FALSE_ALARMS and runs[1] > FALSE_SHARE * runs[0] and name in self.counted:
            self.counted.remove(name)
            self.uncounted[name] = tested


def survey(student: Student, seed: int) -> Survey:
    """Run all tests on right implementations only, once for each submission.

    Raises Interrupted if there is no test, or none is written.
    """
    found: Survey = student.once(("exercise 7", seed), lambda: _survey(student, seed))
    return found


def _survey(student: Student, seed: int) -> Survey:
    result = Survey(student.tests())
    names = list(result.collected.names)
    if not names:
        why = "".join(f"\n{problem}" for problem in result.collected.problems)
        raise Interrupted("not_implemented", f"The file has no test: no function `test_…` that pytest finds.{why}")
    result.calls = {name: set() for name in names}
    spent: dict[str, float] = {}
    for number in range(RIGHT_RUNS):
        for name in names:
            if name not in result.uncounted:
                started = time.monotonic()
                tested = student.run_test(name, _right(seed, f"right {number}", number, result.calls[name]), SECONDS)
                spent.setdefault(name, time.monotonic() - started)
                if tested.outcome != "passed":
                    result.uncounted[name] = tested
        _refuse_slow({name: seconds for name, seconds in spent.items() if name not in result.uncounted})
    result.counted = [name for name in names if name not in result.uncounted]
    if all(tested.outcome == "unwritten" for tested in result.uncounted.values()) and not result.counted:
        raise Interrupted("not_implemented", "No test is written yet: all of them raise NotImplementedError.")
    return result


def _refuse_slow(spent: dict[str, float]) -> None:
    total = sum(spent.values())
    if total > SECONDS_TOGETHER:
        slowest = sorted(spent, key=lambda name: -spent[name])[:3]
        listed = ", ".join(f"`{name}` {spent[name]:.1f} s" for name in slowest)
        raise Interrupted(
            "timeout", f"The tests took {total:.0f} s on one implementation, and 2 s are allowed: {listed}."
        )


def exposes(student: Student, seed: int, function: str, *faults: type[Any]) -> None:
    """Fail unless, for each of these faults of that function, a test that counts fails on it."""
    known = survey(student, seed)
    missed = [fault for fault in faults if not _exposed(student, seed, function, fault, known)]
    if not missed:
        return
    counted, calling = len(known.counted), len(known.calling(function))
    lines = [f"No test of yours fails on such an implementation of `{function}`."]
    if len(faults) > 1:
        lines = [f"No test of yours fails on an implementation of `{function}` with this fault:"]
        lines += [f"- {fault.__doc__}" for fault in missed]
    lines.append(f"{_tests(counted)} counted, {calling} of them call impl.{function}.")
    wrong("\n".join([*lines, *_not_counted(known)]))


def _tests(number: int) -> str:
    return f"{number} test" if number == 1 else f"{number} tests"


def _not_counted(known: Survey) -> list[str]:
    lines = []
    said = {"failed": "fails on a right implementation", "error": "ends in an error on a right implementation"}
    said |= {"timeout": "takes longer than 5 s", "skipped": "is skipped or expected to fail"}
    unwritten = [name for name, tested in known.uncounted.items() if tested.outcome == "unwritten"]
    others = [(name, tested) for name, tested in known.uncounted.items() if tested.outcome != "unwritten"]
    for name, tested in others[:4]:
        text = f": {tested.message}" if tested.message and tested.outcome in ("failed", "error") else ""
        lines.append(f"`{name}` does not count, because it {said[tested.outcome]}{text}")
    if len(others) > 4:
        lines.append(f"{_tests(len(others) - 4)} more did not count, for such reasons.")
    if unwritten:
        lines.append(f"Not written yet: {', '.join(unwritten[:4])}{', …' if len(unwritten) > 4 else ''}")
    if known.collected.left_out:
        lines.append(f"Only the first {len(known.collected.names)} tests were run.")
    return lines + [f"Not collected: {problem}" for problem in known.collected.problems[:2]]


def _exposed(student: Student, seed: int, function: str, fault: type[Any], known: Survey) -> bool:
    line_ups = 0
    for number in range(TRIES):
        for name in known.calling(function):
            if student.run_test(name, _faulty(seed, function, fault, number), SECONDS).outcome != "failed":
                continue
            if _stands_out(student, seed, function, fault, name, known):
                return True
            line_ups += 1
            if line_ups == MOST_LINE_UPS:
                return False
    return False


def _stands_out(student: Student, seed: int, function: str, fault: type[Any], name: str, known: Survey) -> bool:
    """Whether the test fails on the wrong ones of a line-up, all but one, and passes on the right ones."""
    line = [(True, TRIES + number) for number in range(WRONG_IN_LINE)]
    line += [(False, number) for number in range(RIGHT_IN_LINE)]
    secrets.SystemRandom().shuffle(line)
    missed = 0
    for is_wrong, number in line:
        if is_wrong:
            implementation = _faulty(seed, function, fault, number)
        else:
            implementation = _right(seed, f"beside {function} {fault.__name__} {number}", number)
        tested = student.run_test(name, implementation, SECONDS)
        if is_wrong:
            missed += tested.outcome != "failed"
            continue
        known.note_beside(name, tested)
        if tested.outcome != "passed":
            return False
    return missed <= 1


Implementation = dict[str, Callable[..., Any]]


def _right(seed: int, label: str, number: int, called: set[str] | None = None) -> Implementation:
    """A right implementation: of each function the family whose turn it is."""
    return {
        function: _made(families[number % len(families)], _salt(seed, f"{label} {function}"), function, called)
        for function, families in FAMILIES.items()
    }


def _faulty(seed: int, function: str, fault: type[Any], number: int) -> Implementation:
    """An implementation of which one function has a fault; everything else about it is of one family or another."""
    label = f"{function} {fault.__name__} {number}"
    families = FAMILIES[function]
    family = families[_salt(seed, label) % len(families)]
    implementation = _right(seed, label, number)
    faulty = type("Faulty", (fault, family), {})
    return {**implementation, function: _made(faulty, _salt(seed, f"{label} fault"), function)}


def _made(kind: type[Any], salt: int, name: str, called: set[str] | None = None) -> Callable[..., Any]:
    """One implementation of such a kind, under the name it has in `impl`; made when it is called for the first time."""
    answer: Callable[..., Any] | None = None

    @wraps(kind.__call__)
    def function(*args: Any, **kwargs: Any) -> Any:
        nonlocal answer
        if called is not None:
            called.add(name)
        if answer is None:
            answer = kind(salt)
        return answer(*args, **kwargs)

    function.__name__ = function.__qualname__ = name
    return function


def _salt(seed: int, label: str) -> int:
    """A number below 2^62 that the seed and the label decide."""
    digest = hashlib.blake2b(f"{seed}/{label}".encode(), digest_size=8).digest()
    return int.from_bytes(digest) >> 2

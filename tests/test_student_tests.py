"""Tests of students, run on functions that answer in the grader: as they would run locally, and within limits."""

from __future__ import annotations

import contextlib
import textwrap
import time
from collections.abc import Iterator
from typing import Any

import pytest
import torch

from autograder.grading import Work, open_in_process
from autograder.limits import Limits
from autograder.sandbox.loading import Part
from autograder.syllabus import EXERCISES
from autograder.wire.classroom import RemoteClassroom
from autograder.wire.errors import Interrupted
from autograder.wire.proxy import Student

QUICK = Limits(load_cpu=5, check_cpu=5, check_wall=20, function_cpu=5, function_wall=20, exercise_cpu=20)


@pytest.fixture(scope="module")
def room() -> Iterator[RemoteClassroom]:
    with RemoteClassroom("auto", torch.device("cpu"), limits=QUICK) as classroom:
        yield classroom


@contextlib.contextmanager
def remote(room: RemoteClassroom, code: str) -> Iterator[Student]:
    with room.open(Work(EXERCISES[2], (Part("student.py", textwrap.dedent(code)),))) as student:
        student.begin_check("mean_nll")
        yield student


@pytest.fixture(params=["in-process", "across the wire"])
def side(request: pytest.FixtureRequest, room: RemoteClassroom) -> Any:
    """Opens a file of tests on either side of the boundary."""

    @contextlib.contextmanager
    def opened(code: str) -> Iterator[Student]:
        work = Work(EXERCISES[2], (Part("student.py", textwrap.dedent(code)),))
        with (open_in_process if request.param == "in-process" else room.open)(work) as student:
            student.begin_check("mean_nll")
            yield student
            student.end_check()

    return opened


def outcomes(student: Student, seconds: float = 5.0, **functions: Any) -> dict[str, str]:
    names = student.tests().names
    return {name: student.run_test(name, functions, seconds).outcome for name in names}


KINDS = """
    import unittest
    import pytest
    from hypothesis import given, strategies as st

    def test_passed(impl): assert impl.add(1) == 2
    def test_failed(impl): assert impl.add(1) == 3
    def test_did_not_raise(impl):
        with pytest.raises(ValueError): impl.add(1)
    def test_raised(impl):
        with pytest.raises(ValueError, match="negative"): impl.add(-1)
    def test_error(impl): impl.add(1).nothing
    def test_error_of_the_function(impl): impl.add(-1)
    def test_skipped(impl): pytest.skip()
    @pytest.mark.xfail
    def test_expected(impl): assert False
    def test_unwritten(impl): raise NotImplementedError
    def test_no_such_fixture(nothing): pass
    def test_exit(impl): pytest.exit("no")
    def test_system_exit(impl): raise SystemExit
    @pytest.mark.parametrize("x", [1, 7])
    def test_parameters(impl, x): assert impl.add(x) == 2
    @given(x=st.integers(0, 9))
    def test_hypothesis(impl, x): assert impl.add(x) < 9
    @pytest.fixture(scope="module")
    def three(impl): return impl.add(2)
    class TestClass:
        def test_fixture(self, three): assert three == 3
    class TestUnit(unittest.TestCase):
        @pytest.fixture(autouse=True)
        def take(self, impl): self.impl = impl
        def test_right(self): self.assertEqual(self.impl.add(1), 2)
        def test_wrong(self):
            for x in range(3):
                with self.subTest(x=x): self.assertEqual(self.impl.add(x), 1)
    def check_something(impl): assert False
"""


def add(x: int) -> int:
    if x < 0:
        raise ValueError(f"negative: {x}")
    return x + 1


def test_every_kind_of_test_ends_as_in_pytest(side: Any) -> None:
    with side(KINDS) as student:
        assert outcomes(student, add=add) == {
            "test_passed": "passed",
            "test_failed": "failed",
            "test_did_not_raise": "failed",
            "test_raised": "passed",
            "test_error": "error",
            "test_error_of_the_function": "error",
            "test_skipped": "skipped",
            "test_expected": "skipped",
            "test_unwritten": "unwritten",
            "test_no_such_fixture": "error",
            "test_exit": "error",
            "test_system_exit": "error",
            "test_parameters[1]": "passed",
            "test_parameters[7]": "failed",
            "test_hypothesis": "failed",
            "TestClass::test_fixture": "passed",
            "TestUnit::test_right": "passed",
            "TestUnit::test_wrong": "failed",
        }


def test_a_failure_quotes_the_line(side: Any) -> None:
    with side("def test_sum(impl):\n    assert impl.add(1) == 3, 'one and one'") as student:
        student.tests()
        message = student.run_test("test_sum", {"add": add}, 5.0).message
    assert message == "AssertionError: one and one (line 2: `assert impl.add(1) == 3, 'one and one'`)"


def test_arguments_change_as_they_would_locally(side: Any) -> None:
    code = """
        import torch
        def test_tensor(impl):
            x = torch.zeros(2, 3).t()
            impl.spoil(x)
            assert x.tolist() == [[7, 0], [0, 0], [0, 0]]
        def test_lists(impl):
            inner = [1, 2]
            outer = [inner, [3]]
            impl.spoil(outer)
            assert outer == [[1, 2, 9], [3]] and inner == [1, 2, 9]
        def test_generator(impl):
            one, two = torch.Generator().manual_seed(3), torch.Generator().manual_seed(3)
            assert impl.draw(one) == torch.rand((), generator=two).item()
            assert torch.equal(one.get_state(), two.get_state())
    """

    def spoil(x: Any) -> None:
        if isinstance(x, torch.Tensor):
            x[0, 0] = 7
        else:
            x[0].append(9)

    with side(code) as student:
        found = outcomes(student, spoil=spoil, draw=lambda g: torch.rand((), generator=g).item())
    assert set(found.values()) == {"passed"}


def test_the_default_generator_is_that_of_the_tests(side: Any) -> None:
    code = """
        import torch
        def test_reproducible(impl):
            torch.manual_seed(5)
            first = [impl.draw(), torch.rand(()).item()]
            torch.manual_seed(5)
            assert first == [torch.rand(()).item(), torch.rand(()).item()]
        def test_moved_on(impl):
            torch.manual_seed(5)
            assert impl.draw() != impl.draw()
        def test_seeded_by_the_function(impl):
            impl.seed()
            assert torch.initial_seed() == 99 and impl.draw() == impl.draw_of(99)
    """

    def draw_of(seed: int) -> float:
        return torch.rand((), generator=torch.Generator().manual_seed(seed)).item()

    before = torch.get_rng_state()
    with side(code) as student:
        functions = {"draw": lambda: torch.rand(()).item(), "seed": lambda: torch.manual_seed(99).initial_seed()}
        assert set(outcomes(student, draw_of=draw_of, **functions).values()) == {"passed"}
    assert torch.equal(torch.get_rng_state(), before)


def test_each_test_begins_with_the_same_random_state(side: Any) -> None:
    code = """
        import random, numpy, torch
        SEEN = []
        def numbers(): return random.random(), numpy.random.rand(), torch.rand(()).item()
        def test_one(impl): SEEN.append(numbers())
        def test_two(impl): assert numbers() == SEEN[0]
    """
    with side(code) as student:
        assert set(outcomes(student).values()) == {"passed"}


def test_a_test_that_does_not_end_is_ended(side: Any) -> None:
    code = """
        import time
        def test_sleeps(impl): time.sleep(60)
        def test_loops(impl):
            while True: impl.add(1)
        def test_does_not_listen(impl):
            while True:
                try: time.sleep(60)
                except BaseException: break
        def test_afterwards(impl): assert impl.add(1) == 2
    """
    started = time.monotonic()
    with side(code) as student:
        assert list(outcomes(student, 0.3, add=add).values()) == ["timeout", "timeout", "timeout", "passed"]
    assert time.monotonic() - started < 8


def test_what_cannot_be_collected_is_said(side: Any) -> None:
    code = """
        import pytest
        def test_fine(impl): pass
        class TestBroken:
            @pytest.mark.parametrize("x,y", [(1,)])
            def test_x(self, x, y): pass
    """
    with side(code) as student:
        found = student.tests()
    assert found.names == ("test_fine",)
    assert "parametrize" in found.problems[0] or "names" in found.problems[0]


def test_a_hundred_tests_are_enough(side: Any) -> None:
    code = "import pytest\n@pytest.mark.parametrize('x', range(130))\ndef test_x(impl, x): pass"
    with side(code) as student:
        found = student.tests()
    assert (len(found.names), found.left_out) == (100, 30)


# -- what a hostile file may try ---------------------------------------------------------------------------------------
def test_a_test_that_ends_the_process_costs_only_itself(room: RemoteClassroom) -> None:
    code = "import os\ndef test_ends(impl): os._exit(0)\ndef test_fine(impl): assert impl.add(1) == 2"
    with remote(room, code) as student:
        assert outcomes(student, add=add) == {"test_ends": "error", "test_fine": "passed"}


def test_an_outcome_that_nobody_knows_is_an_error(room: RemoteClassroom) -> None:
    code = """
        from exercises.kit import testing
        def run(self, name, impl, seconds): return testing.Result("exposed \\x1b[31m")
        testing.Suite.run = run
        def test_x(impl): pass
    """
    with remote(room, code) as student:
        assert outcomes(student) == {"test_x": "error"}


def test_words_of_a_test_are_plain_text(room: RemoteClassroom) -> None:
    code = "def test_x(impl): assert False, '\\x1b[31m' + 'x' * 10_000_000"
    with remote(room, code) as student:
        student.tests()
        message = student.run_test("test_x", {}, 5.0).message
    assert "\x1b" not in message
    assert len(message) < 1000


def test_names_that_are_no_names_end_the_worker(room: RemoteClassroom) -> None:
    code = """
        from exercises.kit import testing
        testing.Suite.__init__ = lambda self, module: vars(self).update(names=["a", "a"], left_out=0, problems=[])
    """
    with remote(room, code) as student, pytest.raises(Interrupted) as caught:
        student.tests()
    assert caught.value.verdict == "crashed"


def test_a_function_can_be_asked_only_while_its_test_runs(room: RemoteClassroom) -> None:
    code = """
        KEPT = []
        def test_keeps(impl): KEPT.append(impl.add)
        def test_asks_later(impl): KEPT[0](1)
    """
    with remote(room, code) as student:
        found = [student.tests().names, student.run_test("test_keeps", {"add": add}, 5.0).outcome]
        assert found[1] == "passed"
        later = student.run_test("test_asks_later", {}, 5.0)
    assert later.outcome == "error"

"""The time that a submission has left: for one check, for the checks of one function, for everything of an exercise."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator

from autograder.limits import Limits
from autograder.wire.errors import Interrupted
from autograder.wire.zygote_process import Worker

#: Below so many seconds nothing is begun.
LEAST = 0.1
#: What tidying up after a check may take: CPU seconds, and seconds by the clock.
TIDYING = (5.0, 20.0)


class Budget:
    """Two clocks, the worker's CPU time and the time it is waited for, and what they may still show.

    function: whose check it is that the clocks run for, "" while a submission is loaded.
    """

    def __init__(self, limits: Limits, functions: Iterable[str]) -> None:
        self._limits = limits
        self._cpu_left = dict.fromkeys(functions, limits.function_cpu)
        self._wall_left = dict.fromkeys(self._cpu_left, limits.function_wall)
        self._all_cpu = self._all_wall = 0.0
        self.function = ""
        self._cpu_limit, self._wall_limit = limits.load_cpu, limits.check_wall
        self._worker: Worker | None = None
        self._cpu_start = self._cpu_used = self._wall_used = 0.0

    # -- what may be used -------------------------------------------------------------------------------------------
    def begin(self, function: str) -> None:
        """A check of that function starts."""
        limits = self._limits
        self.function = function
        self._cpu_limit = min(limits.check_cpu, self._cpu_left[function], limits.exercise_cpu - self._all_cpu)
        self._wall_limit = min(limits.check_wall, self._wall_left[function], limits.exercise_wall - self._all_wall)
        self._start()

    def tidy(self) -> None:
        """The check is over; what comes now is not its own."""
        self._book()
        self._cpu_limit, self._wall_limit = TIDYING[0], min(TIDYING[1], self._limits.check_wall)

    @contextlib.contextmanager
    def loading(self, worker: Worker) -> Iterator[None]:
        """While active, a new worker loads the submission, with limits of that; then those of the check go on."""
        self._book()
        saved = self.function, self._cpu_limit, self._wall_limit
        self.function = ""
        self._cpu_limit, self._wall_limit = self._limits.load_cpu, self._limits.check_wall
        self._worker, self._cpu_start = worker, 0.0
        yield
        self._book()
        self.function, self._cpu_limit, self._wall_limit = saved

    def refuse_if_spent(self, new_worker: bool) -> None:
        """Raises Interrupted if there is no time left.  new_worker: whether the submission has to be loaded again."""
        limits = self._limits
        if self._cpu_limit <= LEAST or self._wall_limit <= LEAST:
            raise Interrupted("timeout", f"Not run: earlier checks of `{self.function}` used up all its time.")
        if new_worker and (self._all_cpu > limits.exercise_cpu or self._all_wall > limits.exercise_wall):
            raise Interrupted("timeout", "Not run: earlier checks used up all the time of this exercise.")

    # -- the clocks -------------------------------------------------------------------------------------------------
    @contextlib.contextmanager
    def waiting(self) -> Iterator[None]:
        """While active, the clock on the wall runs."""
        started = time.monotonic()
        try:
            yield
        finally:
            self._wall_used += time.monotonic() - started

    def late(self) -> bool:
        return self._spent() > self._cpu_limit or self._wall_used > self._wall_limit

    def overdrawn(self) -> str:
        """Charge a check that came late to its function; what it had used, in words."""
        used, waited = self._spent(), self._wall_used
        if self.function:
            self._cpu_left[self.function] -= used
            self._wall_left[self.function] -= waited
        return f"{used:.0f} s of computing" if used > self._cpu_limit else f"{waited:.0f} s"

    def gone(self) -> None:
        """The worker is to be ended: what it has used is noted before."""
        self._spent()
        self._worker = None

    def _spent(self) -> float:
        """CPU seconds since the clocks were started; as last seen, once the worker is gone."""
        if self._worker is not None:
            self._cpu_used = max(self._cpu_used, self._worker.cpu() - self._cpu_start)
        return self._cpu_used

    def _book(self) -> None:
        """Charge what the clocks show to the exercise, and start them again."""
        self._all_cpu += self._spent()
        self._all_wall += self._wall_used
        self._start()

    def _start(self) -> None:
        self._wall_used = self._cpu_used = 0.0
        self._cpu_start = self._worker.cpu() if self._worker is not None else 0.0

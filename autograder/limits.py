"""How much time a submission may take."""

from __future__ import annotations

from dataclasses import astuple, dataclass


@dataclass(frozen=True)
class Limits:
    """Time that a submission may take, in seconds: CPU time, and a generous wall time for a loaded machine.

    check: one check.  function: all checks of one function that ran out of time.  exercise: everything.
    """

    load_cpu: float = 20.0
    check_cpu: float = 10.0
    check_wall: float = 40.0
    function_cpu: float = 20.0
    function_wall: float = 50.0
    exercise_cpu: float = 150.0
    exercise_wall: float = 600.0

    def times(self, factor: float) -> Limits:
        """The limits of an exercise that takes `factor` times as long as others: one that trains models."""
        return Limits(*(value * factor for value in astuple(self)))

    @property
    def worker_cpu(self) -> int:
        return int(self.exercise_cpu * 2)

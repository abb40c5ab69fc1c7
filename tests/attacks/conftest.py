"""Says at the end how many attacks were resisted."""

from __future__ import annotations

from typing import Any

#: The tests that stand for attacks, one each.
ATTACK_TESTS = ("test_an_attack_earns_nothing", "test_a_hostile_notebook_earns_nothing", "test_a_hostile_folder_earns")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    def count(outcome: str) -> int:
        reports = terminalreporter.stats.get(outcome, [])
        return sum(any(name in report.nodeid for name in ATTACK_TESTS) for report in reports)

    resisted, failed = count("passed"), count("failed") + count("error")
    if resisted + failed:
        terminalreporter.write_line(f"{resisted} resisted of {resisted + failed}")

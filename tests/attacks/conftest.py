"""Says at the end how many attacks were resisted."""

from __future__ import annotations

from typing import Any


def pytest_terminal_summary(terminalreporter: Any) -> None:
    def count(outcome: str) -> int:
        reports = terminalreporter.stats.get(outcome, [])
        return sum("test_an_attack_earns_nothing" in report.nodeid for report in reports)

    resisted, failed = count("passed"), count("failed") + count("error")
    if resisted + failed:
        terminalreporter.write_line(f"{resisted} resisted of {resisted + failed}")

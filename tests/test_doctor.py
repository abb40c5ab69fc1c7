"""The doctor says what the host offers, and what to do about the rest."""

from __future__ import annotations

import pytest

from autograder import doctor
from autograder.cli import main
from autograder.wire.classroom import RemoteClassroom


def test_a_host_is_described(capsys: pytest.CaptureFixture[str]) -> None:
    status = main(["doctor"])
    shown = capsys.readouterr().out
    assert status == (3 if "sandbox     bare" in shown else 0)
    for word in ("Landlock", "seccomp", "CUDA", "PyTorch", "sandbox"):
        assert word in shown


@pytest.mark.parametrize("part", ["namespaces (Operation not permitted)", "Landlock", "seccomp", "unprivileged user"])
def test_every_missing_part_has_advice(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    def start(self: RemoteClassroom) -> None:
        self.kind, self.missing = "bare", [part]

    monkeypatch.setattr(RemoteClassroom, "_start", start)
    text, safe = doctor.examine()
    assert not safe
    assert f"missing: {part}\n- " in text

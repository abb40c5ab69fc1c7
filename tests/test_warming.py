"""What is called before workers are forked: everything works with the PyTorch that is here."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch

from autograder.sandbox import warming


def test_every_call_works_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls that fail are left out without a word, as another version of PyTorch may lack some: here none may fail."""
    monkeypatch.setattr(warming.contextlib, "suppress", lambda _: warming.contextlib.nullcontext())
    warming.common_calls()


def test_what_another_version_lacks_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[str] = []
    monkeypatch.setattr(torch, "called", called, raising=False)
    monkeypatch.setattr(warming, "_CALLS", ["torch.no_such_function(x)", "torch.called.append('the next')"])
    warming.common_calls()
    assert called == ["the next"]


def test_no_library_is_loaded_for_it() -> None:
    code = "import sys; from autograder.sandbox import warming; warming.common_calls(); print('sympy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "False\n"

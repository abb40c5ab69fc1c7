"""Meters: wall time, peak memory, and how often an encoder ran forward and backward."""

from __future__ import annotations

import contextlib
import resource
import time
from pathlib import Path
from types import TracebackType
from typing import Any

import torch
from torch import nn

_PEAK = Path("/proc/self/status")
_RESET = Path("/proc/self/clear_refs")


class Meter:
    """Measures what happens inside `with Meter(model.encoder, device) as meter:`.

    encoder: the module whose calls are counted, or None.
    seconds: wall time by a monotonic clock; a GPU is waited for at both ends.
    forward_calls, backward_calls: calls of the encoder, and backward passes through what it returned.
    peak_memory_bytes: on CUDA the most memory that tensors took; on the CPU the largest resident set of the process
        (the largest since its start, where the system cannot reset it: then compare only the first method with itself).

    Warm up before you measure: the first call of anything loads code and fills caches.
    """

    def __init__(self, encoder: nn.Module | None = None, device: str | torch.device = "cpu") -> None:
        self._encoder = encoder
        self._device = torch.device(device)
        self._hook: Any = None
        self.seconds = 0.0
        self.forward_calls = 0
        self.backward_calls = 0
        self.peak_memory_bytes = 0

    def __enter__(self) -> Meter:
        if self._encoder is not None:
            self._hook = self._encoder.register_forward_hook(self._called)
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
            torch.cuda.reset_peak_memory_stats(self._device)
        else:
            with contextlib.suppress(OSError):
                _RESET.write_text("5")  # proc(5): reset the peak resident set
        self._started = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._device.type == "cuda":
            torch.cuda.synchronize(self._device)
        self.seconds = time.perf_counter() - self._started
        self.peak_memory_bytes = self._peak()
        if self._hook is not None:
            self._hook.remove()

    def _called(self, module: nn.Module, arguments: Any, output: Any) -> None:
        self.forward_calls += 1
        hidden = getattr(output, "last_hidden_state", output)
        if isinstance(hidden, torch.Tensor) and hidden.requires_grad:
            hidden.register_hook(self._went_back)

    def _went_back(self, gradient: torch.Tensor) -> None:
        self.backward_calls += 1

    def _peak(self) -> int:
        if self._device.type == "cuda":
            return torch.cuda.max_memory_allocated(self._device)
        with contextlib.suppress(OSError, ValueError, StopIteration):
            line = next(line for line in _PEAK.read_text().splitlines() if line.startswith("VmHWM:"))
            return int(line.split()[1]) * 1024
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def parameter_counts(model: nn.Module) -> tuple[int, int]:
    """(trainable, total): numbers in the parameters that require a gradient, and in all; a shared one counts once."""
    sizes = [(parameter.numel(), parameter.requires_grad) for parameter in model.parameters()]
    return sum(size for size, learns in sizes if learns), sum(size for size, _ in sizes)

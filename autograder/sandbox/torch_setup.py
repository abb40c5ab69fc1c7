"""PyTorch as grading wants it, in the process that grades and in the one that workers are made from."""

from __future__ import annotations

import contextlib

import torch


class _NoStacks:
    """In place of the module `traceback` where PyTorch notes who asked for a device that it has not started yet."""

    @staticmethod
    def format_stack() -> list[str]:
        return []


def set_up() -> None:
    """One thread; and `torch.manual_seed` notes no stacks.

    For each kind of accelerator that is not in use (CUDA, XPU, MTIA) it keeps the seed for later, with the text of the
    whole stack, for an error message: milliseconds a call below pytest, where seeding itself takes 20 µs.
    """
    torch.set_num_threads(1)
    for name in ("cuda", "xpu", "mtia"):
        with contextlib.suppress(AttributeError):  # another version of PyTorch has others, or does it in another way
            devices = getattr(torch, name)
            if devices.traceback:
                devices.traceback = _NoStacks

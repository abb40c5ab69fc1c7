"""What this host offers for keeping student code in, and what to switch on where something is missing."""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator
from pathlib import Path

from autograder.sandbox import seccomp, syscalls

_ADVICE = {
    "namespaces": (
        "Debian/Ubuntu: `sysctl user.max_user_namespaces` must not be 0; Ubuntu 24.04 and later also need\n"
        "  `sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`, older Debian\n"
        "  `sysctl -w kernel.unprivileged_userns_clone=1`.",
        "GitHub-hosted runner: run the sysctl above with sudo in a step before grading.",
        "Container: start it with `--security-opt seccomp=unconfined --security-opt apparmor=unconfined`, or grade on\n"
        "  the host; the default profiles forbid unshare(2).",
        "SLURM node: ask the administrator for user.max_user_namespaces > 0; Landlock and seccomp work without.",
    ),
    "Landlock": ("Linux 5.13 or later, with `landlock` in the list of `lsm=` (see /sys/kernel/security/lsm).",),
    "seccomp": ("A kernel with CONFIG_SECCOMP_FILTER, on x86_64 or aarch64.",),
    "unprivileged": ("Grade as an ordinary user, or install Python where everybody may read it (not under /root).",),
}


def examine() -> tuple[str, bool]:
    """A report for people, and whether the walls are at least "partial".  Starts and ends one zygote."""
    import torch

    from autograder.wire.classroom import RemoteClassroom
    from autograder.wire.errors import GraderFault

    lines = [
        f"system      {platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} cores",
        f"user        {'root' if os.getuid() == 0 else os.getuid()}{', in a container' if _in_container() else ''}",
        f"Python      {platform.python_version()}, PyTorch {torch.__version__}",
        f"CUDA        {torch.cuda.get_device_name() if torch.cuda.is_available() else 'none: GPU checks are not run'}",
        f"Landlock    {_version(syscalls.landlock_version())}",
        f"seccomp     {'known calls' if seccomp.own_filter() else 'unknown machine: no filter'}",
    ]
    try:
        with RemoteClassroom("auto", torch.device("cpu")) as room:
            level, missing = room.kind, room.missing
    except GraderFault as fault:
        return "\n".join([*lines, f"sandbox     does not start: {fault}"]), False
    lines.append(f"sandbox     {level}{': nothing is missing' if not missing else ''}")
    for part in missing:
        lines += ["", f"missing: {part}", *(f"- {text}" for text in _advice(part))]
    return "\n".join(lines), level != "bare"


def _advice(part: str) -> Iterator[str]:
    for name, texts in _ADVICE.items():
        if part.startswith(name):
            yield from texts


def _version(version: int) -> str:
    return f"version {version}" if version else "none"


def _in_container() -> bool:
    return Path("/.dockerenv").exists() or Path("/run/.containerenv").exists() or "container" in os.environ

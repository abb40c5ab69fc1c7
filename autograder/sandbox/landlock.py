"""Landlock: which files a worker may touch, whatever its namespaces let it see (landlock(7))."""

from __future__ import annotations

import os
import stat
import struct
from collections.abc import Iterable

from autograder.sandbox import syscalls

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_ALL_V1 = (1 << 13) - 1
_REFER, _TRUNCATE, _IOCTL_DEV = 1 << 13, 1 << 14, 1 << 15
_FILE_ONLY = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL_DEV
_NET_BIND_CONNECT = 3
_SCOPE_ABSTRACT_UNIX, _SCOPE_SIGNAL = 1, 2


def restrict(readable: Iterable[str], writable: Iterable[str], devices: Iterable[str] = ()) -> int:
    """Allow reading beneath `readable`, everything beneath `writable`, and nothing else; no TCP, no signals out.

    devices: special files that may be read and written.
    Returns the version of Landlock, 0 if the kernel has none (nothing is restricted then).
    Raises OSError if the kernel refuses.
    """
    version = syscalls.landlock_version()
    if version == 0:
        return 0
    handled = _ALL_V1
    if version >= 2:
        handled |= _REFER
    if version >= 3:
        handled |= _TRUNCATE
    if version >= 5:
        handled |= _IOCTL_DEV
    attributes = struct.pack("=Q", handled)
    if version >= 4:
        attributes += struct.pack("=Q", _NET_BIND_CONNECT)
    if version >= 6:
        attributes += struct.pack("=Q", _SCOPE_ABSTRACT_UNIX | _SCOPE_SIGNAL)
    ruleset = syscalls.landlock_create(attributes)
    try:
        read = _EXECUTE | _READ_FILE | _READ_DIR
        for paths, access in (
            (readable, read),
            (writable, handled & ~_EXECUTE),
            (devices, _READ_FILE | _WRITE_FILE | (handled & _IOCTL_DEV)),
        ):
            for path in paths:
                _allow(ruleset, path, access)
        syscalls.landlock_restrict(ruleset)
    finally:
        os.close(ruleset)
    return version


def _allow(ruleset: int, path: str, access: int) -> None:
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            access &= _FILE_ONLY
        syscalls.landlock_allow(ruleset, access, descriptor)
    finally:
        os.close(descriptor)

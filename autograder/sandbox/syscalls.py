"""The Linux calls that Python does not wrap.  Each function raises OSError; the man page stands beside each."""

from __future__ import annotations

import ctypes
import os
import platform
import struct

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long


class _Heap(ctypes.Structure):
    """struct mallinfo2 of mallinfo(3)."""

    _fields_ = [(f"other_{number}", ctypes.c_size_t) for number in range(8)]
    _fields_ += [("fordblks", ctypes.c_size_t), ("keepcost", ctypes.c_size_t)]


_libc.malloc.restype = ctypes.c_void_p

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWUSER = 0x10000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC = 1, 2, 4, 8
MS_REMOUNT, MS_NOATIME, MS_NODIRATIME, MS_BIND, MS_REC, MS_PRIVATE = 32, 1024, 2048, 4096, 16384, 1 << 18
MS_RELATIME = 1 << 21
MNT_DETACH = 2
_MADV_COLLAPSE = 25
_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
_SYS_PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
_SYS_CAPSET = {"x86_64": 126, "aarch64": 91}
_LANDLOCK_CREATE, _LANDLOCK_ADD, _LANDLOCK_RESTRICT = 444, 445, 446

MACHINE = platform.machine()


def _check(result: int, what: str) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")
    return result


def unshare(flags: int) -> None:
    """unshare(2): leave the namespaces named by `flags` for new ones."""
    _check(_libc.unshare(flags), "unshare")


def setns(descriptor: int, kind: int) -> None:
    """setns(2): enter a namespace.  For a pid namespace: children will be made in it."""
    _check(_libc.setns(descriptor, kind), "setns")


def mount(source: str | None, target: str, kind: str | None, flags: int, data: str | None = None) -> None:
    """mount(2)."""

    def text(value: str | None) -> bytes | None:
        return None if value is None else os.fsencode(value)

    _check(_libc.mount(text(source), text(target), text(kind), ctypes.c_ulong(flags), text(data)), f"mount on {target}")


def umount(target: str) -> None:
    """umount2(2) with MNT_DETACH."""
    _check(_libc.umount2(os.fsencode(target), MNT_DETACH), f"umount {target}")


def pivot_root(new_root: str, put_old: str) -> None:
    """pivot_root(2)."""
    call = _SYS_PIVOT_ROOT[MACHINE]
    _check(_libc.syscall(call, os.fsencode(new_root), os.fsencode(put_old)), "pivot_root")


def heap() -> tuple[int, int]:
    """mallinfo2(3): how many bytes of the C library's heap are free, and how many of those at its top.

    Zeros where the C library does not say.
    """
    if not hasattr(_libc, "mallinfo2"):  # glibc before 2.33, or another
        return 0, 0
    _libc.mallinfo2.restype = _Heap
    said = _libc.mallinfo2()
    return said.fordblks, said.keepcost


def allocate(size: int) -> None:
    """malloc(3): take `size` bytes of the heap, what it notes of them included (8), and never free them."""
    _libc.malloc(ctypes.c_size_t(size - 8))


def collapse(address: int, size: int) -> None:
    """madvise(2), MADV_COLLAPSE: back that memory of this process with large pages."""
    _check(_libc.madvise(ctypes.c_void_p(address), ctypes.c_size_t(size), _MADV_COLLAPSE), "madvise")


def die_with_parent() -> None:
    """prctl(2) PR_SET_PDEATHSIG: SIGKILL when the parent ends."""
    _check(_libc.prctl(_PR_SET_PDEATHSIG, 9, 0, 0, 0), "prctl PDEATHSIG")


def not_dumpable() -> None:
    """prctl(2) PR_SET_DUMPABLE 0: no core, no ptrace by others of the same user."""
    _check(_libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0), "prctl DUMPABLE")


def no_new_privileges() -> None:
    """prctl(2) PR_SET_NO_NEW_PRIVS: nothing executed from here on gains privileges."""
    _check(_libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl NO_NEW_PRIVS")


def drop_capabilities() -> None:
    """capset(2): give up all capabilities."""
    header = struct.pack("=Ii", 0x20080522, 0)
    _check(_libc.syscall(_SYS_CAPSET[MACHINE], header, bytes(24)), "capset")


def install_filter(program: bytes) -> None:
    """seccomp(2) through prctl(2) PR_SET_SECCOMP: a filter on the calls of this thread and all it starts."""
    count = len(program) // 8
    buffer = ctypes.create_string_buffer(program, len(program))
    argument = struct.pack("=HxxxxxxQ", count, ctypes.addressof(buffer))
    _check(_libc.prctl(_PR_SET_SECCOMP, 2, argument, 0, 0), "prctl SECCOMP")


def landlock_version() -> int:
    """landlock_create_ruleset(2) with the VERSION flag: the ABI, or 0 if the kernel has no Landlock."""
    return max(0, _libc.syscall(_LANDLOCK_CREATE, None, ctypes.c_size_t(0), 1))


def landlock_create(attributes: bytes) -> int:
    """landlock_create_ruleset(2): the descriptor of a ruleset."""
    return _check(_libc.syscall(_LANDLOCK_CREATE, attributes, ctypes.c_size_t(len(attributes)), 0), "landlock_create")


def landlock_allow(ruleset: int, access: int, descriptor: int) -> None:
    """landlock_add_rule(2): allow `access` beneath the file or folder of `descriptor`."""
    rule = struct.pack("=Qi", access, descriptor)
    _check(_libc.syscall(_LANDLOCK_ADD, ruleset, 1, rule, 0), "landlock_add_rule")


def landlock_restrict(ruleset: int) -> None:
    """landlock_restrict_self(2)."""
    _check(_libc.syscall(_LANDLOCK_RESTRICT, ruleset, 0), "landlock_restrict_self")

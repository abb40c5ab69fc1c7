"""The walls around student code: namespaces once for the zygote, then Landlock, seccomp and limits for every worker."""

from __future__ import annotations

import contextlib
import os
import resource
import stat
from dataclasses import dataclass, field

from autograder.sandbox import landlock, seccomp, syscalls

SCRATCH = "/scratch"
SCRATCH_BYTES = 64 * 1024 * 1024
FIRST_UID = 60_000
UIDS = 4_096
_DEVICES = ("/dev/null", "/dev/zero", "/dev/urandom", "/dev/random")
_KERNEL_VIEWS = ("/proc", "/sys")
#: Packages that a worker must not see, wherever an installation has put them.
HIDDEN_PACKAGES = ("autograder", "solutions", "exercises")


@dataclass
class View:
    """What the zygote and its workers see of the file system.

    readable: folders and files bound read-only at their own paths.  packages: those of them that are site-packages, in
    which the project's own packages are covered up.  cuda: also the driver's devices, /proc and /sys.
    """

    readable: list[str]
    packages: list[str]
    cuda: bool = False


@dataclass
class Walls:
    """What stands.  missing: what the host did not offer, in words."""

    namespaces: bool = False
    landlock: bool = False
    seccomp: bool = False
    uid: bool = False
    scratch: str = SCRATCH
    missing: list[str] = field(default_factory=list)

    @property
    def level(self) -> str:
        """ "full", "partial" (Landlock and seccomp, no namespaces) or "bare"."""
        if self.namespaces and self.landlock and self.seccomp:
            return "full"
        return "partial" if self.landlock and self.seccomp else "bare"


def enter_namespaces(view: View, new_root: str) -> None:
    """Move this single-threaded process into user, mount, network, ipc, uts and pid namespaces of its own.

    Its children see `view` and nothing else; the pid namespace begins with the next fork.  Raises OSError if the host
    does not allow it; the process is then of no further use.
    """
    _own_user_namespace()
    flags = syscalls.CLONE_NEWNS | syscalls.CLONE_NEWNET | syscalls.CLONE_NEWIPC | syscalls.CLONE_NEWUTS
    syscalls.unshare(flags | syscalls.CLONE_NEWPID)
    syscalls.mount(None, "/", None, syscalls.MS_REC | syscalls.MS_PRIVATE)
    safe = syscalls.MS_NOSUID | syscalls.MS_NODEV
    syscalls.mount("tmpfs", new_root, "tmpfs", safe, "mode=0755,size=1m")
    for path in [*view.readable, *_DEVICES, *(_cuda_devices() if view.cuda else ())]:
        _bind(path, new_root, read_only=path in view.readable)
    for path in _KERNEL_VIEWS:
        _bind(path, new_root, read_only=False)
    for folder in view.packages:
        for package in HIDDEN_PACKAGES:
            covered = new_root + os.path.join(folder, package)
            if os.path.isdir(covered):
                syscalls.mount("tmpfs", covered, "tmpfs", safe | syscalls.MS_RDONLY, "size=4k,mode=0755")
    os.makedirs(new_root + SCRATCH, exist_ok=True)  # every worker covers it with its own; libraries want one at once
    syscalls.mount("tmpfs", new_root + SCRATCH, "tmpfs", safe, "mode=0755,size=1m")
    os.makedirs(new_root + "/tmp", exist_ok=True)
    os.makedirs(new_root + "/old", exist_ok=True)
    syscalls.pivot_root(new_root, new_root + "/old")
    os.chdir("/")
    syscalls.umount("/old")
    os.rmdir("/old")
    with contextlib.suppress(OSError):
        syscalls.mount(None, "/", None, syscalls.MS_REMOUNT | syscalls.MS_RDONLY | safe, "mode=0755,size=1m")


def leave_kernel_views() -> None:
    """Take /proc and /sys away, once the libraries that look at them are loaded."""
    for path in _KERNEL_VIEWS:
        with contextlib.suppress(OSError):
            syscalls.umount(path)


def _own_user_namespace() -> None:
    """A user namespace (user_namespaces(7)): root maps a range of ids for workers, anybody else only their own."""
    uid, gid = os.getuid(), os.getgid()
    ready, go = os.pipe()
    pid = os.getpid()
    helper = os.fork()
    if helper == 0:  # stays outside, where writing a map of many ids is allowed to root
        os.close(go)  # else the end of the pipe would never be seen, should the namespace be refused
        status = 1
        with contextlib.suppress(OSError):
            if os.read(ready, 1):
                _write_maps(pid, uid, gid)
                status = 0
        os._exit(status)
    try:
        syscalls.unshare(syscalls.CLONE_NEWUSER)
        os.write(go, b"x")
    finally:
        os.close(ready)
        os.close(go)
        _, status = os.waitpid(helper, 0)
    if status != 0:
        raise OSError(1, "the id maps of the user namespace could not be written")


def _write_maps(pid: int, uid: int, gid: int) -> None:
    if uid == 0:
        ranges = f"0 0 1\n{FIRST_UID} {FIRST_UID} {UIDS}\n"
        _write(f"/proc/{pid}/uid_map", ranges)
        _write(f"/proc/{pid}/gid_map", ranges)
    else:
        _write(f"/proc/{pid}/uid_map", f"{uid} {uid} 1\n")
        _write(f"/proc/{pid}/setgroups", "deny")
        _write(f"/proc/{pid}/gid_map", f"{gid} {gid} 1\n")


def _write(path: str, text: str) -> None:
    with open(path, "w") as file:
        file.write(text)


def _cuda_devices() -> list[str]:
    return [f"/dev/{name}" for name in os.listdir("/dev") if name.startswith("nvidia")]


def _bind(path: str, new_root: str, read_only: bool) -> None:
    if not os.path.exists(path):
        return
    target = new_root + path
    if os.path.isdir(path):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if not os.path.exists(target):
            open(target, "w").close()
    syscalls.mount(path, target, None, syscalls.MS_BIND | syscalls.MS_REC)
    if read_only:
        kept = _kept_flags(os.statvfs(path).f_flag)
        with contextlib.suppress(OSError):  # Landlock forbids writing there all the same
            flags = syscalls.MS_BIND | syscalls.MS_REMOUNT | syscalls.MS_RDONLY | syscalls.MS_NOSUID | syscalls.MS_NODEV
            syscalls.mount(None, target, None, flags | kept)


def _kept_flags(flags: int) -> int:
    """Flags of the mount that a user namespace may not take away, from statvfs(3) numbers to mount(2) numbers."""
    kept = flags & (syscalls.MS_NOEXEC | syscalls.MS_NOATIME | syscalls.MS_NODIRATIME)
    return kept | (syscalls.MS_RELATIME if flags & 4096 else 0)


def own_scratch(walls: Walls, slot: int) -> None:
    """Inside a new worker: a mount namespace of its own, and in it a scratch folder of limited size."""
    syscalls.unshare(syscalls.CLONE_NEWNS)
    uid = FIRST_UID + slot if walls.uid else os.getuid()
    options = f"size={SCRATCH_BYTES},nr_inodes=1000,mode=0700,uid={uid},gid={uid if walls.uid else os.getgid()}"
    syscalls.mount("tmpfs", SCRATCH, "tmpfs", syscalls.MS_NOSUID | syscalls.MS_NODEV, options)


def become_nobody(slot: int) -> None:
    """setresuid(2) to an id that no file and no other worker has."""
    uid = FIRST_UID + slot
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)


def limit(memory_bytes: int | None, cpu_seconds: int) -> None:
    """Resource limits of a worker (setrlimit(2)).  memory_bytes: None for none: CUDA maps far more than it uses."""
    for kind, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, cpu_seconds),
        (resource.RLIMIT_FSIZE, 16 * 1024 * 1024),
        (resource.RLIMIT_NOFILE, 64),
        (resource.RLIMIT_NPROC, 256),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_AS, memory_bytes),
    ):
        if value is None:
            continue
        _, hard = resource.getrlimit(kind)
        if hard != resource.RLIM_INFINITY:
            value = min(value, hard)
        resource.setrlimit(kind, (value, value))


def lock_in(view: View, readable: list[str], walls: Walls) -> None:
    """The last walls, in this order: no capabilities, no new privileges, Landlock, seccomp.  Records what stands."""
    with contextlib.suppress(OSError):
        syscalls.drop_capabilities()
    syscalls.no_new_privileges()
    syscalls.not_dumpable()
    if view.cuda:
        readable = [*readable, *_KERNEL_VIEWS]
    devices = [*_DEVICES, *(_cuda_devices() if view.cuda and os.path.isdir("/dev") else ())]
    walls.landlock = landlock.restrict(readable, [walls.scratch], devices) > 0
    program = seccomp.own_filter() if not view.cuda else None
    if program is not None:
        syscalls.install_filter(program)
        walls.seccomp = True


def readable_paths(view: View) -> list[str]:
    """What Landlock lets a worker read: the view, less the project's own packages wherever they are installed."""
    hidden = [os.path.join(folder, name) for folder in view.packages for name in HIDDEN_PACKAGES]
    hidden = [path for path in hidden if os.path.isdir(path)]

    def visible(path: str) -> list[str]:
        if path in hidden:
            return []
        if not any(other.startswith(path + "/") for other in hidden):
            return [path]
        return [found for name in os.listdir(path) for found in visible(os.path.join(path, name))]

    return [found for path in view.readable for found in visible(path)]


def open_to_everybody(paths: list[str]) -> bool:
    """Whether a process without any rights of its own can read these folders (their modes and those above them)."""
    for path in paths:
        while path != "/":
            if os.path.isdir(path) and not os.stat(path).st_mode & stat.S_IXOTH:
                return False
            path = os.path.dirname(path)
    return True

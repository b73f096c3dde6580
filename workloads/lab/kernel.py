"""The Linux system calls that Python 3.11 has no name for.

Flags are the kernel's own (linux/sched.h, linux/mount.h, linux/prctl.h). Everything raises OSError with what
was tried; on other systems than Linux the calls don't exist and `workloads.lab.capability` never asks for
them.
"""

import ctypes
import os
import signal

CLONE_NEWNS = 0x00020000
CLONE_NEWUTS = 0x04000000
CLONE_NEWIPC = 0x08000000
CLONE_NEWPID = 0x20000000
CLONE_NEWNET = 0x40000000

MS_RDONLY = 1
MS_NOSUID = 2
MS_NODEV = 4
MS_NOEXEC = 8
MS_REMOUNT = 32
MS_NOATIME = 1024
MS_NODIRATIME = 2048
MS_BIND = 4096
MS_REC = 16384
MS_UNBINDABLE = 1 << 17
MS_PRIVATE = 1 << 18
MS_RELATIME = 1 << 21

_MNT_DETACH = 2
_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36

_libc = ctypes.CDLL(None, use_errno=True)


def unshare(flags: int) -> None:
    """Leave the namespaces named by the CLONE_NEW* flags for new ones (this thread; its children for PID)."""
    _check(_libc.unshare(flags), f"unshare({flags:#x})")


def join_namespace(descriptor: int, kind: int) -> None:
    """Enter the namespace that an open /proc/<pid>/ns/* file stands for (this thread)."""
    _check(_libc.setns(descriptor, kind), f"setns({kind:#x})")


def mount(source: str | None, target: str, filesystem: str | None, flags: int = 0, options: str = "") -> None:
    """mount(2)."""
    arguments = [None if text is None else os.fsencode(text) for text in (source, target, filesystem)]
    result = _libc.mount(*arguments, ctypes.c_ulong(flags), os.fsencode(options) if options else None)
    _check(result, f"mount {filesystem or source or 'flags'} on {target}")


def change_root(folder: str) -> None:
    """Make `folder` (a mount point) the root of this mount namespace and let go of the old one.

    pivot_root(".", ".") stacks the old root on the new one, so no folder for it is needed (pivot_root(2)).
    """
    os.chdir(folder)
    _check(_libc.pivot_root(b".", b"."), f"pivot_root {folder}")
    _check(_libc.umount2(b".", _MNT_DETACH), "umount of the old root")
    os.chdir("/")


def die_with_parent(number: int = signal.SIGKILL) -> None:
    """Ask for a signal when the thread that started this process ends; Linux only."""
    if hasattr(_libc, "prctl"):
        _libc.prctl(_PR_SET_PDEATHSIG, int(number), 0, 0, 0)


def adopt_orphans() -> None:
    """Become the parent of every descendant that loses its own, so that it can be found and ended."""
    if hasattr(_libc, "prctl"):
        _libc.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _check(result: int, attempt: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{attempt}: {os.strerror(number)}")

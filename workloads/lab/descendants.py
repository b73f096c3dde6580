"""Ends every process below this one, and no other."""

import contextlib
import os
import signal
import subprocess
from pathlib import Path


def end_descendants() -> None:
    """Kill children, their children and so on until none runs; the ended are left for `reap_all`.

    Repeated, because a process may be born between the look and the kill.
    """
    while living := descendants(os.getpid()):
        for pid in living:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def reap_all() -> None:
    """Collect every child that ended or is about to; for the last act of a process."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def descendants(root: int) -> list[int]:
    """Process ids below `root` that still run."""
    children: dict[int, list[int]] = {}
    for pid, parent in _parents():
        children.setdefault(parent, []).append(pid)
    found: list[int] = []
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return found


def _parents() -> list[tuple[int, int]]:
    """(process, parent) of all that aren't zombies."""
    if not Path("/proc/self/stat").exists():
        return _parents_by_ps()
    pairs = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError):
                # proc_pid_stat(5): state and parent follow the name, which stands in brackets.
                state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
                if state not in "ZX":
                    pairs.append((int(entry.name), int(parent)))
    return pairs


def _parents_by_ps() -> list[tuple[int, int]]:
    with subprocess.Popen(["ps", "-axo", "pid=,ppid=,state="], stdout=subprocess.PIPE, text=True) as lister:
        assert lister.stdout is not None
        rows = [line.split() for line in lister.stdout]
    return [
        (int(pid), int(parent)) for pid, parent, state in rows if not state.startswith("Z") and int(pid) != lister.pid
    ]

"""The processes of one workspace, found by a variable of their environment: they leave every other trace behind.

Providers and hosts outlive a killed engine, in process groups of their own, with init as parent. What the kernel
keeps is the environment that they were started with.
"""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.e2e.children import wait_until

MARK = "TOPOLAB_E2E_WORKSPACE"
"""The variable; its value is the workspace's own."""
GONE_S = 10.0
"""A killed process is gone as soon as the kernel has let go of its memory."""
_SAMPLE_EVERY_S = 0.25
_PAGE = os.sysconf("SC_PAGE_SIZE")
_MIB = 1 << 20


def marked(value: str) -> list[int]:
    """Every living process whose environment says so, this one apart."""
    entry = f"{MARK}={value}".encode()
    numbers = [int(path.name) for path in Path("/proc").iterdir() if path.name.isdigit()]
    return [number for number in numbers if number != os.getpid() and entry in _environment(number)]


def reap(value: str) -> list[int]:
    """Kill what is left of a workspace; the processes that were."""
    found = marked(value)
    for number in found:
        _kill(number)

    def gone() -> bool:
        return not marked(value)

    wait_until(gone, GONE_S, f"all processes of workspace {value} are gone")
    return found


class MemoryWatch:
    """The most that some processes held together in resident memory while this was entered."""

    def __init__(self, listed: Callable[[], list[int]]) -> None:
        self._listed = listed
        self._over = threading.Event()
        self._watch = threading.Thread(target=self._look, daemon=True)
        self.peak_mib = 0.0

    def __enter__(self) -> Self:
        self._watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._watch.join()

    def _look(self) -> None:
        while not self._over.wait(_SAMPLE_EVERY_S):
            self.peak_mib = max(self.peak_mib, sum(map(_resident, self._listed())) / _MIB)


def _environment(number: int) -> list[bytes]:
    """Empty for a zombie, for a process that has just gone, and for another user's."""
    try:
        return Path(f"/proc/{number}/environ").read_bytes().split(b"\0")
    except OSError:
        return []


def _resident(number: int) -> int:
    try:
        return int(Path(f"/proc/{number}/statm").read_text().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


def _kill(number: int) -> None:
    try:
        os.kill(number, signal.SIGKILL)
    except ProcessLookupError:
        return

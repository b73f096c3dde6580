"""Waits for signals and for one child without losing either, on every system that Python knows."""

import contextlib
import os
import select
import signal
import subprocess
import time
from types import FrameType, TracebackType
from typing import Self

from workloads.lab.descendants import end_descendants

_WATCHED = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGCHLD)


class SignalWatch:
    """Turns signals into bytes of a pipe (signal.set_wakeup_fd), so that a wait has a timeout and no race."""

    def __init__(self) -> None:
        self.asked_to_end = False
        self._read, self._write = os.pipe()
        os.set_blocking(self._write, False)
        os.set_blocking(self._read, False)

    def __enter__(self) -> Self:
        for number in _WATCHED:
            signal.signal(number, _note)
        signal.set_wakeup_fd(self._write)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.set_wakeup_fd(-1)
        os.close(self._read)
        os.close(self._write)

    def wait(self, timeout_s: float | None) -> list[int]:
        """The signals since the last call, at least one unless the time is up."""
        ready, _, _ = select.select([self._read], [], [], timeout_s)
        numbers = list(os.read(self._read, 4096)) if ready else []
        self.asked_to_end |= bool({signal.SIGTERM, signal.SIGQUIT} & set(numbers))
        return numbers

    def deadline(self, seconds: float | None) -> float | None:
        """The moment (time.monotonic) that lies `seconds` ahead."""
        return None if seconds is None else time.monotonic() + seconds

    def run(self, process: subprocess.Popen[bytes], limit: float | None, grace_s: float) -> tuple[int, bool]:
        """The process's exit code, and whether it ran too long; passes signals on and reaps orphans.

        After `limit` it gets SIGTERM, `grace_s` later everything below this process is killed.
        """
        overdue = False
        while (code := _reap(process)) is None:
            if limit is not None and time.monotonic() >= limit:
                _end(process, at_once=overdue)
                limit, overdue = time.monotonic() + grace_s, True
            for number in self.wait(None if limit is None else max(0.0, limit - time.monotonic())):
                if number in {signal.SIGTERM, signal.SIGQUIT}:
                    _end(process, at_once=number == signal.SIGQUIT)
        return code, overdue


def _note(number: int, frame: FrameType | None) -> None:
    """The wake-up pipe has the number already."""


def _end(process: subprocess.Popen[bytes], *, at_once: bool) -> None:
    if at_once:
        end_descendants()
        return
    with contextlib.suppress(ProcessLookupError):
        os.kill(process.pid, signal.SIGTERM)


def _reap(process: subprocess.Popen[bytes]) -> int | None:
    """Collect every ended child, orphans included; the code of `process` once it is among them."""
    while True:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return None
        if pid == process.pid:
            process.returncode = os.waitstatus_to_exitcode(status)
            return process.returncode

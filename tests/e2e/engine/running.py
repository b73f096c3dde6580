"""An engine at work: watched, waited for, interrupted as a user does it, or killed as a machine does it."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from infra.teardown import LIMIT_S as GUARD_S
from tests.e2e.engine import processes
from tests.e2e.engine.events import Changes, changes_of, messages, read_events

_LOOK_EVERY_S = 0.02
_PATIENCE_S = 600.0
_LAST_LINES = 60


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """One command, over."""

    command: tuple[str, ...]
    returncode: int
    output: str
    """What the user saw, both streams in order."""
    seconds: float
    peak_mib: float
    """The most resident memory of engine, host, program and providers together."""
    events: tuple[dict[str, Any], ...] = ()

    @property
    def changes(self) -> Changes:
        """What became of each resource."""
        return changes_of(self.events, preview=self.command[0] == "preview")

    @property
    def errors(self) -> list[str]:
        """What the engine reported as errors, each once."""
        return list(dict.fromkeys(messages(self.events, "error")))

    def must_succeed(self) -> Self:
        """Itself; AssertionError with the end of the output when the command failed."""
        assert self.returncode == 0, f"`pulumi {' '.join(self.command)}` ended with {self.returncode}:\n{self.tail()}"
        return self

    def tail(self, lines: int = _LAST_LINES) -> str:
        """The end of the output."""
        return "\n".join(self.output.splitlines()[-lines:])


class Running:
    """A `pulumi` command that has been started; end it with `finish` or `kill`."""

    def __init__(
        self,
        command: tuple[str, ...],
        process: subprocess.Popen[bytes],
        output: Path,
        events: Path,
        mark: str,
        over: Callable[[Outcome], None],
    ) -> None:
        self.command = command
        self.process = process
        self._output, self._events, self._mark, self._tell = output, events, mark, over
        self._began = time.monotonic()
        self._memory = processes.MemoryWatch(lambda: processes.marked(mark)).__enter__()

    def wait_for(self, reached: Callable[[], bool], within_s: float, what: str) -> bool:
        """Look until `reached`; False when the engine ended before. TimeoutError names `what`."""
        limit = time.monotonic() + within_s
        while not reached():
            if self.process.poll() is not None:
                return False
            if time.monotonic() > limit:
                self.kill()
                raise TimeoutError(f"not within {within_s:g} s: {what}; the output so far:\n{self.output()}")
            time.sleep(_LOOK_EVERY_S)
        return True

    def at_event(self, kind: str, number: int, within_s: float = 300.0) -> bool:
        """Wait for the n-th event of a kind (`resOutputsEvent`: a finished step), the preview's apart.

        False when the engine ended before.
        """
        return self.wait_for(lambda: self._count(kind) >= number, within_s, f"event {kind} number {number}")

    def at_line(self, log: Path, number: int, within_s: float = 300.0) -> bool:
        """Wait until a log (of operations) has so many lines; False when the engine ended before."""
        return self.wait_for(lambda: lines_of(log) >= number, within_s, f"line {number} of {log.name}")

    def output(self) -> str:
        """What the user has seen so far."""
        return self._output.read_text(errors="replace")

    def interrupt(self) -> None:
        """Ctrl-C, once: the engine finishes what it is at and says `update canceled`."""
        self.process.send_signal(signal.SIGINT)

    def kill(self) -> Outcome:
        """SIGKILL to the engine and, as when the machine goes down, to everything that it had started."""
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        processes.reap(self._mark)
        return self._over()

    def finish(self, within_s: float | None = None) -> Outcome:
        """Wait for its own end; RuntimeError, all of it killed, when that takes longer. None: `patience_s`."""
        within_s = patience_s(self.command[0]) if within_s is None else within_s
        try:
            self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            outcome = self.kill()
            words = " ".join(self.command)
            raise RuntimeError(f"`pulumi {words}` took more than {within_s:g} s:\n{outcome.tail()}") from None
        return self._over()

    def _over(self) -> Outcome:
        seconds = time.monotonic() - self._began
        self._memory.__exit__(None, None, None)
        outcome = Outcome(
            command=self.command,
            returncode=self.process.returncode,
            output=self.output(),
            seconds=seconds,
            peak_mib=self._memory.peak_mib,
            events=tuple(read_events(self._events)),
        )
        self._tell(outcome)
        return outcome

    def _count(self, kind: str) -> int:
        return sum(kind in event and not event[kind].get("planning") for event in read_events(self._events))


def patience_s(verb: str) -> float:
    """How long a command may take. A guard that waits for its whole limit must come to its own sentence."""
    return _PATIENCE_S + (GUARD_S if verb == "destroy" else 0.0)


def lines_of(log: Path) -> int:
    """Whole lines of a log; none where it isn't there yet."""
    return log.read_bytes().count(b"\n") if log.exists() else 0

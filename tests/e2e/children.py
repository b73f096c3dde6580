"""Child processes that never outlive the test: started with a log, waited for by a condition, stopped in order."""

import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

STOP_S = 10.0
"""From SIGTERM to SIGKILL."""
_LOOK_EVERY_S = 0.05
_LAST_LINES = 25


@dataclass(frozen=True)
class Child:
    """One process and its log."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def last_lines(self, count: int = _LAST_LINES) -> str:
        """The end of its log, for a message."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-count:])


class Children:
    """A group of children, a context manager: all are gone after it. Start them from the main thread only.

    The kernel kills each when the thread that started it ends, so that a killed test leaves nothing behind.
    """

    def __init__(self, logs: Path) -> None:
        logs.mkdir(parents=True, exist_ok=True)
        self._logs = logs
        self._children: dict[str, Child] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop_all()

    def start(
        self,
        name: str,
        command: Sequence[str | Path],
        environment: Mapping[str, str],
        folder: Path | None = None,
    ) -> Child:
        """Start one with exactly this environment; its output is appended to `<name>.log`."""
        log = self._logs / f"{name}.log"
        with log.open("ab") as output:
            process = subprocess.Popen(
                bound_to_this_thread(command),
                env=dict(environment),
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._children[name] = Child(name, process, log)
        return self._children[name]

    def __getitem__(self, name: str) -> Child:
        return self._children[name]

    def await_ready(self, name: str, ready: Callable[[], bool], within_s: float) -> None:
        """Wait until `ready`; RuntimeError with the end of its log when it exits or takes longer."""
        child = self._children[name]

        def settled() -> bool:
            return child.process.poll() is not None or ready()

        try:
            wait_until(settled, within_s, f"{name} is ready")
        except TimeoutError as error:
            raise RuntimeError(f"{error}; the end of {child.log}:\n{child.last_lines()}") from None
        if child.process.poll() is not None:
            raise RuntimeError(
                f"{name} ended with code {child.process.returncode}; the end of {child.log}:\n{child.last_lines()}"
            )

    def stop(self, name: str, *, kill: bool = False) -> None:
        """End one: SIGTERM, after STOP_S SIGKILL; at once with `kill`."""
        child = self._children.pop(name)
        _end([child], kill=kill)

    def stop_all(self) -> None:
        """End all, the last started first to be told."""
        children = list(reversed(self._children.values()))
        self._children.clear()
        _end(children, kill=False)


def bound_to_this_thread(command: Sequence[str | Path]) -> list[str]:
    """The command so that the kernel kills its process when the thread that starts it ends; Linux (util-linux).

    By `setpriv`, not by `preexec_fn`: code between fork and exec crashes where gRPC runs threads (seen: SIGSEGV).
    """
    return ["/usr/bin/setpriv", "--pdeathsig", "KILL", "--", *(str(word) for word in command)]


def _end(children: Sequence[Child], *, kill: bool) -> None:
    for child in children:
        if child.process.poll() is None:
            child.process.send_signal(signal.SIGKILL if kill else signal.SIGTERM)
    limit = time.monotonic() + STOP_S
    for child in children:
        try:
            child.process.wait(max(0.0, limit - time.monotonic()))
        except subprocess.TimeoutExpired:
            child.process.kill()
            child.process.wait()


def wait_until(condition: Callable[[], bool], within_s: float, what: str) -> float:
    """Look until `condition` holds; seconds that it took. TimeoutError names `what`."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > within_s:
            raise TimeoutError(f"not within {within_s:g} s: {what}")
        time.sleep(_LOOK_EVERY_S)
    return time.monotonic() - began


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody listens on now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])

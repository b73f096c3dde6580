"""Follows growing log files, whole lines at a time."""

from collections.abc import Iterator, Mapping
from pathlib import Path


class LogTail:
    """New lines of several logs, each told once; an unfinished line waits for its end."""

    def __init__(self, logs: Mapping[str, Path]) -> None:
        self._logs = dict(logs)
        self._read = dict.fromkeys(logs, 0)

    def new_lines(self) -> Iterator[tuple[str, str]]:
        """(name of the log, line) of what was written since the last call."""
        for name, log in self._logs.items():
            with log.open("rb") as stream:
                stream.seek(self._read[name])
                whole, end, _ = stream.read().rpartition(b"\n")
            self._read[name] += len(whole) + len(end)
            for line in whole.splitlines():
                yield name, line.decode(errors="replace")

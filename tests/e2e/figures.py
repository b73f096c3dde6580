"""The seconds that the proof takes, part by part, as CI prints them."""

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from tests.e2e.engine.running import Outcome

_COMMANDS = ("preview", "up", "refresh", "destroy")


class Figures:
    """What was measured in this session: the parts once, each command of the engine as often as it ran."""

    def __init__(self) -> None:
        self._parts: dict[str, float] = {}
        self._commands: dict[str, list[tuple[float, float]]] = {}
        self._remarks: list[str] = []

    @contextmanager
    def measured(self, part: str) -> Iterator[None]:
        """Note how long the body takes."""
        began = time.monotonic()
        try:
            yield
        finally:
            self.note(part, time.monotonic() - began)

    def note(self, part: str, seconds: float) -> None:
        """Add to a part."""
        self._parts[part] = self._parts.get(part, 0.0) + seconds

    def remark(self, line: str) -> None:
        """A line that must not be lost, such as a seed."""
        self._remarks.append(line)

    def note_commands(self, outcomes: Iterable[Outcome]) -> None:
        """Take in what a workspace did; commands that failed, as some must, don't count."""
        for outcome in outcomes:
            if outcome.returncode == 0 and outcome.command[0] in _COMMANDS:
                self._commands.setdefault(outcome.command[0], []).append((outcome.seconds, outcome.peak_mib))

    def dump(self) -> dict[str, Any]:
        """All of it in plain values, for the process that prints."""
        return {"parts": self._parts, "commands": self._commands, "remarks": self._remarks}

    def merge(self, dumped: dict[str, Any]) -> None:
        """Take in what a process beside this one measured; of a part that both have, the longer."""
        self._remarks += dumped["remarks"]
        for part, seconds in dumped["parts"].items():
            self._parts[part] = max(seconds, self._parts.get(part, 0.0))
        for command, ran in dumped["commands"].items():
            self._commands.setdefault(command, []).extend((seconds, peak_mib) for seconds, peak_mib in ran)

    def lines(self) -> list[str]:
        """One line a part and a command; none when nothing was measured."""
        parts = [f"{part:8} {seconds:7.1f} s" for part, seconds in self._parts.items()]
        return [
            *self._remarks,
            *parts,
            *(_line(name, self._commands[name]) for name in _COMMANDS if name in self._commands),
        ]


def _line(name: str, ran: list[tuple[float, float]]) -> str:
    seconds = sorted(one for one, _ in ran)
    memory = max(peak_mib for _, peak_mib in ran)
    return f"{name:8} {seconds[-1]:7.1f} s at most, {seconds[0]:.1f} s at least, {len(seconds)} times; {memory:.0f} MiB"

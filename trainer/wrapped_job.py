"""A job of anybody's, run and looked at from outside: what it prints, its ranks, and the bytes of its pod."""

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from trainer import counters
from trainer.distributed import inherited
from trainer.marks import Mark, Printed, marks_of, printed
from trainer.rank_processes import RankProcess, rank_processes
from trainer.record import Connection, CounterSample

LOOK_EVERY_S = 0.1
"""A step's counters are read that late at most; a look costs about a millisecond."""
CONNECTIONS_EVERY_S = 2.0


@dataclass
class Seen:
    """What was seen of the job on this pod."""

    exit_code: int = 0
    output: list[str] = field(default_factory=list)
    ranks: dict[int, RankProcess] = field(default_factory=dict)
    printed: list[Printed] = field(default_factory=list)
    first: CounterSample | None = None
    """Once the warm-up was over."""
    last: CounterSample | None = None
    """After the last step."""
    connections: dict[int, set[Connection]] = field(default_factory=dict)
    """Of each rank."""
    started_unix_s: float = field(default_factory=time.time)

    @property
    def samples(self) -> tuple[CounterSample, ...]:
        """Both ends of the timed window; none where there was none."""
        return () if self.first is None or self.last is None else (self.first, self.last)


class WrappedJob:
    """Runs a command to its end."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], marks: Path, warmup_steps: int) -> None:
        """`marks`: folder of the ranks' own marks. A ValueError names a program that isn't there."""
        self._marks, self._warmup_steps = marks, warmup_steps
        self._told = 0
        self._connections_at = 0.0
        self._over = threading.Event()
        self.seen = Seen()
        try:
            self._process = subprocess.Popen(
                list(command),
                env=inherited(environment),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            )
        except OSError as error:
            raise ValueError(f"{command[0]}: can't be started: {error.strerror}; give a command after --") from error

    def terminate(self) -> None:
        """Ask the job to end; it may take its time."""
        with contextlib.suppress(ProcessLookupError):
            self._process.terminate()

    def run(self) -> Seen:
        """Until the job has ended: pass on what it prints, and look at it beside."""
        looking = threading.Thread(target=self._look_often, daemon=True)
        looking.start()
        assert self._process.stdout is not None
        for line in self._process.stdout:
            sys.stdout.write(line)
            sys.stdout.flush()
            self.seen.output.append(line)
            found = printed(line, time.time())
            if found is not None:
                self.seen.printed.append(found)
        code = self._process.wait()
        self._over.set()
        looking.join()
        self.seen.exit_code = code if code >= 0 else 128 - code
        return self.seen

    def marks_by_rank(self) -> dict[int, list[Mark]]:
        """The ranks' own marks, and printed ones of ranks that left none."""
        found = {rank: marks_of(file.read_text()) for rank, file in self._files().items()}
        by_local = {process.local_rank: process.rank for process in self.seen.ranks.values()}
        told: dict[int, list[Mark]] = {}
        for each in self.seen.printed:
            if each.local_rank in by_local:
                told.setdefault(by_local[each.local_rank], []).append(each.mark)
        return told | found

    def _look_often(self) -> None:
        while not self._over.wait(LOOK_EVERY_S):
            self._look()

    def _look(self) -> None:
        seen = self.seen
        for rank, process in rank_processes(self._process.pid).items():
            seen.ranks.setdefault(rank, process)
        told, step = self._progress()
        if told <= self._told:
            return
        self._told = told
        if told > self._warmup_steps:
            seen.last = counters.sample(step)
            seen.first = seen.first or seen.last
        if time.monotonic() >= self._connections_at:
            self._connections_at = time.monotonic() + CONNECTIONS_EVERY_S
            self._look_at_connections()

    def _look_at_connections(self) -> None:
        for rank, process in self.seen.ranks.items():
            with contextlib.suppress(OSError):
                self.seen.connections.setdefault(rank, set()).update(counters.connections(process.pid))

    def _progress(self) -> tuple[int, int]:
        """How many marks the rank that told most has made, and the newest step."""
        of_files = [(text.count("\n"), _newest(text)) for text in (f.read_text() for f in self._files().values())]
        own = [(len(self.seen.printed), self.seen.printed[-1].mark.step)] if self.seen.printed else []
        return max([*of_files, *own], default=(0, 0))

    def _files(self) -> dict[int, Path]:
        return {int(f.stem.removeprefix("rank-")): f for f in sorted(self._marks.glob("rank-*.jsonl"))}


def _newest(text: str) -> int:
    marks = marks_of(text)
    return marks[-1].step if marks else 0

"""Finds that the run hangs, names the rank that holds the others up, and lets the run end with a record.

A thread on every rank looks at its main thread's progress. While there is some it sends nothing; once there was none
for a while it leaves a word in the store, so that all words together tell who stands where. A rank that leaves none is
stopped or gone.
"""

import json
import sys
import threading
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass

import torch.distributed as dist
from torch._C import _distributed_c10d as c10d

from trainer.record import Hang

LOOK_EVERY_S = 0.5
PATIENCE = 10.0
"""Times the slowest step so far: a step that takes so long hangs, whatever the config says."""
SIGNS_S = 3.0
"""What the others are given to leave their words, once one has lost its patience."""
SHARE_OF_PATIENCE = 0.25
"""A word is left after this share of the wait, so that it is there when it is asked for."""


_RECORDERS = ("_dump_fr_trace_json", "_dump_nccl_trace_json")
"""torch's flight recorders: of all backends since 2.13 or so, of NCCL before."""


@dataclass(frozen=True, kw_only=True)
class Word:
    """Where one rank stands."""

    rank: int
    step: int
    """That it works on."""
    collectives: int
    """That it has begun on the group of all ranks, as torch's flight recorder counts them."""
    last: str
    """The last of them, such as `gloo:all_reduce`."""
    where: str
    """Where its main thread is."""


def verdict_on(words: Mapping[int, Word], ranks: int, waited_s: float) -> Hang:
    """Who holds the others up: who is silent, else who has begun fewer collectives than the others."""
    silent = tuple(rank for rank in range(ranks) if rank not in words)
    step = max((word.step for word in words.values()), default=0)
    waiting = _waiting(words)
    if silent:
        return Hang(
            step=step,
            waited_s=waited_s,
            ranks=silent,
            sentence=f"{_ranks(silent)} gave no sign of life for {waited_s:.0f} s in step {step}; {waiting}",
        )
    least = min(word.collectives for word in words.values())
    behind = tuple(rank for rank, word in sorted(words.items()) if word.collectives == least)
    if len(behind) == ranks:
        text = f"no rank went on for {waited_s:.0f} s in step {step}: all are in collective {least}, {waiting}"
        return Hang(step=step, waited_s=waited_s, ranks=(), sentence=text)
    first = words[behind[0]]
    return Hang(
        step=step,
        waited_s=waited_s,
        ranks=behind,
        sentence=(
            f"{_ranks(behind)} hung for {waited_s:.0f} s in step {step} at {first.where}, after collective {least} "
            f"({first.last}); {_waiting({r: w for r, w in words.items() if r not in behind})}"
        ),
    )


class Watchdog:
    """One rank's; `beat` is the main thread's to call."""

    def __init__(self, rank: int, ranks: int, on_hang: Callable[[Hang, int], None]) -> None:
        """`on_hang` is called on the watching thread with the hang and the lowest rank that is alive."""
        self._rank, self._ranks, self._on_hang = rank, ranks, on_hang
        self._beat = (0, 0.0, time.monotonic())
        self._slowest_s = 0.0
        self._over = threading.Event()
        self._main = threading.main_thread().ident
        # A connection of its own: the main thread may hold the other one while it waits.
        self._store = dist.distributed_c10d._get_default_store().clone()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def start(self) -> None:
        """Watch from now on."""
        self._thread.start()

    def stop(self) -> None:
        """The run has ended in order."""
        self._over.set()

    def beat(self, step: int, within_s: float, step_s: float = 0.0) -> None:
        """The main thread goes on: it begins work on this step, which may take so long; the last took `step_s`."""
        self._slowest_s = max(self._slowest_s, step_s)
        self._beat = (step, max(within_s, PATIENCE * self._slowest_s), time.monotonic())

    def _watch(self) -> None:
        while not self._over.wait(LOOK_EVERY_S):
            step, limit_s, since = self._beat
            waited_s = time.monotonic() - since
            if limit_s and waited_s > limit_s * SHARE_OF_PATIENCE:
                self._leave_word(step)
            if limit_s and waited_s > limit_s:
                self._over.wait(SIGNS_S)
                if self._beat[2] == since:
                    words = self._words(step)
                    self._on_hang(verdict_on(words, self._ranks, waited_s), min(words))
                    return

    def _leave_word(self, step: int) -> None:
        count, last = _collectives()
        word = Word(rank=self._rank, step=step, collectives=count, last=last, where=_where(self._main))
        self._store.set(f"word/{self._rank}/{step}", json.dumps(asdict(word)))

    def _words(self, step: int) -> dict[int, Word]:
        """Of the ranks that left one on this step, or on the one before it or after: they may just have passed."""
        found: dict[int, Word] = {}
        for rank in range(self._ranks):
            for near in (step, step - 1, step + 1):
                if rank not in found and self._store.check([f"word/{rank}/{near}"]):
                    found[rank] = Word(**json.loads(self._store.get(f"word/{rank}/{near}")))
        return found


def _collectives() -> tuple[int, str]:
    """Number and name of the last collective of all ranks that this rank began, by torch's flight recorder."""
    dumps = [getattr(c10d, name)() for name in _RECORDERS if hasattr(c10d, name)]
    entries = [entry for dump in dumps for entry in json.loads(dump).get("entries", []) if not entry.get("is_p2p")]
    whole = [entry for entry in entries if entry["process_group"][0] == "0"]
    if not whole:
        return 0, "none"
    last = max(whole, key=lambda entry: int(entry["collective_seq_id"]))
    return int(last["collective_seq_id"]), str(last["profiling_name"])


def _where(thread: int | None) -> str:
    """File, line and function of a thread's innermost frame."""
    frame = sys._current_frames().get(thread or 0)
    if frame is None:
        return "nowhere"
    inner = traceback.extract_stack(frame)[-1]
    return f"{'/'.join(inner.filename.split('/')[-2:])}:{inner.lineno} in {inner.name}"


def _waiting(words: Mapping[int, Word]) -> str:
    if not words:
        return "nobody waits"
    rank, word = min(words.items())
    return f"rank {rank} waits in collective {word.collectives} ({word.last}) at {word.where}"


def _ranks(ranks: Sequence[int]) -> str:
    return f"{'rank' if len(ranks) == 1 else 'ranks'} {', '.join(map(str, ranks))}"

"""Faults on demand: what the stand-ins refuse or delay, asked for by a test, each used up as it says.

A fault matches an operation by `who` (as in the operation log) and a regular expression over "verb subject".
"""

import fcntl
import json
import re
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.e2e.operations import Actor


@dataclass(frozen=True, kw_only=True)
class Fault:
    """The `nth` match (1: the first) gets `error`, or waits `delay_s`; `times` matches in a row do (None: all).

    `who` "engine" matches what the engine asks of any provider: "create TYPE NAME", "delete TYPE NAME".
    """

    who: Actor
    match: str
    nth: int = 1
    times: int | None = 1
    error: str | None = None
    """An AWS error code (`Throttling`), or a sentence for Kubernetes and helm."""
    delay_s: float = 0.0


def plan_faults(path: Path, faults: Sequence[Fault]) -> None:
    """Replace all faults; counting starts anew."""
    path.write_text(json.dumps([{**asdict(fault), "seen": 0} for fault in faults]))


def faults_met(path: Path) -> int:
    """How many operations met one of the faults so far."""
    entries = json.loads(path.read_text()) if path.exists() else []
    return sum(_met(entry) for entry in entries)


def _met(entry: Mapping[str, Any]) -> int:
    # The first match is number 1; of two faults that match an operation the first alone is met, which none needs.
    since: int = entry["seen"] - entry["nth"] + 1
    return max(0, since if entry["times"] is None else min(since, entry["times"]))


def fault_of(path: Path, who: Actor, what: str) -> Fault | None:
    """The fault that this operation ("verb subject") meets, counted; None almost always."""
    if not path.exists():
        return None
    with _locked(path) as stream:
        entries = json.load(stream)
        found = None
        for entry in entries:
            seen = entry.pop("seen")
            fault = Fault(**entry)
            if fault.who == who and re.search(fault.match, what):
                seen += 1
                last = None if fault.times is None else fault.nth + fault.times - 1
                if found is None and seen >= fault.nth and (last is None or seen <= last):
                    found = fault
            entry["seen"] = seen
        stream.seek(0)
        stream.truncate()
        json.dump(entries, stream)
    return found


@contextmanager
def _locked(path: Path):
    with path.open("r+") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        yield stream

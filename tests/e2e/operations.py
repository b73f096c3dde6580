"""The operation log: what was made, changed and deleted, in order, by whom. One JSON object a line, appended."""

import json
import os
import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

Actor = Literal["aws", "kubernetes", "helm", "cluster", "engine"]
"""`aws`: the fake cloud, by API call. `kubernetes`, `helm`: the stand-in provider. `cluster`: the control plane's
keepers (nodes joined, census at the end of a cluster). `engine`: the driver of `pulumi`."""


@dataclass(frozen=True, kw_only=True)
class Operation:
    """`verb`: an AWS action (CreateVpc), or apply, delete, deleted, install, uninstall, joined, census, up ...

    `outcome`: "ok" or the error's code. Secrets are never written: who appends leaves request bodies out.
    """

    who: Actor
    verb: str
    subject: str
    """What it was done to: an id, or kind/namespace/name."""
    outcome: str = "ok"
    details: Mapping[str, Any] = field(default_factory=dict)
    at: float = field(default_factory=time.time)


def append(log: Path, operation: Operation) -> None:
    """Add one line; whole, also when several processes write at once (O_APPEND, one write)."""
    line = json.dumps(asdict(operation), sort_keys=True) + "\n"
    descriptor = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    try:
        os.write(descriptor, line.encode())
    finally:
        os.close(descriptor)


def read(log: Path) -> list[Operation]:
    """All operations so far, in order; an unfinished last line is left out."""
    if not log.exists():
        return []
    lines = log.read_text().split("\n")[:-1]
    return [Operation(**json.loads(line)) for line in lines]


def position(operations: Iterable[Operation], *, who: Actor, verb: str, subject: str | None = None) -> int:
    """Index of the last such operation that succeeded; ValueError, with what is there, when there is none."""
    listed = list(operations)
    found = [
        index
        for index, one in enumerate(listed)
        if (one.who, one.verb, one.outcome) == (who, verb, "ok") and subject in (None, one.subject)
    ]
    if not found:
        seen = sorted({f"{one.who} {one.verb}" for one in listed})
        raise ValueError(f"no operation {who} {verb} {subject or ''}; the log has {', '.join(seen) or 'nothing'}")
    return found[-1]

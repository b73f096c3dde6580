"""What the supervisor of an arm tells while it runs, one JSON object a line."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from workloads.lab.links import LinkBytes
from workloads.lab.pod_program import Reason


@dataclass(frozen=True)
class Noted:
    """Something that the user should know, in one sentence."""

    sentence: str


@dataclass(frozen=True)
class PodStarted:
    """A pod's processes run."""

    pod: str
    address: str


@dataclass(frozen=True)
class PodPrinted:
    """One line of a pod's log."""

    pod: str
    line: str


@dataclass(frozen=True)
class LinksCounted:
    """Bytes of each pod since its link was made; once a second, and at the end."""

    pods: Mapping[str, LinkBytes]


@dataclass(frozen=True)
class PodExited:
    """A pod ended."""

    pod: str
    exit_code: int
    reason: Reason
    message: str
    ended_by_lab: bool
    """Because a peer had failed or the lab was stopped: its exit code says nothing about the pod."""


Event = Noted | PodStarted | PodPrinted | LinksCounted | PodExited


@dataclass(frozen=True)
class Refused:
    """The arm can't run as it is; the last thing that a supervisor says then."""

    sentence: str


@dataclass(frozen=True)
class Finished:
    """Everything was said: a supervisor without this word was killed."""

    seconds: float
    """From the first pod's start to the last pod's end."""


_KINDS: dict[str, type[Event | Refused | Finished]] = {
    kind.__name__: kind for kind in (Noted, PodStarted, PodPrinted, LinksCounted, PodExited, Refused, Finished)
}


def to_line(event: Event | Refused | Finished) -> str:
    """One line of JSON, without its end."""
    return json.dumps({"event": type(event).__name__, **asdict(event)})


def from_line(line: str) -> Event | Refused | Finished:
    """The event of a line that `to_line` wrote."""
    values = json.loads(line)
    kind = _KINDS[values.pop("event")]
    if kind is LinksCounted:
        return LinksCounted({pod: LinkBytes(**count) for pod, count in values["pods"].items()})
    return kind(**values)

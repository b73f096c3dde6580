"""What one look at a cluster found, and how to find one's way in it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

Document = Mapping[str, Any]
"""An object as the API server gives it."""

POOL_LABEL = "karpenter.sh/nodepool"
KARPENTER = "karpenter"


@dataclass(frozen=True, kw_only=True)
class Observed:
    """Objects of one job, and of the pools that its pods may go to."""

    now: datetime
    train_job: Document | None
    pods: Sequence[Document] = field(default=())
    events: Sequence[Document] = field(default=())
    node_pools: Sequence[Document] = field(default=())
    node_classes: Sequence[Document] = field(default=())
    node_claims: Sequence[Document] = field(default=())

    def pool(self, name: str) -> Document | None:
        """The NodePool of that name."""
        return _named(self.node_pools, name)

    def node_class(self, name: str) -> Document | None:
        """The EC2NodeClass of that name."""
        return _named(self.node_classes, name)

    def claim(self, name: str) -> Document | None:
        """The NodeClaim of that name."""
        return _named(self.node_claims, name)

    def last_event(self, kind: str, name: str, *, by: str | None = None, reason: str | None = None) -> Document | None:
        """The newest event about an object, of one reporter or reason where asked."""
        found = [
            event
            for event in self.events
            if (event["involvedObject"]["kind"], event["involvedObject"]["name"]) == (kind, name)
            and by in (None, reporter(event))
            and reason in (None, event.get("reason"))
        ]
        return max(found, key=time_of, default=None)

    def seconds_since(self, when: str) -> float:
        """Age of a time that the API server wrote."""
        return (self.now - _parsed(when)).total_seconds()


def conditions(document: Document) -> Iterator[Document]:
    """Its status conditions."""
    yield from (document.get("status") or {}).get("conditions") or ()


def condition(document: Document, kind: str) -> Document:
    """One condition; an empty one that is Unknown where it isn't there yet."""
    return next((one for one in conditions(document) if one["type"] == kind), {"type": kind, "status": "Unknown"})


def reporter(event: Document) -> str:
    """Who said it."""
    return event.get("reportingComponent") or (event.get("source") or {}).get("component") or ""


def time_of(event: Document) -> datetime:
    """When it was said last; old and new event APIs keep it in different fields."""
    series = (event.get("series") or {}).get("lastObservedTime")
    given = series or event.get("lastTimestamp") or event.get("eventTime") or event.get("firstTimestamp")
    return _parsed(given) if given else datetime.min.replace(tzinfo=UTC)


def _parsed(text: str) -> datetime:
    return datetime.fromisoformat(text)


def _named(documents: Sequence[Document], name: str) -> Document | None:
    return next((one for one in documents if one["metadata"]["name"] == name), None)

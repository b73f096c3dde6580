"""How GPU nodes are bought: what may stand together in a stack file, and whether a block lasts. Pure."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from workloads.planning.prediction import Range
from workloads.planning.spec import Capacity, Fault

BLOCK_DRAIN = timedelta(minutes=40)
"""EC2 ends a capacity block's instances from 30 minutes before its end on, and Karpenter drains 10 minutes before that
(Karpenter v1.14.1, tasks/odcrs)."""
FIELD = "platform.capacity"


def capacity_faults(capacity: Capacity) -> Iterator[Fault]:
    """Keys that belong to another mode, and keys that the mode needs."""
    mode = capacity.mode
    if mode in ("onDemand", "spot"):
        if capacity.id is not None or capacity.ends_at is not None:
            yield Fault(field=FIELD, value=mode, message="id and endsAt belong to a reservation; remove them")
        return
    if capacity.id is None:
        what = "topo preflight --reserve makes a reservation" if mode == "reservation" else "EC2 says it at purchase"
        yield Fault(field=f"{FIELD}.id", value=None, message=f"{mode} needs the id, cr-...; {what}")
    if mode == "reservation" and capacity.ends_at is not None:
        message = "belongs to a capacityBlock: nodes of a reservation outlive its end; remove it"
        yield Fault(field=f"{FIELD}.endsAt", value=capacity.ends_at, message=message)
    if mode == "capacityBlock" and capacity.ends_at is None:
        message = 'a capacityBlock ends all that runs in it; write its end, "2026-12-01T11:30:00Z"'
        yield Fault(field=f"{FIELD}.endsAt", value=None, message=message)


def usable_until(capacity: Capacity) -> datetime | None:
    """When nodes of a capacity block are taken; None for what has no end of its own."""
    if capacity.mode != "capacityBlock" or capacity.ends_at is None:
        return None
    return datetime.fromisoformat(capacity.ends_at) - BLOCK_DRAIN


def end_faults(capacity: Capacity, wall_clock_s: Range, now: datetime) -> Iterator[Fault]:
    """A run that isn't predicted to end before its nodes are taken. `now`: aware of its zone."""
    until = usable_until(capacity)
    if until is None:
        return
    left_s = (until - now).total_seconds()
    if left_s < wall_clock_s.expected:
        left = "is over" if left_s <= 0 else f"has {left_s / 60:.0f} minutes left"
        yield Fault(
            field=f"{FIELD}.endsAt",
            value=capacity.ends_at,
            message=f"nodes are taken 40 minutes before it, so the block {left}, and the run is predicted to take "
            f"{wall_clock_s.expected / 60:.0f}; lower run.steps, or name another block",
        )

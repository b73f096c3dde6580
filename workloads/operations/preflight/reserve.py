"""Reserving capacity: zone after zone until one has all of it. A capacity error takes seconds then, not a run."""

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from botocore.exceptions import ClientError

from workloads.operations.leftovers.aws import Aws, RefusedError, code_of, sentences
from workloads.operations.preflight.subject import Subject

MAKING = timedelta(hours=1)
"""What `pulumi up` of a whole platform may take before the run begins."""
_NO_CAPACITY = frozenset({"InsufficientInstanceCapacity", "Unsupported", "ReservationCapacityExceeded"})


@dataclass(frozen=True, kw_only=True)
class Wish:
    """What is to be reserved. `zones` in the order in which they are asked; `ends_at`: UTC."""

    instance_type: str
    nodes: int
    zones: tuple[str, ...]
    ends_at: datetime
    hours: float


@dataclass(frozen=True, kw_only=True)
class Reserved:
    """What was made, and the zones that had too little before."""

    id: str
    zone: str
    without: tuple[str, ...]


def wish(subject: Subject, offered: Sequence[str], *, moves: bool) -> Wish:
    """The stack's own zone first; another one only where nothing of the stack stands yet (`moves`).

    It lasts for the job's deadline and the hour that a platform takes before. ValueError where the stack buys its
    nodes in a way that no new reservation serves.
    """
    capacity, plan = subject.platform.capacity, subject.plan
    if capacity.mode == "capacityBlock":
        raise ValueError(
            "platform.capacity.mode = capacityBlock: its capacity is paid for already; --reserve is not for it"
        )
    if "pg" in plan.topology.variants:
        raise ValueError(
            f"topology {plan.topology.name}: instances of a placement group use only a reservation that was made in "
            "it; take a topology without pg, or drop --reserve"
        )
    hours = (timedelta(seconds=plan.deadline_s) + MAKING) / timedelta(hours=1)
    others = sorted(set(offered) - {subject.zone}) if moves else []
    return Wish(
        instance_type=subject.instance_type.name,
        nodes=plan.nodes,
        zones=(subject.zone, *others),
        ends_at=subject.now + timedelta(hours=hours),
        hours=hours,
    )


def cost(one: Wish, usd_per_hour: float | None) -> str:
    """What it costs from the moment that it is made, used or not."""
    if usd_per_hour is None:
        return "its price isn't known here; it is that of on demand, from now on, used or not"
    hourly = one.nodes * usd_per_hour
    return (
        f"{hourly:.2f} USD an hour from the moment that it is made, used or not: at most {hourly * one.hours:.2f} USD "
        f"until it ends by itself at {one.ends_at:%Y-%m-%d %H:%M} UTC"
    )


def reserve(aws: Aws, one: Wish, subject: Subject) -> Reserved:
    """Ask zone after zone; RefusedError where none has it, or EC2 refuses for another reason."""
    without: list[str] = []
    for zone in one.zones:
        with sentences(f"a reservation in {zone}"):
            made = _asked(aws, one, zone, subject)
        if made is not None:
            return Reserved(id=made, zone=zone, without=tuple(without))
        without.append(zone)
    raise RefusedError(
        f"{one.nodes} x {one.instance_type}: EC2 has no capacity in {', '.join(without)} now; nothing was reserved, "
        "call again later, or take another type or region"
    )


def _asked(aws: Aws, one: Wish, zone: str, subject: Subject) -> str | None:
    tags = {"Name": subject.owner.names.of("gpu"), **subject.owner.names.tags}
    try:
        answer = aws.client("ec2").create_capacity_reservation(
            # A call that is tried again makes no second one.
            ClientToken=str(uuid.uuid4()),
            InstanceType=one.instance_type,
            InstancePlatform="Linux/UNIX",
            AvailabilityZone=zone,
            InstanceCount=one.nodes,
            # Only who names it gets in: Karpenter does.
            InstanceMatchCriteria="targeted",
            EndDateType="limited",
            EndDate=one.ends_at,
            TagSpecifications=[
                {"ResourceType": "capacity-reservation", "Tags": [{"Key": k, "Value": v} for k, v in tags.items()]}
            ],
        )
    except ClientError as error:
        if code_of(error) in _NO_CAPACITY:
            return None
        raise
    return str(answer["CapacityReservation"]["CapacityReservationId"])

"""Whether EC2 will give the nodes: quotas, the type's facts, reservations."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from workloads.catalogue.instances import InstanceType
from workloads.operations.preflight.rows import Row, green, red
from workloads.planning.capacity import BLOCK_DRAIN


@dataclass(frozen=True, kw_only=True)
class Quota:
    """A vCPU quota: what is allowed, and what runs already that isn't the stack's own."""

    code: str
    limit: float
    used: float

    @property
    def free(self) -> float:
        """What may still be launched."""
        return max(0.0, self.limit - self.used)


def quota(check: str, found: Quota, *, needed: int, region: str) -> Row:
    """vCPUs that the stack needs against those that are free."""
    figures = f"{needed} vCPUs needed, {found.free:.0f} free ({found.limit:.0f} allowed, {found.used:.0f} in use)"
    if found.free >= needed:
        return green(check, figures)
    return red(
        check,
        f"{figures}, quota {found.code}",
        f"ask for {needed + found.used:.0f}: {request_link(found.code, region)}",
    )


def request_link(code: str, region: str, service: str = "ec2") -> str:
    """The page of Service Quotas where more is asked for."""
    console = f"https://{region}.console.aws.amazon.com/servicequotas/home"
    return f"{console}/services/{service}/quotas/{code}"


def count_quota(check: str, what: str, found: Quota, *, needed: int, region: str, service: str) -> Row:
    """Things of the network that are counted: `needed` is 0 where the stack has its own already."""
    figures = f"{found.used:.0f} of {found.limit:.0f} {what} in use"
    if found.free >= needed:
        return green(check, figures)
    link = request_link(found.code, region, service)
    return red(check, f"{figures}, and the stack makes {needed}", f"delete one, or ask for more: {link}")


@dataclass(frozen=True, kw_only=True)
class TypeFacts:
    """What EC2 says of an instance type."""

    gpus: int
    efa_devices: int
    network_cards: int
    network_gbps: float
    vcpus: int
    memory_gib: int


def facts(kind: InstanceType, found: TypeFacts) -> Row:
    """EC2's own facts against the catalogue's."""
    ours = TypeFacts(
        gpus=kind.gpus,
        efa_devices=kind.efa_devices,
        network_cards=kind.network_cards,
        network_gbps=kind.network_gbps,
        vcpus=kind.vcpus,
        memory_gib=kind.memory_gib,
    )
    names = ("gpus", "efa_devices", "network_cards", "network_gbps", "vcpus", "memory_gib")
    wrong = [
        f"{name} {getattr(found, name):g} (catalogue: {getattr(ours, name):g})"
        for name in names
        if getattr(found, name) != getattr(ours, name)
    ]
    if wrong:
        return red(
            "instance type",
            f"EC2 says of {kind.name}: {', '.join(wrong)}",
            "correct workloads/catalogue/instances.py: placement and predictions stand on it",
        )
    return green(
        "instance type",
        f"{kind.name} has {kind.gpus} GPUs, {kind.efa_devices} EFA devices and {kind.network_gbps} Gbps, "
        "as the catalogue says",
    )


@dataclass(frozen=True, kw_only=True)
class Reservation:
    """A capacity reservation or block. `ends_at`: None where it is open-ended; times are UTC."""

    id: str
    state: str
    instance_type: str
    zone: str
    free: int
    is_block: bool
    ends_at: datetime | None


def reservation(
    found: Reservation | None, asked_id: str, kind: InstanceType, zone: str, nodes: int, *, block: bool
) -> Row:
    """It is there, active, of the type and the zone, and holds the nodes."""
    check = "reservation"
    if found is None:
        return red(check, f"{asked_id} isn't in this account and region", "correct platform.capacity.id")
    wrong = next(_wrong(found, kind, zone, nodes, block=block), None)
    if wrong is not None:
        return red(check, f"{found.id} {wrong[0]}", wrong[1])
    end = "no end" if found.ends_at is None else f"ends {found.ends_at:%Y-%m-%d %H:%M} UTC"
    return green(check, f"{found.id} is active, {found.free} x {found.instance_type} free in {found.zone}, {end}")


def _wrong(found: Reservation, kind: InstanceType, zone: str, nodes: int, *, block: bool) -> Iterator[tuple[str, str]]:
    """What is wrong and the remedy; the first that holds explains the others."""
    if found.is_block != block:
        mode = "capacityBlock" if found.is_block else "reservation"
        yield f"is a {'capacity block' if found.is_block else 'reservation'}", f"set platform.capacity.mode to {mode}"
    if found.state == "scheduled":
        yield "hasn't begun", "wait for its start"
    elif found.state != "active":
        yield f"is {found.state}", "name another, or `topo preflight --reserve`"
    if found.instance_type != kind.name:
        yield f"holds {found.instance_type}, the topology needs {kind.name}", "name a reservation of that type"
    if found.zone != zone:
        yield f"is in {found.zone}, platform.zone is {zone}", f"set platform.zone to {found.zone}"
    if found.free < nodes:
        yield f"has {found.free} of {nodes} nodes free", "end what holds the others, or take a smaller topology"


def end(found: Reservation, stated: datetime | None, needed: timedelta, now: datetime) -> Row:
    """The run is predicted to end before a block's nodes are taken; `stated`: the stack file's endsAt.

    Nodes of a reservation outlive its end, on demand.
    """
    check = "reservation's end"
    if found.ends_at is None or not found.is_block:
        return green(check, f"{found.id} takes no node away")
    if stated is not None and stated != found.ends_at:
        return red(
            check,
            f"{found.id} ends {found.ends_at:%Y-%m-%dT%H:%M:%SZ}, the stack file says {stated:%Y-%m-%dT%H:%M:%SZ}",
            f'set platform.capacity.endsAt to "{found.ends_at:%Y-%m-%dT%H:%M:%SZ}"',
        )
    left = found.ends_at - BLOCK_DRAIN - now
    figures = (
        f"{left.total_seconds() / 60:.0f} minutes until its nodes are taken, the run is predicted to take "
        f"{needed.total_seconds() / 60:.0f}"
    )
    if left < needed:
        return red(check, figures, "lower run.steps, or take a longer block")
    return green(check, figures)


def spot_role(exists: bool) -> Row:
    """EC2's service-linked role for spot, which a fresh account lacks and Karpenter may not make."""
    check = "spot role"
    if exists:
        return green(check, "AWSServiceRoleForEC2Spot is there")
    return red(
        check,
        "the account has no AWSServiceRoleForEC2Spot, so EC2 refuses Karpenter's spot requests",
        "aws iam create-service-linked-role --aws-service-name spot.amazonaws.com",
    )

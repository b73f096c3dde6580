"""What can an account run today, where and at what price: the catalogue's topologies against a region."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial

from workloads.catalogue.instances import INSTANCE_TYPES, InstanceType
from workloads.catalogue.prices import usd_per_hour
from workloads.catalogue.topologies import NAMED_TOPOLOGIES, Topology, parse_topology
from workloads.operations.leftovers.aws import Aws
from workloads.operations.preflight.ask import Check, ask_all
from workloads.operations.preflight.checks import SERVICES
from workloads.operations.preflight.questions.account import zones_offering
from workloads.operations.preflight.questions.capacity import quota_limit, used_vcpus
from workloads.operations.preflight.questions.money import on_demand_price
from workloads.operations.preflight.rows import Row


@dataclass(kw_only=True)
class Market:
    """What was learnt of a region; what isn't in a mapping couldn't be learnt.

    `free_vcpus` by code of a quota, `zones` and `usd_per_hour` by instance type.
    """

    region: str
    free_vcpus: dict[str, float] = field(default_factory=dict)
    zones: dict[str, set[str]] = field(default_factory=dict)
    usd_per_hour: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Offer:
    """One topology in one region. `runs`: None where quota or zones couldn't be learnt."""

    topology: str
    instance_type: str
    nodes: int
    needed_vcpus: int
    free_vcpus: float | None
    free_spot_vcpus: float | None
    zones: tuple[str, ...] | None
    usd_per_hour: float | None
    """Of all its GPU nodes, on demand."""
    runs: bool | None
    why_not: str


def offers(market: Market) -> list[Offer]:
    """One row for each topology of the catalogue that EC2 could run, the cheapest first."""
    rows = [_offer(parse_topology(row.name), market) for row in NAMED_TOPOLOGIES]
    found = [row for row in rows if row is not None]
    return sorted(found, key=lambda row: (not row.runs, row.usd_per_hour or float("inf"), row.topology))


def survey(aws: Aws, *, limit_s: float) -> tuple[Market, list[Row]]:
    """The market of the clients' region, and a row for each question that wasn't answered."""
    market = Market(region=aws.region)
    for service in SERVICES:
        aws.client(service)
    return market, ask_all(_questions(aws, market), limit_s=limit_s)


def _questions(aws: Aws, market: Market) -> Mapping[str, Check]:
    codes = sorted({code for kind in INSTANCE_TYPES for code in (kind.quota_code, kind.spot_quota_code)})
    return {
        "zones": partial(_silently, lambda: _learn_zones(aws, market)),
        **{f"quota {code}": partial(_silently, partial(_learn_quota, aws, market, code)) for code in codes},
        **{
            f"price of {kind.name}": partial(_silently, partial(_learn_price, aws, market, kind))
            for kind in INSTANCE_TYPES
        },
    }


def _silently(learn: Callable[[], None]) -> Iterator[Row]:
    """A question whose answer is kept; only what stands in its way is a row."""
    learn()
    return iter(())


def _learn_zones(aws: Aws, market: Market) -> None:
    offering = zones_offering(aws, [kind.name for kind in INSTANCE_TYPES])
    market.zones = {kind.name: offering.get(kind.name, set()) for kind in INSTANCE_TYPES}


def _learn_quota(aws: Aws, market: Market, code: str) -> None:
    used = used_vcpus(aws, code, lambda _: True)
    market.free_vcpus[code] = max(0.0, quota_limit(aws, "ec2", code) - used)


def _learn_price(aws: Aws, market: Market, kind: InstanceType) -> None:
    price = on_demand_price(aws, kind.name, market.region)
    if price is not None:
        market.usd_per_hour[kind.name] = price


def _offer(topology: Topology, market: Market) -> Offer | None:
    kind = topology.machine.instance_type
    if kind is None:
        return None
    needed, free = topology.nodes * kind.vcpus, market.free_vcpus.get(kind.quota_code)
    zones = market.zones.get(kind.name)
    price = market.usd_per_hour.get(kind.name, usd_per_hour(kind.name, market.region))
    runs, why_not = _runs(kind, needed, free, zones, market.region)
    return Offer(
        topology=topology.name,
        instance_type=kind.name,
        nodes=topology.nodes,
        needed_vcpus=needed,
        free_vcpus=free,
        free_spot_vcpus=market.free_vcpus.get(kind.spot_quota_code),
        zones=None if zones is None else tuple(sorted(zones)),
        usd_per_hour=None if price is None else topology.nodes * price,
        runs=runs,
        why_not=why_not,
    )


def _runs(
    kind: InstanceType, needed: int, free: float | None, zones: set[str] | None, region: str
) -> tuple[bool | None, str]:
    """Whether quota and zones allow it; capacity itself only a launch or a reservation tells."""
    if zones is not None and not zones:
        return False, f"{region} has no {kind.name}"
    if free is not None and free < needed:
        return False, f"quota {kind.quota_code}: {free:.0f} of {needed} vCPUs free"
    if free is None or zones is None:
        return None, "quota or zones couldn't be read"
    return True, ""

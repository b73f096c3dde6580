"""What of a stack is in EC2: found kind by kind, so that a stale tag index hides and invents nothing."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from workloads.operations.leftovers import karpenters
from workloads.operations.leftovers.aws import Aws, tags_of
from workloads.operations.leftovers.inventory import Thing
from workloads.operations.leftovers.karpenters import holder_of
from workloads.operations.leftovers.ownership import (
    Owner,
    is_group_of_eks,
    is_karpenters,
    is_of_cluster,
    is_of_stack,
)


@dataclass(frozen=True, kw_only=True)
class Ec2Kind:
    """How one kind is asked for. `arn`: its word in an ARN. `gone`: states of one that is there no more."""

    kind: str
    arn: str
    operation: str
    items: str
    id: str
    remove: str
    gone: frozenset[str] = frozenset()
    filters: str = "Filters"
    of_cluster: bool = False
    """Also what bears the cluster's tag alone: what EKS, Karpenter or a driver made, not the program."""


KINDS = (
    Ec2Kind(
        kind="instance", arn="instance", operation="describe_instances", items="Reservations.Instances",
        id="InstanceId", gone=karpenters.ENDED, of_cluster=True,
        remove="aws ec2 terminate-instances --instance-ids",
    ),
    Ec2Kind(
        # It costs as its instances do, used or not; `topo preflight --reserve` makes it, outside Pulumi's state.
        kind="capacity reservation", arn="capacity-reservation", operation="describe_capacity_reservations",
        items="CapacityReservations", id="CapacityReservationId",
        gone=frozenset({"expired", "cancelled", "failed", "payment-failed", "unsupported"}),
        remove="aws ec2 cancel-capacity-reservation --capacity-reservation-id",
    ),
    Ec2Kind(
        kind="NAT gateway", arn="natgateway", operation="describe_nat_gateways", items="NatGateways",
        id="NatGatewayId", gone=frozenset({"deleted"}), filters="Filter",
        remove="aws ec2 delete-nat-gateway --nat-gateway-id",
    ),
    Ec2Kind(
        kind="elastic IP", arn="elastic-ip", operation="describe_addresses", items="Addresses", id="AllocationId",
        remove="aws ec2 release-address --allocation-id",
    ),
    Ec2Kind(
        kind="volume", arn="volume", operation="describe_volumes", items="Volumes", id="VolumeId",
        gone=frozenset({"deleted"}), of_cluster=True, remove="aws ec2 delete-volume --volume-id",
    ),
    Ec2Kind(
        kind="VPC endpoint", arn="vpc-endpoint", operation="describe_vpc_endpoints", items="VpcEndpoints",
        id="VpcEndpointId", gone=frozenset({"deleted"}),
        remove="aws ec2 delete-vpc-endpoints --vpc-endpoint-ids",
    ),
    Ec2Kind(
        kind="launch template", arn="launch-template", operation="describe_launch_templates", items="LaunchTemplates",
        id="LaunchTemplateId", of_cluster=True, remove="aws ec2 delete-launch-template --launch-template-id",
    ),
    Ec2Kind(
        kind="placement group", arn="placement-group", operation="describe_placement_groups", items="PlacementGroups",
        id="GroupName", gone=frozenset({"deleted"}),
        remove="aws ec2 delete-placement-group --group-name",
    ),
    Ec2Kind(
        kind="security group", arn="security-group", operation="describe_security_groups", items="SecurityGroups",
        id="GroupId", of_cluster=True, remove="aws ec2 delete-security-group --group-id",
    ),
    Ec2Kind(
        kind="route table", arn="route-table", operation="describe_route_tables", items="RouteTables",
        id="RouteTableId", remove="aws ec2 delete-route-table --route-table-id",
    ),
    Ec2Kind(
        kind="internet gateway", arn="internet-gateway", operation="describe_internet_gateways",
        items="InternetGateways", id="InternetGatewayId",
        remove="aws ec2 delete-internet-gateway --internet-gateway-id",
    ),
    Ec2Kind(
        kind="subnet", arn="subnet", operation="describe_subnets", items="Subnets", id="SubnetId",
        remove="aws ec2 delete-subnet --subnet-id",
    ),
    Ec2Kind(
        kind="VPC", arn="vpc", operation="describe_vpcs", items="Vpcs", id="VpcId",
        remove="aws ec2 delete-vpc --vpc-id",
    ),
)  # fmt: skip
"""Those that cost by the hour first, then in the order in which they can be deleted."""

INTERFACE_ARN = "network-interface"
_DELETE_INTERFACE = "aws ec2 delete-network-interface --network-interface-id"


def things(aws: Aws, owner: Owner, kind: Ec2Kind) -> Iterator[Thing]:
    """Those of one kind that are the stack's, by its own tags or by its cluster's."""
    seen: set[str] = set()
    for found in _asked(aws, owner, kind):
        name, tags, state = str(found[kind.id]), tags_of(found), _state_of(found)
        ours = is_of_stack(tags, owner) or (kind.of_cluster and is_of_cluster(tags, owner))
        if not ours or name in seen or state in kind.gone:
            continue
        seen.add(name)
        yield Thing(
            kind=kind.kind,
            id=name,
            remove=f"{kind.remove} {name} {aws.options()}",
            tags=tags,
            state=_in_words(state, found, tags),
            instance_type=found.get("InstanceType"),
            instances=found.get("TotalInstanceCount", 1),
            sweepable=_is_swept(kind.kind, state, found, owner),
        )


def interfaces(aws: Aws, owner: Owner) -> Iterator[Thing]:
    """The CNI's in the stack's VPCs, and what bears the stack's tags anywhere."""
    vpcs = list(karpenters.vpc_ids(aws, owner))
    swept = {one["NetworkInterfaceId"]: one for one in karpenters.interfaces(aws, owner, vpcs)}
    tagged = aws.pages("ec2", "describe_network_interfaces", "NetworkInterfaces", _tagged("Filters", owner))
    others = {one["NetworkInterfaceId"]: one for one in tagged if is_of_stack(tags_of(one), owner)}
    for name, one in {**others, **swept}.items():
        free = one["Status"] == "available"
        yield Thing(
            kind="network interface",
            id=name,
            remove=f"{_DELETE_INTERFACE} {name} {aws.options()}",
            tags=tags_of(one),
            state="available" if free else f"{one['Status']} by {holder_of(one)}",
            sweepable=free and name in swept,
        )


def _asked(aws: Aws, owner: Owner, kind: Ec2Kind) -> Iterator[dict[str, Any]]:
    yield from aws.pages("ec2", kind.operation, kind.items, _tagged(kind.filters, owner))
    if kind.of_cluster:
        owned = {kind.filters: [{"Name": f"tag:{owner.cluster_key}", "Values": ["owned"]}]}
        yield from aws.pages("ec2", kind.operation, kind.items, owned)


def _tagged(filters: str, owner: Owner) -> dict[str, Any]:
    return {filters: [{"Name": f"tag:{key}", "Values": [value]} for key, value in owner.names.tags.items()]}


def _state_of(found: dict[str, Any]) -> str:
    state = found.get("State", "")
    # An instance's is a mapping.
    return str(state["Name"] if isinstance(state, dict) else state)


def _in_words(state: str, found: dict[str, Any], tags: dict[str, str]) -> str:
    """With what tells a person more: an instance's type, the claim that a volume was made for."""
    claim = tags.get("kubernetes.io/created-for/pvc/name")
    words = (found.get("InstanceType"), state, f"of claim {claim}, may hold data" if claim else "")
    return ", ".join(word for word in words if word)


def _is_swept(kind: str, state: str, found: dict[str, Any], owner: Owner) -> bool:
    tags = tags_of(found)
    if kind in ("instance", "launch template"):
        return is_karpenters(tags, owner)
    if kind == "security group":
        return is_group_of_eks(found["GroupName"], tags, owner)
    return kind == "volume" and state == "available" and is_karpenters(tags, owner)

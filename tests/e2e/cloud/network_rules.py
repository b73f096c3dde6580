"""What EC2's network refuses and moto lets pass, by EC2's own codes; and what it does behind the caller's back."""

from collections.abc import Mapping
from typing import Any

from tests.e2e.cloud.account import Account
from tests.e2e.cloud.wire import Answer, Call, Refusal
from tests.e2e.site import REGION


def create_vpc_id_given(_: Account, call: Call) -> None:
    """There is no default VPC, so a security group names its own."""
    if not call.params.get("VpcId"):
        raise Refusal("VPCIdNotSpecified", "No default VPC for this user")


def subnet_in_region(account: Account, call: Call) -> None:
    """A zone of this region; moto takes any region's."""
    zone = call.params.get("AvailabilityZone")
    known = [one.name for one in account.ec2.describe_availability_zones()]
    if zone and zone not in known:
        raise Refusal(
            "InvalidParameterValue",
            f"Value ({zone}) for parameter availabilityZone is invalid. Subnets can currently only be created in the "
            f"following availability zones: {', '.join(known)}.",
        )


def subnet_is_private(account: Account, _: Call, answer: Answer) -> None:
    """Only default subnets give public addresses by themselves; moto takes a zone's first subnet for one."""
    subnet = account.ec2.get_subnet(answer["Subnet"]["SubnetId"])
    subnet.default_for_az = False
    subnet.map_public_ip_on_launch = False


def subnet_empty(account: Account, call: Call) -> None:
    """A subnet with an interface in it stays, whosever the interface is."""
    subnet = account.ec2.get_subnet(call.params["SubnetId"])
    if any(eni.subnet.id == subnet.id for eni in account.ec2.enis.values()):
        raise _dependency("subnet", subnet.id)


def subnet_gone(account: Account, call: Call, _: Answer) -> None:
    """Its route table association goes with it."""
    for table in account.ec2.route_tables.values():
        for association, subnet in list(table._associations.items()):
            if subnet == call.params["SubnetId"]:
                del table._associations[association]


def vpc_empty(account: Account, call: Call) -> None:
    """Nothing of the user's may stand in it; moto looks at subnets and route tables."""
    vpc = account.ec2.get_vpc(call.params["VpcId"]).id
    ec2 = account.ec2
    if (
        any(gateway.vpc and gateway.vpc.id == vpc for gateway in ec2.internet_gateways.values())
        or any(group.name != "default" for group in ec2.groups.get(vpc, {}).values())
        or any(end.vpc_id == vpc and end.state != "deleted" for end in ec2.vpc_end_points.values())
        or any(eni.subnet.vpc_id == vpc for eni in ec2.enis.values())
    ):
        raise _dependency("vpc", vpc)


def route_table_not_main(account: Account, call: Call) -> None:
    """The main one goes with its VPC alone."""
    table = account.ec2.get_route_table(call.params["RouteTableId"])
    if table.main_association_id:
        raise _dependency("routeTable", table.id)


def one_route_table_a_subnet(account: Account, call: Call) -> None:
    """moto answers the old association, whatever table was asked for."""
    subnet, asked = call.params.get("SubnetId"), call.params["RouteTableId"]
    for table in account.ec2.route_tables.values():
        for association, associated in table._associations.items():
            if subnet and associated == subnet and table.id != asked:
                raise Refusal(
                    "Resource.AlreadyAssociated",
                    f"the specified association for route table {asked} conflicts with an existing association "
                    f"{association}",
                )


def route_leads_somewhere(account: Account, call: Call) -> None:
    """The gateway is there, and in the table's VPC."""
    params, ec2 = call.params, account.ec2
    table = ec2.get_route_table(params["RouteTableId"])
    nat = params.get("NatGatewayId")
    if nat and (nat not in ec2.nat_gateways or ec2.nat_gateways[nat].state not in {"available", "pending"}):
        raise Refusal("InvalidNatGatewayID.NotFound", f"The natGateway ID '{nat}' does not exist")
    gateway = params.get("GatewayId") or ""
    if gateway.startswith("igw-"):
        vpc = ec2.get_internet_gateway(gateway).vpc
        if vpc is None or vpc.id != table.vpc_id:
            raise Refusal(
                "InvalidParameterValue",
                f"route table {table.id} and network gateway {gateway} belong to different networks",
            )


def one_internet_gateway_a_vpc(account: Account, call: Call) -> None:
    """A second one is refused."""
    vpc = call.params["VpcId"]
    for gateway in account.ec2.internet_gateways.values():
        if gateway.vpc and gateway.vpc.id == vpc and gateway.id != call.params["InternetGatewayId"]:
            raise Refusal("InvalidParameterValue", f"Network {vpc} already has an internet gateway attached")


def no_public_addresses(account: Account, call: Call) -> None:
    """The gateway stays while an address of its VPC is mapped to the world."""
    vpc = call.params["VpcId"]
    mapped = [one for one in account.ec2.addresses if one.eni is not None and one.eni.subnet.vpc_id == vpc]
    public = [eni for eni in account.ec2.enis.values() if eni.subnet.vpc_id == vpc and eni.public_ip]
    if mapped or public:
        raise Refusal(
            "DependencyViolation",
            f"Network {vpc} has some mapped public address(es). Please unmap those public address(es) before "
            "detaching the gateway.",
        )


def address_free(account: Account, call: Call) -> None:
    """An address in use can't be given back."""
    address = _address(account, call.params.get("AllocationId", ""))
    if address.association_id:
        raise Refusal("InvalidIPAddress.InUse", f"Address {address.public_ip} is in use.")


def nat_gateway_can_stand(account: Account, call: Call) -> None:
    """A way out of the VPC. (AWS makes the gateway and lets it fail; here it is refused.)"""
    params = call.params
    subnet = account.ec2.get_subnet(params["SubnetId"])
    if params.get("ConnectivityType") == "private":
        return
    gateways = account.ec2.internet_gateways.values()
    if not any(one.vpc and one.vpc.id == subnet.vpc_id for one in gateways):
        raise Refusal("Gateway.NotAttached", f"Network {subnet.vpc_id} has no Internet gateway attached")


def nat_gateway_stands(account: Account, _: Call, answer: Answer) -> None:
    """Its interface belongs to the service."""
    gateway = account.ec2.nat_gateways[answer["NatGateway"]["NatGatewayId"]]
    gateway._eni.status = "in-use"
    gateway._eni.requester_managed = True
    gateway._eni.description = f"Interface for NAT Gateway {gateway.id}"
    account.own.managed_interfaces[gateway._eni.id] = gateway.id


def delete_nat_gateway(account: Account, call: Call) -> Answer:
    """It lets go of interface and address only after a while: when somebody looks how far it is."""
    gateway = account.ec2.nat_gateways.get(call.params["NatGatewayId"])
    if gateway is None:
        raise Refusal("NatGatewayNotFound", f"The Nat Gateway {call.params['NatGatewayId']} was not found")
    if gateway.state != "deleted":
        gateway.state = "deleting"
    return {"NatGatewayId": gateway.id}


def settle_nat_gateways(account: Account, _: Call) -> None:
    """First a look says `deleting`, the next one `deleted`: nobody gets past who doesn't wait."""
    for gateway in account.ec2.nat_gateways.values():
        if gateway.state == "deleting":
            gateway.state = "deleted"
            for address in account.ec2.addresses:
                if address.eni is gateway._eni:
                    account.ec2.disassociate_address(association_id=address.association_id)
            account.release_interface(gateway._eni.id)


def interface_free(account: Account, call: Call) -> None:
    """An interface in use, or one that a service holds, can't be deleted."""
    interface = account.ec2.get_network_interface(call.params["NetworkInterfaceId"])
    if interface.status == "in-use" or interface.instance is not None:
        raise Refusal("InvalidParameterValue", f"Network interface '{interface.id}' is currently in use.")


def group_unused(account: Account, call: Call) -> None:
    """Neither an interface nor another group's rule may name it."""
    group = account.security_group(call.params.get("GroupId", ""))
    if group is None:
        return
    if group.name == "default":
        raise Refusal("CannotDelete", f'the specified group: "{group.id}" name: "default" cannot be deleted by a user')
    if group_in_use(account, group.id):
        raise Refusal("DependencyViolation", f"resource {group.id} has a dependent object")


def group_in_use(account: Account, group_id: str) -> bool:
    """Whether an interface carries it or a rule of another group names it."""
    if any(group_id in {group.id for group in eni.group_set} for eni in account.ec2.enis.values()):
        return True
    others = (one for groups in account.ec2.groups.values() for one in groups.values() if one.id != group_id)
    return any(
        (rule.source_group or {}).get("GroupId") == group_id
        for other in others
        for rule in [*other.ingress_rules, *other.egress_rules]
    )


def endpoint_can_stand(account: Account, call: Call) -> None:
    """A service of this region, route tables of this VPC, and one endpoint of a service in a table."""
    params = call.params
    service, vpc = params["ServiceName"], params["VpcId"]
    if not service.startswith(f"com.amazonaws.{REGION}."):
        raise Refusal("InvalidServiceName", f"The Vpc Endpoint Service '{service}' does not exist")
    for table_id in params.get("RouteTableIds") or []:
        table = account.ec2.get_route_table(table_id)
        if table.vpc_id != vpc:
            raise Refusal("InvalidParameter", f"Route table {table_id} belongs to different VPC than {vpc}")
        for one in account.ec2.vpc_end_points.values():
            if one.state != "deleted" and one.service_name == service and table_id in one.route_table_ids:
                raise Refusal("RouteAlreadyExists", f"route table {table_id} already has a route to {service}")


def endpoints_exist(account: Account, call: Call) -> None:
    """moto lets an unknown id pass."""
    for endpoint in call.params["VpcEndpointIds"]:
        if endpoint not in account.ec2.vpc_end_points:
            raise Refusal("InvalidVpcEndpointId.NotFound", f"The Vpc Endpoint Id '{endpoint}' does not exist")


def forget_deleted_endpoints(account: Account, _: Call) -> None:
    """moto shows them for ever."""
    ends = account.ec2.vpc_end_points
    for endpoint in [one.id for one in ends.values() if one.state == "deleted"]:
        del ends[endpoint]


def describe_availability_zones(account: Account, call: Call) -> Answer:
    """moto knows neither `opt-in-status` nor groups."""
    zones = [
        {
            "ZoneName": zone.name,
            "ZoneId": zone.zone_id,
            "ZoneType": zone.zone_type,
            "RegionName": REGION,
            "State": "available",
            "OptInStatus": "opt-in-not-required",
            "GroupName": f"{REGION}-zg-1",
            "NetworkBorderGroup": REGION,
        }
        for zone in account.ec2.describe_availability_zones()
    ]
    names, ids = call.params.get("ZoneNames") or [], call.params.get("ZoneIds") or []
    unknown = set(names) - {zone["ZoneName"] for zone in zones}
    if unknown:
        raise Refusal("InvalidParameterValue", f"Invalid availability zone: [{', '.join(sorted(unknown))}]")
    return {
        "AvailabilityZones": [
            zone
            for zone in zones
            if (not names or zone["ZoneName"] in names)
            and (not ids or zone["ZoneId"] in ids)
            and all(_passes(zone, one) for one in call.params.get("Filters") or [])
        ]
    }


_ZONE_FILTERS = {
    "zone-name": "ZoneName", "zone-id": "ZoneId", "zone-type": "ZoneType", "region-name": "RegionName",
    "state": "State", "opt-in-status": "OptInStatus", "group-name": "GroupName",
}  # fmt: skip


def _passes(zone: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    if wanted["Name"] not in _ZONE_FILTERS:
        raise Refusal("InvalidParameterValue", f"The filter '{wanted['Name']}' is invalid")
    return zone[_ZONE_FILTERS[wanted["Name"]]] in wanted["Values"]


def _address(account: Account, allocation: str) -> Any:
    for address in account.ec2.addresses:
        if address.allocation_id == allocation:
            return address
    raise Refusal("InvalidAllocationID.NotFound", f"The allocation ID '{allocation}' does not exist")


def _dependency(kind: str, resource: str) -> Refusal:
    return Refusal("DependencyViolation", f"The {kind} '{resource}' has dependencies and cannot be deleted.")

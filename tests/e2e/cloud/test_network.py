"""The account's network: it stands as the program builds it, and comes down in one order alone."""

from dataclasses import dataclass
from typing import Any

import pytest

from tests.e2e.cloud.inventory import inventory

pytestmark = pytest.mark.e2e


@dataclass(frozen=True)
class Net:
    ec2: Any
    vpc: str
    gateway: str
    private: list[str]
    public: list[str]
    table: str
    allocation: str
    nat: str


@pytest.fixture
def net(client) -> Net:
    ec2 = client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    ec2.attach_internet_gateway(VpcId=vpc, InternetGatewayId=gateway)
    subnets = [
        ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{16 * index}.0/20", AvailabilityZone=f"us-east-1{zone}")
        for index, zone in enumerate("abab")
    ]
    private, public = [s["Subnet"]["SubnetId"] for s in subnets[:2]], [s["Subnet"]["SubnetId"] for s in subnets[2:]]
    table = ec2.create_route_table(VpcId=vpc)["RouteTable"]["RouteTableId"]
    allocation = ec2.allocate_address(Domain="vpc")["AllocationId"]
    nat = ec2.create_nat_gateway(SubnetId=public[0], AllocationId=allocation)["NatGateway"]["NatGatewayId"]
    return Net(ec2, vpc, gateway, private, public, table, allocation, nat)


def test_a_fresh_account_is_empty_and_has_no_default_vpc(cloud, client):
    assert inventory(cloud) == {}
    assert client("ec2").describe_vpcs()["Vpcs"] == []


def test_a_network_comes_down_in_order_and_leaves_nothing(net, cloud):
    ec2 = net.ec2
    ec2.delete_nat_gateway(NatGatewayId=net.nat)
    ec2.get_waiter("nat_gateway_deleted").wait(NatGatewayIds=[net.nat])
    ec2.release_address(AllocationId=net.allocation)
    ec2.detach_internet_gateway(VpcId=net.vpc, InternetGatewayId=net.gateway)
    ec2.delete_internet_gateway(InternetGatewayId=net.gateway)
    ec2.delete_route_table(RouteTableId=net.table)
    for subnet in (*net.private, *net.public):
        ec2.delete_subnet(SubnetId=subnet)
    ec2.delete_vpc(VpcId=net.vpc)

    assert inventory(cloud) == {}


def test_a_subnet_stays_while_an_interface_is_in_it(net, refused):
    interface = net.ec2.create_network_interface(SubnetId=net.private[0])["NetworkInterface"]["NetworkInterfaceId"]
    assert refused(net.ec2.delete_subnet, SubnetId=net.private[0]) == "DependencyViolation"

    net.ec2.delete_network_interface(NetworkInterfaceId=interface)
    net.ec2.delete_subnet(SubnetId=net.private[0])


def test_a_nat_gateway_holds_subnet_and_address_until_somebody_waited_for_its_end(net, refused):
    ec2 = net.ec2
    ec2.delete_nat_gateway(NatGatewayId=net.nat)

    assert refused(ec2.delete_subnet, SubnetId=net.public[0]) == "DependencyViolation"
    assert refused(ec2.release_address, AllocationId=net.allocation) == "InvalidIPAddress.InUse"
    assert refused(ec2.detach_internet_gateway, VpcId=net.vpc, InternetGatewayId=net.gateway) == "DependencyViolation"

    assert ec2.describe_nat_gateways(NatGatewayIds=[net.nat])["NatGateways"][0]["State"] == "deleted"
    ec2.delete_subnet(SubnetId=net.public[0])
    ec2.release_address(AllocationId=net.allocation)
    ec2.detach_internet_gateway(VpcId=net.vpc, InternetGatewayId=net.gateway)


def test_nobody_but_its_gateway_deletes_a_gateways_interface(net, refused):
    (interface,) = net.ec2.describe_network_interfaces(Filters=[{"Name": "subnet-id", "Values": [net.public[0]]}])[
        "NetworkInterfaces"
    ]
    assert interface["Status"] == "in-use"
    assert interface["RequesterManaged"]
    assert (
        refused(net.ec2.delete_network_interface, NetworkInterfaceId=interface["NetworkInterfaceId"])
        == "InvalidParameterValue"
    )


@pytest.mark.parametrize("what", ["gateway", "subnet", "group", "endpoint", "table"])
def test_a_vpc_stays_while_anything_stands_in_it(client, what, refused):
    ec2 = client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    if what == "gateway":
        gateway = ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
        ec2.attach_internet_gateway(VpcId=vpc, InternetGatewayId=gateway)
    elif what == "subnet":
        ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/20")
    elif what == "group":
        ec2.create_security_group(VpcId=vpc, GroupName="a", Description="a")
    elif what == "endpoint":
        ec2.create_vpc_endpoint(VpcId=vpc, ServiceName="com.amazonaws.us-east-1.s3", VpcEndpointType="Gateway")
    else:
        ec2.create_route_table(VpcId=vpc)

    assert refused(ec2.delete_vpc, VpcId=vpc) == "DependencyViolation"


def test_a_route_table_stays_while_it_is_associated_and_the_main_one_for_ever(net, refused):
    ec2 = net.ec2
    association = ec2.associate_route_table(RouteTableId=net.table, SubnetId=net.private[0])["AssociationId"]
    assert refused(ec2.delete_route_table, RouteTableId=net.table) == "DependencyViolation"

    ec2.disassociate_route_table(AssociationId=association)
    ec2.delete_route_table(RouteTableId=net.table)
    (main,) = ec2.describe_route_tables(Filters=[{"Name": "vpc-id", "Values": [net.vpc]}])["RouteTables"]
    assert refused(ec2.delete_route_table, RouteTableId=main["RouteTableId"]) == "DependencyViolation"


def test_a_deleted_subnet_takes_its_association_along(net):
    net.ec2.associate_route_table(RouteTableId=net.table, SubnetId=net.private[0])
    net.ec2.delete_subnet(SubnetId=net.private[0])
    net.ec2.delete_route_table(RouteTableId=net.table)


def test_a_subnet_has_one_route_table(net, refused):
    other = net.ec2.create_route_table(VpcId=net.vpc)["RouteTable"]["RouteTableId"]
    net.ec2.associate_route_table(RouteTableId=net.table, SubnetId=net.private[0])
    assert (
        refused(net.ec2.associate_route_table, RouteTableId=other, SubnetId=net.private[0])
        == "Resource.AlreadyAssociated"
    )


def test_a_security_group_stays_while_an_interface_or_a_rule_names_it(net, refused):
    ec2 = net.ec2
    used, naming = (
        ec2.create_security_group(VpcId=net.vpc, GroupName=name, Description=name)["GroupId"] for name in "ab"
    )
    interface = ec2.create_network_interface(SubnetId=net.private[0], Groups=[used])["NetworkInterface"]
    assert refused(ec2.delete_security_group, GroupId=used) == "DependencyViolation"

    ec2.delete_network_interface(NetworkInterfaceId=interface["NetworkInterfaceId"])
    permission = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": used}]}]
    ec2.authorize_security_group_ingress(GroupId=naming, IpPermissions=permission)
    assert refused(ec2.delete_security_group, GroupId=used) == "DependencyViolation"

    ec2.revoke_security_group_ingress(GroupId=naming, IpPermissions=permission)
    ec2.delete_security_group(GroupId=used)


def test_a_group_that_names_itself_can_go(net):
    group = net.ec2.create_security_group(VpcId=net.vpc, GroupName="a", Description="a")["GroupId"]
    permission = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}]
    net.ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=permission)
    net.ec2.delete_security_group(GroupId=group)


def test_subnets_are_private_by_themselves(net):
    subnets = net.ec2.describe_subnets(SubnetIds=[*net.private, *net.public])["Subnets"]
    assert {subnet["MapPublicIpOnLaunch"] for subnet in subnets} == {False}
    assert {subnet["DefaultForAz"] for subnet in subnets} == {False}


@pytest.mark.parametrize(
    ("action", "arguments", "code"),
    [
        ("create_subnet", {"VpcId": "{vpc}", "CidrBlock": "10.0.0.0/24"}, "InvalidSubnet.Conflict"),
        ("create_subnet", {"VpcId": "{vpc}", "CidrBlock": "10.9.0.0/24"}, "InvalidSubnet.Range"),
        (
            "create_subnet",
            {"VpcId": "{vpc}", "CidrBlock": "10.0.128.0/24", "AvailabilityZone": "us-west-2a"},
            "InvalidParameterValue",
        ),
        ("create_security_group", {"GroupName": "a", "Description": "a"}, "VPCIdNotSpecified"),
        (
            "create_nat_gateway",
            {"SubnetId": "{public}", "AllocationId": "{allocation}"},
            "Resource.AlreadyAssociated",
        ),
        (
            "create_nat_gateway",
            {"SubnetId": "{public}", "AllocationId": "eipalloc-1"},
            "InvalidAllocationID.NotFound",
        ),
        ("delete_internet_gateway", {"InternetGatewayId": "{gateway}"}, "DependencyViolation"),
        ("release_address", {"AllocationId": "{allocation}"}, "InvalidIPAddress.InUse"),
        ("delete_nat_gateway", {"NatGatewayId": "nat-1"}, "NatGatewayNotFound"),
        ("delete_subnet", {"SubnetId": "subnet-1"}, "InvalidSubnetID.NotFound"),
        (
            "create_route",
            {"RouteTableId": "{table}", "DestinationCidrBlock": "0.0.0.0/0", "NatGatewayId": "nat-1"},
            "InvalidNatGatewayID.NotFound",
        ),
        (
            "create_vpc_endpoint",
            {"VpcId": "{vpc}", "ServiceName": "com.amazonaws.us-west-2.s3"},
            "InvalidServiceName",
        ),
        (
            "create_vpc_endpoint",
            {"VpcId": "{vpc}", "ServiceName": "com.amazonaws.us-east-1.s3", "RouteTableIds": ["rtb-1"]},
            "InvalidRouteTableID.NotFound",
        ),
    ],
)  # fmt: skip
def test_what_ec2_refuses(net, action, arguments, code, refused):
    known = {
        "{vpc}": net.vpc,
        "{public}": net.public[0],
        "{allocation}": net.allocation,
        "{gateway}": net.gateway,
        "{table}": net.table,
    }
    given = {key: known.get(value, value) if isinstance(value, str) else value for key, value in arguments.items()}
    assert refused(getattr(net.ec2, action), **given) == code


def test_a_nat_gateway_needs_an_internet_gateway_in_its_vpc(client, refused):
    ec2 = client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnet = ec2.create_subnet(VpcId=vpc, CidrBlock="10.0.0.0/20")["Subnet"]["SubnetId"]
    allocation = ec2.allocate_address(Domain="vpc")["AllocationId"]
    assert refused(ec2.create_nat_gateway, SubnetId=subnet, AllocationId=allocation) == "Gateway.NotAttached"


def test_a_route_leads_through_a_gateway_of_its_own_vpc(net, refused):
    stray = net.ec2.create_internet_gateway()["InternetGateway"]["InternetGatewayId"]
    arguments = {"RouteTableId": net.table, "DestinationCidrBlock": "0.0.0.0/0", "GatewayId": stray}
    assert refused(net.ec2.create_route, **arguments) == "InvalidParameterValue"
    assert refused(net.ec2.attach_internet_gateway, VpcId=net.vpc, InternetGatewayId=stray) == "InvalidParameterValue"


def test_a_table_has_one_endpoint_a_service_and_a_deleted_one_is_gone(net, cloud, refused):
    arguments = {
        "VpcId": net.vpc,
        "ServiceName": "com.amazonaws.us-east-1.s3",
        "VpcEndpointType": "Gateway",
        "RouteTableIds": [net.table],
    }
    endpoint = net.ec2.create_vpc_endpoint(**arguments)["VpcEndpoint"]["VpcEndpointId"]
    assert refused(net.ec2.create_vpc_endpoint, **arguments) == "RouteAlreadyExists"

    net.ec2.delete_vpc_endpoints(VpcEndpointIds=[endpoint])
    assert "ec2:vpc-endpoint" not in inventory(cloud)
    assert net.ec2.describe_vpc_endpoints()["VpcEndpoints"] == []
    net.ec2.create_vpc_endpoint(**arguments)


def test_an_endpoint_stands_in_tables_of_its_vpc_and_goes_by_its_own_id(net, refused):
    other = net.ec2.create_vpc(CidrBlock="10.9.0.0/16")["Vpc"]["VpcId"]
    arguments = {"VpcId": other, "ServiceName": "com.amazonaws.us-east-1.s3", "RouteTableIds": [net.table]}
    assert refused(net.ec2.create_vpc_endpoint, **arguments) == "InvalidParameter"
    assert refused(net.ec2.delete_vpc_endpoints, VpcEndpointIds=["vpce-1"]) == "InvalidVpcEndpointId.NotFound"


def test_a_default_group_goes_with_its_vpc_alone(net, refused):
    (default,) = net.ec2.describe_security_groups(Filters=[{"Name": "group-name", "Values": ["default"]}])[
        "SecurityGroups"
    ]
    assert refused(net.ec2.delete_security_group, GroupId=default["GroupId"]) == "CannotDelete"


def test_zones_are_found_as_the_program_asks_for_them(client):
    zones = client("ec2").describe_availability_zones(
        Filters=[
            {"Name": "opt-in-status", "Values": ["opt-in-not-required"]},
            {"Name": "state", "Values": ["available"]},
        ]
    )["AvailabilityZones"]
    assert [zone["ZoneName"] for zone in zones] == [f"us-east-1{letter}" for letter in "abcdef"]
    assert (
        client("ec2").describe_availability_zones(Filters=[{"Name": "state", "Values": ["x"]}])["AvailabilityZones"]
        == []
    )


def test_addresses_of_a_vpc_are_on_as_modified(net):
    net.ec2.modify_vpc_attribute(VpcId=net.vpc, EnableDnsHostnames={"Value": True})
    answer = net.ec2.describe_vpc_attribute(VpcId=net.vpc, Attribute="enableDnsHostnames")
    assert answer["EnableDnsHostnames"] == {"Value": True}


def test_interfaces_are_found_by_tag_and_status(net):
    made = net.ec2.create_network_interface(
        SubnetId=net.private[0],
        TagSpecifications=[
            {"ResourceType": "network-interface", "Tags": [{"Key": "cluster.k8s.amazonaws.com/name", "Value": "c"}]}
        ],
    )["NetworkInterface"]["NetworkInterfaceId"]
    filters = [
        {"Name": "tag:cluster.k8s.amazonaws.com/name", "Values": ["c"]},
        {"Name": "status", "Values": ["available"]},
        {"Name": "vpc-id", "Values": [net.vpc]},
    ]
    found = net.ec2.describe_network_interfaces(Filters=filters)["NetworkInterfaces"]
    assert [one["NetworkInterfaceId"] for one in found] == [made]

"""Counted things of the network, addresses, the file system."""

import pytest

from tests.workloads.operations.preflight.asking import ACCOUNT, NOW, OWN, ask, nothing, only, subject
from workloads.operations.preflight.questions.network import addresses, elastic_ips, file_system, vpcs

QUOTA = ("service-quotas", "get_service_quota", {"Quota": {"Value": 2.0}})
OTHER, MINE = {"VpcId": "vpc-1"}, {"VpcId": "vpc-2", "Tags": OWN}


def network(question, *things):
    operation, items = {
        vpcs: ("describe_vpcs", "Vpcs"),
        elastic_ips: ("describe_addresses", "Addresses"),
    }[question]
    return only(ask(question, [("ec2", operation, {items: list(things)}), QUOTA]))


@pytest.mark.parametrize(("question", "service"), [(vpcs, "vpc"), (elastic_ips, "ec2")])
def test_a_full_quota_is_red_unless_the_stack_has_its_own_already(question, service):
    one: dict[str, str] = {}
    own = {"Tags": OWN}
    assert network(question, one).colour == "green"
    assert network(question, one, own).colour == "green"
    full = network(question, one, one)
    assert (full.colour, f"/services/{service}/quotas/" in full.remedy) == ("red", True)
    assert "2 of 2" in full.sentence


@pytest.mark.parametrize(("question", "operation"), [(vpcs, "describe_vpcs"), (elastic_ips, "describe_addresses")])
def test_what_may_not_be_counted_is_grey(question, operation):
    assert only(ask(question, [("ec2", operation, "UnauthorizedOperation")])).colour == "grey"


def subnets(free):
    listed = [
        {"AvailabilityZone": "us-east-1b", "AvailableIpAddressCount": free},
        {"AvailabilityZone": "us-east-1b", "AvailableIpAddressCount": 250, "MapPublicIpOnLaunch": True},
        {"AvailabilityZone": "us-east-1c", "AvailableIpAddressCount": 9000},
    ]
    return [("ec2", "describe_vpcs", {"Vpcs": [MINE]}), ("ec2", "describe_subnets", {"Subnets": listed})]


def test_addresses_are_counted_in_the_gpu_subnet_where_it_is_there():
    assert only(ask(addresses, subnets(32000))).sentence == "the GPU subnet has 32000 free, 2 nodes hold up to 200"
    row = only(ask(addresses, subnets(199)))
    assert (row.colour, "platform.vpcCidr" in row.remedy) == ("red", True)


def test_before_the_network_is_made_its_plan_is_counted():
    none = [("ec2", "describe_vpcs", nothing("Vpcs"))]
    row = only(ask(addresses, none, subject(vpcCidr="10.0.0.0/17")))
    assert (row.colour, row.sentence) == (
        "green",
        "once it is made, the GPU subnet has 16379 free, 2 nodes hold up to 200",
    )
    assert only(ask(addresses, [("ec2", "describe_vpcs", "UnauthorizedOperation")])).colour == "grey"


FSX = {"storage": {"fsx": "scratch"}}


def system(version):
    found = {
        "OwnerId": ACCOUNT,
        "CreationTime": NOW,
        "FileSystemId": "fs-0123456789abcdef0",
        "SubnetIds": ["subnet-0123456789abcdef0"],
        "FileSystemTypeVersion": version,
        "Tags": OWN,
    }
    return ("fsx", "describe_file_systems", {"FileSystems": [found]})


def standing(zone):
    return ("ec2", "describe_subnets", {"Subnets": [{"AvailabilityZone": zone}]})


def test_the_stacks_file_system_must_be_of_the_clients_version_and_in_the_nodes_zone():
    assert only(ask(file_system, [system("2.15"), standing("us-east-1b")], subject(**FSX))).colour == "green"
    old = only(ask(file_system, [system("2.10"), standing("us-east-1b")], subject(**FSX)))
    assert (old.colour, "clients of 2.15 can't mount it" in old.sentence) == ("red", True)
    far = only(ask(file_system, [system("2.15"), standing("us-east-1c")], subject(**FSX)))
    assert (far.colour, far.remedy) == ("red", "set platform.zone to us-east-1c")


def test_before_it_is_made_only_its_creation_tells():
    none = [("fsx", "describe_file_systems", nothing("FileSystems"))]
    assert only(ask(file_system, none, subject(**FSX))).colour == "grey"
    denied = [("fsx", "describe_file_systems", "AccessDeniedException")]
    assert "DescribeFileSystems" in only(ask(file_system, denied, subject(**FSX))).sentence
    assert ask(file_system, []) == []

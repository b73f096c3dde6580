"""RULEs of the VPC."""

from ipaddress import IPv4Network


def subnets(dev, public):
    return [s for s in dev.of("Subnet") if s.name.endswith("public") is public]


def test_the_vpc_answers_names_which_fsx_and_the_private_endpoint_need(dev):
    vpc = dev.one("Vpc").inputs
    assert vpc["enableDnsSupport"] is True
    assert vpc["enableDnsHostnames"] is True


def test_no_subnet_gives_public_addresses_by_itself(dev):
    assert [s.inputs["mapPublicIpOnLaunch"] for s in dev.of("Subnet")] == [False] * 4


def test_each_zone_has_a_public_and_a_private_subnet_and_gpus_their_stacks_zone(dev):
    assert {s.inputs["availabilityZone"] for s in subnets(dev, public=False)} == {"us-east-1a", "us-east-1b"}
    assert {s.inputs["availabilityZone"] for s in subnets(dev, public=True)} == {"us-east-1a", "us-east-1b"}
    assert dev.one("Subnet", "gpu-private").inputs["availabilityZone"] == "us-east-1b"


def test_the_gpu_subnet_is_a_20_or_larger(dev):
    assert IPv4Network(dev.one("Subnet", "gpu-private").inputs["cidrBlock"]).prefixlen <= 20


def test_private_subnets_reach_the_outside_through_nat_and_s3_through_its_endpoint(dev):
    table = dev.one("RouteTable", "private")
    route = dev.one("Route", "private-default").inputs
    assert route["destinationCidrBlock"] == "0.0.0.0/0"
    assert route["natGatewayId"].startswith("nat")
    endpoint = dev.one("VpcEndpoint").inputs
    assert (endpoint["serviceName"], endpoint["vpcEndpointType"]) == ("com.amazonaws.us-east-1.s3", "Gateway")
    associated = {a.name for a in dev.of("RouteTableAssociation") if table.urn in a.dependencies}
    assert associated == {"private-gpu", "private-other"}


def test_nat_stands_in_a_public_subnet_of_the_gpu_zone(dev):
    assert dev.one("Subnet", "gpu-public").urn in dev.one("NatGateway").dependencies
    assert dev.one("InternetGateway").urn in dev.one("NatGateway").dependencies

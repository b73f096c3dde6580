"""RULEs of the GPU pool."""

import pytest

from tests.pulumi_engine import read_stack, registered, run


def test_nodes_stand_in_the_one_gpu_subnet_with_the_clusters_own_group_and_our_profile(dev):
    spec = dev.one("EC2NodeClass").inputs["spec"]
    assert spec["subnetSelectorTerms"] == [{"id": "gpu-private-0a1b2c"}]
    assert spec["securityGroupSelectorTerms"] == [{"id": "sg-topolab-dev"}]
    assert spec["instanceProfile"] == "topolab-dev-gpu-node"
    assert "role" not in spec


def test_the_profile_holds_the_role_of_gpu_nodes(dev):
    assert dev.one("Role", "gpu-node-role").urn in dev.one("InstanceProfile").dependencies


@pytest.mark.parametrize("kind", ["NodePool", "EC2NodeClass"])
def test_a_pool_has_time_to_drain(kind, dev):
    assert dev.one(kind).delete_timeout == "40m"


def test_a_placement_group_is_made_for_pg_alone_and_named_by_its_class(dev):
    assert dev.of("PlacementGroup") == []
    graph = registered("g6e12xl-4x4-efa1-pg")
    group = graph.one("PlacementGroup").inputs
    assert group["strategy"] == "cluster"
    assert graph.one("EC2NodeClass").inputs["spec"]["placementGroupSelector"] == {"name": group["name"]}


def test_spot_is_bought_where_the_stack_says_so():
    graph = run(read_stack("dev").with_values(platform={"capacity": {"mode": "spot"}}))
    requirements = graph.one("NodePool").inputs["spec"]["template"]["spec"]["requirements"]
    bought = [r["values"] for r in requirements if r["key"] == "karpenter.sh/capacity-type"]
    assert bought == [["spot"]]


def test_a_reservation_of_the_stack_is_the_one_that_nodes_are_launched_into():
    reserved = {"mode": "reservation", "id": "cr-0123456789abcdef0"}
    graph = run(read_stack("dev").with_values(platform={"capacity": reserved}))
    assert graph.one("EC2NodeClass").inputs["spec"]["capacityReservationSelectorTerms"] == [{"id": reserved["id"]}]
    requirements = graph.one("NodePool").inputs["spec"]["template"]["spec"]["requirements"]
    assert {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["reserved"]} in requirements


def test_pool_and_class_keep_their_place_in_the_state_when_the_topology_changes(dev):
    other = run(read_stack("dev").with_values(topology="g6e8xl-2x1-tcp"))
    for kind in ("NodePool", "EC2NodeClass"):
        assert other.one(kind).urn == dev.one(kind).urn
        assert other.one(kind).inputs == dev.one(kind).inputs, "an arm of one instance type finds warm nodes"

"""Laws of the address plan."""

from ipaddress import IPv4Network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infra.subnets import plan_subnets, second_zone


@st.composite
def vpcs(draw) -> str:
    bits = draw(st.sampled_from([16, 17]))
    start = draw(st.integers(0, 255)) << 16 | (draw(st.integers(0, 1)) << 15 if bits == 17 else 0)
    return str(IPv4Network((10 << 24 | start, bits)))


@given(vpcs())
def test_subnets_lie_inside_the_vpc_and_do_not_overlap(cidr):
    plan = plan_subnets(cidr, "us-east-1b", "us-east-1a")
    networks = [IPv4Network(s.cidr) for s in plan.all]
    assert all(n.subnet_of(IPv4Network(cidr)) for n in networks)
    assert not any(a.overlaps(b) for i, a in enumerate(networks) for b in networks[i + 1 :])


@given(vpcs())
def test_private_subnets_are_a_20_or_larger(cidr):
    plan = plan_subnets(cidr, "us-east-1b", "us-east-1a")
    assert all(IPv4Network(s.cidr).prefixlen <= 20 for s in plan.all if not s.public)


@given(vpcs())
def test_gpu_nodes_have_the_largest_subnet_and_each_zone_one_of_each_kind(cidr):
    plan = plan_subnets(cidr, "us-east-1b", "us-east-1a")
    assert max(plan.all, key=lambda s: IPv4Network(s.cidr).num_addresses) == plan.gpu_private
    assert {(s.zone, s.public) for s in plan.all} == {
        (zone, public) for zone in ("us-east-1a", "us-east-1b") for public in (True, False)
    }


def test_the_second_zone_is_the_first_other_one_by_name():
    assert second_zone("us-east-1b", ["us-east-1c", "us-east-1b", "us-east-1a"]) == "us-east-1a"
    assert second_zone("us-east-1a", ["us-east-1c", "us-east-1b", "us-east-1a"]) == "us-east-1b"


def test_a_zone_without_a_control_plane_is_refused_with_those_that_have_one():
    with pytest.raises(ValueError, match=r"us-east-1e.*take one of us-east-1a, us-east-1b"):
        second_zone("us-east-1e", ["us-east-1b", "us-east-1a"])


def test_a_region_with_one_zone_is_refused():
    with pytest.raises(ValueError, match="EKS needs a second zone"):
        second_zone("us-east-1a", ["us-east-1a"])

"""Node class and pool: what Karpenter may launch, and how it is paid for."""

import pytest

from tests.plan_factory import planned, rendered
from workloads.rendering.stopping import grace_s

RESERVED = "cr-0123456789abcdef0"


@pytest.mark.parametrize(
    ("capacity", "drain"),
    [
        ({"mode": "reservation", "id": RESERVED}, "30m"),
        ({"mode": "capacityBlock", "id": RESERVED, "endsAt": "2099-12-01T11:30:00Z"}, "10m"),
    ],
)
def test_reserved_nodes_come_from_the_reservation_and_from_nowhere_else(capacity, drain):
    by_kind = rendered(planned("g6e8xl-2x1-efa1", platform={"capacity": capacity}))
    assert by_kind["EC2NodeClass"]["spec"]["capacityReservationSelectorTerms"] == [{"id": RESERVED}]
    template = by_kind["NodePool"]["spec"]["template"]["spec"]
    wanted = {r["key"]: r["values"] for r in template["requirements"]}
    assert wanted["karpenter.sh/capacity-type"] == ["reserved"]
    assert template["terminationGracePeriod"] == drain


def test_nodes_that_arent_reserved_name_no_reservation():
    node_class = rendered(planned("g6e8xl-2x1-efa1"))["EC2NodeClass"]
    assert "capacityReservationSelectorTerms" not in node_class["spec"]


def slow(capacity):
    """A run whose step and checkpoint take long."""
    platform = {"storage": {"fsx": "scratch"}, "capacity": capacity}
    return planned("g6e12xl-4x4-tcp", platform=platform, recipe="seed-g6e", restarts=1)


def test_a_pod_in_a_block_ends_before_ec2_takes_its_node():
    block = {"mode": "capacityBlock", "id": RESERVED, "endsAt": "2099-12-01T11:30:00Z"}
    assert grace_s(slow({})) > 600
    assert grace_s(slow(block)) == 600

"""How GPU nodes are bought: keys that go together, and a block that lasts."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.plan_factory import planned, stack_of
from workloads.planning.capacity import BLOCK_DRAIN, capacity_faults, end_faults, usable_until
from workloads.planning.plan import plan
from workloads.planning.prediction import Range
from workloads.planning.spec import Capacity, SpecError

ID = "cr-0123456789abcdef0"
END = "2026-12-01T11:30:00Z"
NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)


def block(ends=END):
    return Capacity.model_validate({"mode": "capacityBlock", "id": ID, "endsAt": ends})


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"id": ID}, "belong to a reservation; remove them"),
        ({"mode": "spot", "endsAt": END}, "belong to a reservation; remove them"),
        ({"mode": "reservation"}, "reservation needs the id, cr-...; topo preflight --reserve makes a reservation"),
        ({"mode": "reservation", "id": ID, "endsAt": END}, "nodes of a reservation outlive its end; remove it"),
        ({"mode": "capacityBlock", "endsAt": END}, "capacityBlock needs the id, cr-...; EC2 says it at purchase"),
        ({"mode": "capacityBlock", "id": ID}, 'write its end, "2026-12-01T11:30:00Z"'),
        ({"mode": "reservation", "id": "cr-1"}, "write cr- and 17 hexadecimal digits"),
        ({"mode": "capacityBlock", "id": ID, "endsAt": "2026-12-01T11:30:00"}, "not a time with its zone"),
        ({"mode": "capacityBlock", "id": ID, "endsAt": "soon"}, "not a time with its zone"),
    ],
)
def test_keys_that_dont_go_together_are_refused(keys, said):
    with pytest.raises(SpecError) as refused:
        planned("g6e8xl-2x1-efa1", platform={"capacity": keys})
    assert said in str(refused.value)
    assert "platform.capacity" in str(refused.value)


@pytest.mark.parametrize(
    "keys",
    [{}, {"mode": "spot"}, {"mode": "reservation", "id": ID}, {"mode": "capacityBlock", "id": ID, "endsAt": END}],
)
def test_every_mode_can_be_planned(keys):
    one = planned("g6e8xl-2x1-efa1", platform={"capacity": keys})
    assert one.capacity == keys.get("mode", "onDemand")
    assert list(capacity_faults(one.platform.capacity)) == []


@pytest.mark.parametrize(
    ("keys", "price"),
    [({"mode": "reservation", "id": ID}, 4.52856), ({"mode": "capacityBlock", "id": ID, "endsAt": END}, None)],
)
def test_a_reservation_costs_what_on_demand_does_and_a_block_was_paid_before(keys, price):
    rental = planned("g6e8xl-2x1-efa1", platform={"capacity": keys}).config.rental
    assert (rental.capacity, rental.usd_per_node_hour) == (keys["mode"], price)


def test_a_blocks_nodes_are_taken_before_its_end_and_a_reservations_never():
    assert usable_until(block()) == datetime(2026, 12, 1, 11, 30, tzinfo=UTC) - BLOCK_DRAIN
    assert usable_until(Capacity(mode="reservation", id=ID)) is None
    assert usable_until(Capacity()) is None


@pytest.mark.parametrize(("minutes", "refused"), [(109, False), (111, True)])
def test_a_run_must_be_predicted_to_end_before_that(minutes, refused):
    seconds = Range(low=60, expected=60.0 * minutes, high=60_000)
    faults = list(end_faults(block(), seconds, NOW))
    assert len(faults) == refused
    if refused:
        assert faults[0].field == "platform.capacity.endsAt"
        assert "has 110 minutes left, and the run is predicted to take 111" in faults[0].message


def test_a_block_that_is_over_is_said_to_be():
    (fault,) = end_faults(block(), Range(low=1, expected=1, high=1), NOW + timedelta(hours=3))
    assert "the block is over" in fault.message


def test_a_plan_is_held_against_the_clock_where_somebody_means_to_begin():
    capacity = {"mode": "capacityBlock", "id": ID, "endsAt": END}
    stack = stack_of("g6e8xl-2x1-efa1", platform={"capacity": capacity})

    def begun(now):
        return plan(stack, region="us-east-1", experiment="x", arm="x", now=now).capacity

    assert begun(None) == begun(NOW) == "capacityBlock"
    with pytest.raises(SpecError, match="the block has 1 minutes left"):
        begun(NOW + timedelta(minutes=109))

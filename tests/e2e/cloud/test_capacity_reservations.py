"""Capacity reservations of the fake account."""

import pytest

from tests.e2e.cloud.inventory import inventory

pytestmark = pytest.mark.e2e

KIND = "ec2:capacity-reservation"
UNKNOWN = "cr-0123456789abcdef0"


def reserve(ground, **changes):
    wanted = {"InstanceType": "g6e.8xlarge", "InstancePlatform": "Linux/UNIX", "AvailabilityZone": "us-east-1b"}
    made = ground.ec2.create_capacity_reservation(**{**wanted, "InstanceCount": 2, **changes})
    return made["CapacityReservation"]["CapacityReservationId"]


def shown(ground, **asked):
    found = ground.ec2.describe_capacity_reservations(**asked)["CapacityReservations"]
    return [(one["CapacityReservationId"], one["State"], one["AvailableInstanceCount"]) for one in found]


def test_a_reservation_is_found_by_id_state_and_tag_until_it_is_cancelled(ground, cloud):
    tags = [{"ResourceType": "capacity-reservation", "Tags": [{"Key": "topolab:stack", "Value": "dev"}]}]
    made, other = reserve(ground, TagSpecifications=tags), reserve(ground)
    active = {"Name": "state", "Values": ["active"]}
    assert shown(ground, CapacityReservationIds=[made]) == [(made, "active", 2)]
    assert [name for name, *_ in shown(ground, Filters=[active])] == [made, other]
    tagged = {"Name": "tag:topolab:stack", "Values": ["dev"]}
    assert [name for name, *_ in shown(ground, Filters=[active, tagged])] == [made]
    ground.ec2.cancel_capacity_reservation(CapacityReservationId=made)
    ground.ec2.cancel_capacity_reservation(CapacityReservationId=other)
    assert shown(ground, Filters=[active]) == []
    assert shown(ground, CapacityReservationIds=[made]) == [(made, "cancelled", 2)]
    assert KIND not in inventory(cloud)


def test_an_active_reservation_costs_money_so_it_is_listed(ground, cloud):
    made = reserve(ground)
    assert inventory(cloud)[KIND] == [made]


def test_what_a_zone_doesnt_offer_and_what_isnt_there_is_refused(ground, refused):
    kind = {"InstanceType": "p5.48xlarge", "AvailabilityZone": "us-east-9z"}
    assert refused(reserve, ground=ground, **kind) == "Unsupported"
    unknown = "InvalidCapacityReservationId.NotFound"
    assert refused(shown, ground=ground, CapacityReservationIds=[UNKNOWN]) == unknown
    assert refused(ground.ec2.cancel_capacity_reservation, CapacityReservationId=UNKNOWN) == unknown
    assert refused(shown, ground=ground, Filters=[{"Name": "colour", "Values": ["red"]}]) == "InvalidParameterValue"

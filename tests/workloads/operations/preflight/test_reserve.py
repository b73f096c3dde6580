"""Zones are asked one after another; a reservation says what it costs and ends by itself."""

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.workloads.operations.preflight.asking import NOW, answering, aws, subject
from workloads.operations.leftovers.aws import RefusedError
from workloads.operations.preflight.reserve import cost, reserve, wish

OFFERED = ("us-east-1a", "us-east-1b", "us-east-1c")
MADE = {"CapacityReservation": {"CapacityReservationId": "cr-0123456789abcdef0"}}


def answers(*found):
    return answering(*(("ec2", "create_capacity_reservation", one) for one in found))


def test_the_stacks_own_zone_is_asked_first_and_others_only_where_nothing_stands():
    assert wish(subject(), OFFERED, moves=True).zones == ("us-east-1b", "us-east-1a", "us-east-1c")
    assert wish(subject(), OFFERED, moves=False).zones == ("us-east-1b",)


def test_it_lasts_for_the_deadline_and_the_hour_that_a_platform_takes():
    one = wish(subject(ttlMinutes=120), OFFERED, moves=True)
    assert (one.instance_type, one.nodes, one.hours) == ("g6e.8xlarge", 2, 3.0)
    assert one.ends_at == NOW + timedelta(hours=3)


def test_what_it_costs_is_said_by_the_hour_and_in_all():
    one = wish(subject(ttlMinutes=120), OFFERED, moves=True)
    assert cost(one, 4.5) == (
        "9.00 USD an hour from the moment that it is made, used or not: at most 27.00 USD until it ends by itself at "
        "2026-11-21 15:00 UTC"
    )
    assert "its price isn't known here" in cost(one, None)


def test_a_zone_without_capacity_is_passed_over_and_named():
    with answers("InsufficientInstanceCapacity", "Unsupported", MADE):
        made = reserve(aws(), wish(subject(), OFFERED, moves=True), subject())
    assert (made.id, made.zone) == ("cr-0123456789abcdef0", "us-east-1c")
    assert made.without == ("us-east-1b", "us-east-1a")


def test_where_no_zone_has_it_nothing_was_reserved():
    with answers(*["InsufficientInstanceCapacity"] * 3), pytest.raises(RefusedError, match="nothing was reserved"):
        reserve(aws(), wish(subject(), OFFERED, moves=True), subject())


def test_another_refusal_ends_the_walk():
    with answers("VcpuLimitExceeded"), pytest.raises(RefusedError, match="VcpuLimitExceeded"):
        reserve(aws(), wish(subject(), OFFERED, moves=True), subject())


def test_the_request_is_targeted_tagged_and_ends(monkeypatch):
    asked = {}
    client = aws().client("ec2")
    monkeypatch.setattr(client, "create_capacity_reservation", lambda **given: asked.update(given) or MADE)
    reserve(aws(), wish(subject(), OFFERED, moves=True), subject())
    assert (asked["InstanceMatchCriteria"], asked["EndDateType"]) == ("targeted", "limited")
    assert (asked["InstanceCount"], asked["AvailabilityZone"]) == (2, "us-east-1b")
    tags = {tag["Key"]: tag["Value"] for tag in asked["TagSpecifications"][0]["Tags"]}
    assert (tags["topolab:project"], tags["topolab:stack"]) == ("topolab", "dev")
    assert asked["EndDate"] == NOW + timedelta(hours=5)


def test_what_no_reservation_serves_is_refused_before_anything_is_asked():
    block = {"mode": "capacityBlock", "id": "cr-0123456789abcdef0", "endsAt": "2026-11-22T12:00:00Z"}
    with pytest.raises(ValueError, match="paid for already"):
        wish(subject(capacity=block), OFFERED, moves=True)
    grouped = subject(topology="g6e12xl-4x4-efa1-pg", run={"model": "llama-3-8b", "recipe": "auto"})
    with pytest.raises(ValueError, match="only a reservation that was made in it"):
        wish(replace(grouped), OFFERED, moves=True)

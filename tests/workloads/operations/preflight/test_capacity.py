"""Quotas, the type's facts, reservations and the role for spot."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.workloads.operations.preflight.asking import NOW, OWN, answering, ask, aws, nothing, only, subject
from workloads.catalogue.instances import INSTANCE_TYPES
from workloads.operations.preflight.judgements import capacity as judge
from workloads.operations.preflight.judgements.capacity import Reservation
from workloads.operations.preflight.questions.capacity import (
    find_reservation,
    gbps,
    gpu_quota,
    instance_type,
    reservation,
    spot_role,
    system_quota,
)


def instance(kind, cores, *, own=False, spot=False):
    return {
        "InstanceType": kind,
        "CpuOptions": {"CoreCount": cores, "ThreadsPerCore": 2},
        "Tags": OWN if own else [],
        **({"InstanceLifecycle": "spot"} if spot else {}),
    }


def quota(value, *instances):
    return [
        ("ec2", "describe_instances", {"Reservations": [{"Instances": list(instances)}]}),
        ("service-quotas", "get_service_quota", {"Quota": {"Value": value}}),
    ]


def test_a_quota_that_holds_the_nodes_is_green():
    row = only(ask(gpu_quota, quota(64.0)))
    assert (row.colour, row.sentence) == ("green", "64 vCPUs needed, 64 free (64 allowed, 0 in use)")


def test_what_runs_is_subtracted_but_not_the_stacks_own_nor_another_familys():
    running = [
        instance("g5.xlarge", 2),
        instance("g6e.8xlarge", 16, own=True),
        instance("p4d.24xlarge", 48),
        instance("g6.8xlarge", 16, spot=True),
    ]
    row = only(ask(gpu_quota, quota(64.0, *running)))
    assert row.colour == "red"
    assert row.sentence == "64 vCPUs needed, 60 free (64 allowed, 4 in use), quota L-DB2E81BA"
    assert row.remedy.startswith("ask for 68: https://us-east-1.console.aws.amazon.com/servicequotas/")
    assert row.remedy.endswith("/services/ec2/quotas/L-DB2E81BA")


def test_spot_has_a_quota_of_its_own():
    row = only(ask(gpu_quota, quota(0.0, instance("g6.8xlarge", 16)), subject(capacity={"mode": "spot"})))
    assert (row.check, row.colour) == ("quota of spot GPU vCPUs", "red")
    assert "0 in use" in row.sentence
    assert row.remedy.endswith("L-3819A6DF")


def test_an_account_without_a_quota_of_its_own_has_awss_default():
    answers = [
        ("ec2", "describe_instances", nothing("Reservations")),
        ("service-quotas", "get_service_quota", "NoSuchResourceException"),
        ("service-quotas", "get_aws_default_service_quota", {"Quota": {"Value": 0.0}}),
    ]
    row = only(ask(gpu_quota, answers))
    assert (row.colour, "(0 allowed, 0 in use)" in row.sentence) == ("red", True)


def test_the_clusters_own_nodes_need_a_quota_too():
    limit_first = [quota(10.0, instance("m7i.xlarge", 2), instance("g5.xlarge", 2))[i] for i in (0, 1)]
    row = only(ask(system_quota, limit_first))
    assert (row.colour, row.sentence.startswith("8 vCPUs needed, 6 free")) == ("red", True)
    assert only(ask(system_quota, quota(12.0, instance("m7i.xlarge", 2)))).colour == "green"


@pytest.mark.parametrize("question", [gpu_quota, system_quota])
def test_quotas_that_may_not_be_read_are_grey(question):
    listed = ("ec2", "describe_instances", nothing("Reservations"))
    row = only(ask(question, [listed, ("service-quotas", "get_service_quota", "AccessDeniedException")]))
    assert (row.colour, "GetServiceQuota" in row.sentence) == ("grey", True)


def facts(**changed):
    network = {
        "MaximumNetworkCards": 1,
        "EfaInfo": {"MaximumEfaInterfaces": changed.get("efa", 1)},
        "NetworkPerformance": changed.get("network", "25 Gigabit"),
    }
    found = {
        "InstanceType": "g6e.8xlarge",
        "GpuInfo": {"Gpus": [{"Count": changed.get("gpus", 1)}]},
        "NetworkInfo": network,
        "VCpuInfo": {"DefaultVCpus": 32},
        "MemoryInfo": {"SizeInMiB": 262144},
    }
    return [("ec2", "describe_instance_types", {"InstanceTypes": [found]})]


def test_ec2s_facts_agree_with_the_catalogues():
    row = only(ask(instance_type, facts()))
    assert (row.colour, row.check) == ("green", "instance type")


def test_a_fact_that_differs_is_red_with_both_values():
    row = only(ask(instance_type, facts(efa=2, gpus=4)))
    assert row.colour == "red"
    assert row.sentence == "EC2 says of g6e.8xlarge: gpus 4 (catalogue: 1), efa_devices 2 (catalogue: 1)"


@pytest.mark.parametrize(
    ("words", "rate"), [("25 Gigabit", 25), ("4x 100 Gigabit", 400), ("12.5 Gigabit", 12.5), ("Up to 5 Gigabit", 0)]
)
def test_the_rate_is_read_from_ec2s_words(words, rate):
    assert gbps(words) == rate


def test_a_type_that_the_region_lacks_is_the_zones_row_and_facts_that_may_not_be_read_are_grey():
    assert ask(instance_type, [("ec2", "describe_instance_types", "InvalidInstanceType")]) == []
    assert only(ask(instance_type, [("ec2", "describe_instance_types", "UnauthorizedOperation")])).colour == "grey"


G6E8XL = INSTANCE_TYPES[0]
RESERVED = Reservation(
    id="cr-1",
    state="active",
    instance_type="g6e.8xlarge",
    zone="us-east-1b",
    free=2,
    is_block=False,
    ends_at=NOW + timedelta(hours=2),
)


def reserved(found=RESERVED, *, block=False, **changed):
    one = None if found is None else Reservation(**{**found.__dict__, **changed})
    return judge.reservation(one, "cr-1", G6E8XL, "us-east-1b", 2, block=block)


def test_an_active_reservation_of_type_zone_and_size_is_green():
    row = reserved()
    assert row.colour == "green"
    assert row.sentence == "cr-1 is active, 2 x g6e.8xlarge free in us-east-1b, ends 2026-11-21 14:00 UTC"
    assert reserved(ends_at=None).sentence.endswith("no end")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"state": "expired"}, "cr-1 is expired"),
        ({"state": "scheduled"}, "cr-1 hasn't begun"),
        ({"instance_type": "g6e.12xlarge"}, "cr-1 holds g6e.12xlarge, the topology needs g6e.8xlarge"),
        ({"zone": "us-east-1c"}, "cr-1 is in us-east-1c, platform.zone is us-east-1b"),
        ({"free": 1}, "cr-1 has 1 of 2 nodes free"),
        ({"is_block": True}, "cr-1 is a capacity block"),
    ],
)
def test_a_reservation_that_cant_hold_the_nodes_is_red(changed, said):
    row = reserved(**changed)
    assert (row.colour, row.sentence) == ("red", said)
    assert row.remedy


def test_a_reservation_of_somebody_else_is_red():
    assert reserved(None).sentence == "cr-1 isn't in this account and region"


IN_TWO_HOURS = NOW + timedelta(hours=2)


@pytest.mark.parametrize(
    ("ends", "stated", "minutes", "block", "colour"),
    [
        (None, None, 60, False, "green"),
        (IN_TWO_HOURS, None, 600, False, "green"),
        (IN_TWO_HOURS, IN_TWO_HOURS, 79, True, "green"),
        (IN_TWO_HOURS, IN_TWO_HOURS, 81, True, "red"),
        (IN_TWO_HOURS, NOW + timedelta(hours=3), 60, True, "red"),
    ],
)
def test_a_run_must_end_before_a_blocks_nodes_are_taken(ends, stated, minutes, block, colour):
    one = Reservation(**{**RESERVED.__dict__, "ends_at": ends, "is_block": block})
    row = judge.end(one, stated, timedelta(minutes=minutes), NOW)
    assert row.colour == colour
    assert bool(row.remedy) == (colour == "red")


BLOCK = {"mode": "capacityBlock", "id": "cr-0123456789abcdef0", "endsAt": "2026-11-22T12:00:00Z"}


def test_a_block_of_the_stack_file_is_asked_for_with_its_end():
    answer = {
        "CapacityReservationId": BLOCK["id"],
        "State": "active",
        "InstanceType": "g6e.8xlarge",
        "AvailabilityZone": "us-east-1b",
        "AvailableInstanceCount": 2,
        "EndDate": datetime(2026, 11, 22, 12, tzinfo=UTC),
        "ReservationType": "capacity-block",
    }
    asked = [("ec2", "describe_capacity_reservations", {"CapacityReservations": [answer]})]
    rows = ask(reservation, asked, subject(capacity=BLOCK))
    assert [(row.check, row.colour) for row in rows] == [("reservation", "green"), ("reservation's end", "green")]
    denied = [("ec2", "describe_capacity_reservations", "UnauthorizedOperation")]
    assert only(ask(reservation, denied, subject(capacity=BLOCK))).colour == "grey"
    assert (
        only(
            ask(
                reservation,
                [("ec2", "describe_capacity_reservations", {"CapacityReservations": []})],
                subject(capacity=BLOCK),
            )
        ).colour
        == "red"
    )
    assert ask(reservation, []) == []


def test_a_block_counts_against_no_quota_and_a_reservations_vcpus_are_counted_already():
    assert ask(gpu_quota, [], subject(capacity=BLOCK)) == []
    held = {"mode": "reservation", "id": BLOCK["id"]}
    assert only(ask(gpu_quota, quota(64.0), subject(capacity=held))).sentence.startswith("0 vCPUs needed")


def test_a_reservation_is_found_by_id_and_a_foreign_one_is_not():
    answer = {
        "CapacityReservationId": "cr-1",
        "State": "active",
        "InstanceType": "g6e.8xlarge",
        "AvailabilityZone": "us-east-1b",
        "AvailableInstanceCount": 2,
        "EndDate": datetime(2026, 11, 21, 14, tzinfo=UTC),
        "ReservationType": "default",
    }
    with answering(("ec2", "describe_capacity_reservations", {"CapacityReservations": [answer]})):
        assert find_reservation(aws(), "cr-1") == RESERVED
    with answering(("ec2", "describe_capacity_reservations", "InvalidCapacityReservationId.NotFound")):
        assert find_reservation(aws(), "cr-1") is None


SPOT = {"capacity": {"mode": "spot"}}


def test_the_role_for_spot_is_asked_for_where_spot_is_bought():
    role = {
        "Path": "/",
        "RoleName": "AWSServiceRoleForEC2Spot",
        "RoleId": "AROA0123456789ABCDEF",
        "Arn": "arn:aws:iam::123456789012:role/AWSServiceRoleForEC2Spot",
        "CreateDate": NOW,
    }
    assert ask(spot_role, []) == []
    assert only(ask(spot_role, [("iam", "get_role", {"Role": role})], subject(**SPOT))).colour == "green"
    missing = only(ask(spot_role, [("iam", "get_role", "NoSuchEntity")], subject(**SPOT)))
    assert (missing.colour, "create-service-linked-role" in missing.remedy) == ("red", True)
    assert only(ask(spot_role, [("iam", "get_role", "AccessDenied")], subject(**SPOT))).colour == "grey"

"""Quotas with what runs subtracted, EC2's facts of the type, reservations."""

import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime, timedelta
from typing import Any

from botocore.exceptions import ClientError

from workloads.catalogue.instances import INSTANCE_TYPES
from workloads.operations.leftovers.aws import Aws, code_of, tags_of, unless
from workloads.operations.leftovers.ownership import is_of_stack
from workloads.operations.preflight.judgements import capacity as judge
from workloads.operations.preflight.judgements.capacity import Quota, Reservation, TypeFacts
from workloads.operations.preflight.questions.asked import Asked
from workloads.operations.preflight.rows import Row

STANDARD_QUOTA = "L-1216C47A"
SYSTEM_VCPUS = 8
"""Two m7i.xlarge for the cluster's own pods."""
_GIGABIT = re.compile(r"(?:(?P<cards>\d+)x )?(?P<rate>\d+(?:\.\d+)?) Gigabit")
_VCPUS = {kind.name: kind.vcpus for kind in INSTANCE_TYPES}
_STANDARD_FAMILIES = frozenset("acdhimrtz")
_ALIVE = [{"Name": "instance-state-name", "Values": ["pending", "running"]}]

Instance = Mapping[str, Any]


def gpu_quota(asked: Asked) -> Iterator[Row]:
    """vCPUs of the type's family, as the stack buys them."""
    subject, mode = asked.subject, asked.subject.platform.capacity.mode
    if mode == "capacityBlock":
        # A block is paid before, and counts against no quota of vCPUs.
        return
    kind, spot = subject.instance_type, mode == "spot"
    code = kind.spot_quota_code if spot else kind.quota_code
    held = subject.plan.nodes if mode == "reservation" else 0
    used = used_vcpus(asked.aws, code, lambda one: not is_of_stack(tags_of(one), subject.owner))
    found = Quota(code=code, limit=quota_limit(asked.aws, "ec2", code), used=used)
    # A reservation's vCPUs are in use from the moment that it was made.
    needed = (subject.plan.nodes - held) * kind.vcpus
    check = "quota of spot GPU vCPUs" if spot else "quota of GPU vCPUs"
    yield judge.quota(check, found, needed=needed, region=subject.owner.region)


def system_quota(asked: Asked) -> Iterator[Row]:
    """vCPUs of the system nodes."""
    owner = asked.subject.owner
    used = float(_standard_vcpus(asked.aws, lambda one: not is_of_stack(tags_of(one), owner)))
    found = Quota(code=STANDARD_QUOTA, limit=quota_limit(asked.aws, "ec2", STANDARD_QUOTA), used=used)
    yield judge.quota("quota of system vCPUs", found, needed=SYSTEM_VCPUS, region=owner.region)


def quota_limit(aws: Aws, service: str, code: str) -> float:
    """The account's quota, or AWS's default where the account never had one of its own."""
    client = aws.client("service-quotas")
    with unless("NoSuchResourceException"):
        return float(client.get_service_quota(ServiceCode=service, QuotaCode=code)["Quota"]["Value"])
    return float(client.get_aws_default_service_quota(ServiceCode=service, QuotaCode=code)["Quota"]["Value"])


def used_vcpus(aws: Aws, code: str, counts: Callable[[Instance], bool]) -> float:
    """vCPUs of running instances of the catalogue's types that count against a quota of GPU vCPUs.

    Other types of the family are counted by their first letter, with the cores that EC2 reports.
    """
    spot = code in {kind.spot_quota_code for kind in INSTANCE_TYPES}
    kinds = {kind.name[0] for kind in INSTANCE_TYPES if code in (kind.quota_code, kind.spot_quota_code)}
    return float(
        sum(
            vcpus_of(one)
            for one in running(aws)
            if one["InstanceType"][0] in kinds and _is_spot(one) == spot and counts(one)
        )
    )


def running(aws: Aws) -> Iterator[Instance]:
    """Every instance of the region that counts against a quota."""
    return aws.pages("ec2", "describe_instances", "Reservations.Instances", {"Filters": _ALIVE})


def vcpus_of(instance: Instance) -> int:
    """Hardware threads, as quotas count them."""
    cpu = instance.get("CpuOptions")
    if not cpu:
        return _VCPUS.get(instance["InstanceType"], 0)
    return int(cpu["CoreCount"]) * int(cpu["ThreadsPerCore"])


def _standard_vcpus(aws: Aws, counts: Callable[[Instance], bool]) -> int:
    return sum(
        vcpus_of(one)
        for one in running(aws)
        if one["InstanceType"][0] in _STANDARD_FAMILIES and not _is_spot(one) and counts(one)
    )


def _is_spot(instance: Instance) -> bool:
    return instance.get("InstanceLifecycle") == "spot"


def instance_type(asked: Asked) -> Iterator[Row]:
    """EC2's facts against the catalogue's."""
    kind = asked.subject.instance_type
    with unless("InvalidInstanceType"):
        (found,) = asked.aws.client("ec2").describe_instance_types(InstanceTypes=[kind.name])["InstanceTypes"]
        yield judge.facts(kind, _facts(found))


def _facts(found: Mapping[str, Any]) -> TypeFacts:
    network = found["NetworkInfo"]
    cards = network.get("NetworkCards", [])
    return TypeFacts(
        gpus=sum(gpu["Count"] for gpu in found.get("GpuInfo", {}).get("Gpus", [])),
        efa_devices=network.get("EfaInfo", {}).get("MaximumEfaInterfaces", 0),
        network_cards=network.get("MaximumNetworkCards", len(cards)),
        network_gbps=gbps(network.get("NetworkPerformance", "")),
        vcpus=found["VCpuInfo"]["DefaultVCpus"],
        memory_gib=found["MemoryInfo"]["SizeInMiB"] // 1024,
    )


def gbps(performance: str) -> float:
    """Of EC2's words, `4x 100 Gigabit`: of cards it gives each the sum of all on some types. 0 where none is said."""
    found = _GIGABIT.fullmatch(performance)
    return 0.0 if found is None else int(found["cards"] or 1) * float(found["rate"])


def reservation(asked: Asked) -> Iterator[Row]:
    """The reservation or block that the stack names."""
    subject, capacity = asked.subject, asked.subject.platform.capacity
    if capacity.mode not in ("reservation", "capacityBlock") or capacity.id is None:
        return
    block, found = capacity.mode == "capacityBlock", find_reservation(asked.aws, capacity.id)
    yield judge.reservation(found, capacity.id, subject.instance_type, subject.zone, subject.plan.nodes, block=block)
    if found is not None:
        stated = None if capacity.ends_at is None else datetime.fromisoformat(capacity.ends_at)
        needed = timedelta(seconds=subject.plan.prediction.wall_clock_s.expected)
        yield judge.end(found, stated, needed, subject.now)


def find_reservation(aws: Aws, name: str) -> Reservation | None:
    """One reservation by id; None where this account and region have none of that id."""
    try:
        answer = aws.client("ec2").describe_capacity_reservations(CapacityReservationIds=[name])
    except ClientError as error:
        if code_of(error).startswith("InvalidCapacityReservationId"):
            return None
        raise
    return next((_reservation(one) for one in answer["CapacityReservations"]), None)


def _reservation(one: Mapping[str, Any]) -> Reservation:
    return Reservation(
        id=one["CapacityReservationId"],
        state=one["State"],
        instance_type=one["InstanceType"],
        zone=one["AvailabilityZone"],
        free=one["AvailableInstanceCount"],
        is_block=one.get("ReservationType") == "capacity-block",
        ends_at=one.get("EndDate"),
    )


def spot_role(asked: Asked) -> Iterator[Row]:
    """EC2's own role, where spot is bought."""
    if asked.subject.platform.capacity.mode != "spot":
        return
    exists = False
    with unless("NoSuchEntity"):
        asked.aws.client("iam").get_role(RoleName="AWSServiceRoleForEC2Spot")
        exists = True
    yield judge.spot_role(exists)

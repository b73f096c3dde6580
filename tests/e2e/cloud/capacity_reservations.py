"""Capacity reservations, which moto hasn't: made, shown, cancelled."""

from collections.abc import Mapping
from typing import Any

from tests.e2e.cloud.account import Account, Facts, now
from tests.e2e.cloud.wire import Answer, Call, Refusal
from tests.e2e.site import ACCOUNT


def create(account: Account, call: Call) -> Answer:
    """Active at once where the zone offers the type; an empty account has all the capacity that it asks for."""
    kind, zone, count = (call.params[key] for key in ("InstanceType", "AvailabilityZone", "InstanceCount"))
    offered = account.ec2.describe_instance_type_offerings("availability-zone", {"instance-type": [kind]})
    if zone not in {one["Location"] for one in offered}:
        raise Refusal("Unsupported", f"The requested configuration is currently not supported: {kind} in {zone}.")
    made = account.new_id("cr-")
    tags = [tag for one in call.params.get("TagSpecifications") or [] for tag in one["Tags"]]
    account.own.capacity_reservations[made] = {
        "CapacityReservationId": made,
        "CapacityReservationArn": account.arn("ec2", f"capacity-reservation/{made}"),
        "OwnerId": ACCOUNT,
        "InstanceType": kind,
        "InstancePlatform": call.params["InstancePlatform"],
        "AvailabilityZone": zone,
        "Tenancy": "default",
        "TotalInstanceCount": int(count),
        "AvailableInstanceCount": int(count),
        "InstanceMatchCriteria": call.params.get("InstanceMatchCriteria", "open"),
        "EndDateType": call.params.get("EndDateType", "unlimited"),
        "State": "active",
        "StartDate": now(),
        "CreateDate": now(),
        "ReservationType": "default",
        "Interruptible": False,
        "Tags": tags,
        **({"EndDate": call.params["EndDate"]} if "EndDate" in call.params else {}),
    }
    return {"CapacityReservation": account.own.capacity_reservations[made]}


def describe(account: Account, call: Call) -> Answer:
    """By id or filter."""
    ids = call.params.get("CapacityReservationIds") or []
    unknown = set(ids) - set(account.own.capacity_reservations)
    if unknown:
        raise Refusal(
            "InvalidCapacityReservationId.NotFound", f"The capacity reservation '{sorted(unknown)[0]}' does not exist."
        )
    filters = call.params.get("Filters") or []
    for wanted in filters:
        if wanted["Name"] not in _FILTERS and not wanted["Name"].startswith("tag:"):
            raise Refusal("InvalidParameterValue", f"The filter '{wanted['Name']}' is invalid")
    return {
        "CapacityReservations": [
            one
            for name, one in account.own.capacity_reservations.items()
            if (not ids or name in ids) and all(_matches(one, wanted) for wanted in filters)
        ]
    }


def cancel(account: Account, call: Call) -> Answer:
    """It stays visible, cancelled."""
    name = call.params["CapacityReservationId"]
    if name not in account.own.capacity_reservations:
        raise Refusal("InvalidCapacityReservationId.NotFound", f"The capacity reservation '{name}' does not exist.")
    account.own.capacity_reservations[name]["State"] = "cancelled"
    return {"Return": True}


_FILTERS = {"state": "State", "owner-id": "OwnerId", "instance-match-criteria": "InstanceMatchCriteria"}


def _matches(one: Facts, wanted: Mapping[str, Any]) -> bool:
    name, values = wanted["Name"], wanted["Values"]
    tags = {tag["Key"]: tag["Value"] for tag in one["Tags"]}
    if name.startswith("tag:"):
        return tags.get(name.removeprefix("tag:")) in values
    return one[_FILTERS[name]] in values

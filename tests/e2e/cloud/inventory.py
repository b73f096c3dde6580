"""Everything that stands in the account and that a fresh one has not: the measure of an empty cloud."""

import json
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.e2e.cloud.account import EKS_AMI_OWNER, Account
from tests.e2e.cloud.eks_clusters import ARN_KEYS, resources
from tests.e2e.cloud.identity_rules import is_linked
from tests.e2e.cloud.wire import Answer, Call
from tests.e2e.site import ACCOUNT

_UNLISTED = {"iam:role"}
"""What the Resource Groups Tagging API leaves out whatever its tags (its list of supported types)."""


@dataclass(frozen=True, kw_only=True)
class Item:
    """One resource. `kind` is the tagging API's resource type, `id` what its own API calls it."""

    kind: str
    id: str
    arn: str
    tags: dict[str, str]


def inventory(url: str) -> dict[str, list[str]]:
    """Ids of all that stands in the account of the fake cloud at `url`, by kind; {} when it is empty."""
    with urllib.request.urlopen(f"{url}/topolab/inventory", timeout=30) as answer:
        found: dict[str, list[str]] = json.load(answer)
    return found


def listed(account: Account) -> dict[str, list[str]]:
    """Ids by kind, both sorted."""
    found: dict[str, list[str]] = {}
    for item in items(account):
        found.setdefault(item.kind, []).append(item.id)
    return {kind: sorted(found[kind]) for kind in sorted(found)}


def items(account: Account) -> Iterator[Item]:
    """All resources that somebody made."""
    yield from _ec2(account)
    yield from _iam(account)
    yield from _eks(account)
    yield from _others(account)


def get_resources(account: Account, call: Call) -> Answer:
    """The tagging API over all of them; moto's knows neither our services nor half of EC2."""
    params = call.params
    filters = [(one["Key"], set(one.get("Values") or [])) for one in params.get("TagFilters") or []]
    types, arns = params.get("ResourceTypeFilters") or [], params.get("ResourceARNList") or []
    found = [
        item
        for item in items(account)
        if item.tags
        and item.kind not in _UNLISTED
        and all(key in item.tags and (not values or item.tags[key] in values) for key, values in filters)
        and (not types or any(item.kind == one or item.kind.startswith(f"{one}:") for one in types))
        and (not arns or item.arn in arns)
    ]
    mappings = [
        {"ResourceARN": item.arn, "Tags": [{"Key": key, "Value": value} for key, value in item.tags.items()]}
        for item in found
    ]
    return {"PaginationToken": "", "ResourceTagMappingList": mappings}


def _ec2(account: Account) -> Iterator[Item]:
    ec2 = account.ec2
    standing: list[tuple[str, list[Any]]] = [
        ("vpc", list(ec2.vpcs.values())),
        ("subnet", ec2.describe_subnets()),
        ("internet-gateway", list(ec2.internet_gateways.values())),
        ("route-table", [one for one in ec2.route_tables.values() if not one.main_association_id]),
        ("security-group", [g for groups in ec2.groups.values() for g in groups.values() if g.name != "default"]),
        ("natgateway", [one for one in ec2.nat_gateways.values() if one.state != "deleted"]),
        ("vpc-endpoint", [one for one in ec2.vpc_end_points.values() if one.state != "deleted"]),
        ("elastic-ip", list(ec2.addresses)),
        ("network-interface", list(ec2.enis.values())),
        ("instance", account.instances()),
        ("volume", list(ec2.volumes.values())),
        ("snapshot", [one for one in ec2.snapshots.values() if one.owner_id != EKS_AMI_OWNER]),
        ("launch-template", list(ec2.launch_templates.values())),
        ("network-acl", [one for one in ec2.network_acls.values() if not one.default]),
    ]
    for kind, found in standing:
        for one in found:
            tags = dict(ec2.tags.get(one.id, {}))
            yield Item(kind=f"ec2:{kind}", id=one.id, arn=account.arn("ec2", f"{kind}/{one.id}"), tags=tags)
    for one in account.own.capacity_reservations.values():
        if one["State"] == "active":
            tags = {tag["Key"]: tag["Value"] for tag in one["Tags"]}
            name = one["CapacityReservationId"]
            yield Item(kind="ec2:capacity-reservation", id=name, arn=one["CapacityReservationArn"], tags=tags)
    for group in account.own.placement_groups.values():
        tags = dict(ec2.tags.get(group["GroupId"], {}))
        yield Item(kind="ec2:placement-group", id=group["GroupName"], arn=group["GroupArn"], tags=tags)


def _iam(account: Account) -> Iterator[Item]:
    iam = account.iam
    for role in iam.roles.values():
        if not is_linked(role):
            yield Item(kind="iam:role", id=role.name, arn=role.arn, tags=_pairs(role.tags))
    for policy in iam.managed_policies.values():
        if f":{ACCOUNT}:" in policy.arn:
            yield Item(kind="iam:policy", id=policy.arn, arn=policy.arn, tags=_pairs(policy.tags))
    for profile in iam.instance_profiles.values():
        yield Item(kind="iam:instance-profile", id=profile.name, arn=profile.arn, tags=_pairs(profile.tags))


def _pairs(tags: Any) -> dict[str, str]:
    """moto keeps tags of IAM as a list, or as a mapping of pairs by lower-case key."""
    listed = list(tags.values()) if isinstance(tags, dict) else list(tags or [])
    return {tag["Key"]: tag["Value"] for tag in listed if isinstance(tag, dict)}


_EKS_KINDS = dict(
    zip(ARN_KEYS, ("cluster", "nodegroup", "addon", "access-entry", "podidentityassociation"), strict=True)
)


def _eks(account: Account) -> Iterator[Item]:
    for facts in resources(account):
        key = next(one for one in ARN_KEYS if one in facts)
        name = facts[key].partition("/")[2]
        yield Item(kind=f"eks:{_EKS_KINDS[key]}", id=name, arn=facts[key], tags=dict(facts["tags"]))


def _others(account: Account) -> Iterator[Item]:
    for queue in account.backend("sqs").queues.values():
        yield Item(kind="sqs:queue", id=queue.name, arn=queue.queue_arn, tags=dict(queue.tags))
    events = account.backend("events")
    for rule in (rule for bus in events.event_buses.values() for rule in bus.rules.values()):
        tags = _pairs(events.tagger.list_tags_for_resource(rule.arn)["Tags"])
        yield Item(kind="events:rule", id=rule.name, arn=rule.arn, tags=tags)
    logs = account.backend("logs")
    for group in logs.groups.values():
        tags = logs.tagger.get_tag_dict_for_resource(group.arn.removesuffix(":*"))
        arn = account.arn("logs", f"log-group:{group.name}")
        yield Item(kind="logs:log-group", id=group.name, arn=arn, tags=dict(tags))
    s3 = account.backend("s3")
    for bucket in s3.buckets.values():
        tags = s3.tagger.get_tag_dict_for_resource(bucket.arn)
        yield Item(kind="s3:bucket", id=bucket.name, arn=f"arn:aws:s3:::{bucket.name}", tags=dict(tags))
    for system in account.own.file_systems.values():
        tags = _pairs(system["Tags"])
        yield Item(kind="fsx:file-system", id=system["FileSystemId"], arn=system["ResourceARN"], tags=tags)

"""What Karpenter and the CNI make outside any state, asked of EC2 and IAM: things that may be swept."""

from collections.abc import Iterator, Sequence
from typing import Any

from workloads.operations.leftovers.aws import Aws, tags_of, unless
from workloads.operations.leftovers.ownership import (
    POOL_KEY,
    Owner,
    is_anothers,
    is_group_of_eks,
    is_interface_of_cni,
    is_karpenters,
    is_of_stack,
)

Thing = dict[str, Any]
Filter = dict[str, Any]

ENDED = frozenset({"terminated"})


def cluster(aws: Aws, owner: Owner) -> Thing | None:
    """The EKS cluster of that name, whoever's it is."""
    with unless("ResourceNotFoundException"):
        found: Thing = aws.client("eks").describe_cluster(name=owner.cluster)["cluster"]
        return found
    return None


def instances(aws: Aws, owner: Owner) -> Iterator[Thing]:
    """Karpenter's instances that aren't terminated yet."""
    for thing in _launched(aws, owner, "describe_instances", "Reservations.Instances"):
        if thing["State"]["Name"] not in ENDED:
            yield thing


def volumes(aws: Aws, owner: Owner) -> Iterator[Thing]:
    """Their volumes that outlived them. A claim's volume isn't among these: it holds data."""
    for thing in _launched(aws, owner, "describe_volumes", "Volumes"):
        if thing["State"] == "available":
            yield thing


def launch_templates(aws: Aws, owner: Owner) -> Iterator[Thing]:
    """The templates that they were launched from."""
    return _launched(aws, owner, "describe_launch_templates", "LaunchTemplates")


def instance_profiles(aws: Aws, owner: Owner) -> Iterator[Thing]:
    """Profiles under Karpenter's path, which it makes where a node class names a role."""
    asked = {"PathPrefix": owner.profile_path}
    for listed in aws.pages("iam", "list_instance_profiles", "InstanceProfiles", asked):
        # As below: a filter that says too much harms nobody.
        if not listed["Path"].startswith(owner.profile_path):
            continue
        # A listing carries no tags.
        named = aws.client("iam").get_instance_profile(InstanceProfileName=listed["InstanceProfileName"])
        if not is_anothers(tags_of(named["InstanceProfile"]), owner):
            yield named["InstanceProfile"]


def interfaces(aws: Aws, owner: Owner, vpc_ids: Sequence[str]) -> Iterator[Thing]:
    """Interfaces that the cluster's CNI made in these VPCs."""
    if not vpc_ids:
        return
    inside = [{"Name": "vpc-id", "Values": list(vpc_ids)}]
    for thing in aws.pages("ec2", "describe_network_interfaces", "NetworkInterfaces", {"Filters": inside}):
        if thing["VpcId"] in vpc_ids and is_interface_of_cni(tags_of(thing), owner):
            yield thing


def cluster_groups(aws: Aws, owner: Owner, vpc_ids: Sequence[str]) -> Iterator[Thing]:
    """The security group that EKS made for the cluster."""
    if not vpc_ids:
        return
    inside = [{"Name": "vpc-id", "Values": list(vpc_ids)}, *_owned(owner)]
    for thing in aws.pages("ec2", "describe_security_groups", "SecurityGroups", {"Filters": inside}):
        if thing["VpcId"] in vpc_ids and is_group_of_eks(thing["GroupName"], tags_of(thing), owner):
            yield thing


def vpc_ids(aws: Aws, owner: Owner) -> Iterator[str]:
    """The stack's VPCs; more than one where one was kept for its file system."""
    filters = [{"Name": f"tag:{key}", "Values": [value]} for key, value in owner.names.tags.items()]
    for vpc in aws.pages("ec2", "describe_vpcs", "Vpcs", {"Filters": filters}):
        # EC2 reads `*` and `?` in a filter as wildcards.
        if is_of_stack(tags_of(vpc), owner):
            yield vpc["VpcId"]


def holder_of(interface: Thing) -> str:
    """What an interface hangs on, in words."""
    attachment = interface.get("Attachment") or {}
    return str(attachment.get("InstanceId") or interface.get("Description") or "something unnamed")


def _launched(aws: Aws, owner: Owner, operation: str, items: str) -> Iterator[Thing]:
    # EC2 filters, so that a large account isn't read whole; then the same rule again, so that a filter that
    # says too much harms nobody.
    filters = [*_owned(owner), {"Name": "tag-key", "Values": [POOL_KEY]}]
    for thing in aws.pages("ec2", operation, items, {"Filters": filters}):
        if is_karpenters(tags_of(thing), owner):
            yield thing


def _owned(owner: Owner) -> list[Filter]:
    return [{"Name": f"tag:{owner.cluster_key}", "Values": ["owned"]}]

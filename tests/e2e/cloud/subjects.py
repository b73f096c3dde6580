"""What an operation was done to, for the log and for faults: never a body, a document or a secret."""

import re
from collections.abc import Mapping
from typing import Any

from tests.e2e.cloud.wire import Call

READS = re.compile(r"^(Describe|List|Get|Head|Search|Receive|Select|Simulate|BatchGet)")

_MADE = {
    "AllocateAddress": "AllocationId",
    "AssociateRouteTable": "AssociationId",
    "CreateCapacityReservation": "CapacityReservation.CapacityReservationId",
    "CreateFileSystem": "FileSystem.FileSystemId",
    "CreateInternetGateway": "InternetGateway.InternetGatewayId",
    "CreateLaunchTemplate": "LaunchTemplate.LaunchTemplateId",
    "CreateNatGateway": "NatGateway.NatGatewayId",
    "CreateNetworkInterface": "NetworkInterface.NetworkInterfaceId",
    "CreatePodIdentityAssociation": "association.associationId",
    "CreatePolicy": "Policy.Arn",
    "CreateRouteTable": "RouteTable.RouteTableId",
    "CreateSecurityGroup": "GroupId",
    "CreateSubnet": "Subnet.SubnetId",
    "CreateVolume": "VolumeId",
    "CreateVpc": "Vpc.VpcId",
    "CreateVpcEndpoint": "VpcEndpoint.VpcEndpointId",
    "RunInstances": "Instances.InstanceId",
}
"""Where the answer of a creation holds the new id."""

_NAMES = (
    "clusterName", "name", "nodegroupName", "addonName", "principalArn", "associationId", "namespace",
    "serviceAccount", "policyArn", "resourceArn",
    "RoleName", "InstanceProfileName", "PolicyName", "PolicyArn", "AWSServiceName",
    "Bucket", "Key", "QueueName", "QueueUrl", "Rule", "Name", "Ids",
    "FileSystemId", "ResourceARN", "GroupName", "LaunchTemplateName", "LaunchTemplateId",
    "AssociationId", "AllocationId", "InternetGatewayId", "NatGatewayId", "NetworkInterfaceId", "RouteTableId",
    "DestinationCidrBlock", "SubnetId", "VpcEndpointId", "VpcEndpointIds", "VolumeId", "GroupId", "VpcId",
    "CapacityReservationId", "InstanceIds", "Resources", "ResourceARNList", "CidrBlock",
)  # fmt: skip
"""Parameters that name something, in the order in which they are joined."""

_NOT_NAMES = {
    # The network that a new thing stands in isn't what it is called.
    "CreateSubnet": {"VpcId"},
    "AttachInternetGateway": set[str](),
    "CreateAccessEntry": {"type"},
}


def is_read(action: str) -> bool:
    """Whether it changes nothing, so that nobody logs it."""
    return READS.match(action) is not None


def asked_subject(call: Call) -> str:
    """What the request names: ids and names of its parameters joined by "/", else its Name tag, else nothing."""
    left_out = _NOT_NAMES.get(call.action, set())
    params = call.params
    found = [_text(params[name]) for name in _NAMES if params.get(name) and name not in left_out]
    named = _name_tag(params)
    if named and (call.action in _MADE or not found):
        return named
    return "/".join(found)


def made_subject(call: Call, answer: Mapping[str, Any]) -> str | None:
    """The id of what was made, by the answer; None for all other actions."""
    path = _MADE.get(call.action)
    return None if path is None else _text(_at(answer, path.split(".")))


def _at(value: Any, path: list[str]) -> Any:
    for part in path:
        value = [one[part] for one in value] if isinstance(value, list) else value[part]
    return value


def _text(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)


def _name_tag(params: Mapping[str, Any]) -> str | None:
    tags = params.get("Tags") or params.get("tags") or []
    if isinstance(tags, dict):
        return tags.get("Name")
    listed = [*tags, *(tag for one in params.get("TagSpecifications") or [] for tag in one.get("Tags") or [])]
    return next((tag.get("Value") for tag in listed if tag.get("Key") == "Name"), None)

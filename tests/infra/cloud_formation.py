"""The program's AWS resources in CloudFormation's words, where a type has a counterpart.

cfn-lint ships the schemas of those types, with patterns, enums and dependent members that no service model has.
"""

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tests.infra.aws_calls import CLUSTER, Made

Properties = dict[str, Any]


def template(resources: Iterable[Made]) -> dict[str, Any]:
    """A template of all of them, equal ones once; KeyError where a type is neither in TYPES nor in WITHOUT."""
    found: dict[str, Properties] = {}
    for made in (one for one in resources if one.kind not in WITHOUT):
        kind, convert = TYPES[made.type]
        known = {name: value for name, value in convert(made.inputs).items() if value is not None}
        resource = {"Type": kind, "Properties": known}
        digest = hashlib.sha256(json.dumps(resource, sort_keys=True).encode()).hexdigest()[:8]
        found[f"{made.name.title().replace('-', '')}{digest}"] = resource
    return {"AWSTemplateFormatVersion": "2010-09-09", "Resources": found}


WITHOUT = frozenset(
    {
        # Members of the bucket there.
        "BucketLifecycleConfiguration", "BucketPublicAccessBlock", "BucketServerSideEncryptionConfiguration",
        "BucketVersioning",
        # Members of the role, the rule and the entry there.
        "RolePolicyAttachment", "EventTarget", "AccessPolicyAssociation",
    }
)  # fmt: skip


def _same(*names: str, **renamed: str) -> Callable[[Properties], Properties]:
    """The inputs of these names, capitalised as CloudFormation does; `renamed`: ours to theirs."""
    words = {**{name: name[0].upper() + name[1:] for name in names}, **renamed}

    def convert(inputs: Properties) -> Properties:
        properties = {theirs: _cased(inputs.get(ours)) for ours, theirs in words.items()}
        tags = inputs.get("tags")
        return {**properties, "Tags": [{"Key": k, "Value": v} for k, v in tags.items()] if tags else None}

    return convert


def _cased(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {name[0].upper() + name[1:]: _cased(item) for name, item in value.items()}
    return [_cased(item) for item in value] if isinstance(value, list) else value


def _document(convert: Callable[[Properties], Properties], *names: str) -> Callable[[Properties], Properties]:
    """With these properties read as JSON."""

    def read(inputs: Properties) -> Properties:
        found = convert(inputs)
        return {name: json.loads(value) if name in names else value for name, value in found.items()}

    return read


def _tagged_as_map(convert: Callable[[Properties], Properties]) -> Callable[[Properties], Properties]:
    """EKS's node groups take a map of tags there."""
    return lambda inputs: {**convert(inputs), "Tags": inputs.get("tags")}


def _cluster(inputs: Properties) -> Properties:
    types = [{"Type": one} for one in inputs.get("enabledClusterLogTypes") or ()]
    return {
        **_same("name", "roleArn", "version", "accessConfig")(inputs),
        "ResourcesVpcConfig": _cased(inputs["vpcConfig"]),
        "Logging": {"ClusterLogging": {"EnabledTypes": types}} if types else None,
    }


def _file_system(inputs: Properties) -> Properties:
    lustre = _same("deploymentType", "perUnitStorageThroughput", "automaticBackupRetentionDays")(inputs)
    return {
        **_same("storageCapacity", "storageType", "securityGroupIds", "fileSystemTypeVersion")(inputs),
        "FileSystemType": "LUSTRE",
        "SubnetIds": [inputs["subnetIds"]],
        "LustreConfiguration": {name: value for name, value in lustre.items() if value is not None and name != "Tags"},
    }


def _launch_template(inputs: Properties) -> Properties:
    devices = [
        {"DeviceName": one["deviceName"], "Ebs": {**_cased(one["ebs"]), **_switches(one["ebs"])}}
        for one in inputs["blockDeviceMappings"]
    ]
    tags = [
        {"ResourceType": one["resourceType"], "Tags": [{"Key": k, "Value": v} for k, v in one["tags"].items()]}
        for one in inputs["tagSpecifications"]
    ]
    options = _cased(inputs["metadataOptions"])
    data = {"BlockDeviceMappings": devices, "MetadataOptions": options, "TagSpecifications": tags}
    return {"LaunchTemplateName": inputs["name"], "LaunchTemplateData": data}


def _switches(disk: Properties) -> Properties:
    """Text in the provider, for three values of it."""
    return {name: disk[ours] == "true" for ours, name in _SWITCHES.items()}


_SWITCHES = {"encrypted": "Encrypted", "deleteOnTermination": "DeleteOnTermination"}


def _security_group(inputs: Properties) -> Properties:
    def rules(side: str) -> list[Properties]:
        return [
            {"IpProtocol": r["protocol"], "FromPort": r["fromPort"], "ToPort": r["toPort"], "CidrIp": block}
            for r in inputs[side]
            for block in r["cidrBlocks"]
        ]

    return {
        **_same("vpcId", description="GroupDescription")(inputs),
        "SecurityGroupIngress": rules("ingress"),
        "SecurityGroupEgress": rules("egress"),
    }


TYPES: Mapping[str, tuple[str, Callable[[Properties], Properties]]] = {
    "aws:cloudwatch/eventRule:EventRule": (
        "AWS::Events::Rule", _document(_same("name", "eventPattern"), "EventPattern"),
    ),
    "aws:cloudwatch/logGroup:LogGroup": ("AWS::Logs::LogGroup", _same("retentionInDays", name="LogGroupName")),
    "aws:ec2/eip:Eip": ("AWS::EC2::EIP", _same("domain")),
    "aws:ec2/internetGateway:InternetGateway": ("AWS::EC2::InternetGateway", _same()),
    "aws:ec2/launchTemplate:LaunchTemplate": ("AWS::EC2::LaunchTemplate", _launch_template),
    "aws:ec2/natGateway:NatGateway": ("AWS::EC2::NatGateway", _same("allocationId", "subnetId")),
    "aws:ec2/placementGroup:PlacementGroup": ("AWS::EC2::PlacementGroup", _same("strategy")),
    "aws:ec2/route:Route": (
        "AWS::EC2::Route", _same("routeTableId", "destinationCidrBlock", "gatewayId", "natGatewayId"),
    ),
    "aws:ec2/routeTable:RouteTable": ("AWS::EC2::RouteTable", _same("vpcId")),
    "aws:ec2/routeTableAssociation:RouteTableAssociation": (
        "AWS::EC2::SubnetRouteTableAssociation", _same("routeTableId", "subnetId"),
    ),
    "aws:ec2/securityGroup:SecurityGroup": ("AWS::EC2::SecurityGroup", _security_group),
    "aws:ec2/subnet:Subnet": (
        "AWS::EC2::Subnet", _same("vpcId", "cidrBlock", "availabilityZone", "mapPublicIpOnLaunch"),
    ),
    "aws:ec2/vpc:Vpc": ("AWS::EC2::VPC", _same("cidrBlock", "enableDnsSupport", "enableDnsHostnames")),
    "aws:ec2/vpcEndpoint:VpcEndpoint": (
        "AWS::EC2::VPCEndpoint", _same("vpcId", "serviceName", "vpcEndpointType", "routeTableIds"),
    ),
    "aws:eks/accessEntry:AccessEntry": ("AWS::EKS::AccessEntry", _same("clusterName", "principalArn", "type")),
    "aws:eks/addon:Addon": (
        "AWS::EKS::Addon",
        _same("clusterName", "addonName", "addonVersion", "configurationValues",
              resolveConflictsOnCreate="ResolveConflicts"),
    ),
    CLUSTER: ("AWS::EKS::Cluster", _cluster),
    "aws:eks/nodeGroup:NodeGroup": (
        "AWS::EKS::Nodegroup",
        _tagged_as_map(_same("clusterName", "instanceTypes", "amiType", "scalingConfig", "launchTemplate",
                             nodeRoleArn="NodeRole", subnetIds="Subnets")),
    ),
    "aws:eks/podIdentityAssociation:PodIdentityAssociation": (
        "AWS::EKS::PodIdentityAssociation", _same("clusterName", "namespace", "serviceAccount", "roleArn"),
    ),
    "aws:fsx/lustreFileSystem:LustreFileSystem": ("AWS::FSx::FileSystem", _file_system),
    "aws:iam/instanceProfile:InstanceProfile": (
        "AWS::IAM::InstanceProfile",
        lambda inputs: {"InstanceProfileName": inputs["name"], "Roles": [inputs["role"]]},
    ),
    "aws:iam/policy:Policy": (
        "AWS::IAM::ManagedPolicy",
        # A policy's tags are none of CloudFormation's.
        lambda inputs: {"ManagedPolicyName": inputs["name"], "PolicyDocument": json.loads(inputs["policy"])},
    ),
    "aws:iam/role:Role": (
        "AWS::IAM::Role",
        _document(_same("permissionsBoundary", name="RoleName", assumeRolePolicy="AssumeRolePolicyDocument"),
                  "AssumeRolePolicyDocument"),
    ),
    "aws:iam/rolePolicy:RolePolicy": (
        "AWS::IAM::RolePolicy",
        lambda inputs: {
            "RoleName": inputs["role"], "PolicyName": "inline", "PolicyDocument": json.loads(inputs["policy"]),
        },
    ),
    "aws:s3/bucket:Bucket": ("AWS::S3::Bucket", _same()),
    "aws:s3/bucketPolicy:BucketPolicy": (
        "AWS::S3::BucketPolicy", _document(_same("bucket", policy="PolicyDocument"), "PolicyDocument"),
    ),
    "aws:sqs/queue:Queue": (
        "AWS::SQS::Queue",
        _same(name="QueueName", messageRetentionSeconds="MessageRetentionPeriod",
              sqsManagedSseEnabled="SqsManagedSseEnabled"),
    ),
    "aws:sqs/queuePolicy:QueuePolicy": (
        "AWS::SQS::QueuePolicy",
        lambda inputs: {"Queues": [inputs["queueUrl"]], "PolicyDocument": json.loads(inputs["policy"])},
    ),
}  # fmt: skip  # a type a line
"""CloudFormation's type of ours, and how the inputs become its properties."""

"""A fake account with what a stack, its neighbours and its cluster leave in it."""

import functools
from collections.abc import Mapping
from typing import Any

from moto.core.responses import ActionResult

from workloads.operations.leftovers.aws import Aws
from workloads.operations.leftovers.ownership import CNI_CLUSTER_KEY, CNI_INSTANCE_KEY, Owner

ACCOUNT = "123456789012"
REGION = "us-east-1"
OWNER = Owner(project="topolab", stack="dev", region=REGION)
OWN = {"topolab:project": "topolab", "topolab:stack": "dev"}
NEIGHBOUR = {"topolab:project": "topolab", "topolab:stack": "dev-2"}
NAMESAKE = {"topolab:project": "somebody-else", "topolab:stack": "dev"}
KARPENTER = {"kubernetes.io/cluster/topolab-dev": "owned", "karpenter.sh/nodepool": "gpu-g6e8xl"}
OF_NEIGHBOUR = {"kubernetes.io/cluster/topolab-dev-2": "owned", "karpenter.sh/nodepool": "gpu-g6e8xl"}
CNI = {CNI_CLUSTER_KEY: "topolab-dev", CNI_INSTANCE_KEY: "i-0a1b2c"}
KEPT = {"topolab:kept": "by-choice"}

Tags = Mapping[str, str]


@functools.cache
def aws() -> Aws:
    """One set of clients for all tests: making them costs more than asking."""
    return Aws(region=REGION, profile=None)


def tag_list(tags: Tags) -> list[dict[str, str]]:
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def vpc(tags: Tags = OWN) -> str:
    made = _ec2().create_vpc(CidrBlock="10.0.0.0/16", TagSpecifications=_tags("vpc", tags))
    return str(made["Vpc"]["VpcId"])


def subnet(vpc_id: str, tags: Tags = OWN) -> str:
    made = _ec2().create_subnet(VpcId=vpc_id, CidrBlock="10.0.0.0/20", TagSpecifications=_tags("subnet", tags))
    return str(made["Subnet"]["SubnetId"])


def instance(subnet_id: str, tags: Tags, *, kind: str = "g6e.8xlarge") -> str:
    made = _ec2().run_instances(
        ImageId="ami-12c6146b",
        MinCount=1,
        MaxCount=1,
        InstanceType=kind,
        SubnetId=subnet_id,
        TagSpecifications=_tags("instance", tags),
    )
    return str(made["Instances"][0]["InstanceId"])


def interface(subnet_id: str, tags: Tags, *, on: str | None = None) -> str:
    made = _ec2().create_network_interface(SubnetId=subnet_id, TagSpecifications=_tags("network-interface", tags))
    name = str(made["NetworkInterface"]["NetworkInterfaceId"])
    if on:
        _ec2().attach_network_interface(NetworkInterfaceId=name, InstanceId=on, DeviceIndex=1)
    return name


def volume(tags: Tags) -> str:
    made = _ec2().create_volume(
        AvailabilityZone="us-east-1a", Size=1, TagSpecifications=_tags("volume", tags)
    )  # fmt: skip
    return str(made["VolumeId"])


def launch_template(name: str, tags: Tags) -> str:
    made = _ec2().create_launch_template(
        LaunchTemplateName=name,
        LaunchTemplateData={"ImageId": "ami-12c6146b"},
        TagSpecifications=_tags("launch-template", tags),
    )
    return str(made["LaunchTemplate"]["LaunchTemplateId"])


def security_group(name: str, vpc_id: str, tags: Tags) -> str:
    made = _ec2().create_security_group(
        GroupName=name, Description="x", VpcId=vpc_id, TagSpecifications=_tags("security-group", tags)
    )
    return str(made["GroupId"])


def instance_profile(name: str, *, path: str = "/", tags: Tags = OWN) -> None:
    iam = aws().client("iam")
    iam.create_instance_profile(InstanceProfileName=name, Path=path, Tags=tag_list(tags))
    iam.create_role(RoleName=f"{name}-role", AssumeRolePolicyDocument="{}")
    iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=f"{name}-role")


def cluster(subnet_id: str, tags: Tags = OWN) -> None:
    aws().client("eks").create_cluster(
        name="topolab-dev",
        roleArn=f"arn:aws:iam::{ACCOUNT}:role/r",
        resourcesVpcConfig={"subnetIds": [subnet_id]},
        tags=dict(tags),
    )


def bucket(name: str, tags: Tags) -> None:
    s3 = aws().client("s3")
    s3.create_bucket(Bucket=name)
    s3.put_bucket_tagging(Bucket=name, Tagging={"TagSet": tag_list(tags)})


def file_system(subnet_id: str, tags: Tags) -> str:
    made = aws().client("fsx").create_file_system(
        FileSystemType="LUSTRE", StorageCapacity=1200, SubnetIds=[subnet_id], Tags=tag_list(tags)
    )  # fmt: skip
    return str(made["FileSystem"]["FileSystemId"])


def instance_states(*names: str) -> list[str]:
    return [one["State"]["Name"] for name in names for one in _described(name)]


def interface_names() -> set[str]:
    return {one["NetworkInterfaceId"] for one in _ec2().describe_network_interfaces()["NetworkInterfaces"]}


def placement_groups(groups: list[dict[str, Any]]) -> Any:
    """What moto lacks: an answer for describe_placement_groups, by tag as EC2 filters."""
    return _described_by_tag("PlacementGroups", groups)


def capacity_reservations(reservations: list[dict[str, Any]]) -> Any:
    """The same for describe_capacity_reservations."""
    return _described_by_tag("CapacityReservations", reservations)


def _described_by_tag(items: str, things: list[dict[str, Any]]) -> Any:

    def describe(response: Any) -> ActionResult:
        wanted = {f["Name"]: f["Values"] for f in response._get_param("Filters", [])}
        found = [
            thing
            for thing in things
            if all(
                {"Key": name.removeprefix("tag:"), "Value": values[0]} in thing["Tags"]
                for name, values in wanted.items()
            )
        ]
        return ActionResult({items: found})

    return describe


def _described(name: str) -> list[dict[str, Any]]:
    reservations = _ec2().describe_instances(InstanceIds=[name])["Reservations"]
    return [one for reservation in reservations for one in reservation["Instances"]]


def _ec2() -> Any:
    return aws().client("ec2")


def _tags(kind: str, tags: Tags) -> list[dict[str, Any]]:
    return [{"ResourceType": kind, "Tags": tag_list(tags)}] if tags else []

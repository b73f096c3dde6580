"""What a destroy may find in the account and Pulumi doesn't know: made as the VPC CNI and Karpenter make it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.e2e.cloud.account import AMIS


@dataclass(frozen=True, kw_only=True)
class KarpenterNode:
    """A node that Karpenter launched, and the template that it launched it from."""

    instance_id: str
    launch_template_id: str


def leave_interface(ec2: Any, *, cluster: str, subnet_id: str, group_ids: list[str], instance_id: str) -> str:
    """An interface that the VPC CNI detached and never deleted: available, with its tags. Its id.

    Description and tags: `amazon-vpc-cni-k8s` v1.23.0, pkg/awsutils. `ec2` is a boto3 client of the fake cloud.
    """
    tags = {"cluster.k8s.amazonaws.com/name": cluster, "node.k8s.amazonaws.com/instance_id": instance_id}
    made = ec2.create_network_interface(
        SubnetId=subnet_id,
        Groups=group_ids,
        Description=f"aws-K8S-{instance_id}",
        TagSpecifications=[_tagged("network-interface", tags)],
    )
    return str(made["NetworkInterface"]["NetworkInterfaceId"])


def leave_node(
    ec2: Any,
    *,
    cluster: str,
    node_pool: str,
    subnet_id: str,
    group_ids: list[str],
    instance_profile: str,
    instance_type: str = "g6e.8xlarge",
    placement_group: str | None = None,
) -> KarpenterNode:
    """A running node of a NodePool: instance, root volume, interface and launch template, tagged as Karpenter does.

    Tags: Karpenter provider AWS v1.14.1, its controller policy demands them of every launch.
    """
    tags = {
        f"kubernetes.io/cluster/{cluster}": "owned",
        "eks:eks-cluster-name": cluster,
        "karpenter.sh/nodepool": node_pool,
        "karpenter.k8s.aws/ec2nodeclass": node_pool,
        "Name": f"{node_pool}-leftover",
    }
    profile = {"Name": instance_profile}
    template = ec2.create_launch_template(
        LaunchTemplateName=f"karpenter.k8s.aws/{cluster}-{node_pool}",
        LaunchTemplateData={"ImageId": AMIS["x86_64", "nvidia"], "IamInstanceProfile": profile},
        TagSpecifications=[_tagged("launch-template", tags)],
    )["LaunchTemplate"]["LaunchTemplateId"]
    placed = {} if placement_group is None else {"Placement": {"GroupName": placement_group}}
    instance = ec2.run_instances(
        LaunchTemplate={"LaunchTemplateId": template, "Version": "$Latest"},
        InstanceType=instance_type,
        MinCount=1,
        MaxCount=1,
        SubnetId=subnet_id,
        SecurityGroupIds=group_ids,
        IamInstanceProfile=profile,
        BlockDeviceMappings=[
            {"DeviceName": "/dev/xvda", "Ebs": {"VolumeSize": 200, "VolumeType": "gp3", "DeleteOnTermination": True}}
        ],
        TagSpecifications=[_tagged("instance", tags), _tagged("volume", tags)],
        **placed,
    )["Instances"][0]["InstanceId"]
    return KarpenterNode(instance_id=instance, launch_template_id=template)


def _tagged(kind: str, tags: Mapping[str, str]) -> dict[str, Any]:
    return {"ResourceType": kind, "Tags": [{"Key": key, "Value": value} for key, value in tags.items()]}

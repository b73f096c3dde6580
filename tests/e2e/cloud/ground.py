"""What an EKS cluster stands on, for tests of the account: a VPC, two subnets, two roles."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workloads.catalogue.versions import KUBERNETES

ACCOUNT = "arn:aws:iam::123456789012"


def trust(service: str) -> str:
    """A trust policy for a service."""
    statement = {"Effect": "Allow", "Principal": {"Service": service}, "Action": "sts:AssumeRole"}
    return json.dumps({"Version": "2012-10-17", "Statement": [statement]})


@dataclass(frozen=True)
class Ground:
    """A VPC with two subnets and roles for cluster and nodes."""

    ec2: Any
    eks: Any
    iam: Any
    vpc: str
    subnets: list[str]

    def cluster(self, **changes: Any) -> dict[str, Any]:
        return {
            "name": "lab",
            "version": KUBERNETES,
            "roleArn": f"{ACCOUNT}:role/cluster",
            "resourcesVpcConfig": {"subnetIds": self.subnets},
            "accessConfig": {"authenticationMode": "API", "bootstrapClusterCreatorAdminPermissions": True},
            **changes,
        }

    def nodes(self, **changes: Any) -> dict[str, Any]:
        return {
            "clusterName": "lab",
            "nodegroupName": "system",
            "nodeRole": f"{ACCOUNT}:role/node",
            "subnets": self.subnets,
            "instanceTypes": ["m7i.xlarge"],
            "scalingConfig": {"minSize": 2, "maxSize": 2, "desiredSize": 2},
            **changes,
        }

    def up(self) -> dict[str, Any]:
        self.eks.create_cluster(**self.cluster())
        return self.eks.describe_cluster(name="lab")["cluster"]  # type: ignore[no-any-return]

    def up_with_nodes(self) -> dict[str, Any]:
        self.up()
        self.eks.create_nodegroup(**self.nodes())
        return self.eks.describe_nodegroup(clusterName="lab", nodegroupName="system")["nodegroup"]  # type: ignore[no-any-return]


def make_ground(client: Callable[..., Any]) -> Ground:
    """Through the API."""
    ec2, eks, iam = client("ec2"), client("eks"), client("iam")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnets = [
        ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{16 * index}.0/20", AvailabilityZone=f"us-east-1{zone}")
        for index, zone in enumerate("ab")
    ]
    iam.create_role(RoleName="cluster", AssumeRolePolicyDocument=trust("eks.amazonaws.com"))
    iam.attach_role_policy(RoleName="cluster", PolicyArn="arn:aws:iam::aws:policy/AmazonEKSClusterPolicy")
    iam.create_role(RoleName="node", AssumeRolePolicyDocument=trust("ec2.amazonaws.com"))
    return Ground(ec2, eks, iam, vpc, [subnet["Subnet"]["SubnetId"] for subnet in subnets])

"""The part of the program's AWS resources that Karpenter looks at, made by hand: seconds instead of a `pulumi up`."""

import json
from dataclasses import dataclass
from typing import Any

import boto3

from workloads.catalogue.versions import KUBERNETES
from workloads.rendering.bindings import Bindings

CLUSTER = "topolab-karpenter"
ZONES = ("us-east-1a", "us-east-1b")
QUEUE = CLUSTER


@dataclass(frozen=True, kw_only=True)
class KarpenterAccount:
    """What documents are bound to."""

    subnets: dict[str, str]
    """By zone."""
    security_group: str
    instance_profile: str
    placement_group: str
    reservation: str
    """Of two g6e.8xlarge in the second zone."""

    def bindings(self, zone: str) -> Bindings:
        """For the documents of a plan whose GPU nodes stand in that zone."""
        return Bindings(
            records_uri="s3://records/karpenter",
            subnet_id=self.subnets[zone],
            security_group_id=self.security_group,
            instance_profile=self.instance_profile,
            placement_group=self.placement_group,
            tags={"topolab:stack": CLUSTER},
        )


def make_account(session: boto3.Session) -> KarpenterAccount:
    """VPC, cluster with two system nodes, identities, queue and placement group, as infra/ would make them."""
    ec2 = session.client("ec2")
    vpc = ec2.create_vpc(CidrBlock="10.0.0.0/16")["Vpc"]["VpcId"]
    subnets = {
        zone: ec2.create_subnet(VpcId=vpc, CidrBlock=f"10.0.{16 * index}.0/20", AvailabilityZone=zone)["Subnet"][
            "SubnetId"
        ]
        for index, zone in enumerate(ZONES)
    }
    group = _cluster(session, list(subnets.values()))
    ec2.create_placement_group(GroupName="gpu", Strategy="cluster")
    session.client("sqs").create_queue(QueueName=QUEUE)
    return KarpenterAccount(
        subnets=subnets,
        security_group=group,
        instance_profile=_node_profile(session),
        placement_group="gpu",
        reservation=_reservation(session, ZONES[1]),
    )


def _reservation(session: boto3.Session, zone: str) -> str:
    made = session.client("ec2").create_capacity_reservation(
        InstanceType="g6e.8xlarge",
        InstancePlatform="Linux/UNIX",
        AvailabilityZone=zone,
        InstanceCount=2,
        InstanceMatchCriteria="targeted",
    )
    return str(made["CapacityReservation"]["CapacityReservationId"])


def _cluster(session: boto3.Session, subnets: list[str]) -> str:
    """Its security group."""
    eks = session.client("eks")
    role = _role(session, "cluster", "eks.amazonaws.com", policy="AmazonEKSClusterPolicy")
    eks.create_cluster(
        name=CLUSTER,
        roleArn=role,
        version=KUBERNETES,
        resourcesVpcConfig={"subnetIds": subnets},
        accessConfig={"authenticationMode": "API"},
    )
    made = eks.describe_cluster(name=CLUSTER)["cluster"]
    eks.create_nodegroup(
        clusterName=CLUSTER,
        nodegroupName="system",
        nodeRole=_role(session, "system-node", "ec2.amazonaws.com"),
        subnets=subnets,
        instanceTypes=["m7i.xlarge"],
        scalingConfig={"minSize": 2, "desiredSize": 2, "maxSize": 2},
    )
    eks.describe_nodegroup(clusterName=CLUSTER, nodegroupName="system")
    eks.create_pod_identity_association(
        clusterName=CLUSTER,
        namespace="kube-system",
        serviceAccount="karpenter",
        roleArn=_role(session, "karpenter", "pods.eks.amazonaws.com"),
    )
    return str(made["resourcesVpcConfig"]["clusterSecurityGroupId"])


def _node_profile(session: boto3.Session) -> str:
    iam, name = session.client("iam"), "gpu-node"
    _role(session, name, "ec2.amazonaws.com")
    iam.create_instance_profile(InstanceProfileName=name)
    iam.add_role_to_instance_profile(InstanceProfileName=name, RoleName=name)
    return name


def _role(session: boto3.Session, name: str, service: str, policy: str | None = None) -> str:
    iam: Any = session.client("iam")
    trust = {
        "Version": "2012-10-17",
        "Statement": [
            {"Effect": "Allow", "Principal": {"Service": service}, "Action": ["sts:AssumeRole", "sts:TagSession"]}
        ],
    }
    made = iam.create_role(RoleName=name, AssumeRolePolicyDocument=json.dumps(trust))["Role"]["Arn"]
    if policy is not None:
        iam.attach_role_policy(RoleName=name, PolicyArn=f"arn:aws:iam::aws:policy/{policy}")
    return str(made)

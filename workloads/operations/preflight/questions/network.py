"""Counted things of the network, addresses, and the stack's file system."""

from collections.abc import Iterator

from workloads.catalogue.versions import LUSTRE_SERVER
from workloads.operations.leftovers import karpenters
from workloads.operations.leftovers.aws import tags_of
from workloads.operations.leftovers.ownership import is_of_stack
from workloads.operations.preflight.judgements import capacity, network
from workloads.operations.preflight.judgements.capacity import Quota
from workloads.operations.preflight.judgements.network import FileSystem
from workloads.operations.preflight.questions.asked import Asked
from workloads.operations.preflight.questions.capacity import quota_limit
from workloads.operations.preflight.rows import Row

VPC_QUOTA, ELASTIC_IP_QUOTA = "L-F678F1CE", "L-0263D0A3"
ADDRESSES_PER_NODE = 100
"""The CNI keeps two interfaces' worth warm, of at most 50 addresses each on these types."""


def addresses(asked: Asked) -> Iterator[Row]:
    """Free addresses of the GPU subnet, as it is or as it will be."""
    subject = asked.subject
    vpcs = list(karpenters.vpc_ids(asked.aws, subject.owner))
    inside = {"Filters": [{"Name": "vpc-id", "Values": vpcs}]}
    subnets = list(asked.aws.pages("ec2", "describe_subnets", "Subnets", inside)) if vpcs else []
    private = [
        one["AvailableIpAddressCount"]
        for one in subnets
        if one["AvailabilityZone"] == subject.zone and not one.get("MapPublicIpOnLaunch")
    ]
    # The GPU subnet is the widest of its zone: half of the VPC.
    free = max(private, default=None)
    yield network.addresses(free, subject.platform.vpc_cidr, subject.plan.nodes, ADDRESSES_PER_NODE)


def vpcs(asked: Asked) -> Iterator[Row]:
    """Whether a VPC may still be made."""
    found = list(asked.aws.pages("ec2", "describe_vpcs", "Vpcs"))
    own = any(is_of_stack(tags_of(one), asked.subject.owner) for one in found)
    quota = Quota(code=VPC_QUOTA, limit=quota_limit(asked.aws, "vpc", VPC_QUOTA), used=len(found))
    region = asked.subject.owner.region
    yield capacity.count_quota("VPCs", "VPCs", quota, needed=0 if own else 1, region=region, service="vpc")


def elastic_ips(asked: Asked) -> Iterator[Row]:
    """Whether the NAT gateway gets its address."""
    found = asked.aws.client("ec2").describe_addresses()["Addresses"]
    own = any(is_of_stack(tags_of(one), asked.subject.owner) for one in found)
    quota = Quota(code=ELASTIC_IP_QUOTA, limit=quota_limit(asked.aws, "ec2", ELASTIC_IP_QUOTA), used=len(found))
    region = asked.subject.owner.region
    yield capacity.count_quota(
        "Elastic IPs", "Elastic IPs", quota, needed=0 if own else 1, region=region, service="ec2"
    )


def file_system(asked: Asked) -> Iterator[Row]:
    """The stack's file system, where it wants one."""
    if asked.subject.platform.storage.fsx == "none":
        return
    systems = asked.aws.pages("fsx", "describe_file_systems", "FileSystems")
    own = next((one for one in systems if is_of_stack(tags_of(one), asked.subject.owner)), None)
    found = None
    if own is not None:
        (subnet,) = asked.aws.client("ec2").describe_subnets(SubnetIds=own["SubnetIds"])["Subnets"]
        version = own.get("FileSystemTypeVersion", "2.10")
        found = FileSystem(id=own["FileSystemId"], version=version, zone=subnet["AvailabilityZone"])
    yield network.file_system(found, asked.subject.zone, LUSTRE_SERVER)

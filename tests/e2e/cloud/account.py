"""The one account: moto's state of the services that it knows, and ours of those that it doesn't."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from moto.ec2.models import ec2_backends, instance_types
from moto.ec2.models.amis import Ami, AmiBackend
from moto.events.models import events_backends
from moto.iam.models import AWSManagedPolicy, iam_backends
from moto.logs.models import logs_backends
from moto.s3.models import s3_backends
from moto.sqs.models import sqs_backends
from moto.ssm.models import ssm_backends

from tests.e2e.cloud.wire import Refusal
from tests.e2e.site import ACCOUNT, REGION
from workloads.catalogue.instances import INSTANCE_TYPES
from workloads.catalogue.versions import GPU_AMI_ALIAS, KUBERNETES

EKS_AMI_OWNER = "602401143452"
FAMILIES = (*sorted({one.name.partition(".")[0] for one in INSTANCE_TYPES}), "m5", "m7i", "c7i")
"""Instance families of the account: the catalogue's, the system nodes' and two plain ones to be wrong about.
Karpenter reads them all at its start: 7.5 s with moto's 1,395 types, 0.6 s with these."""
AWS_POLICIES = (
    "AmazonEKSClusterPolicy", "AmazonEKSServicePolicy", "AmazonEKSVPCResourceController",
    "AmazonEKSWorkerNodePolicy", "AmazonEKS_CNI_Policy", "AmazonEC2ContainerRegistryPullOnly",
    "AmazonEC2ContainerRegistryReadOnly", "AmazonSSMManagedInstanceCore",
)  # fmt: skip
"""AWS's managed policies of the account. moto has all 1,500, which cost seconds at the start."""
_AMI_DATE = GPU_AMI_ALIAS.partition("@")[2]
AMIS = {
    (architecture, variant): f"ami-0{number:016x}"
    for number, (architecture, variant) in enumerate(
        [
            ("x86_64", "standard"),
            ("x86_64", "nvidia"),
            ("x86_64", "neuron"),
            ("arm64", "standard"),
            ("arm64", "nvidia"),
        ],
        start=1,
    )
}
"""AMI ids of the EKS images by architecture and variant."""

_BACKENDS: dict[str, Any] = {
    "ec2": ec2_backends,
    "events": events_backends,
    "iam": iam_backends,
    "logs": logs_backends,
    "s3": s3_backends,
    "sqs": sqs_backends,
    "ssm": ssm_backends,
}
"""moto's state by service."""

Facts = dict[str, Any]
"""A resource as the API shows it."""


@dataclass
class Cluster:
    """One EKS cluster: what the API shows, and what stands under it."""

    facts: Facts
    security_group: str
    interfaces: list[str]
    node_groups: dict[str, "NodeGroup"] = field(default_factory=dict)
    addons: dict[str, Facts] = field(default_factory=dict)
    access: dict[str, Facts] = field(default_factory=dict)
    """Access entries by principal; `policies` holds the associated ones."""
    identities: dict[str, Facts] = field(default_factory=dict)
    """Pod Identity associations by id."""


@dataclass
class NodeGroup:
    """A managed node group and its instances."""

    facts: Facts
    instances: list[str]


@dataclass
class Own:
    """State of what moto lacks or does too loosely."""

    clusters: dict[str, Cluster] = field(default_factory=dict)
    file_systems: dict[str, Facts] = field(default_factory=dict)
    capacity_reservations: dict[str, Facts] = field(default_factory=dict)
    placement_groups: dict[str, Facts] = field(default_factory=dict)
    in_group: dict[str, str] = field(default_factory=dict)
    """Placement group's name by instance."""
    nat_gateways_gone: dict[str, Facts] = field(default_factory=dict)
    managed_interfaces: dict[str, str] = field(default_factory=dict)
    """Interfaces that a service holds, and whose they are: nobody else can delete them."""
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))


class Account:
    """Everything that exists. Not for two threads at once: the server lets one call in at a time."""

    def __init__(self) -> None:
        _trim_instance_types()
        # moto makes 1,306 images, a volume and a snapshot each, whenever it begins anew: 0.3 s for none of ours.
        setattr(AmiBackend, "_load_amis", _no_images)  # noqa: B010 - its own types forbid the assignment
        self.kubeconfig: Path | None = None
        """Of the real control plane that stands behind an EKS cluster here; None without a site."""
        self.own = Own()
        self.reset()

    def reset(self) -> None:
        """A fresh account, without a default VPC."""
        for service in _BACKENDS:
            self.backend(service).reset()
        _forget_default_vpc(self.ec2)
        _offer_images(self.ec2)
        _offer_policies(self.iam)
        self.own = Own()

    def backend(self, service: str) -> Any:
        """moto's state of a service in this account."""
        return _BACKENDS[service][ACCOUNT]["aws" if service in {"iam", "s3"} else REGION]

    @property
    def ec2(self) -> Any:
        """moto's EC2."""
        return self.backend("ec2")

    @property
    def iam(self) -> Any:
        """moto's IAM."""
        return self.backend("iam")

    def new_id(self, prefix: str, digits: int = 17) -> str:
        """An id that was never given before."""
        return f"{prefix}{next(self.own.numbers) + 0x10:0{digits}x}"

    def arn(self, service: str, resource: str) -> str:
        """ARN of a regional resource."""
        return f"arn:aws:{service}:{REGION}:{ACCOUNT}:{resource}"

    def subnets(self, ids: list[str]) -> list[Any]:
        """moto's subnets of these ids; its error where one is unknown."""
        return [self.ec2.get_subnet(one) for one in ids]

    def security_group(self, group_id: str) -> Any | None:
        """moto's security group."""
        return self.ec2.get_security_group_from_id(group_id)

    def instances(self) -> list[Any]:
        """All instances that aren't terminated."""
        listed = [one for reservation in self.ec2.reservations.values() for one in reservation.instances]
        return [one for one in listed if one.state != "terminated"]

    def role(self, name: str) -> Any | None:
        """moto's role of that name."""
        return next((role for role in self.iam.roles.values() if role.name == name), None)

    def role_of_arn(self, arn: str) -> Any | None:
        """moto's role; a Refusal where the ARN is another account's."""
        if f":{ACCOUNT}:" not in arn:
            raise Refusal("AccessDeniedException", f"Cross-account pass role is not allowed: {arn}")
        return next((role for role in self.iam.roles.values() if role.arn == arn), None)

    def hold_interface(self, subnet: Any, groups: list[str], description: str, holder: str) -> str:
        """Make an interface that a service holds in a subnet; its id."""
        interface = self.ec2.create_network_interface(subnet, "", group_ids=groups, description=description)
        interface.status = "in-use"
        interface.requester_managed = True
        self.own.managed_interfaces[interface.id] = holder
        return str(interface.id)

    def release_interface(self, interface_id: str) -> None:
        """Its service gives it back."""
        self.own.managed_interfaces.pop(interface_id, None)
        if interface_id in self.ec2.enis:
            self.ec2.enis[interface_id].delete()


def tags_as_list(tags: Mapping[str, str]) -> list[dict[str, str]]:
    """The other of AWS's two spellings of tags."""
    return [{"Key": key, "Value": value} for key, value in tags.items()]


def now() -> datetime:
    """A time as moto's serializer takes it."""
    return datetime.now(UTC).replace(tzinfo=None, microsecond=0)


def _no_images(_: AmiBackend) -> None:
    """Ours are offered by `_offer_images`."""


def _trim_instance_types() -> None:
    def kept(name: str) -> bool:
        return name.partition(".")[0] in FAMILIES

    backend = instance_types.InstanceTypeBackend
    backend.instance_types = [one for one in backend.instance_types if kept(one.name)]
    for by_region in instance_types.INSTANCE_TYPE_OFFERINGS.values():
        for region, offered in by_region.items():
            by_region[region] = [one for one in offered if kept(one["InstanceType"])]


def _forget_default_vpc(ec2: Any) -> None:
    for collection in ("vpcs", "subnets", "route_tables", "network_acls", "groups", "internet_gateways"):
        getattr(ec2, collection).clear()
    ec2.tags.clear()


def _offer_images(ec2: Any) -> None:
    for collection in (ec2.amis, ec2.snapshots, ec2.volumes):
        collection.clear()
    for (architecture, variant), ami_id in AMIS.items():
        ec2.amis[ami_id] = Ami(
            ec2,
            ami_id,
            name=f"amazon-eks-node-al2023-{architecture}-{variant}-{KUBERNETES}-{_AMI_DATE}",
            owner_id=EKS_AMI_OWNER,
            owner_alias="amazon",
            public=True,
            virtualization_type="hvm",
            architecture=architecture,
            hypervisor="xen",
            root_device_type="ebs",
            root_device_name="/dev/xvda",
            creation_date=datetime.strptime(_AMI_DATE, "v%Y%m%d"),  # noqa: DTZ007 - moto's times are naive UTC
            region_name=f"{REGION}a",
        )


def _offer_policies(iam: Any) -> None:
    for name in AWS_POLICIES:
        facts = {
            "DefaultVersionId": "v1",
            "Path": "/",
            "Document": {"Version": "2012-10-17", "Statement": []},
            "CreateDate": "2015-02-06T18:00:00+00:00",
            "UpdateDate": "2015-02-06T18:00:00+00:00",
        }
        policy = AWSManagedPolicy.from_data(name, ACCOUNT, REGION, facts)
        iam.managed_policies[policy.arn] = policy

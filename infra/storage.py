"""FSx for Lustre: where checkpoints go."""

from dataclasses import dataclass
from typing import Literal

import pulumi
import pulumi_aws as aws

from infra.component import Component
from workloads.catalogue.versions import LUSTRE_SERVER
from workloads.planning.naming import KEPT
from workloads.rendering.storage import FSX_CAPACITY_GIB

THROUGHPUT_MB_PER_S_PER_TIB = 250
LUSTRE_PORTS = ((988, 988), (1018, 1023))


@dataclass(frozen=True, kw_only=True)
class StorageArgs:
    """`pool`: the GPU pool, whose nodes mount the file system. `keep`: retained at destroy."""

    kind: Literal["scratch", "persistent"]
    keep: bool
    name: str
    cluster_name: pulumi.Input[str]
    vpc_id: pulumi.Input[str]
    vpc_cidr: str
    subnet_id: pulumi.Input[str]
    security_group_id: pulumi.Input[str]
    pool: pulumi.Resource


class Storage(Component):
    """One file system in the GPU nodes' subnet, and the driver that mounts it.

    The volume is static (the job's PersistentVolume names the file system), so the driver needs no rights.
    """

    TYPE = "topolab:infra:Storage"
    file_system_id: pulumi.Output[str]
    dns_name: pulumi.Output[str]
    mount_name: pulumi.Output[str]
    driver: pulumi.Resource

    def __init__(self, name: str, args: StorageArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        group = self._kept_group(args) if args.keep else args.security_group_id
        persistent = args.kind == "persistent"
        system = aws.fsx.LustreFileSystem(
            "lustre",
            subnet_ids=args.subnet_id,
            security_group_ids=[group],
            storage_capacity=FSX_CAPACITY_GIB,
            storage_type="SSD",
            deployment_type="PERSISTENT_2" if persistent else "SCRATCH_2",
            file_system_type_version=LUSTRE_SERVER,
            per_unit_storage_throughput=THROUGHPUT_MB_PER_S_PER_TIB if persistent else None,
            # Scratch has no backups; of persistent storage nothing is left behind that nobody asked for.
            automatic_backup_retention_days=0 if persistent else None,
            tags={"Name": args.name, **(KEPT if args.keep else {})},
            opts=self.child(retain=args.keep),
        )
        self.driver = aws.eks.Addon(
            "aws-fsx-csi-driver",
            cluster_name=args.cluster_name,
            addon_name="aws-fsx-csi-driver",
            resolve_conflicts_on_create="OVERWRITE",
            resolve_conflicts_on_update="OVERWRITE",
            # Unmounting needs the driver, so it stays until the volumes are gone, and goes before the nodes.
            opts=self.child(depends_on=[args.pool]),
        )
        self.file_system_id = system.id
        self.dns_name = system.dns_name
        self.mount_name = system.mount_name
        self.register_outputs(
            {
                "file_system_id": self.file_system_id,
                "dns_name": self.dns_name,
                "mount_name": self.mount_name,
            }
        )

    def _kept_group(self, args: StorageArgs) -> pulumi.Output[str]:
        """A group of its own: EKS deletes the cluster's with the cluster, and this must outlive both.

        It names addresses, not the cluster's group: AWS deletes no group that a rule still names.
        """
        return aws.ec2.SecurityGroup(
            "lustre",
            vpc_id=args.vpc_id,
            description="Lustre from the VPC",
            ingress=[
                aws.ec2.SecurityGroupIngressArgs(
                    protocol="tcp", from_port=low, to_port=high, cidr_blocks=[args.vpc_cidr]
                )
                for low, high in LUSTRE_PORTS
            ],
            egress=[
                aws.ec2.SecurityGroupEgressArgs(protocol="-1", from_port=0, to_port=0, cidr_blocks=[args.vpc_cidr])
            ],
            tags={"Name": args.name, **KEPT},
            opts=self.child(retain=True),
        ).id

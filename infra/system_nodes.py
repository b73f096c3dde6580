"""The nodes of the cluster's own pods: controllers, name service."""

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.component import Component
from infra.node_role import NodeRole, NodeRoleArgs

INSTANCE_TYPE = "m7i.xlarge"
NODES = 2
"""Karpenter's two replicas want two hosts in two zones, or its release never becomes ready."""
DISK_GIB = 50


@dataclass(frozen=True, kw_only=True)
class SystemNodesArgs:
    """`before`: what stands on every node before its first pod. `tags`: of instances and volumes."""

    name: str
    partition: str
    boundary: str | None
    cluster_name: pulumi.Input[str]
    subnet_ids: list[pulumi.Output[str]]
    tags: dict[str, str]
    before: list[pulumi.Resource]


class SystemNodes(Component):
    """A managed node group over two zones, with a template for what EKS would leave to the account's defaults."""

    TYPE = "topolab:infra:SystemNodes"
    group: pulumi.Resource

    def __init__(self, name: str, args: SystemNodesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        role = NodeRole(
            "system-node",
            NodeRoleArgs(name=args.name, partition=args.partition, boundary=args.boundary),
            opts=self.child(),
        )
        template = self._template(args)
        self.group = aws.eks.NodeGroup(
            "system",
            cluster_name=args.cluster_name,
            node_role_arn=role.arn,
            subnet_ids=args.subnet_ids,
            instance_types=[INSTANCE_TYPE],
            ami_type="AL2023_x86_64_STANDARD",
            launch_template=aws.eks.NodeGroupLaunchTemplateArgs(
                id=template.id, version=template.latest_version.apply(str)
            ),
            scaling_config=aws.eks.NodeGroupScalingConfigArgs(min_size=NODES, desired_size=NODES, max_size=NODES),
            # Pods of the first node find network and credentials, and those of the last.
            opts=self.child(depends_on=args.before),
        )
        self.register_outputs({})

    def _template(self, args: SystemNodesArgs) -> aws.ec2.LaunchTemplate:
        """Without image and security group, so that both stay EKS's."""
        disk = aws.ec2.LaunchTemplateBlockDeviceMappingEbsArgs(
            volume_size=DISK_GIB, volume_type="gp3", encrypted="true", delete_on_termination="true"
        )
        return aws.ec2.LaunchTemplate(
            "system-node",
            name=args.name,
            update_default_version=True,
            block_device_mappings=[
                aws.ec2.LaunchTemplateBlockDeviceMappingArgs(device_name="/dev/xvda", ebs=disk),
            ],
            metadata_options=aws.ec2.LaunchTemplateMetadataOptionsArgs(
                # Two hops, as EKS's own template: controllers in pods ask for the region there.
                http_endpoint="enabled",
                http_tokens="required",
                http_put_response_hop_limit=2,
            ),
            # A node group hands its own tags to nothing that costs money.
            tag_specifications=[
                aws.ec2.LaunchTemplateTagSpecificationArgs(resource_type=kind, tags=args.tags)
                for kind in ("instance", "volume")
            ],
            opts=self.child(),
        )

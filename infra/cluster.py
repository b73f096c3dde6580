"""The EKS cluster, its system nodes, and the Kubernetes provider that everything else goes through."""

from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws
import pulumi_eks as eks
import pulumi_kubernetes as kubernetes

from infra.component import Component
from infra.node_role import NodeRole, NodeRoleArgs
from infra.placing import connect
from workloads.catalogue.versions import KUBERNETES

SYSTEM_INSTANCE_TYPE = "m7i.xlarge"
SYSTEM_NODES = 2
"""Karpenter's two replicas want two hosts in two zones, or its release never becomes ready."""


@dataclass(frozen=True, kw_only=True)
class ClusterArgs:
    """`interfaces_gone`: the guard that stands on subnets and routes. `profile`: the provider's, if any.

    `api_access_cidrs`: who may reach the public endpoint; empty: EKS's own default, 0.0.0.0/0.
    """

    name: str
    node_role_name: str
    partition: str
    vpc_id: pulumi.Input[str]
    private_subnet_ids: list[pulumi.Output[str]]
    public_subnet_ids: list[pulumi.Output[str]]
    interfaces_gone: pulumi.Resource
    profile: str | None
    api_access_cidrs: Sequence[str]


class Cluster(Component):
    """A cluster without Auto Mode, OIDC or security groups of its own: pods get AWS rights by Pod Identity.

    The security group that EKS makes carries the rule that EFA checks (all traffic to itself), so nodes and
    file system use that one.
    """

    TYPE = "topolab:infra:Cluster"
    name: pulumi.Output[str]
    security_group_id: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    provider: kubernetes.Provider
    ready: list[pulumi.Resource]
    """Nodes, name service and credentials of pods: a controller needs them from its start to its end."""

    def __init__(self, name: str, args: ClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        cluster = self._control_plane(args)
        self.name = cluster.eks_cluster.name
        self.security_group_id = cluster.cluster_security_group_id
        self.kubeconfig = pulumi.Output.secret(cluster.kubeconfig_json)
        # The agent's node part comes before any node: the first pods find it, and it leaves after the last.
        agent = self._addon("eks-pod-identity-agent", [cluster])
        nodes = self._system_nodes(args, [agent])
        # CoreDNS is a Deployment: it is healthy only where a node can take it.
        dns = self._addon("coredns", [nodes])
        self.ready = [nodes, dns, agent]
        self.provider = connect(self.child(), kubeconfig=self.kubeconfig)
        self.register_outputs(
            {"name": self.name, "security_group_id": self.security_group_id, "kubeconfig": self.kubeconfig}
        )

    def _control_plane(self, args: ClusterArgs) -> eks.Cluster:
        return eks.Cluster(
            "eks",
            name=args.name,
            version=KUBERNETES,
            vpc_id=args.vpc_id,
            private_subnet_ids=args.private_subnet_ids,
            public_subnet_ids=args.public_subnet_ids,
            authentication_mode=eks.AuthenticationMode.API,
            # Stated, because the component waits for a healthy API server only where it is.
            endpoint_public_access=True,
            endpoint_private_access=True,
            # Nodes take the private endpoint; whoever runs `pulumi up` must be among these.
            public_access_cidrs=list(args.api_access_cidrs) or None,
            skip_default_node_group=True,
            skip_default_security_groups=True,
            create_oidc_provider=False,
            # Ours comes after the nodes that it needs.
            coredns_addon_options=eks.CoreDnsAddonOptionsArgs(enabled=False),
            provider_credential_opts=None
            if args.profile is None
            else eks.KubeconfigOptionsArgs(profile_name=args.profile),
            # Nodes and controllers talk to AWS through NAT until the cluster is gone; then the guard looks for
            # interfaces that its pods left in the subnets.
            opts=self.child(depends_on=[args.interfaces_gone]),
        )

    def _system_nodes(self, args: ClusterArgs, agent: list[pulumi.Resource]) -> aws.eks.NodeGroup:
        role = NodeRole(
            "system-node",
            NodeRoleArgs(name=args.node_role_name, partition=args.partition),
            opts=self.child(),
        )
        return aws.eks.NodeGroup(
            "system",
            cluster_name=self.name,
            node_role_arn=role.arn,
            subnet_ids=args.private_subnet_ids,
            instance_types=[SYSTEM_INSTANCE_TYPE],
            ami_type="AL2023_x86_64_STANDARD",
            disk_size=50,
            scaling_config=aws.eks.NodeGroupScalingConfigArgs(
                min_size=SYSTEM_NODES, desired_size=SYSTEM_NODES, max_size=SYSTEM_NODES
            ),
            # Pods of the first node find the agent, and those of the last.
            opts=self.child(depends_on=agent),
        )

    def _addon(self, addon: str, after: list[pulumi.Resource]) -> aws.eks.Addon:
        return aws.eks.Addon(
            addon,
            cluster_name=self.name,
            addon_name=addon,
            resolve_conflicts_on_create="OVERWRITE",
            resolve_conflicts_on_update="OVERWRITE",
            # Each says where it is made what it waits for.
            opts=self.child(depends_on=after),
        )

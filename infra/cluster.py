"""The cluster as a whole: control plane, system nodes, and the Kubernetes provider that all else goes through."""

from dataclasses import dataclass

import pulumi
import pulumi_aws as aws
import pulumi_kubernetes as kubernetes

from infra.component import Component
from infra.control_plane import ControlPlane, ControlPlaneArgs
from infra.placing import connect
from infra.system_nodes import SystemNodes, SystemNodesArgs

BEFORE_NODES = ("vpc-cni", "kube-proxy", "eks-pod-identity-agent")
"""DaemonSets: healthy without a node. EKS installs the first two by itself, and the add-ons take them over."""


@dataclass(frozen=True, kw_only=True)
class ClusterArgs:
    """`node_tags`: of the system nodes' instances and volumes."""

    control_plane: ControlPlaneArgs
    node_role_name: str
    node_tags: dict[str, str]


class Cluster(Component):
    """Ready for controllers: nodes, name service and credentials of pods are there."""

    TYPE = "topolab:infra:Cluster"
    name: pulumi.Output[str]
    security_group_id: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    provider: kubernetes.Provider
    ready: list[pulumi.Resource]
    """Nodes, name service and credentials of pods: a controller needs them from its start to its end."""

    def __init__(self, name: str, args: ClusterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        plane = ControlPlane("control-plane", args.control_plane, opts=self.child())
        self.name, self.security_group_id, self.kubeconfig = plane.name, plane.security_group_id, plane.kubeconfig
        # Their parts on nodes come before any node: the first pods find them, and they leave after the last.
        before: list[pulumi.Resource] = [self._addon(addon, [plane.cluster]) for addon in BEFORE_NODES]
        nodes = self._system_nodes(args, before)
        # CoreDNS is a Deployment: it is healthy only where a node can take it.
        dns = self._addon("coredns", [nodes])
        self.ready = [nodes, dns, *before]
        # An admin who destroys the stack goes through a door until nothing is left inside.
        self.provider = connect(self.child(depends_on=plane.doors), kubeconfig=self.kubeconfig)
        self.register_outputs(
            {"name": self.name, "security_group_id": self.security_group_id, "kubeconfig": self.kubeconfig}
        )

    def _system_nodes(self, args: ClusterArgs, before: list[pulumi.Resource]) -> pulumi.Resource:
        plane = args.control_plane
        nodes = SystemNodesArgs(
            name=args.node_role_name,
            partition=plane.partition,
            boundary=plane.boundary,
            cluster_name=self.name,
            subnet_ids=plane.private_subnet_ids,
            tags=args.node_tags,
            before=before,
        )
        return SystemNodes("system-nodes", nodes, opts=self.child()).group

    def _addon(self, addon: str, after: list[pulumi.Resource]) -> aws.eks.Addon:
        # No version: EKS takes its default for the cluster's Kubernetes once, and it stays. One of ours would stop
        # the `pulumi up` of the day on which EKS retires it.
        return aws.eks.Addon(
            addon,
            cluster_name=self.name,
            addon_name=addon,
            resolve_conflicts_on_create="OVERWRITE",
            resolve_conflicts_on_update="OVERWRITE",
            # Each says where it is made what it waits for.
            opts=self.child(depends_on=after),
        )

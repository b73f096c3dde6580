"""Karpenter: who it is, what it may do, what its nodes are, and its two charts."""

import json
from dataclasses import dataclass
from pathlib import Path

import pulumi
import pulumi_aws as aws

from infra.account import Account
from infra.charts import Release, install
from infra.component import Component
from infra.iam import POD_IDENTITY_TRUST
from infra.interruptions import INTERRUPTION_EVENTS, Interruptions, InterruptionsArgs
from infra.karpenter_policies import Scope, controller_policies
from infra.node_role import NodeRole, NodeRoleArgs
from workloads.catalogue.versions import KARPENTER, KARPENTER_CRDS
from workloads.planning.naming import Names

NAMESPACE = "kube-system"
SERVICE_ACCOUNT = "karpenter"


@dataclass(frozen=True, kw_only=True)
class KarpenterArgs:
    """`ready`: nodes, name service and Pod Identity agent. `charts`: a folder, or None for registries.

    `boundary`: ARN of the permissions boundary of every role, if any.
    """

    names: Names
    account: Account
    region: str
    boundary: str | None
    cluster_name: pulumi.Input[str]
    ready: list[pulumi.Resource]
    charts: Path | None


class Karpenter(Component):
    """The controller; GPU pools are another component's, so that they go before it."""

    TYPE = "topolab:infra:Karpenter"
    node_role_name: pulumi.Output[str]
    controller: pulumi.Resource
    """Alive until every node class and pool is gone, or their finalizers never clear."""

    def __init__(self, name: str, args: KarpenterArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        self._args = args
        self._scope = Scope(
            partition=args.account.partition,
            region=args.region,
            account=args.account.id,
            cluster=args.names.base,
            node_role=args.names.of("gpu-node"),
            queue=args.names.base,
        )
        self.node_role_name, entry = self._node_identity()
        rights = self._controller_identity()
        queue = Interruptions(
            "interruptions",
            InterruptionsArgs(
                name=self._scope.queue,
                queue_arn=self._scope.arn("sqs", self._scope.queue),
                rule_names={event: args.names.of(f"on-{event}") for event in INTERRUPTION_EVENTS},
            ),
            opts=self.child(),
        )
        crds = install(
            self,
            Release(name="karpenter-crd", chart=KARPENTER_CRDS, namespace=NAMESPACE, values={}),
            folder=args.charts,
            # Custom resources could be deleted on a cluster without nodes, but nobody would drain them.
            depends_on=args.ready,
        )
        self.controller = install(
            self,
            Release(
                name="karpenter",
                chart=KARPENTER,
                namespace=NAMESPACE,
                values=_values(args.cluster_name, queue.queue_name, args.region),
                # Helm never upgrades the CRDs inside a chart; they have their own release.
                skip_crds=True,
            ),
            folder=args.charts,
            # Pods get credentials when they are admitted, so the rights come first; and the controller needs
            # them, its queue, its nodes' entry and its CRDs for as long as it drains.
            depends_on=[*args.ready, *rights, entry, queue, crds],
        )
        self.register_outputs({"node_role_name": self.node_role_name})

    def _node_identity(self) -> tuple[pulumi.Output[str], pulumi.Resource]:
        scope = self._scope
        args = NodeRoleArgs(name=scope.node_role, partition=scope.partition, boundary=self._args.boundary)
        role = NodeRole("gpu-node", args, opts=self.child())
        # EKS makes this entry for managed node groups only; without it a node never joins.
        entry = aws.eks.AccessEntry(
            "gpu-node",
            cluster_name=self._args.cluster_name,
            principal_arn=role.arn,
            type="EC2_LINUX",
            opts=self.child(),
        )
        return role.name, entry

    def _controller_identity(self) -> list[pulumi.Resource]:
        names, scope = self._args.names, self._scope
        role = aws.iam.Role(
            "controller",
            name=names.of("karpenter"),
            assume_role_policy=json.dumps(POD_IDENTITY_TRUST),
            permissions_boundary=self._args.boundary,
            opts=self.child(),
        )
        association = aws.eks.PodIdentityAssociation(
            "controller",
            cluster_name=self._args.cluster_name,
            namespace=NAMESPACE,
            service_account=SERVICE_ACCOUNT,
            role_arn=role.arn,
            opts=self.child(),
        )
        return [association, *(self._right(role, *item) for item in controller_policies(scope).items())]

    def _right(self, role: aws.iam.Role, part: str, document: dict[str, object]) -> pulumi.Resource:
        granted = aws.iam.Policy(
            part,
            name=self._args.names.of(part),
            policy=json.dumps(document),
            opts=self.child(),
        )
        return aws.iam.RolePolicyAttachment(part, role=role.name, policy_arn=granted.arn, opts=self.child())


def _values(cluster_name: pulumi.Input[str], queue_name: pulumi.Input[str], region: str) -> dict[str, object]:
    return {
        "settings": {"clusterName": cluster_name, "interruptionQueue": queue_name},
        "serviceAccount": {"name": SERVICE_ACCOUNT},
        # Two replicas beside CoreDNS and Trainer on two nodes of 4 vCPUs.
        "controller": {
            "resources": {"requests": {"cpu": "500m", "memory": "1Gi"}, "limits": {"memory": "1Gi"}},
            # Else it asks its node's metadata, which a pod may be too many hops away from.
            "env": [{"name": "AWS_REGION", "value": region}],
        },
    }

"""The GPU pool of one instance type: what Karpenter may launch, and where."""

from dataclasses import dataclass, replace

import pulumi
import pulumi_aws as aws

from infra.component import Component
from infra.placing import of_kinds, place
from infra.teardown import TIMEOUT, Home, NodesDrained
from workloads.planning.plan import Plan
from workloads.rendering.bindings import Bindings
from workloads.rendering.manifests import platform_documents

DRAIN = "40m"
"""A pool is gone when its instances are: 30 minutes of grace for a pod, and the time EC2 takes to stop."""


@dataclass(frozen=True, kw_only=True)
class GpuNodesArgs:
    """`bindings` without instance profile and placement group, which are made here.

    `home` and `kubeconfig`: where the drain guard looks at destroy.
    """

    plan: Plan
    name: str
    bindings: Bindings
    node_role_name: pulumi.Input[str]
    controller: pulumi.Resource
    home: Home
    kubeconfig: pulumi.Input[str]


class GpuNodes(Component):
    """Instance profile, placement group (`pg` topologies only), drain guard, EC2NodeClass and NodePool."""

    TYPE = "topolab:infra:GpuNodes"
    pool: pulumi.Resource

    def __init__(self, name: str, args: GpuNodesArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        # Whoever drains the nodes outlives whatever the nodes hold.
        before_controller = self.child(depends_on=[args.controller])
        # A profile of ours, not Karpenter's: nothing to leak, nothing for its finalizer to delete.
        profile = aws.iam.InstanceProfile("gpu-node", name=args.name, role=args.node_role_name, opts=before_controller)
        bindings = replace(args.bindings, instance_profile=profile.name)
        held: list[pulumi.Resource] = [profile]
        if "pg" in args.plan.topology.variants:
            group = aws.ec2.PlacementGroup("gpu-node", name=args.name, strategy="cluster", opts=before_controller)
            bindings = replace(bindings, placement_group=group.name)
            held.append(group)
        drained = NodesDrained(
            "nodes-drained",
            args.home,
            args.kubeconfig,
            # It waits for the controller to drain, and EC2 deletes no placement group that has an instance.
            self.child(depends_on=[args.controller, *held], delete_timeout=TIMEOUT),
        )
        documents = platform_documents(args.plan, bindings)
        (node_class,) = of_kinds(documents, "EC2NodeClass")
        (node_pool,) = of_kinds(documents, "NodePool")
        chosen = place(
            "node-class",
            node_class,
            # Its finalizer clears through the controller alone; what both leave behind is the guard's.
            self.child(depends_on=[drained], delete_timeout=DRAIN),
        )
        self.pool = place(
            "node-pool",
            node_pool,
            # The pool names its class in plain text; nodes end before the class that they were made from.
            self.child(depends_on=[chosen], delete_timeout=DRAIN),
        )
        self.register_outputs({})

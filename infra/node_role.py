"""The role of an EC2 node."""

import json
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws

from infra.component import Component
from infra.iam import EC2_TRUST

NODE_POLICIES = (
    "AmazonEKSWorkerNodePolicy",
    "AmazonEKS_CNI_Policy",
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonSSMManagedInstanceCore",
)


@dataclass(frozen=True, kw_only=True)
class NodeRoleArgs:
    """`name`: of the role, at most 64 characters. `boundary`: ARN of its permissions boundary, if any."""

    name: str
    partition: str
    boundary: str | None


class NodeRole(Component):
    """A role that EC2 may take, with what EKS and its CNI need and nothing of ours."""

    TYPE = "topolab:infra:NodeRole"
    arn: pulumi.Output[str]
    name: pulumi.Output[str]
    """Both wait until the role has its policies: a node that starts before can't join."""

    def __init__(self, name: str, args: NodeRoleArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        role = aws.iam.Role(
            f"{name}-role",
            name=args.name,
            assume_role_policy=json.dumps(EC2_TRUST),
            permissions_boundary=args.boundary,
            opts=self.child(),
        )
        attachments = [
            aws.iam.RolePolicyAttachment(
                f"{name}-{policy.lower().replace('_', '-')}",
                role=role.name,
                policy_arn=f"arn:{args.partition}:iam::aws:policy/{policy}",
                opts=self.child(),
            )
            for policy in NODE_POLICIES
        ]
        ready = pulumi.Output.all(*(attachment.id for attachment in attachments))
        self.arn = pulumi.Output.all(role.arn, ready).apply(lambda known: str(known[0]))
        self.name = pulumi.Output.all(role.name, ready).apply(lambda known: str(known[0]))
        self.register_outputs({"arn": self.arn, "name": self.name})

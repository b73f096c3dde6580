"""What Karpenter's controller may do: pure documents, split as upstream splits them.

Statements and Sids follow the getting-started template of Karpenter provider AWS v1.14.1. Five policies
because one would pass IAM's 6,144 characters for a managed policy.
"""

from dataclasses import dataclass

from infra.iam import Policy, Statement, allow, policy

_LAUNCHED = ("fleet", "instance", "volume", "network-interface", "launch-template", "spot-instances-request")
"""What a launch makes; Karpenter tags each at creation, so that only its own can be touched later."""


@dataclass(frozen=True, kw_only=True)
class Scope:
    """The one cluster that a policy speaks of."""

    partition: str
    region: str
    account: str
    cluster: str
    node_role: str
    """Name of the role that nodes get."""
    queue: str
    """Name of the interruption queue."""

    def arn(self, service: str, resource: str) -> str:
        """ARN of a resource of this account and region."""
        return f"arn:{self.partition}:{service}:{self.region}:{self.account}:{resource}"

    def iam_arn(self, resource: str) -> str:
        """ARN of an IAM resource of this account; IAM has no region."""
        return f"arn:{self.partition}:iam::{self.account}:{resource}"

    def ec2(self, *kinds: str, account: str = "*") -> list[str]:
        """ARNs of every EC2 resource of these kinds; AMIs and snapshots have no account in theirs."""
        return [f"arn:{self.partition}:ec2:{self.region}:{account}:{kind}/*" for kind in kinds]


def controller_policies(scope: Scope) -> dict[str, Policy]:
    """Policy documents by the part of a name that tells them apart."""
    return {
        "node-lifecycle": policy(*_node_lifecycle(scope)),
        "iam-integration": policy(*_iam_integration(scope)),
        "eks-integration": policy(
            allow("AllowAPIServerEndpointDiscovery", ["eks:DescribeCluster"],
                  [scope.arn("eks", f"cluster/{scope.cluster}")]),
        ),
        "interruption": policy(
            allow("AllowInterruptionQueueActions",
                  ["sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"],
                  [scope.arn("sqs", scope.queue)]),
        ),
        "resource-discovery": policy(*_resource_discovery(scope)),
    }  # fmt: skip  # a statement a block


def _node_lifecycle(scope: Scope) -> list[Statement]:
    launch = ["ec2:RunInstances", "ec2:CreateFleet"]
    owned = _tags("Resource", scope)
    requested = _tags("Request", scope)
    equals = {**requested["StringEquals"], "aws:RequestTag/eks:eks-cluster-name": scope.cluster}
    named = {**requested, "StringEquals": equals}
    created = {
        **requested,
        "StringEquals": {
            **equals,
            "ec2:CreateAction": ["RunInstances", "CreateFleet", "CreateLaunchTemplate"],
        },
    }
    later = {
        **owned,
        "StringEqualsIfExists": {"aws:RequestTag/eks:eks-cluster-name": scope.cluster},
        "ForAllValues:StringEquals": {"aws:TagKeys": ["eks:eks-cluster-name", "karpenter.sh/nodeclaim", "Name"]},
    }
    return [
        allow("AllowScopedEC2InstanceAccessActions", launch, [
            *scope.ec2("image", "snapshot", account=""),
            *scope.ec2("security-group", "subnet", "capacity-reservation", "placement-group"),
        ]),
        allow("AllowScopedEC2LaunchTemplateAccessActions", launch, scope.ec2("launch-template"), owned),
        allow("AllowScopedEC2InstanceActionsWithTags", [*launch, "ec2:CreateLaunchTemplate"],
              scope.ec2(*_LAUNCHED), named),
        allow("AllowScopedResourceCreationTagging", ["ec2:CreateTags"], scope.ec2(*_LAUNCHED), created),
        allow("AllowScopedResourceTagging", ["ec2:CreateTags"], scope.ec2("instance"), later),
        allow("AllowScopedDeletion", ["ec2:TerminateInstances", "ec2:DeleteLaunchTemplate"],
              scope.ec2("instance", "launch-template"), owned),
    ]  # fmt: skip


def _tags(side: str, scope: Scope) -> dict[str, dict[str, object]]:
    return {
        "StringEquals": {f"aws:{side}Tag/kubernetes.io/cluster/{scope.cluster}": "owned"},
        "StringLike": {f"aws:{side}Tag/karpenter.sh/nodepool": "*"},
    }


def _iam_integration(scope: Scope) -> list[Statement]:
    profiles = [scope.iam_arn("instance-profile/*")]
    owned, requested = _profile_tags("Resource", scope), _profile_tags("Request", scope)
    requested["StringEquals"]["aws:RequestTag/eks:eks-cluster-name"] = scope.cluster
    both = {operator: owned[operator] | requested[operator] for operator in owned}
    return [
        allow("AllowPassingInstanceRole", ["iam:PassRole"], [scope.iam_arn(f"role/{scope.node_role}")],
              {"StringEquals": {"iam:PassedToService": ["ec2.amazonaws.com", "ec2.amazonaws.com.cn"]}}),
        allow("AllowScopedInstanceProfileCreationActions",
              ["iam:CreateInstanceProfile"], profiles, requested),
        allow("AllowScopedInstanceProfileTagActions", ["iam:TagInstanceProfile"], profiles, both),
        allow("AllowScopedInstanceProfileActions", [
            "iam:AddRoleToInstanceProfile", "iam:RemoveRoleFromInstanceProfile", "iam:DeleteInstanceProfile",
        ], profiles, owned),
    ]  # fmt: skip


def _profile_tags(side: str, scope: Scope) -> dict[str, dict[str, object]]:
    return {
        "StringEquals": {
            f"aws:{side}Tag/kubernetes.io/cluster/{scope.cluster}": "owned",
            f"aws:{side}Tag/topology.kubernetes.io/region": scope.region,
        },
        "StringLike": {f"aws:{side}Tag/karpenter.k8s.aws/ec2nodeclass": "*"},
    }


def _resource_discovery(scope: Scope) -> list[Statement]:
    described = (
        "CapacityReservations", "Images", "Instances", "InstanceStatus", "InstanceTypeOfferings",
        "InstanceTypes", "LaunchTemplates", "PlacementGroups", "SecurityGroups", "SpotPriceHistory",
        "Subnets",
    )  # fmt: skip
    return [
        # EC2's Describe calls, the price list and ListInstanceProfiles take no resource but `*`.
        allow("AllowRegionalReadActions", [f"ec2:Describe{what}" for what in described], ["*"],
              {"StringEquals": {"aws:RequestedRegion": scope.region}}),
        allow("AllowSSMReadActions", ["ssm:GetParameter"],
              [f"arn:{scope.partition}:ssm:{scope.region}::parameter/aws/service/*"]),
        allow("AllowPricingReadActions", ["pricing:GetProducts"], ["*"]),
        # Without this an EC2NodeClass's finalizer never clears and `pulumi destroy` hangs.
        allow("AllowUnscopedInstanceProfileListAction", ["iam:ListInstanceProfiles"], ["*"]),
        allow("AllowInstanceProfileReadActions",
              ["iam:GetInstanceProfile"], [scope.iam_arn("instance-profile/*")]),
    ]  # fmt: skip

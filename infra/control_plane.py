"""The EKS cluster itself: its role, its log, and who may reach its API server."""

import json
from collections.abc import Sequence
from dataclasses import dataclass

import pulumi
import pulumi_aws as aws
import pulumi_eks as eks

from infra.component import Component
from infra.iam import CONTROL_PLANE_TRUST
from workloads.catalogue.versions import KUBERNETES

LOGGED = ("api", "audit", "authenticator")
"""Who came in, what they did, and what the server said; schedulers and controllers speak by events."""
LOG_DAYS = 14
ADMIN_POLICY = "AmazonEKSClusterAdminPolicy"


@dataclass(frozen=True, kw_only=True)
class Access:
    """Who reaches the API server.

    `private`: from inside the VPC alone. `cidrs`: who else may; empty: EKS's own default, 0.0.0.0/0. `admins`: ARNs
    of roles and users beside the one that makes the cluster, whom EKS lets in by itself.
    """

    private: bool
    cidrs: Sequence[str]
    admins: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class ControlPlaneArgs:
    """`interfaces_gone`: the guard that stands on subnets and routes. `profile`: the provider's, if any.

    `boundary`: ARN of the permissions boundary of every role, if any.
    """

    name: str
    role_name: str
    partition: str
    boundary: str | None
    vpc_id: pulumi.Input[str]
    private_subnet_ids: list[pulumi.Output[str]]
    public_subnet_ids: list[pulumi.Output[str]]
    interfaces_gone: pulumi.Resource
    profile: str | None
    access: Access


def control_plane_log(cluster: str, opts: pulumi.ResourceOptions) -> aws.cloudwatch.LogGroup:
    """The group under EKS's own name for it: made here, its memory has an end and it bears the stack's tags."""
    name = f"/aws/eks/{cluster}/cluster"
    return aws.cloudwatch.LogGroup("control-plane", name=name, retention_in_days=LOG_DAYS, opts=opts)


class ControlPlane(Component):
    """A cluster without Auto Mode, OIDC or security groups of its own: pods get AWS rights by Pod Identity.

    The security group that EKS makes carries the rule that EFA checks (all traffic to itself), so nodes and
    file system use that one.
    """

    TYPE = "topolab:infra:ControlPlane"
    cluster: eks.Cluster
    name: pulumi.Output[str]
    security_group_id: pulumi.Output[str]
    kubeconfig: pulumi.Output[str]
    doors: list[pulumi.Resource]
    """Entries of admins: whoever of them destroys the stack is let in until nothing is left inside."""

    def __init__(self, name: str, args: ControlPlaneArgs, opts: pulumi.ResourceOptions | None = None) -> None:
        super().__init__(name, opts)
        self.cluster = self._cluster(args, *self._role(args))
        self.name = self.cluster.eks_cluster.name
        self.security_group_id = self.cluster.cluster_security_group_id
        self.kubeconfig = pulumi.Output.secret(self.cluster.kubeconfig_json)
        self.doors = [self._admin(principal, args.partition) for principal in args.access.admins]
        self.register_outputs(
            {"name": self.name, "security_group_id": self.security_group_id, "kubeconfig": self.kubeconfig}
        )

    def _role(self, args: ControlPlaneArgs) -> tuple[aws.iam.Role, pulumi.Resource]:
        # The component would make one too, without a boundary and under a name of chance.
        role = aws.iam.Role(
            "control-plane",
            name=args.role_name,
            assume_role_policy=json.dumps(CONTROL_PLANE_TRUST),
            permissions_boundary=args.boundary,
            opts=self.child(),
        )
        granted = aws.iam.RolePolicyAttachment(
            "control-plane",
            role=role.name,
            policy_arn=f"arn:{args.partition}:iam::aws:policy/AmazonEKSClusterPolicy",
            opts=self.child(),
        )
        return role, granted

    def _cluster(self, args: ControlPlaneArgs, role: aws.iam.Role, granted: pulumi.Resource) -> eks.Cluster:
        return eks.Cluster(
            "eks",
            name=args.name,
            version=KUBERNETES,
            vpc_id=args.vpc_id,
            private_subnet_ids=args.private_subnet_ids,
            public_subnet_ids=args.public_subnet_ids,
            service_role=role,
            authentication_mode=eks.AuthenticationMode.API,
            # Stated, because the component waits for a healthy API server only where it is. Nodes take the
            # private endpoint; whoever runs `pulumi up` must be among those that the public one lets in.
            endpoint_public_access=not args.access.private,
            endpoint_private_access=True,
            public_access_cidrs=list(args.access.cidrs) or None,
            enabled_cluster_log_types=list(LOGGED),
            skip_default_node_group=True,
            skip_default_security_groups=True,
            create_oidc_provider=False,
            # Add-ons are ours: the component asks for the newest version at each `pulumi up`, in mid-run too.
            use_default_vpc_cni=True,
            kube_proxy_addon_options=eks.KubeProxyAddonOptionsArgs(enabled=False),
            coredns_addon_options=eks.CoreDnsAddonOptionsArgs(enabled=False),
            provider_credential_opts=None
            if args.profile is None
            else eks.KubeconfigOptionsArgs(profile_name=args.profile),
            # Nodes and controllers talk to AWS through NAT until the cluster is gone; then the guard looks for
            # interfaces that its pods left in the subnets. The role works until the cluster is gone, too.
            opts=self.child(depends_on=[args.interfaces_gone, granted]),
        )

    def _admin(self, principal: str, partition: str) -> pulumi.Resource:
        name = f"admin-{principal.split(':', 5)[5].replace('/', '-')}"
        entry = aws.eks.AccessEntry(name, cluster_name=self.name, principal_arn=principal, opts=self.child())
        return aws.eks.AccessPolicyAssociation(
            name,
            cluster_name=self.name,
            principal_arn=entry.principal_arn,
            policy_arn=f"arn:{partition}:eks::aws:cluster-access-policy/{ADMIN_POLICY}",
            access_scope=aws.eks.AccessPolicyAssociationAccessScopeArgs(type="cluster"),
            opts=self.child(),
        )

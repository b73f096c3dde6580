"""The stand-in for pulumi-eks: the remote component eks:index:Cluster, out of children of the aws provider.

What it makes and refuses follows pulumi-eks 4.4.0 (nodejs/eks/cluster/cluster.ts, authenticationMode.ts,
addons/cni-addon.ts, servicerole.ts), for the arguments in eks_arguments; others are refused by name. It differs: the
kubeconfig is the site's, there is no kubernetes provider inside (nothing of ours goes through it), and the AWS
CLI isn't asked for.

On `pulumi.provider.Provider`: the experimental module can't construct with unknown inputs (pulumi 3.272).
"""

import hashlib
import importlib.metadata
import json
import sys
from collections.abc import Mapping
from typing import Any

import pulumi
import pulumi_aws as aws
from pulumi.provider import CallResult, ConstructResult, Provider, main

from tests.e2e.providers.eks_arguments import fault_of
from tests.e2e.providers.eks_kubeconfig import kubeconfig_json, server_of, wait_for_health
from tests.e2e.providers.serving import end_with_engine
from tests.e2e.site import Site

TYPE = "eks:index:Cluster"
_CNI = {
    "env": {
        "WARM_ENI_TARGET": "1",
        "AWS_VPC_K8S_CNI_LOGLEVEL": "DEBUG",
        "AWS_VPC_K8S_CNI_LOG_FILE": "/host/var/log/aws-routed-eni/ipamd.log",
        "AWS_VPC_K8S_CNI_VETHPREFIX": "eni",
        "AWS_VPC_ENI_MTU": "9001",
        "AWS_VPC_K8S_PLUGIN_LOG_LEVEL": "DEBUG",
        "AWS_VPC_K8S_PLUGIN_LOG_FILE": "/var/log/aws-routed-eni/plugin.log",
        "ENABLE_POD_ENI": "false",
        "AWS_VPC_K8S_CNI_CUSTOM_NETWORK_CFG": "false",
        "AWS_VPC_K8S_CNI_EXTERNALSNAT": "false",
    },
    "init": {"env": {"DISABLE_TCP_EARLY_DEMUX": "false"}},
}


class Cluster(pulumi.ComponentResource):
    """The cluster, its role, its two add-ons and its access entries."""

    def __init__(self, name: str, arguments: Mapping[str, Any], site: Site, opts: pulumi.ResourceOptions) -> None:
        super().__init__(TYPE, name, {}, opts)
        self._name, self._arguments, self._site = name, arguments, site
        given = arguments.get("serviceRole")
        role, attachment = self._role() if given is None else (given, given)
        self.cluster = self._cluster(role, attachment)
        entries = self._access_entries()
        if (arguments.get("kubeProxyAddonOptions") or {}).get("enabled") is not False:
            self._addon("kube-proxy", self._child())
        if not arguments.get("useDefaultVpcCni"):
            self._cni(entries)
        self.outputs = self._outputs(role)
        self.register_outputs(self.outputs)

    def _child(self, **options: Any) -> pulumi.ResourceOptions:
        return pulumi.ResourceOptions(parent=self, **options)

    def _role(self) -> tuple[aws.iam.Role, aws.iam.RolePolicyAttachment]:
        name = f"{self._name}-eksRole"
        parent = _Grouping("eks:index:ServiceRole", name, self)
        inside = pulumi.ResourceOptions(parent=parent)
        trust = {
            "Version": "2012-10-17",
            "Statement": [
                {
                    "Action": ["sts:AssumeRole", "sts:TagSession"],
                    "Effect": "Allow",
                    "Principal": {"Service": ["eks.amazonaws.com"]},
                }
            ],
        }
        role = aws.iam.Role(
            f"{name}-role",
            description="Allows EKS to manage clusters on your behalf.",
            assume_role_policy=json.dumps(trust),
            tags=self._arguments.get("tags"),
            opts=inside,
        )
        policy = "arn:aws:iam::aws:policy/AmazonEKSClusterPolicy"
        digest = hashlib.sha1(policy.encode(), usedforsecurity=False).hexdigest()[:8]
        attachment = aws.iam.RolePolicyAttachment(f"{name}-{digest}", policy_arn=policy, role=role.name, opts=inside)
        return role, attachment

    def _cluster(self, role: aws.iam.Role, attachment: pulumi.Resource) -> aws.eks.Cluster:
        given = self._arguments
        config = {
            "subnet_ids": _subnets(given),
            "endpoint_private_access": given.get("endpointPrivateAccess"),
            "endpoint_public_access": given.get("endpointPublicAccess"),
            "public_access_cidrs": given.get("publicAccessCidrs"),
        }
        tags = pulumi.Output.all(given.get("clusterTags"), given.get("tags")).apply(
            lambda both: {"Name": f"{self._name}-eksCluster", **(both[0] or {}), **(both[1] or {})}
        )
        return aws.eks.Cluster(
            f"{self._name}-eksCluster",
            name=given.get("name"),
            role_arn=role.arn,
            bootstrap_self_managed_addons=True,
            vpc_config=aws.eks.ClusterVpcConfigArgs(
                **{name: value for name, value in config.items() if value is not None}
            ),
            version=given.get("version"),
            enabled_cluster_log_types=given.get("enabledClusterLogTypes"),
            tags=tags,
            access_config=aws.eks.ClusterAccessConfigArgs(
                authentication_mode=given["authenticationMode"],
                # The identity that deploys is admin: charts go through it.
                bootstrap_cluster_creator_admin_permissions=True,
            ),
            opts=self._child(
                depends_on=[role, attachment],
                ignore_changes=["accessConfig.bootstrapClusterCreatorAdminPermissions", "bootstrapSelfManagedAddons"],
            ),
        )

    def _access_entries(self) -> list[pulumi.Resource]:
        made: list[pulumi.Resource] = []
        for key, entry in (self._arguments.get("accessEntries") or {}).items():
            name = f"{self._name}-{key}"
            one = aws.eks.AccessEntry(
                name,
                cluster_name=self.cluster.name,
                principal_arn=entry["principalArn"],
                kubernetes_groups=entry.get("kubernetesGroups"),
                type=entry.get("type"),
                user_name=entry.get("username"),
                tags=entry.get("tags"),
                opts=self._child(depends_on=[self.cluster]),
            )
            made.append(one)
            for part, association in (entry.get("accessPolicies") or {}).items():
                scope = association["accessScope"]
                aws.eks.AccessPolicyAssociation(
                    f"{name}-{part}",
                    cluster_name=self.cluster.name,
                    principal_arn=entry["principalArn"],
                    policy_arn=association["policyArn"],
                    access_scope=aws.eks.AccessPolicyAssociationAccessScopeArgs(
                        type=scope["type"], namespaces=scope.get("namespaces")
                    ),
                    opts=pulumi.ResourceOptions(parent=one, depends_on=[one]),
                )
        return made

    def _cni(self, entries: list[pulumi.Resource]) -> None:
        parent = _Grouping("eks:index:VpcCniAddon", f"{self._name}-vpc-cni", self, depends_on=entries)
        self._addon("vpc-cni", pulumi.ResourceOptions(parent=parent), configuration_values=json.dumps(_CNI))

    def _addon(self, addon: str, opts: pulumi.ResourceOptions, **more: Any) -> None:
        version = aws.eks.get_addon_version_output(
            addon_name=addon,
            kubernetes_version=self.cluster.version,
            most_recent=True,
            opts=pulumi.InvokeOutputOptions(parent=opts.parent),
        ).version
        aws.eks.Addon(
            f"{self._name}-{addon}",
            cluster_name=self.cluster.name,
            addon_name=addon,
            addon_version=version,
            preserve=True,
            tags=self._arguments.get("tags"),
            resolve_conflicts_on_create="OVERWRITE",
            resolve_conflicts_on_update="OVERWRITE",
            opts=opts,
            **more,
        )

    def _outputs(self, role: aws.iam.Role) -> dict[str, Any]:
        cluster, given = self.cluster, self._arguments
        text: pulumi.Output[str] = pulumi.Output.secret(cluster.endpoint.apply(self._kubeconfig))
        kubeconfig = text.apply(json.loads)
        group = cluster.vpc_config.apply(lambda config: config.cluster_security_group_id)
        return {
            "autoModeNodeRoleName": "",
            "clusterIngressRuleId": "",
            "clusterSecurityGroupId": group,
            "core": {
                "cluster": cluster,
                "clusterIamRole": role,
                "endpoint": cluster.endpoint,
                "fargateProfile": None,
                "instanceRoles": [],
                "kubeconfig": kubeconfig,
                "subnetIds": _subnets(given),
                "vpcId": given["vpcId"],
            },
            "defaultNodeGroupAsgName": "",
            "eksCluster": cluster,
            "fargateProfileId": "",
            "fargateProfileStatus": "",
            "instanceRoles": [],
            "kubeconfig": kubeconfig,
            "kubeconfigJson": text,
            "nodeSecurityGroupId": "",
            "oidcIssuer": "",
            "oidcProviderArn": "",
            "oidcProviderUrl": "",
        }

    def _kubeconfig(self, endpoint: str) -> str:
        del endpoint  # it is waited for: where the cluster is made, there is a kubeconfig
        if not self._site.kubeconfig.exists():
            raise pulumi.RunError(f"no kubeconfig at {self._site.kubeconfig}: the site's cluster isn't running")
        text = kubeconfig_json(self._site.kubeconfig)
        if not pulumi.runtime.is_dry_run() and self._arguments.get("endpointPublicAccess"):
            wait_for_health(server_of(text))
        return text


class _Grouping(pulumi.ComponentResource):
    """A component of the real one that only holds others."""

    def __init__(self, kind: str, name: str, parent: pulumi.Resource, **options: Any) -> None:
        super().__init__(kind, name, {}, pulumi.ResourceOptions(parent=parent, **options))
        self.register_outputs({})


class Eks(Provider):
    """Constructs the one component."""

    def __init__(self, site: Site) -> None:
        super().__init__(importlib.metadata.version("pulumi-eks"))
        self._site = site

    def construct(
        self, name: str, resource_type: str, inputs: Any, options: pulumi.ResourceOptions | None = None
    ) -> ConstructResult:
        if resource_type != TYPE:
            raise pulumi.InputPropertyError("type", f"the stand-in of eks has no component {resource_type}")
        fault = fault_of(inputs)
        if fault is not None:
            raise pulumi.InputPropertyError(*fault)
        cluster = Cluster(name, inputs, self._site, options or pulumi.ResourceOptions())
        return ConstructResult(urn=cluster.urn, state=cluster.outputs)

    def call(self, token: str, args: Any) -> CallResult:
        del args
        raise pulumi.InputPropertyError("tok", f"the stand-in of eks has no method {token}")


def _subnets(arguments: Mapping[str, Any]) -> Any:
    if "subnetIds" in arguments:
        return arguments["subnetIds"]
    both = pulumi.Output.all(arguments.get("publicSubnetIds") or [], arguments.get("privateSubnetIds") or [])
    return both.apply(lambda lists: [*lists[0], *lists[1]])


if __name__ == "__main__":
    end_with_engine()
    main(Eks(Site.of_environment()), sys.argv[1:])

"""EKS clusters: moto's are active at once, without security group, interfaces, entries or any rule of subnets."""

import base64
import re
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.cloud.account import Account, Cluster, Facts, NodeGroup, now
from tests.e2e.cloud.identity_rules import link_role, trusts
from tests.e2e.cloud.network_rules import group_in_use
from tests.e2e.cloud.wire import Answer, Call, Refusal
from tests.e2e.site import ACCOUNT, REGION
from workloads.catalogue.versions import KUBERNETES

VERSIONS = tuple(f"1.{minor}" for minor in range(31, 37))
"""Kubernetes versions that EKS took in August 2026."""
EXCLUDED_ZONE_IDS = ("use1-az3", "usw1-az2", "cac1-az3")
CALLER = f"arn:aws:sts::{ACCOUNT}:user/moto"
"""Whoever calls: moto's GetCallerIdentity answers the same."""
ADMIN_POLICY = "arn:aws:eks::aws:cluster-access-policy/AmazonEKSClusterAdminPolicy"
_NAME = re.compile(r"[0-9A-Za-z][A-Za-z0-9_-]{0,99}")


def cluster_of(account: Account, name: str) -> Cluster:
    """The cluster, in whatever state."""
    if name not in account.own.clusters:
        raise Refusal("ResourceNotFoundException", f"No cluster found for name: {name}.")
    return account.own.clusters[name]


def active_cluster(account: Account, name: str) -> Cluster:
    """The cluster, if it takes changes."""
    cluster = cluster_of(account, name)
    if cluster.facts["status"] == "DELETING":
        raise Refusal("ResourceInUseException", f"Cluster '{name}' is being deleted.")
    return cluster


def create_cluster(account: Account, call: Call) -> Answer:
    """CREATING; the first look at it finds it ACTIVE."""
    params, name = call.params, call.params["name"]
    if not _NAME.fullmatch(name):
        raise _invalid(f"The cluster name {name!r} is invalid: 1 to 100 of [0-9A-Za-z_-], the first no hyphen")
    if name in account.own.clusters:
        raise Refusal("ResourceInUseException", f"Cluster already exists with name: {name}")
    version = params.get("version", VERSIONS[-2])
    if version not in VERSIONS:
        raise _invalid(f"unsupported Kubernetes version {version}")
    _check_role(account, params["roleArn"])
    subnets = _subnets(account, params["resourcesVpcConfig"])
    link_role(account, "eks.amazonaws.com", "AWSServiceRoleForAmazonEKS")
    group = _cluster_group(account, name, subnets[0].vpc_id)
    facts = _facts(account, call, version, group, subnets[0].vpc_id)
    groups = [group, *facts["resourcesVpcConfig"]["securityGroupIds"]]
    # Two, in two zones: the control plane's feet in the VPC, which hold the subnets until the cluster is gone.
    by_zone = {subnet.availability_zone: subnet for subnet in reversed(subnets)}
    held = [account.hold_interface(by_zone[zone], groups, f"Amazon EKS {name}", name) for zone in sorted(by_zone)[:2]]
    cluster = account.own.clusters[name] = Cluster(facts, group, held)
    access = params.get("accessConfig") or {}
    if access.get("bootstrapClusterCreatorAdminPermissions", True):
        cluster.access[CALLER] = _creator(account, name)
    return {"cluster": facts}


def _check_role(account: Account, arn: str) -> None:
    role = account.role_of_arn(arn)
    if role is None or not trusts(role, "eks.amazonaws.com"):
        raise _invalid(
            f"Role with arn: {arn}, could not be assumed because it does not exist or the trusted entity is not correct"
        )
    if not any(policy.endswith("/AmazonEKSClusterPolicy") for policy in role.managed_policies):
        raise _invalid(
            "The provided role doesn't have the Amazon EKS Managed Policies associated with it. Please ensure the "
            "following policies [arn:aws:iam::aws:policy/AmazonEKSClusterPolicy] are attached"
        )


def _subnets(account: Account, asked: Facts) -> list[Any]:
    known = {subnet.id: subnet for subnet in account.ec2.describe_subnets()}
    for subnet_id in asked.get("subnetIds") or []:
        if subnet_id not in known:
            raise _invalid(f"The subnet ID '{subnet_id}' does not exist")
    subnets = [known[subnet_id] for subnet_id in asked.get("subnetIds") or []]
    if len({subnet.availability_zone for subnet in subnets}) < 2:
        raise _invalid("Subnets specified must be in at least two different AZs")
    if len({subnet.vpc_id for subnet in subnets}) > 1:
        raise _invalid("Subnets must be in the same VPC")
    for subnet in subnets:
        if subnet.availability_zone_id in EXCLUDED_ZONE_IDS:
            raise Refusal(
                "UnsupportedAvailabilityZoneException",
                f"Cannot create cluster because {subnet.availability_zone}, the targeted availability zone, does not "
                "currently have sufficient capacity to support the cluster.",
            )
    for group_id in asked.get("securityGroupIds") or []:
        group = account.security_group(group_id)
        if group is None or group.vpc_id != subnets[0].vpc_id:
            raise _invalid(f"The security group ID '{group_id}' does not exist in the VPC of the subnets")
    return subnets


def _cluster_group(account: Account, name: str, vpc_id: str) -> str:
    """EKS's own group: all from itself, all out, and all to itself, the rule that EFA checks."""
    ec2 = account.ec2
    group_id = ec2.create_security_group(
        f"eks-cluster-sg-{name}-{len(account.own.clusters) + 1}",
        "EKS created security group applied to ENI that is attached to EKS Control Plane master nodes, as well as any "
        "managed workloads.",
        vpc_id=vpc_id,
        tags={
            "Name": f"eks-cluster-sg-{name}",
            f"kubernetes.io/cluster/{name}": "owned",
            "aws:eks:cluster-name": name,
        },
    ).id
    itself = [{"GroupId": group_id, "UserId": ACCOUNT}]
    rule = {"group_name_or_id": group_id, "ip_protocol": "-1", "from_port": "-1", "to_port": "-1", "ip_ranges": []}
    ec2.authorize_security_group_ingress(**rule, source_groups=itself, vpc_id=vpc_id)
    ec2.authorize_security_group_egress(**rule, source_groups=itself, vpc_id=vpc_id)
    return str(group_id)


def _facts(account: Account, call: Call, version: str, group: str, vpc_id: str) -> Facts:
    params, asked, name = call.params, call.params["resourcesVpcConfig"], call.params["name"]
    access = params.get("accessConfig") or {}
    network = params.get("kubernetesNetworkConfig") or {}
    return {
        "name": name,
        "arn": account.arn("eks", f"cluster/{name}"),
        "createdAt": now(),
        "version": version,
        "roleArn": params["roleArn"],
        "status": "CREATING",
        "platformVersion": "eks.1",
        "resourcesVpcConfig": {
            "subnetIds": asked["subnetIds"],
            "securityGroupIds": asked.get("securityGroupIds") or [],
            "clusterSecurityGroupId": group,
            "vpcId": vpc_id,
            "endpointPublicAccess": asked.get("endpointPublicAccess", True),
            "endpointPrivateAccess": asked.get("endpointPrivateAccess", False),
            "publicAccessCidrs": asked.get("publicAccessCidrs") or ["0.0.0.0/0"],
        },
        "kubernetesNetworkConfig": {
            "serviceIpv4Cidr": network.get("serviceIpv4Cidr", "172.20.0.0/16"),
            "ipFamily": network.get("ipFamily", "ipv4"),
            "elasticLoadBalancing": {"enabled": False},
        },
        "accessConfig": {"authenticationMode": access.get("authenticationMode", "CONFIG_MAP")},
        "logging": params.get("logging") or {"clusterLogging": []},
        "identity": {
            "oidc": {"issuer": f"https://oidc.eks.{REGION}.amazonaws.com/id/{account.new_id('', 32).upper()}"}
        },
        "upgradePolicy": params.get("upgradePolicy") or {"supportType": "EXTENDED"},
        "deletionProtection": params.get("deletionProtection", False),
        "tags": params.get("tags") or {},
    }


def _creator(account: Account, name: str) -> Facts:
    return {
        "clusterName": name,
        "principalArn": CALLER,
        "kubernetesGroups": [],
        "accessEntryArn": account.arn("eks", f"access-entry/{name}/user/{ACCOUNT}/moto/{account.new_id('', 8)}"),
        "createdAt": now(),
        "modifiedAt": now(),
        "tags": {},
        "username": CALLER,
        "type": "STANDARD",
        "policies": {ADMIN_POLICY: {"policyArn": ADMIN_POLICY, "accessScope": {"type": "cluster", "namespaces": []}}},
    }


def describe_cluster_versions(_: Account, __: Call) -> Answer:
    """The catalogue's, and the one after it."""
    newer = f"1.{int(KUBERNETES.partition('.')[2]) + 1}"
    return {
        "clusterVersions": [
            {"clusterVersion": one, "clusterType": "eks", "versionStatus": "STANDARD_SUPPORT"}
            for one in (newer, KUBERNETES)
        ]
    }


def describe_cluster(account: Account, call: Call) -> Answer:
    """Who looks lets it go on: CREATING is ACTIVE now, DELETING is gone."""
    cluster = cluster_of(account, call.params["name"])
    if cluster.facts["status"] == "DELETING":
        _end(account, cluster)
        return {"cluster": cluster_of(account, call.params["name"]).facts}
    if cluster.facts["status"] == "CREATING":
        cluster.facts["status"] = "ACTIVE"
    return {"cluster": {**cluster.facts, **endpoint(account.kubeconfig, cluster.facts["name"])}}


def endpoint(kubeconfig: Path | None, name: str) -> Facts:
    """Address and CA of the real control plane, where the site has one."""
    if kubeconfig is None or not kubeconfig.exists():
        nobody = base64.b64encode(b"no control plane stands behind this cluster").decode()
        return {"endpoint": f"https://{name}.eks.{REGION}.example", "certificateAuthority": {"data": nobody}}
    cluster = yaml.safe_load(kubeconfig.read_text())["clusters"][0]["cluster"]
    if "certificate-authority-data" in cluster:
        data = cluster["certificate-authority-data"]
    else:
        authority = kubeconfig.parent / cluster["certificate-authority"]
        data = base64.b64encode(authority.read_bytes()).decode()
    return {"endpoint": cluster["server"], "certificateAuthority": {"data": data}}


def list_clusters(account: Account, _: Call) -> Answer:
    """Those that are being deleted among them."""
    return {"clusters": sorted(account.own.clusters)}


def delete_cluster(account: Account, call: Call) -> Answer:
    """DELETING: interfaces and security group stay until somebody looks how far it is."""
    cluster = active_cluster(account, call.params["name"])
    if cluster.node_groups:
        raise Refusal("ResourceInUseException", "Cluster has nodegroups attached")
    if cluster.facts["deletionProtection"]:
        raise Refusal("InvalidRequestException", "Cluster deletion protection is enabled")
    cluster.facts["status"] = "DELETING"
    return {"cluster": cluster.facts}


def _end(account: Account, cluster: Cluster) -> None:
    for interface in cluster.interfaces:
        account.release_interface(interface)
    # A leftover interface or a rule of somebody else's holds the group; EKS leaves it behind then, and the VPC stays.
    if not group_in_use(account, cluster.security_group) and account.security_group(cluster.security_group):
        account.ec2.delete_security_group(group_id=cluster.security_group)
    del account.own.clusters[cluster.facts["name"]]


def update_cluster_config(account: Account, call: Call) -> Answer:
    """Access to the endpoint, authentication mode, logging, protection."""
    cluster, params = active_cluster(account, call.params["name"]), call.params
    vpc = params.get("resourcesVpcConfig") or {}
    for key in ("endpointPublicAccess", "endpointPrivateAccess", "publicAccessCidrs", "securityGroupIds"):
        if key in vpc:
            cluster.facts["resourcesVpcConfig"][key] = vpc[key]
    mode = (params.get("accessConfig") or {}).get("authenticationMode")
    if mode is not None:
        if mode == "CONFIG_MAP":
            raise Refusal("InvalidRequestException", "Unsupported authentication mode update")
        cluster.facts["accessConfig"]["authenticationMode"] = mode
    for key in ("logging", "upgradePolicy", "deletionProtection"):
        if key in params:
            cluster.facts[key] = params[key]
    return update_done(account, "EndpointAccessUpdate")


def update_cluster_version(account: Account, call: Call) -> Answer:
    """One minor version up."""
    cluster, version = active_cluster(account, call.params["name"]), call.params["version"]
    old = VERSIONS.index(cluster.facts["version"])
    if version not in VERSIONS[old : old + 2]:
        raise _invalid(f"Unsupported Kubernetes minor version update from {cluster.facts['version']} to {version}")
    cluster.facts["version"] = version
    return update_done(account, "VersionUpdate")


def update_done(account: Account, kind: str) -> Answer:
    """An update that needed no time."""
    return {"update": {"id": account.new_id("", 36), "status": "Successful", "type": kind, "createdAt": now()}}


def describe_update(account: Account, call: Call) -> Answer:
    """Every update is done when it is asked for."""
    cluster_of(account, call.params["name"])
    return {"update": {"id": call.params["updateId"], "status": "Successful"}}


def tag_resource(account: Account, call: Call) -> Answer:
    """Whatever EKS resource carries the ARN."""
    facts = _of_arn(account, call.params["resourceArn"])
    facts["tags"] = {**facts.get("tags", {}), **call.params["tags"]}
    return {}


def untag_resource(account: Account, call: Call) -> Answer:
    """Whatever EKS resource carries the ARN."""
    facts = _of_arn(account, call.params["resourceArn"])
    facts["tags"] = {key: value for key, value in facts["tags"].items() if key not in call.params["tagKeys"]}
    return {}


def list_tags(account: Account, call: Call) -> Answer:
    """Whatever EKS resource carries the ARN."""
    return {"tags": _of_arn(account, call.params["resourceArn"]).get("tags", {})}


ARN_KEYS = ("arn", "nodegroupArn", "addonArn", "accessEntryArn", "associationArn")


def resources(account: Account) -> list[Facts]:
    """Every EKS resource; one of ARN_KEYS holds its ARN."""
    return [
        facts
        for cluster in account.own.clusters.values()
        for facts in (
            cluster.facts,
            *(group.facts for group in cluster.node_groups.values()),
            *cluster.addons.values(),
            *cluster.access.values(),
            *cluster.identities.values(),
        )
    ]


def _of_arn(account: Account, arn: str) -> Facts:
    for facts in resources(account):
        if arn in {facts.get(key) for key in ARN_KEYS}:
            return facts
    raise Refusal("NotFoundException", f"No EKS resource has the ARN {arn}")


def has_nodes(cluster: Cluster) -> bool:
    """Whether a node group of it could run pods."""
    return any(_runs(group) for group in cluster.node_groups.values())


def _runs(group: NodeGroup) -> bool:
    return group.facts["status"] in {"ACTIVE", "UPDATING"} and bool(group.instances)


def _invalid(message: str) -> Refusal:
    return Refusal("InvalidParameterException", message)

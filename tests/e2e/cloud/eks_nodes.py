"""Managed node groups, with instances in EC2: moto's are names without nodes."""

from typing import Any

from tests.e2e.cloud.account import AMIS, Account, Cluster, Facts, NodeGroup, now
from tests.e2e.cloud.eks_clusters import active_cluster, cluster_of, update_done
from tests.e2e.cloud.identity_rules import link_role, trusts
from tests.e2e.cloud.instance_rules import end_instance
from tests.e2e.cloud.wire import Answer, Call, Refusal
from tests.e2e.site import ACCOUNT

AMI_TYPES = {
    "AL2023_x86_64_STANDARD": ("x86_64", "standard"),
    "AL2023_x86_64_NVIDIA": ("x86_64", "nvidia"),
    "AL2023_ARM_64_STANDARD": ("arm64", "standard"),
}


def node_group_of(account: Account, call: Call) -> tuple[Cluster, NodeGroup]:
    """The node group and its cluster."""
    cluster, name = cluster_of(account, call.params["clusterName"]), call.params["nodegroupName"]
    if name not in cluster.node_groups:
        raise Refusal("ResourceNotFoundException", f"No node group found for name: {name}.")
    return cluster, cluster.node_groups[name]


def create_nodegroup(account: Account, call: Call) -> Answer:
    """CREATING; its instances run, and the first look finds it ACTIVE."""
    params, name = call.params, call.params["nodegroupName"]
    cluster = active_cluster(account, params["clusterName"])
    if cluster.facts["status"] != "ACTIVE":
        raise Refusal("InvalidRequestException", f"Cluster '{cluster.facts['name']}' is not in ACTIVE status")
    if name in cluster.node_groups:
        raise Refusal(
            "ResourceInUseException",
            f"NodeGroup already exists with name {name} and cluster name {cluster.facts['name']}",
        )
    _check(account, cluster, call)
    link_role(account, "eks-nodegroup.amazonaws.com", "AWSServiceRoleForAmazonEKSNodegroup")
    facts = _facts(account, cluster, call)
    group = cluster.node_groups[name] = NodeGroup(facts, [])
    _scale(account, cluster, group)
    cluster.access.setdefault(params["nodeRole"], _entry(account, cluster, params["nodeRole"]))
    return {"nodegroup": facts}


def _check(account: Account, cluster: Cluster, call: Call) -> None:
    params = call.params
    if len(params["nodegroupName"]) > 63:
        raise _invalid("nodegroupName must have at most 63 characters")
    role = account.role_of_arn(params["nodeRole"])
    if role is None:
        raise _invalid(f"The role {params['nodeRole']} does not exist")
    if not trusts(role, "ec2.amazonaws.com"):
        raise _invalid(
            "Following required service principals [ec2.amazonaws.com] were not found in the trust relationships of "
            f"nodeRole {role.arn}"
        )
    known = {subnet.id: subnet for subnet in account.ec2.describe_subnets()}
    for subnet in params["subnets"]:
        if subnet not in known or known[subnet].vpc_id != cluster.facts["resourcesVpcConfig"]["vpcId"]:
            raise _invalid(f"The subnet ID '{subnet}' does not exist in the cluster's VPC")
    types = {one.name for one in account.ec2.instance_types}
    for instance_type in params.get("instanceTypes") or []:
        if instance_type not in types:
            raise _invalid(f"[{instance_type}] is not a valid instance type")
    _check_template(account, params)
    ami_type = params.get("amiType", "AL2023_x86_64_STANDARD")
    if ami_type not in AMI_TYPES:
        raise _invalid(f"amiType {ami_type}: this account has {', '.join(AMI_TYPES)}")
    _check_scaling(params.get("scalingConfig") or {})


def _check_template(account: Account, params: Facts) -> None:
    template = params.get("launchTemplate")
    if template is None:
        return
    if "diskSize" in params:
        raise _invalid("Disk size must be specified within the launch template.")
    known = account.ec2.launch_templates.get(template.get("id"))
    if known is None:
        raise _invalid(f"Launch template {template.get('id')} does not exist")
    if not 1 <= int(template["version"]) <= known.latest_version().number:
        raise _invalid(f"Launch template {known.id} has no version {template['version']}")


def _check_scaling(scaling: Facts) -> None:
    low, wanted, high = (scaling.get(key, 2) for key in ("minSize", "desiredSize", "maxSize"))
    if not low <= wanted <= high:
        raise _invalid(f"desiredSize {wanted} can't be less than minSize {low} or greater than maxSize {high}")


def _facts(account: Account, cluster: Cluster, call: Call) -> Facts:
    params, name, of = call.params, call.params["nodegroupName"], cluster.facts["name"]
    digest, disk = account.new_id("", 8), params.get("diskSize", 20)
    return {
        "nodegroupName": name,
        "nodegroupArn": account.arn("eks", f"nodegroup/{of}/{name}/{digest}"),
        "clusterName": of,
        "version": params.get("version", cluster.facts["version"]),
        "releaseVersion": f"{cluster.facts['version']}.0-20260724",
        "createdAt": now(),
        "modifiedAt": now(),
        "status": "CREATING",
        "capacityType": params.get("capacityType", "ON_DEMAND"),
        "scalingConfig": params.get("scalingConfig") or {"minSize": 1, "maxSize": 2, "desiredSize": 2},
        "instanceTypes": params.get("instanceTypes") or ["t3.medium"],
        "subnets": params["subnets"],
        "amiType": params.get("amiType", "AL2023_x86_64_STANDARD"),
        "nodeRole": params["nodeRole"],
        "labels": params.get("labels") or {},
        "taints": params.get("taints") or [],
        "resources": {"autoScalingGroups": [{"name": f"eks-{name}-{digest}"}]},
        **({"launchTemplate": params["launchTemplate"]} if "launchTemplate" in params else {"diskSize": disk}),
        "health": {"issues": []},
        "updateConfig": params.get("updateConfig") or {"maxUnavailable": 1},
        "tags": params.get("tags") or {},
    }


def _entry(account: Account, cluster: Cluster, role: str) -> Facts:
    """EKS lets the nodes of a managed group in by itself; Karpenter's need an entry of ours."""
    name = cluster.facts["name"]
    return {
        "clusterName": name,
        "principalArn": role,
        "kubernetesGroups": ["system:nodes"],
        "accessEntryArn": account.arn("eks", f"access-entry/{name}/role/{ACCOUNT}/{account.new_id('', 8)}"),
        "createdAt": now(),
        "modifiedAt": now(),
        "tags": {},
        "username": "system:node:{{EC2PrivateDNSName}}",
        "type": "EC2_LINUX",
        "policies": {},
    }


def _scale(account: Account, cluster: Cluster, group: NodeGroup) -> None:
    """As many instances as are desired, over the subnets by turns."""
    wanted, subnets = group.facts["scalingConfig"]["desiredSize"], group.facts["subnets"]
    while len(group.instances) > wanted:
        _end(account, group.instances.pop())
    while len(group.instances) < wanted:
        subnet = subnets[len(group.instances) % len(subnets)]
        group.instances.append(_launch(account, cluster, group, subnet))


def _launch(account: Account, cluster: Cluster, group: NodeGroup, subnet: str) -> str:
    name, of = group.facts["nodegroupName"], cluster.facts["name"]
    tags = {
        "eks:cluster-name": of,
        "eks:nodegroup-name": name,
        f"kubernetes.io/cluster/{of}": "owned",
        **group.facts["tags"],
    }
    of_kind = _template_tags(account, group)
    reservation = account.ec2.run_instances(
        AMIS[AMI_TYPES[group.facts["amiType"]]],
        1,
        None,
        [],
        instance_type=group.facts["instanceTypes"][0],
        is_instance_type_default=False,
        subnet_id=subnet,
        security_group_ids=[cluster.security_group],
        associate_public_ip=False,
        tags={kind: {**tags, **of_kind.get(kind, {})} for kind in ("instance", "volume")},
    )
    instance = reservation.instances[0]
    for interface in instance.nics.values():
        interface.status = "in-use"
        interface.delete_on_termination = True
    return str(instance.id)


def _template_tags(account: Account, group: NodeGroup) -> dict[str, dict[str, str]]:
    template = group.facts.get("launchTemplate")
    if template is None:
        return {}
    data = account.ec2.launch_templates[template["id"]].get_version(int(template["version"])).data
    return {
        # moto keeps the members in the words of the wire or of the model, by how they came.
        one["ResourceType"]: {tag["Key"]: tag["Value"] for tag in one.get("Tag", one.get("Tags", []))}
        for one in data.get("TagSpecification", data.get("TagSpecifications")) or []
    }


def update_nodegroup_version(account: Account, call: Call) -> Answer:
    """Another version of its template, or another AMI: its nodes are replaced one by one."""
    cluster, group = node_group_of(account, call)
    _check_template(account, call.params)
    if "launchTemplate" in call.params:
        group.facts["launchTemplate"] = call.params["launchTemplate"]
    while group.instances:
        _end(account, group.instances.pop())
    _scale(account, cluster, group)
    return update_done(account, "VersionUpdate")


def _end(account: Account, instance_id: str) -> None:
    found: list[Any] = [one for one in account.instances() if one.id == instance_id]
    for instance in found:
        end_instance(account, instance)


def describe_nodegroup(account: Account, call: Call) -> Answer:
    """Who looks lets it go on: CREATING is ACTIVE now, DELETING is gone with its instances."""
    cluster, group = node_group_of(account, call)
    if group.facts["status"] == "DELETING":
        for instance in group.instances:
            _end(account, instance)
        del cluster.node_groups[group.facts["nodegroupName"]]
        role = group.facts["nodeRole"]
        if role not in {other.facts["nodeRole"] for other in cluster.node_groups.values()}:
            cluster.access.pop(role, None)
        node_group_of(account, call)
    if group.facts["status"] == "CREATING":
        group.facts["status"] = "ACTIVE"
    return {"nodegroup": group.facts}


def list_nodegroups(account: Account, call: Call) -> Answer:
    """Those that are being deleted among them."""
    return {"nodegroups": sorted(cluster_of(account, call.params["clusterName"]).node_groups)}


def delete_nodegroup(account: Account, call: Call) -> Answer:
    """DELETING: its instances stay until somebody looks how far it is."""
    _, group = node_group_of(account, call)
    group.facts["status"] = "DELETING"
    return {"nodegroup": group.facts}


def update_nodegroup_config(account: Account, call: Call) -> Answer:
    """Size, labels, taints."""
    cluster, group = node_group_of(account, call)
    if group.facts["status"] == "DELETING":
        raise Refusal("ResourceInUseException", "Nodegroup cannot be updated as it is currently being deleted")
    scaling = {**group.facts["scalingConfig"], **(call.params.get("scalingConfig") or {})}
    _check_scaling(scaling)
    group.facts["scalingConfig"] = scaling
    labels = call.params.get("labels") or {}
    kept = {k: v for k, v in group.facts["labels"].items() if k not in (labels.get("removeLabels") or [])}
    group.facts["labels"] = {**kept, **(labels.get("addOrUpdateLabels") or {})}
    if call.params.get("taints"):
        taints = call.params["taints"]
        changed = {*(t["key"] for t in [*(taints.get("removeTaints") or []), *(taints.get("addOrUpdateTaints") or [])])}
        group.facts["taints"] = [
            *(t for t in group.facts["taints"] if t["key"] not in changed),
            *(taints.get("addOrUpdateTaints") or []),
        ]
    group.facts["updateConfig"] = call.params.get("updateConfig") or group.facts["updateConfig"]
    _scale(account, cluster, group)
    return update_done(account, "ConfigUpdate")


def _invalid(message: str) -> Refusal:
    return Refusal("InvalidParameterException", message)

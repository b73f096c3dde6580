"""Who may enter an EKS cluster, and what its pods may do in AWS: moto has neither entries nor Pod Identity."""

from tests.e2e.cloud.account import Account, Cluster, Facts, now
from tests.e2e.cloud.eks_clusters import active_cluster, cluster_of
from tests.e2e.cloud.wire import Answer, Call, Refusal
from tests.e2e.site import ACCOUNT

ACCESS_TYPES = ("STANDARD", "EC2_LINUX", "EC2_WINDOWS", "FARGATE_LINUX", "EC2", "HYBRID_LINUX", "HYPERPOD_LINUX")
ACCESS_POLICIES = tuple(
    f"arn:aws:eks::aws:cluster-access-policy/{name}"
    for name in (
        "AmazonEKSClusterAdminPolicy", "AmazonEKSAdminPolicy", "AmazonEKSEditPolicy", "AmazonEKSViewPolicy",
        "AmazonEKSAdminViewPolicy",
    )
)  # fmt: skip


def create_access_entry(account: Account, call: Call) -> Answer:
    """A principal of this account, once."""
    params, principal = call.params, call.params["principalArn"]
    cluster = active_cluster(account, params["clusterName"])
    if cluster.facts["accessConfig"]["authenticationMode"] == "CONFIG_MAP":
        raise Refusal(
            "InvalidRequestException",
            "The cluster's authentication mode must be set to one of [API, API_AND_CONFIG_MAP] to perform this "
            "operation.",
        )
    if f":{ACCOUNT}:role/" in principal and account.role_of_arn(principal) is None:
        raise _invalid("The specified principalArn is invalid: invalid principal.")
    if principal in cluster.access:
        raise Refusal(
            "ResourceInUseException", "The specified access entry resource is already in use on this cluster."
        )
    kind = params.get("type", "STANDARD")
    if kind not in ACCESS_TYPES:
        raise _invalid(f"The type {kind} of an access entry is none of {', '.join(ACCESS_TYPES)}")
    if kind != "STANDARD" and (params.get("kubernetesGroups") or params.get("username")):
        raise _invalid(f"An access entry of type {kind} takes neither kubernetesGroups nor username")
    name, nodes = cluster.facts["name"], kind != "STANDARD"
    cluster.access[principal] = {
        "clusterName": name,
        "principalArn": principal,
        "kubernetesGroups": ["system:nodes"] if nodes else params.get("kubernetesGroups") or [],
        "accessEntryArn": account.arn("eks", f"access-entry/{name}/role/{ACCOUNT}/{account.new_id('', 8)}"),
        "createdAt": now(),
        "modifiedAt": now(),
        "tags": params.get("tags") or {},
        "username": "system:node:{{EC2PrivateDNSName}}" if nodes else params.get("username", principal),
        "type": kind,
        "policies": {},
    }
    return {"accessEntry": cluster.access[principal]}


def _entry(account: Account, call: Call) -> tuple[Cluster, Facts]:
    cluster, principal = cluster_of(account, call.params["clusterName"]), call.params["principalArn"]
    if principal not in cluster.access:
        raise Refusal(
            "ResourceNotFoundException",
            f"The specified principalArn could not be found. You can view your available access entries with "
            f"'list-access-entries': {principal}",
        )
    return cluster, cluster.access[principal]


def describe_access_entry(account: Account, call: Call) -> Answer:
    """As it is."""
    return {"accessEntry": _entry(account, call)[1]}


def list_access_entries(account: Account, call: Call) -> Answer:
    """Principals."""
    return {"accessEntries": sorted(cluster_of(account, call.params["clusterName"]).access)}


def update_access_entry(account: Account, call: Call) -> Answer:
    """Groups and name; the type stays."""
    _, entry = _entry(account, call)
    for key in ("kubernetesGroups", "username"):
        if key in call.params:
            entry[key] = call.params[key]
    return {"accessEntry": entry}


def delete_access_entry(account: Account, call: Call) -> Answer:
    """At once."""
    cluster, entry = _entry(account, call)
    del cluster.access[entry["principalArn"]]
    return {}


def associate_access_policy(account: Account, call: Call) -> Answer:
    """One of EKS's own policies."""
    _, entry = _entry(account, call)
    policy = call.params["policyArn"]
    if policy not in ACCESS_POLICIES:
        raise _invalid(f"The policyArn parameter format is not valid: {policy}")
    if entry["type"] != "STANDARD":
        raise Refusal(
            "InvalidRequestException", f"Access policies can't be associated to an entry of type {entry['type']}"
        )
    scope = call.params["accessScope"]
    entry["policies"][policy] = {
        "policyArn": policy,
        "accessScope": {"type": scope["type"], "namespaces": scope.get("namespaces") or []},
        "associatedAt": now(),
        "modifiedAt": now(),
    }
    return {
        "clusterName": entry["clusterName"],
        "principalArn": entry["principalArn"],
        "associatedAccessPolicy": entry["policies"][policy],
    }


def disassociate_access_policy(account: Account, call: Call) -> Answer:
    """At once."""
    _, entry = _entry(account, call)
    if entry["policies"].pop(call.params["policyArn"], None) is None:
        raise Refusal("ResourceNotFoundException", f"No association of {call.params['policyArn']}")
    return {}


def list_associated_access_policies(account: Account, call: Call) -> Answer:
    """Of one principal."""
    _, entry = _entry(account, call)
    return {
        "clusterName": entry["clusterName"],
        "principalArn": entry["principalArn"],
        "associatedAccessPolicies": list(entry["policies"].values()),
    }


def create_pod_identity_association(account: Account, call: Call) -> Answer:
    """One role a service account."""
    params = call.params
    cluster = active_cluster(account, params["clusterName"])
    if account.role_of_arn(params["roleArn"]) is None:
        raise _invalid(f"Role provided in the request does not exist: {params['roleArn']}")
    for known in cluster.identities.values():
        if (known["namespace"], known["serviceAccount"]) == (params["namespace"], params["serviceAccount"]):
            raise Refusal("ResourceInUseException", f"Association already exists: {known['associationId']}")
    name, association = cluster.facts["name"], account.new_id("a-", 16)
    cluster.identities[association] = {
        "clusterName": name,
        "namespace": params["namespace"],
        "serviceAccount": params["serviceAccount"],
        "roleArn": params["roleArn"],
        "associationArn": account.arn("eks", f"podidentityassociation/{name}/{association}"),
        "associationId": association,
        "tags": params.get("tags") or {},
        "createdAt": now(),
        "modifiedAt": now(),
        "disableSessionTags": params.get("disableSessionTags", False),
    }
    return {"association": cluster.identities[association]}


def _association(account: Account, call: Call) -> tuple[Cluster, Facts]:
    cluster, wanted = cluster_of(account, call.params["clusterName"]), call.params["associationId"]
    if wanted not in cluster.identities:
        raise Refusal("ResourceNotFoundException", f"No association found for associationId: {wanted}")
    return cluster, cluster.identities[wanted]


def describe_pod_identity_association(account: Account, call: Call) -> Answer:
    """As it is."""
    return {"association": _association(account, call)[1]}


def list_pod_identity_associations(account: Account, call: Call) -> Answer:
    """Of the cluster, a namespace or a service account."""
    cluster = cluster_of(account, call.params["clusterName"])
    wanted = {key: call.params[key] for key in ("namespace", "serviceAccount") if call.params.get(key)}
    found = [one for one in cluster.identities.values() if all(one[key] == value for key, value in wanted.items())]
    return {"associations": found}


def update_pod_identity_association(account: Account, call: Call) -> Answer:
    """Another role."""
    _, association = _association(account, call)
    role = call.params.get("roleArn")
    if role is not None:
        if account.role_of_arn(role) is None:
            raise _invalid(f"Role provided in the request does not exist: {role}")
        association["roleArn"] = role
    return {"association": association}


def delete_pod_identity_association(account: Account, call: Call) -> Answer:
    """At once."""
    cluster, association = _association(account, call)
    del cluster.identities[association["associationId"]]
    return {"association": association}


def _invalid(message: str) -> Refusal:
    return Refusal("InvalidParameterException", message)

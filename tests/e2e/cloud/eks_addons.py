"""EKS addons: moto has none."""

import json

from tests.e2e.cloud.account import Account, Cluster, Facts, now
from tests.e2e.cloud.eks_clusters import active_cluster, cluster_of, has_nodes, update_done
from tests.e2e.cloud.wire import Answer, Call, Refusal
from workloads.catalogue.versions import KUBERNETES

ADDONS = {
    "vpc-cni": "v1.23.0-eksbuild.1",
    "kube-proxy": f"v{KUBERNETES}.4-eksbuild.1",
    "coredns": "v1.14.0-eksbuild.1",
    "eks-pod-identity-agent": "v1.3.12-eksbuild.1",
    "aws-ebs-csi-driver": "v1.58.0-eksbuild.1",
    "aws-fsx-csi-driver": "v1.9.0-eksbuild.1",
    "eks-node-monitoring-agent": "v1.7.0-eksbuild.1",
    "metrics-server": "v0.8.1-eksbuild.1",
}
"""Addons of the account, with the one version of each.

The program pins none: EKS gives its default. The names are those of the EKS User Guide ("EKS add-ons", "community
add-ons"), the versions each project's release as of August 2026 with a build number that is ours; nothing depends on
them but that there is one.
"""
_ON_NODES = {"coredns", "aws-ebs-csi-driver", "aws-fsx-csi-driver", "metrics-server"}
"""Deployments: healthy only where a node can take them."""


def create_addon(account: Account, call: Call) -> Answer:
    """CREATING; the first look finds it ACTIVE, or DEGRADED where its pods have no node."""
    params, name = call.params, call.params["addonName"]
    cluster = active_cluster(account, params["clusterName"])
    of = cluster.facts["name"]
    if name not in ADDONS:
        raise _invalid(f"Addon {name} specified is not supported in {cluster.facts['version']} kubernetes version")
    if name in cluster.addons:
        raise Refusal("ResourceInUseException", "Addon already exists.")
    version = params.get("addonVersion", ADDONS[name])
    if version != ADDONS[name]:
        raise _invalid(f"Addon version specified is not supported: {version}; this account has {ADDONS[name]}")
    _check_values(params.get("configurationValues"))
    cluster.addons[name] = {
        "addonName": name,
        "clusterName": of,
        "status": "CREATING",
        "addonVersion": version,
        "health": {"issues": []},
        "addonArn": account.arn("eks", f"addon/{of}/{name}/{account.new_id('', 8)}"),
        "createdAt": now(),
        "modifiedAt": now(),
        "serviceAccountRoleArn": params.get("serviceAccountRoleArn"),
        "configurationValues": params.get("configurationValues"),
        "tags": params.get("tags") or {},
    }
    return {"addon": cluster.addons[name]}


def _check_values(values: str | None) -> None:
    try:
        json.loads(values or "{}")
    except ValueError:
        raise _invalid(f"ConfigurationValue provided in request is not supported: no JSON in {values!r}") from None


def _addon(account: Account, call: Call) -> tuple[Cluster, Facts]:
    cluster, name = cluster_of(account, call.params["clusterName"]), call.params["addonName"]
    if name not in cluster.addons:
        raise Refusal("ResourceNotFoundException", f"No addon: {name} found in cluster: {cluster.facts['name']}")
    return cluster, cluster.addons[name]


def describe_addon(account: Account, call: Call) -> Answer:
    """Who looks lets it go on."""
    cluster, addon = _addon(account, call)
    if addon["status"] == "DELETING":
        del cluster.addons[addon["addonName"]]
        _addon(account, call)
    healthy = addon["addonName"] not in _ON_NODES or has_nodes(cluster)
    addon["status"] = "ACTIVE" if healthy else "DEGRADED"
    issue = {
        "code": "InsufficientNumberOfReplicas",
        "message": "The add-on is unhealthy because it doesn't have the desired number of replicas.",
    }
    addon["health"] = {"issues": [] if healthy else [issue]}
    return {"addon": addon}


def list_addons(account: Account, call: Call) -> Answer:
    """Those that are being deleted among them."""
    return {"addons": sorted(cluster_of(account, call.params["clusterName"]).addons)}


def update_addon(account: Account, call: Call) -> Answer:
    """Configuration and role."""
    _, addon = _addon(account, call)
    _check_values(call.params.get("configurationValues"))
    for key in ("configurationValues", "serviceAccountRoleArn"):
        if key in call.params:
            addon[key] = call.params[key]
    return update_done(account, "AddonUpdate")


def delete_addon(account: Account, call: Call) -> Answer:
    """DELETING until somebody looks."""
    _, addon = _addon(account, call)
    addon["status"] = "DELETING"
    return {"addon": addon}


def describe_addon_versions(_: Account, call: Call) -> Answer:
    """One version of each."""
    wanted, kubernetes = call.params.get("addonName"), call.params.get("kubernetesVersion", KUBERNETES)
    return {
        "addons": [
            {
                "addonName": name,
                "type": "networking",
                "owner": "aws",
                "publisher": "eks",
                "addonVersions": [
                    {
                        "addonVersion": version,
                        "architecture": ["amd64", "arm64"],
                        "compatibilities": [{"clusterVersion": kubernetes, "defaultVersion": True}],
                    }
                ],
            }
            for name, version in ADDONS.items()
            if wanted in (None, name)
        ]
    }


def _invalid(message: str) -> Refusal:
    return Refusal("InvalidParameterException", message)

"""EKS: cluster, node group and add-ons: rows of the table."""

from typing import Any, ClassVar

from tests.e2e.providers.aws.cloud import Cloud, gone_is_fine
from tests.e2e.providers.aws.eks_calls import (
    BUSY,
    GONE,
    addon_of,
    change_tags,
    cluster_of,
    node_group_of,
    until_active,
    until_gone,
)
from tests.e2e.providers.aws.kinds import JSON, TEXTS, Inputs, Kind
from tests.e2e.providers.values import UNKNOWN, Properties


class Cluster(Kind):
    TYPE = "aws:eks/cluster:Cluster"
    INPUTS: ClassVar[Inputs] = {
        "accessConfig": {"authenticationMode": str, "bootstrapClusterCreatorAdminPermissions": bool},
        "bootstrapSelfManagedAddons": bool,
        "enabledClusterLogTypes": [str],
        "name": str,
        "roleArn": str,
        "tags": TEXTS,
        "version": str,
        "vpcConfig": {
            "endpointPrivateAccess": bool,
            "endpointPublicAccess": bool,
            "publicAccessCidrs": [str],
            "securityGroupIds": [str],
            "subnetIds": [str],
        },
    }
    REQUIRED = ("roleArn", "vpcConfig")
    REPLACE = (
        "accessConfig.bootstrapClusterCreatorAdminPermissions",
        "bootstrapSelfManagedAddons",
        "name",
        "roleArn",
    )
    NAME = "name"
    UNTOLD = (("accessConfig", "bootstrapClusterCreatorAdminPermissions"),)
    COMPUTED = (
        "arn",
        "certificateAuthority",
        "createdAt",
        "endpoint",
        "identities",
        "platformVersion",
        "status",
        "tagsAll",
        "version",
    )

    def unknown_outputs(self, inputs: Properties) -> Properties:
        config = {"publicAccessCidrs": UNKNOWN, **inputs["vpcConfig"]}
        late = {"clusterSecurityGroupId": UNKNOWN, "vpcId": UNKNOWN}
        return {**super().unknown_outputs(inputs), "vpcConfig": {**config, **late}}

    def make(self, cloud: Cloud, inputs: Properties) -> str:
        optional = {
            "accessConfig": inputs.get("accessConfig"),
            "bootstrapSelfManagedAddons": inputs.get("bootstrapSelfManagedAddons"),
            "logging": _logging(inputs),
            "tags": inputs.get("tags"),
            "version": inputs.get("version"),
        }
        made = cloud.eks.create_cluster(
            name=inputs["name"],
            roleArn=inputs["roleArn"],
            resourcesVpcConfig=inputs["vpcConfig"],
            **{name: value for name, value in optional.items() if value is not None},
        )
        return str(made["cluster"]["name"])

    def finish(self, cloud: Cloud, identifier: str, inputs: Properties, within_s: float) -> None:
        del inputs
        until_active(cloud, lambda: cluster_of(cloud, identifier), f"EKS cluster {identifier}", within_s)

    def live(self, cloud: Cloud, identifier: str) -> Properties | None:
        found = cluster_of(cloud, identifier)
        if found is None or found["status"] == "DELETING":
            return None
        config, access = found["resourcesVpcConfig"], found.get("accessConfig") or {}
        return {
            "accessConfig": {"authenticationMode": access["authenticationMode"]} if access else None,
            "arn": found["arn"],
            "certificateAuthority": found.get("certificateAuthority") or {},
            "createdAt": str(found["createdAt"]),
            "endpoint": found.get("endpoint"),
            "identities": [{"oidcs": [found["identity"]["oidc"]]}] if found.get("identity") else [],
            "name": identifier,
            "platformVersion": found.get("platformVersion"),
            "roleArn": found["roleArn"],
            "status": found["status"],
            "tags": found.get("tags") or {},
            "version": found["version"],
            "vpcConfig": {name: value for name, value in config.items() if value is not None},
        }

    def change(self, cloud: Cloud, identifier: str, old: Properties, new: Properties) -> None:
        before, after = old["vpcConfig"], new["vpcConfig"]
        if before != after:
            changed = {name: value for name, value in after.items() if before.get(name) != value}
            cloud.eks.update_cluster_config(name=identifier, resourcesVpcConfig=changed)
            self.finish(cloud, identifier, new, cloud.waits.ready_s)
        if _logging(old) != _logging(new):
            cloud.eks.update_cluster_config(name=identifier, logging=_logging(new) or _logged([]))
            self.finish(cloud, identifier, new, cloud.waits.ready_s)
        if "version" in new and old.get("version") != new["version"]:
            cloud.eks.update_cluster_version(name=identifier, version=new["version"])
        change_tags(cloud, cloud.arn("eks", f"cluster/{identifier}"), old, new)

    def remove(self, cloud: Cloud, identifier: str, inputs: Properties, outputs: Properties, free_s: float) -> None:
        del inputs, outputs
        with gone_is_fine(GONE):
            cloud.once_free(lambda: cloud.eks.delete_cluster(name=identifier), BUSY, free_s)
        until_gone(cloud, lambda: cluster_of(cloud, identifier), f"EKS cluster {identifier}")


class NodeGroup(Kind):
    TYPE = "aws:eks/nodeGroup:NodeGroup"
    INPUTS: ClassVar[Inputs] = {
        "amiType": str,
        "capacityType": str,
        "clusterName": str,
        "diskSize": int,
        "instanceTypes": [str],
        "launchTemplate": {"id": str, "version": str},
        "nodeGroupName": str,
        "nodeRoleArn": str,
        "scalingConfig": {"desiredSize": int, "maxSize": int, "minSize": int},
        "subnetIds": [str],
        "tags": TEXTS,
    }
    REQUIRED = ("clusterName", "nodeRoleArn", "scalingConfig", "subnetIds")
    REPLACE = (
        "amiType",
        "capacityType",
        "clusterName",
        "diskSize",
        "instanceTypes",
        "launchTemplate.id",
        "nodeGroupName",
        "nodeRoleArn",
        "subnetIds",
    )
    DEFAULTS: ClassVar[Properties] = {"capacityType": "ON_DEMAND"}
    NAME = "nodeGroupName"
    COMPUTED = ("arn", "resources", "status", "tagsAll", "version")

    def make(self, cloud: Cloud, inputs: Properties) -> str:
        names = {name: name for name in ("amiType", "diskSize", "instanceTypes", "launchTemplate", "tags")}
        cloud.eks.create_nodegroup(
            clusterName=inputs["clusterName"],
            nodegroupName=inputs["nodeGroupName"],
            capacityType=inputs["capacityType"],
            nodeRole=inputs["nodeRoleArn"],
            scalingConfig=inputs["scalingConfig"],
            subnets=inputs["subnetIds"],
            **{api: inputs[name] for api, name in names.items() if name in inputs},
        )
        return f"{inputs['clusterName']}:{inputs['nodeGroupName']}"

    def finish(self, cloud: Cloud, identifier: str, inputs: Properties, within_s: float) -> None:
        del inputs
        until_active(cloud, lambda: node_group_of(cloud, identifier), f"node group {identifier}", within_s)

    def live(self, cloud: Cloud, identifier: str) -> Properties | None:
        found = node_group_of(cloud, identifier)
        if found is None or found["status"] == "DELETING":
            return None
        return {
            "amiType": found.get("amiType"),
            "arn": found["nodegroupArn"],
            "capacityType": found.get("capacityType"),
            "clusterName": found["clusterName"],
            "diskSize": found.get("diskSize"),
            "instanceTypes": found.get("instanceTypes"),
            "launchTemplate": found.get("launchTemplate"),
            "nodeGroupName": found["nodegroupName"],
            "nodeRoleArn": found["nodeRole"],
            "scalingConfig": found["scalingConfig"],
            "status": found["status"],
            "subnetIds": found["subnets"],
            "tags": found.get("tags") or {},
            "version": found.get("version"),
        }

    def change(self, cloud: Cloud, identifier: str, old: Properties, new: Properties) -> None:
        cluster, _, name = identifier.partition(":")
        if old.get("scalingConfig") != new["scalingConfig"]:
            cloud.eks.update_nodegroup_config(
                clusterName=cluster, nodegroupName=name, scalingConfig=new["scalingConfig"]
            )
        if old.get("launchTemplate") != new.get("launchTemplate"):
            cloud.eks.update_nodegroup_version(
                clusterName=cluster, nodegroupName=name, launchTemplate=new["launchTemplate"]
            )
        found = node_group_of(cloud, identifier)
        assert found is not None
        change_tags(cloud, found["nodegroupArn"], old, new)

    def remove(self, cloud: Cloud, identifier: str, inputs: Properties, outputs: Properties, free_s: float) -> None:
        del inputs, outputs
        cluster, _, name = identifier.partition(":")
        with gone_is_fine(GONE):
            cloud.once_free(lambda: cloud.eks.delete_nodegroup(clusterName=cluster, nodegroupName=name), BUSY, free_s)
        until_gone(cloud, lambda: node_group_of(cloud, identifier), f"node group {identifier}")


class Addon(Kind):
    TYPE = "aws:eks/addon:Addon"
    INPUTS: ClassVar[Inputs] = {
        "addonName": str,
        "addonVersion": str,
        "clusterName": str,
        "configurationValues": JSON,
        "preserve": bool,
        "resolveConflictsOnCreate": str,
        "resolveConflictsOnUpdate": str,
        "serviceAccountRoleArn": str,
        "tags": TEXTS,
    }
    REQUIRED = ("addonName", "clusterName")
    REPLACE = ("addonName", "clusterName")
    COMPUTED = ("addonVersion", "arn", "configurationValues", "createdAt", "modifiedAt", "tagsAll")

    def make(self, cloud: Cloud, inputs: Properties) -> str:
        conflicts = inputs.get("resolveConflictsOnCreate")
        cloud.eks.create_addon(
            clusterName=inputs["clusterName"],
            addonName=inputs["addonName"],
            **({"resolveConflicts": conflicts} if conflicts else {}),
            **({"tags": inputs["tags"]} if inputs.get("tags") else {}),
            **_addon_settings(inputs),
        )
        return f"{inputs['clusterName']}:{inputs['addonName']}"

    def finish(self, cloud: Cloud, identifier: str, inputs: Properties, within_s: float) -> None:
        del inputs
        until_active(cloud, lambda: addon_of(cloud, identifier), f"add-on {identifier}", within_s)

    def live(self, cloud: Cloud, identifier: str) -> Properties | None:
        found = addon_of(cloud, identifier)
        if found is None or found["status"] == "DELETING":
            return None
        return {
            "addonName": found["addonName"],
            "addonVersion": found.get("addonVersion"),
            "arn": found["addonArn"],
            "clusterName": found["clusterName"],
            "configurationValues": found.get("configurationValues") or None,
            "createdAt": str(found.get("createdAt")),
            "modifiedAt": str(found.get("modifiedAt")),
            "serviceAccountRoleArn": found.get("serviceAccountRoleArn"),
            "tags": found.get("tags") or {},
        }

    def change(self, cloud: Cloud, identifier: str, old: Properties, new: Properties) -> None:
        cluster, _, name = identifier.partition(":")
        if _addon_settings(old) != _addon_settings(new):
            conflicts = new.get("resolveConflictsOnUpdate")
            cloud.eks.update_addon(
                clusterName=cluster,
                addonName=name,
                **({"resolveConflicts": conflicts} if conflicts else {}),
                **_addon_settings(new),
            )
        found = addon_of(cloud, identifier)
        assert found is not None
        change_tags(cloud, found["addonArn"], old, new)

    def remove(self, cloud: Cloud, identifier: str, inputs: Properties, outputs: Properties, free_s: float) -> None:
        del outputs, free_s
        cluster, _, name = identifier.partition(":")
        with gone_is_fine(GONE):
            cloud.eks.delete_addon(clusterName=cluster, addonName=name, preserve=inputs.get("preserve", False))
        until_gone(cloud, lambda: addon_of(cloud, identifier), f"add-on {identifier}")


def _logging(inputs: Properties) -> dict[str, Any] | None:
    return _logged(inputs["enabledClusterLogTypes"]) if inputs.get("enabledClusterLogTypes") else None


def _logged(types: list[str]) -> dict[str, Any]:
    return {"clusterLogging": [{"types": types, "enabled": bool(types)}]}


def _addon_settings(inputs: Properties) -> dict[str, str]:
    names = ("addonVersion", "configurationValues", "serviceAccountRoleArn")
    return {name: inputs[name] for name in names if name in inputs}

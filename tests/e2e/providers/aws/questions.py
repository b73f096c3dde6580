"""What the program and pulumi-eks ask of AWS, answered through botocore."""

from collections.abc import Callable, Mapping
from typing import Any

from tests.e2e.providers.aws.cloud import Cloud
from tests.e2e.providers.serving import RefusedError
from tests.e2e.providers.values import Properties


def _caller(cloud: Cloud, arguments: Properties) -> Properties:
    _only(arguments)
    caller = cloud.caller
    account = caller["Account"]
    return {"accountId": account, "arn": caller["Arn"], "id": account, "userId": caller["UserId"]}


def _zones(cloud: Cloud, arguments: Properties) -> Properties:
    _only(arguments, "allAvailabilityZones", "excludeNames", "excludeZoneIds", "filters", "state")
    asked: dict[str, Any] = {}
    if "filters" in arguments:
        asked["Filters"] = [{"Name": one["name"], "Values": one["values"]} for one in arguments["filters"]]
    if arguments.get("allAvailabilityZones"):
        asked["AllAvailabilityZones"] = True
    zones = [
        zone
        for zone in cloud.ec2.describe_availability_zones(**asked)["AvailabilityZones"]
        if zone["State"] == arguments.get("state", zone["State"])
        and zone["ZoneName"] not in arguments.get("excludeNames", [])
        and zone["ZoneId"] not in arguments.get("excludeZoneIds", [])
    ]
    zones.sort(key=lambda zone: str(zone["ZoneName"]))
    return {
        **arguments,
        "groupNames": sorted({zone.get("GroupName", cloud.region) for zone in zones}),
        "id": cloud.region,
        "names": [zone["ZoneName"] for zone in zones],
        "region": cloud.region,
        "zoneIds": [zone["ZoneId"] for zone in zones],
    }


def _partition(cloud: Cloud, arguments: Properties) -> Properties:
    _only(arguments)
    partition = str(cloud.caller["Arn"]).split(":")[1]
    suffix = "amazonaws.com.cn" if partition == "aws-cn" else "amazonaws.com"
    reverse = ".".join(reversed(suffix.split(".")))
    return {"dnsSuffix": suffix, "id": partition, "partition": partition, "reverseDnsPrefix": reverse}


def _addon_version(cloud: Cloud, arguments: Properties) -> Properties:
    _only(arguments, "addonName", "kubernetesVersion", "mostRecent")
    name, kubernetes = arguments["addonName"], arguments["kubernetesVersion"]
    listed = cloud.eks.describe_addon_versions(addonName=name, kubernetesVersion=kubernetes)["addons"]
    versions = [one for addon in listed for one in addon["addonVersions"]]
    fitting = versions if arguments.get("mostRecent") else [one for one in versions if _is_default(one, kubernetes)]
    if not fitting:
        raise RefusedError(f"reading EKS add-on version: {name} has none for Kubernetes {kubernetes}")
    # EKS lists the youngest first.
    return {**arguments, "id": name, "region": cloud.region, "version": fitting[0]["addonVersion"]}


def _roles(cloud: Cloud, arguments: Properties) -> Properties:
    _only(arguments, "pathPrefix")
    pages = cloud.iam.get_paginator("list_roles").paginate(PathPrefix=arguments["pathPrefix"])
    found = [role for page in pages for role in page["Roles"]]
    told = {"arns": [role["Arn"] for role in found], "names": [role["RoleName"] for role in found]}
    return {**arguments, **told, "id": cloud.region}


QUESTIONS: Mapping[str, Callable[[Cloud, Properties], Properties]] = {
    "aws:eks/getAddonVersion:getAddonVersion": _addon_version,
    "aws:iam/getRoles:getRoles": _roles,
    "aws:index/getAvailabilityZones:getAvailabilityZones": _zones,
    "aws:index/getCallerIdentity:getCallerIdentity": _caller,
    "aws:index/getPartition:getPartition": _partition,
}


def _only(arguments: Properties, *known: str) -> None:
    unknown = sorted(set(arguments) - set(known))
    if unknown:
        raise RefusedError(f"unknown argument {', '.join(unknown)}; known here: {', '.join(known) or 'none'}")


def _is_default(version: Mapping[str, Any], kubernetes: str) -> bool:
    fits = version.get("compatibilities", [])
    return any(one["clusterVersion"] == kubernetes and one.get("defaultVersion") for one in fits)
